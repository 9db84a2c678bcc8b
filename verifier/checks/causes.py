"""Why a check fails, in words, and the command to run next (spec §10.3)."""

from __future__ import annotations

_COMPARE = "take the export again, or compare it with another copy: cmp FILE COPY"
_SHOW = "look at the events of the card: cardchain show DIR HASH"
_LOG = "look at the events around it: cardchain log DIR"

# of a root that rests on a frontier, which nobody signed (spec §13.5)
OVER_A_FRONTIER = (
    "the frontier file at the left edge was changed, or the log was rewritten below the "
    "checkpoint, or another history was signed",
    "hold the whole log against it: cat ARCHIVE.cbor DIR/segments/*.cbor >WHOLE.cbor && "
    "cardchain-verify WHOLE.cbor --checkpoint NOTE --vkey VKEY",
)

CAUSES = {
    "segment_name": (
        "a file was renamed, put there, or begins with another record",
        "list the folder: ls -l DIR/segments",
    ),
    "framing": (
        "bytes were changed, inserted or lost, so that no record can be read there",
        _COMPARE,
    ),
    "torn_tail": (
        "the file was cut, by an interrupted copy or by someone",
        "take the export again: cardchain export DIR -o FILE.cbor",
    ),
    "limits": ("a length was changed, or the record was not made by this software", _COMPARE),
    "deterministic": ("the record was encoded again by other software, or changed", _COMPARE),
    "shape": (
        "a member was added, removed or changed, or an opening was put beside the record",
        _COMPARE,
    ),
    "version": (
        "newer software wrote the record, whose tag holds, or the excerpt",
        "verify with the software that wrote the log: cardchain-verify --version",
    ),
    "chain": ("a record of another ledger was put in", _COMPARE),
    "sequence": ("records were removed, repeated or moved", _COMPARE),
    "link": (
        "the record before was replaced, or this one comes from another history of the ledger",
        _COMPARE,
    ),
    "kid": (
        "the key id was changed, or someone wrote under a key that was never or no longer in force",
        "list the keys of the ledger: cardchain keys list DIR",
    ),
    "key_missing": (
        "no key file with this kid was given; this accuses nobody",
        "give the key file with --key FILE: cardchain-verify LOG --key {kid}.json",
    ),
    "tag": (
        "the record was changed after it was written, or was written by someone without the key; "
        "a wrong key file cannot be the cause, because the kid follows from the secret",
        _COMPARE,
    ),
    "rekey": (
        "an old key was brought back, or who wrote the record did not hold the new key",
        "list the keys of the ledger: cardchain keys list DIR",
    ),
    "pin": (
        "the log was rewritten by someone with the key, or the key file is of another history",
        "compare the pin in the key file with a copy of the log kept elsewhere",
    ),
    "time": ("the record was not written by this ledger: its clock never runs backwards", _LOG),
    "excerpt": (
        "the excerpt was changed, or made by software that does not keep to the format",
        "ask for the excerpt again, or for the whole log",
    ),
    "checkpoint": (
        "the file is no checkpoint, was changed, or is of another ledger",
        "look at the file; give the checkpoints of other ledgers with their own logs",
    ),
    "checkpoint_key": (
        "the vkey of its signer was not given, or signatures cannot be checked here",
        "give the vkey of the signer with --vkey, or install what is missing: "
        "pip install cryptography",
    ),
    "checkpoint_signature": (
        "the checkpoint was changed after it was signed, or somebody else signed it",
        "get the checkpoint again from its signer, and hold the vkey against where it came from",
    ),
    "checkpoint_size": (
        "the end of the log was cut off, or the log was rolled back",
        "take the export again, and find out who could change the log",
    ),
    "checkpoint_root": (
        "the log was rewritten below the checkpoint by someone with its key, or another history "
        "was signed",
        "compare with a copy from the time of the checkpoint: cardchain-verify COPY LOG",
    ),
    "inclusion": (
        "the record was changed, or was never in the log that was signed",
        "ask for the excerpt again, or for the whole log",
    ),
    "consistency": (
        "the ledger was rewritten between two checkpoints, or its signer showed two histories",
        "keep both checkpoints as evidence, and ask for the whole log",
    ),
    "card_hash": (
        "the envelope was changed after it was hashed",
        "compare the envelope with another copy: cardchain show DIR HASH --raw | sha256sum",
    ),
    "opening_digest": ("what was kept beside the record was changed", _COMPARE),
    "envelope_canonical": ("the card was made by software that does not keep to the format", _SHOW),
    "envelope_schema": ("the card was made by software that does not keep to the format", _SHOW),
    "args_digest": ("the card was made with the digest of other arguments", _SHOW),
    "effect_key": ("the card was made with the key of another effect", _SHOW),
    "issued_body": ("the record says something else about the card than the card itself", _SHOW),
    "opened": ("the log was not begun by this software, or begins a second time", _LOG),
    "profile_form": ("the ledger was configured with a file that is no profile", _LOG),
    "claim": ("the card claims more evidence than it carries", _SHOW),
    "floor": ("the card was issued below what its profiles ask for", _SHOW),
    "manifest": ("the approver was shown something else than the card, or not all of it", _SHOW),
    "fixed_parameter": ("the request carried a value that the operator had fixed", _SHOW),
    "issued_once": ("an old card was put before an approver again", _SHOW),
    "supersedes": ("a card was issued beside another one of its step", _SHOW),
    "prior_attempt": ("the approver was not told what happened to the attempt before", _SHOW),
    "not_issued": ("something was decided about a card that nobody was shown", _SHOW),
    "of": ("the writer did not know the last event of the card", _SHOW),
    "echo": ("another card was on the screen than the one decided about", _SHOW),
    "approver": ("a decision was taken in nobody's name", _SHOW),
    "decided_once": ("a decision was replayed or replaced", _SHOW),
    "in_time": ("a card was decided, or a grant used, after its time", _SHOW),
    "withdrawn": ("a withdrawn card was used", _SHOW),
    "latest": ("a card was used that another one had replaced", _SHOW),
    "self_approval": ("someone decided about a card of their own", _SHOW),
    "assurance": ("the decision was taken without knowing for sure by whom", _SHOW),
    "withdraw_state": ("a card was withdrawn that was over", _SHOW),
    "approved": ("something ran without an approval", _SHOW),
    "dispatched_once": ("one approval was used twice", _SHOW),
    "rebuilt": ("something else was about to run than what was approved", _SHOW),
    "settled": ("an outcome was recorded for something that never ran, or twice", _SHOW),
    "refusal_reason": ("a request was refused for a reason that the log contradicts", _LOG),
    "refusal_count": ("refusals were left out or counted wrongly", _LOG),
    "recovered": ("records were put in or lost around a recovery", _LOG),
    "redacted": ("the redaction is of another record than it says", _LOG),
    "pruned": (
        "records were removed too early, or others than the event says",
        "hold the archive against the digest: cardchain-verify ARCHIVE.cbor --expect-head DIGEST",
    ),
    "opening_missing": (
        "an opening was removed without a record of it",
        "take it from another copy of the log, or ask who holds the ledger",
    ),
    "profile": (
        "no opening and no file has the bytes of the profile; this accuses nobody",
        "give the file with --profile FILE; its digest: sha256sum FILE",
    ),
    "auditor_floor": ("the approval rests on less evidence than the auditor asks for", _SHOW),
    "signature": (
        "this version does not check the signatures of approvers",
        "verify with software that does",
    ),
    "empty": (
        "the file or folder holds no log; or, with --since, it ends before what was kept, was "
        "rewritten up to there, or is another log; nothing was verified",
        "check the path: ls -l PATH; with --since: compare with an older copy, cmp FILE COPY",
    ),
    "unreadable": (
        "the path is wrong, is not a log, or may not be read",
        "check the path: ls -l PATH",
    ),
    "left_edge": (
        "the beginning of the log was not given, or was removed",
        "give the whole log: cardchain export DIR -o FILE.cbor",
    ),
    "expected_count": (
        "the end of the log was cut off, or the log was rolled back",
        "take the export again, and find out who could change the log",
    ),
    "expected_head": (
        "the end of the log was cut off or replaced, or the digest is of another log",
        "take the export again, and find out who could change the log",
    ),
    "pinned_head": (
        "the log was cut, rolled back or rewritten since it was looked at last, or is another one",
        "keep the pin file and this log as evidence; ask for the log that holds the head",
    ),
    "required": (
        "nothing that was kept or signed vouches for this log",
        "give a checkpoint with --checkpoint and its vkey with --vkey, or a pin with --pin",
    ),
    "fork": (
        "the ledger was copied or restored, and both were written to",
        "find the seq where they part: cmp FILE1 FILE2",
    ),
}
