"""Checks of the bytes of a record by themselves (spec §3, §7)."""

from __future__ import annotations

import hashlib
from hmac import compare_digest

from verifier.evidence import Evidence, is_later_format
from verifier.shape import Problem
from verifier.spec import CARD_FORMAT, VERSION
from verifier.state import State


def check_segment_name(record: Evidence, state: State) -> Problem | None:
    """Every name in `segments/` is the seq of the segment's first record (spec §7.1)."""
    if record.name is not None:
        return record.name
    if record.segment_seq is None or record.seq is None or record.segment_seq == record.seq:
        return None
    if state.belongs(record.seq):
        return None
    return f"the name {record.seq:020}", f"{record.segment_seq:020}"


def check_framing(record: Evidence, _state: State) -> Problem | None:
    """The input is whole records and nothing else (spec §3.1)."""
    return record.framing


def check_torn_tail(record: Evidence, _state: State) -> Problem | None:
    """A file does not end inside a record (spec §7.4)."""
    return record.torn


def check_limits(record: Evidence, _state: State) -> Problem | None:
    """No record, bare record or opening is over its limit (spec §3.3)."""
    return record.limit


def check_deterministic(record: Evidence, _state: State) -> Problem | None:
    """Every item is in its one deterministic form (spec §3.1)."""
    return record.form


def check_shape(record: Evidence, _state: State) -> Problem | None:
    """Payload, body and openings have exactly the members of their kind (spec §3.2 to §3.5)."""
    return record.members


def check_version(record: Evidence, state: State) -> Problem | None:
    """The version of the record and of its envelope is known (spec §3.2, §2.3).

    A version counts only where no tag fails, and for an envelope no hash: else an edit of these few
    bytes would turn a broken log into one that cannot be verified.
    """
    if record.version is None:
        return None
    if not record.known_version:
        return None if _tag_fails(record, state) else (VERSION, record.version)
    if record.envelope is None or state.cards.is_judged(record.card):
        return None
    document = record.document()
    if document is None or not is_later_format(document):
        return None
    if hashlib.sha256(record.envelope).digest() != record.card or _tag_fails(record, state):
        return None
    return CARD_FORMAT, document["format"]


def _tag_fails(record: Evidence, state: State) -> bool:
    hmac = state.ring.hmac(record.chain or state.chain or b"", record.kid)
    return hmac is not None and not compare_digest(hmac.digest(record.mac_input()), record.tag)
