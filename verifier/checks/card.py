"""Checks of the openings and of the envelope (spec §2, §3.4)."""

from __future__ import annotations

import hashlib
from typing import Any

from verifier import envelope, jcs
from verifier.evidence import Evidence, is_later_format
from verifier.shape import OPENINGS, Problem
from verifier.state import State


def check_card_hash(record: Evidence, _state: State) -> Problem | None:
    """The envelope hashes to card (spec §2)."""
    if record.envelope is None or record.card is None:
        return None
    found = hashlib.sha256(record.envelope).digest()
    return None if found == record.card else (record.card.hex(), found.hex())


def check_opening_digest(record: Evidence, _state: State) -> Problem | None:
    """Every other opening hashes to the digest that binds it (spec §3.4)."""
    for name, value in record.openings.items():
        found = hashlib.sha256(value).digest()
        if name != "envelope" and found != record.bound[name]:
            return f"{name} {record.bound[name].hex()}", f"{name} {found.hex()}"
    return None


def _document(record: Evidence, state: State) -> dict[str, Any] | None:
    """Give the envelope where it is there, was not checked before, and is of a known format."""
    return None if state.cards.is_judged(record.card) else record.known_document()


def check_envelope_canonical(record: Evidence, state: State) -> Problem | None:
    """The envelope is strict JSON in canonical form (spec §2.1, §2.2)."""
    if record.envelope is None or state.cards.is_judged(record.card):
        return None
    try:
        jcs.judged(record.envelope)
    except jcs.JsonRefused as error:
        place = f" at {error.pointer}" if error.pointer else ""
        return "strict JSON in canonical form", f"{error.problem}{place}"
    return None


def check_envelope_schema(record: Evidence, state: State) -> Problem | None:
    """The envelope has exactly the members of the schema (spec §2.3)."""
    if record.envelope is None or state.cards.is_judged(record.card):
        return None
    document = record.document()
    if document is not None and is_later_format(document):
        return None
    problem = ": an object" if document is None else envelope.schema_problem(document)
    return None if problem is None else ("the members of the schema", f"not {problem}")


def check_args_digest(record: Evidence, state: State) -> Problem | None:
    """args_digest follows from the arguments (spec §2.5)."""
    document = _document(record, state)
    if document is None:
        return None
    expected, found = envelope.args_digest(document), document["action"]["args_digest"]
    return None if expected == found else (expected, found)


def check_effect_key(record: Evidence, state: State) -> Problem | None:
    """effect_key follows from task, tool, capability and arguments (spec §2.5)."""
    document = _document(record, state)
    if document is None:
        return None
    expected, found = envelope.effect_key(document), document["effect_key"]
    return None if expected == found else (expected, found)


def check_issued_body(record: Evidence, state: State) -> Problem | None:
    """The body of issued repeats the envelope; issued_at is the second of at (spec §3.5, §5).

    An issued record without its envelope is held against the first later record that has it.
    """
    document = record.known_document()
    if document is None or record.kind is None or record.at is None:
        return None
    problem = envelope.repeats_problem(record.kind, record.body, record.at, document)
    claim = state.claims.get(record.card or b"")
    if problem is not None or claim is None:
        return problem
    at, body = claim
    return envelope.repeats_problem("issued", body, at, document)


def check_opening_missing(names: set[str]) -> Problem:
    """Every absent opening is named by a redacted event (spec §3.4).

    `names` are the openings of one record that are absent and that no event named.
    """
    listed = ", ".join(sorted(names))
    return f"the opening {listed}, or a redacted event that names it", "neither"


def check_redacted(record: Evidence, state: State) -> Problem | None:
    """Redacted names an earlier record by its digest (spec §6.3)."""
    if record.kind != "redacted" or record.seq is None:
        return None
    seq, target = record.body["seq"], record.body["target"]
    if seq >= record.seq:
        return f"a seq before {record.seq}", f"seq {seq}"
    if state.digests.matches(seq, target) is False:
        return "the chain digest of an earlier record", target.hex()
    names = record.body["openings"]
    bound = state.digests.bound(seq)
    for place, name in enumerate(names):
        if (
            name not in OPENINGS
            or name in names[:place]
            or (bound is not None and name not in bound)
        ):
            return "different openings that the record binds", ", ".join(names)
    return None


def check_recovered(record: Evidence, _state: State) -> Problem | None:
    """Recovered names the record before it (spec §6.3)."""
    if record.kind != "recovered" or record.seq is None:
        return None
    found = record.body["after_seq"]
    return (
        None if found == record.seq - 1 else (f"after_seq {record.seq - 1}", f"after_seq {found}")
    )


def check_signature(record: Evidence, _state: State) -> Problem | None:
    """Signed decisions are checked (spec §8.3): version 1 cannot."""
    if record.kind != "resolved" or record.body["approver"]["assurance"] != "signed":
        return None
    return "a signature that is checked", "assurance signed"
