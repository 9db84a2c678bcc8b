"""The checks of a Bernstein log as one table, with the likely cause and the next step of each.

The format has no section numbers of ours; the claim of a row is the rule.
`bernstein.key`, `.version`, `.tear`, `.empty` and `.readable` accuse nobody: they cannot verify.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from verifier.report import Verdict

SECTION: Final = "Bernstein log"


@dataclass(frozen=True, slots=True)
class Check:
    """A row: reason code, claim, what a finding means, what to do next, and its group."""

    id: str
    claim: str
    cause: str
    next_step: str
    group: str = "chain"
    verdict: Verdict = Verdict.BROKEN


_RESTORE: Final = "compare the file with a backup made before"
_EDITED: Final = "the record was changed after it was written"
_KEYHOLDER: Final = "it was written past the gate, by a faulty writer or by someone with the key"
_HISTORY: Final = "list the events of the card and ask who ran the writer at that time"
_CANNOT: Final = Verdict.CANNOT_VERIFY

CHECKS: Final = (
    Check(
        "bernstein.readable",
        "the files of the log can be read",
        "a file is missing or its permissions keep it from being read",
        "check the path and the permissions",
        verdict=_CANNOT,
    ),
    Check(
        "bernstein.empty",
        "the log holds at least one record",
        "the path is wrong, or every file of the log was removed",
        "check the path; if it is right, restore .sdd/audit from a backup",
        verdict=_CANNOT,
    ),
    Check(
        "bernstein.archive",
        "an archived day is a whole gzip file, and no day exists in two versions",
        "the archive was damaged or replaced",
        _RESTORE,
    ),
    Check(
        "bernstein.limits",
        "no line is over 64 MiB, and no archive expands over 200 times its size",
        "the bytes were not written by Bernstein",
        _RESTORE,
    ),
    Check(
        "bernstein.torn_tail",
        "every file ends with a whole line",
        "a crash during a write, or the file was cut inside a record",
        "on the host that wrote it: bernstein audit verify, then bernstein audit ack-tear",
    ),
    Check(
        "bernstein.line",
        "every line is one JSON object in UTF-8",
        "the line was damaged, or text was added to the file",
        _RESTORE,
    ),
    Check(
        "bernstein.canonical",
        "every line has exactly the bytes that the writer makes of its value",
        "the line was changed after it was written, without changing its value",
        _RESTORE,
    ),
    Check(
        "bernstein.shape",
        "every record has exactly the members of the format",
        _EDITED,
        _RESTORE,
    ),
    Check(
        "bernstein.scheme",
        "every record is of scheme 1 or 2",
        "the record was changed after it was written, or a newer Bernstein wrote it",
        "compare the file with a backup; for a newer log, verify with a newer cardchain",
    ),
    Check(
        "bernstein.link",
        "prev_hmac is the hmac of the record before, 64 zeros at the start",
        "records were removed, added or moved here, or a file is missing or renamed",
        _RESTORE,
    ),
    Check(
        "bernstein.left_edge",
        "the log starts with its first record",
        "one file of the log was given, and it is not the first",
        "give the folder .sdd/audit with all of its files",
        verdict=_CANNOT,
    ),
    Check(
        "bernstein.key",
        "the key of the log is at hand",
        "no key was given, or it is the key of another log",
        "give the key file that the writer used: --key FILE",
        verdict=_CANNOT,
    ),
    Check(
        "bernstein.hmac",
        "the HMAC of every record holds under the key",
        "the record was changed after it was written, or added by someone without the key",
        _RESTORE,
    ),
    Check(
        "bernstein.predecessor",
        "details.prev_chain_digest repeats prev_hmac",
        _KEYHOLDER,
        _RESTORE,
    ),
    Check(
        "bernstein.tear",
        "every torn write was sealed by the writer and acknowledged by an operator",
        "a crash during a write that nobody has looked at",
        "on the host that wrote it: bernstein audit ack-tear",
        verdict=_CANNOT,
    ),
    Check(
        "bernstein.day",
        "the records of a file are of the day that its name says",
        "the file was renamed, or records were moved between files",
        _RESTORE,
    ),
    Check(
        "bernstein.version",
        "every card and every event about a card is of a kind known here",
        "a newer Bernstein wrote it",
        "verify with a newer cardchain",
        "card",
        _CANNOT,
    ),
    Check(
        "bernstein.card_event",
        "an event about a card has the members of its kind and names one card",
        _KEYHOLDER,
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.card_hash",
        "the stored envelope hashes to card_hash",
        "the envelope was changed before the record was sealed",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.envelope",
        "the envelope has exactly the members of a card v2, within their ranges",
        "the envelope was not made by Bernstein",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.issued_once",
        "a card is issued once",
        "the card was issued again, perhaps to move it to another worktree or conversation",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.not_issued",
        "a decision echoes a card that was issued before it",
        "the decision is about a card that nobody issued",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.decided_once",
        "a card ends once: resolved, refused as expired, or released",
        "the card was decided again after its end",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.decision",
        "a decision is approve or reject",
        _KEYHOLDER,
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.approver",
        "an event names who caused it, and actor is the same name",
        _KEYHOLDER,
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.in_time",
        "a decision falls in the window of its card, by resolved_at and by the clock of the log",
        "a late decision was recorded as if it had been in time",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.clock",
        "the time that an event states agrees with the time it was written",
        "the stated time was backdated or postdated",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.pin",
        "a decision comes from the worktree and the conversation that the card was issued into",
        "the decision came from elsewhere and was not refused",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.refusal",
        "the reason of a refusal is possible where it stands",
        "a refusal was invented, perhaps to end a card or to hide a decision",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.released",
        "a release follows the refusal of a card as expired, once",
        "a card was released that was not refused",
        _HISTORY,
        "card",
    ),
    Check(
        "bernstein.checkpoint",
        "checkpoints are authentic, follow each other, and the log holds what they cover",
        "records that a checkpoint covers are gone or changed, or the checkpoint was changed",
        "restore the files that the checkpoint names from a backup",
        "mark",
    ),
    Check(
        "bernstein.seal",
        "the log holds what its unsigned seals and tiles cover",
        "records that a seal covers are gone or changed, or the seal was changed",
        "restore the files that the seal names from a backup",
        "mark",
    ),
    Check(
        "bernstein.expected_count",
        "the log holds at least the expected number of records",
        "the end of the log was cut off",
        "get the missing records from a backup",
        "end",
    ),
    Check(
        "bernstein.expected_head",
        "a record has the expected hmac, at the expected place",
        "the end of the log was cut off, or this is another log",
        "get the missing records from a backup",
        "end",
    ),
)

BY_ID: Final = {check.id: check for check in CHECKS}
