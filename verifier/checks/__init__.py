"""The table of checks, in the order of spec §10.1.

A replay reports, for each record, the first row of scope RECORD that fails. The rows of the other
scopes are about records that lack an opening, about a whole log, about several logs, about a
checkpoint or proof, about the form of an excerpt, and about what the report comes to.
A check gives None, or what the spec asks for and what is there.
"""

from __future__ import annotations

from verifier.checks import card, chain, checkpoint, completeness, framing, policy
from verifier.checks.checkpoint_rows import CHECKPOINT_ROWS
from verifier.checks.event_rows import EVENT_ROWS, OF_A_CARD
from verifier.checks.row import ANCHOR, EXCERPT, LOG, LOGS, OPENINGS, RECORD, REPORT, Check
from verifier.report import Verdict

__all__ = ["ANCHOR", "CHECKS", "EXCERPT", "LOG", "LOGS", "OPENINGS", "RECORD", "REPORT", "Check"]

_CANNOT = Verdict.CANNOT_VERIFY

CHECKS = (
    Check(
        "segment_name",
        "framing",
        "§7.1",
        "every name in segments/ is a segment's, and the number is the seq of its first record",
        framing.check_segment_name,
    ),
    Check(
        "framing",
        "framing",
        "§3.1",
        "the input is whole records and nothing else",
        framing.check_framing,
    ),
    Check(
        "torn_tail",
        "framing",
        "§7.4",
        "a file does not end inside a record",
        framing.check_torn_tail,
    ),
    Check(
        "limits",
        "framing",
        "§3.3",
        "no record, bare record or opening is over its limit",
        framing.check_limits,
    ),
    Check(
        "deterministic",
        "canonical form",
        "§3.1",
        "every item is in its one deterministic form",
        framing.check_deterministic,
    ),
    Check(
        "shape",
        "canonical form",
        "§3.2-3.5, §6.4",
        "payload, body and openings have exactly the members of their kind",
        framing.check_shape,
    ),
    Check(
        "version",
        "canonical form",
        "§3.2, §2.3, §14.1",
        "the version is known",
        framing.check_version,
        verdict=_CANNOT,
    ),
    Check(
        "chain", "sequence", "§3.2", "every record names the chain of the first", chain.check_chain
    ),
    Check("sequence", "sequence", "§3.2", "seq runs 0, 1, 2, …", chain.check_sequence),
    Check(
        "link", "link", "§3.3", "prev is the chain digest of the record before", chain.check_link
    ),
    Check(
        "kid", "key lifecycle", "§4.2", "every record is under the kid in force", chain.check_kid
    ),
    Check(
        "key_missing",
        "tag",
        "§4.2",
        "a secret for the kid is at hand",
        chain.check_key_missing,
        verdict=_CANNOT,
    ),
    Check(
        "tag", "tag", "§3.1", "the tag holds under the secret that the kid names", chain.check_tag
    ),
    Check(
        "rekey",
        "key lifecycle",
        "§4.2",
        "a new kid was never in force, and its proof holds",
        chain.check_rekey,
        kinds=("rekeyed",),
    ),
    Check(
        "pin",
        "key lifecycle",
        "§4.3",
        "the record that a key file pins is the one in the log",
        chain.check_pin,
    ),
    Check(
        "time",
        "time",
        "§5",
        "at never goes back but in a clock_reset, whose was is the at before",
        chain.check_time,
    ),
    *CHECKPOINT_ROWS,
    Check("card_hash", "card hash", "§2", "the envelope hashes to card", card.check_card_hash),
    Check(
        "opening_digest",
        "openings accounted",
        "§3.4",
        "every other opening hashes to the digest that binds it",
        card.check_opening_digest,
    ),
    Check(
        "envelope_canonical",
        "envelope schema",
        "§2.1, §2.2",
        "the envelope is strict JSON in canonical form",
        card.check_envelope_canonical,
    ),
    Check(
        "envelope_schema",
        "envelope schema",
        "§2.3",
        "the envelope has exactly the members of the schema",
        card.check_envelope_schema,
    ),
    Check(
        "args_digest",
        "envelope schema",
        "§2.5",
        "args_digest follows from the arguments",
        card.check_args_digest,
    ),
    Check(
        "effect_key",
        "effect key",
        "§2.5",
        "effect_key follows from task, tool, capability and arguments",
        card.check_effect_key,
    ),
    Check(
        "issued_body",
        "envelope schema",
        "§3.5, §5",
        "the body of issued, and of a refusal of the gate issue, repeats the envelope; "
        "issued_at is the second of at",
        card.check_issued_body,
        kinds=("issued", *OF_A_CARD),
    ),
    *EVENT_ROWS,
    Check(
        "recovered",
        "framing",
        "§6.3",
        "recovered names the record before it",
        card.check_recovered,
        kinds=("recovered",),
    ),
    Check(
        "redacted",
        "openings accounted",
        "§6.3",
        "redacted names an earlier record by its digest",
        card.check_redacted,
        kinds=("redacted",),
    ),
    Check(
        "pruned",
        "openings accounted",
        "§15.2",
        "pruned names the left edge, and forgets only ended cards",
        chain.check_pruned,
        kinds=("pruned",),
    ),
    Check(
        "opening_missing",
        "openings accounted",
        "§3.4",
        "every absent opening is named by a redacted event",
        card.check_opening_missing,
        scope=OPENINGS,
    ),
    Check(
        "profile",
        "policy evidence",
        "§8.5",
        "every profile that a record needs is at hand",
        policy.check_profile,
        verdict=_CANNOT,
        kinds=("issued", "refused"),
        first_shown=True,
    ),
    Check(
        "auditor_floor",
        "policy evidence",
        "§8.7",
        "every approved card reaches the floor that the auditor set",
        policy.check_auditor_floor,
        verdict=_CANNOT,
        kinds=("resolved",),
    ),
    Check(
        "signature",
        "policy evidence",
        "§8.3",
        "signed decisions are checked",
        card.check_signature,
        verdict=_CANNOT,
        kinds=("resolved",),
    ),
    Check(
        "empty",
        "completeness",
        "§10.2, §15.2",
        "there is at least one record, or the log ends with what the auditor kept",
        completeness.check_empty,
        verdict=_CANNOT,
        scope=LOG,
    ),
    Check(
        "unreadable",
        "completeness",
        "§10.2",
        "the input can be read",
        completeness.check_unreadable,
        verdict=_CANNOT,
    ),
    Check(
        "left_edge",
        "completeness",
        "§10.2",
        "the log starts at seq 0, or at a left edge that is named",
        completeness.check_left_edge,
        verdict=_CANNOT,
        scope=LOG,
    ),
    Check(
        "expected_count",
        "completeness",
        "§10.2",
        "the log holds at least the expected number of records",
        completeness.check_expected_count,
        scope=LOG,
    ),
    Check(
        "expected_head",
        "completeness",
        "§10.2",
        "a record has the expected digest, at the expected place",
        completeness.check_expected_head,
        scope=LOG,
    ),
    Check(
        "fork",
        "completeness",
        "§10.2",
        "two inputs of one chain never differ at a seq",
        completeness.check_fork,
        scope=LOGS,
    ),
    Check(
        "pinned_head",
        "completeness",
        "§16.2",
        "the log holds the head that the auditor pinned",
        checkpoint.check_pinned_head,
        scope=REPORT,
    ),
    Check(
        "required",
        "completeness",
        "§16.3",
        "the assurance that the auditor asked for is reached",
        checkpoint.check_required,
        verdict=_CANNOT,
        scope=REPORT,
    ),
)
