"""Checks of a whole log, made once its end is reached (spec §10.2)."""

from __future__ import annotations

from typing import NamedTuple

from verifier.evidence import Evidence
from verifier.shape import Problem
from verifier.state import Edge, State


class Expectation(NamedTuple):
    """What the caller knows of a log from elsewhere: a chain digest, a number of records."""

    head: bytes | None = None
    records: int | None = None


class End(NamedTuple):
    """What there is to say about a log once it was read.

    `nothing` says that there was no byte to judge. `begins_at` is the seq of the record that it
    begins with, None where other bytes do; `edge_is_named` says that something vouches for what
    stood before it. `since` is the left edge that the auditor gave; `ends_at_edge` says that the
    log ends there with what was kept, `other` is the digest of another record that stands there.
    `reached` is one past the highest seq. `head_at` is where the digest of `expectation` was found,
    None if nowhere.
    """

    nothing: bool
    begins_at: int | None
    edge_is_named: bool
    since: Edge | None
    ends_at_edge: bool
    other: bytes | None
    reached: int
    unreadable: bool
    expectation: Expectation
    head_at: int | None


def check_empty(end: End) -> Problem | None:
    """There is at least one record, or the log ends with what the auditor kept (§15.2)."""
    if not end.nothing or end.ends_at_edge:
        return None
    if end.since is None:
        return "at least one record", "none"
    seq, kept = end.since
    if end.other is not None:
        expected = f"digest {kept.hex()} at seq {seq - 1}, which was kept"
        return expected, f"digest {end.other.hex()} there, at the end of the log"
    return f"at least one record from seq {seq} on, or an end at seq {seq - 1} as kept", "none"


def check_unreadable(record: Evidence, _state: State) -> Problem | None:
    """The input can be read."""
    return record.unreadable


def check_left_edge(end: End) -> Problem | None:
    """The log starts at seq 0, or at an edge that a pruned event or the auditor names (§15.2)."""
    if not end.begins_at or end.edge_is_named:
        return None
    return "a first record of seq 0, or a pruned event that names it", f"seq {end.begins_at}"


def check_expected_count(end: End) -> Problem | None:
    """The log holds at least the expected number of records."""
    count = end.expectation.records
    if count is None or end.unreadable or end.reached >= count:
        return None
    return f"at least {count} records", f"{end.reached}"


def check_expected_head(end: End) -> Problem | None:
    """A record has the expected digest, at the expected place."""
    head, count = end.expectation.head, end.expectation.records
    if head is None or end.unreadable:
        return None
    if end.head_at is None:
        return f"a record of digest {head.hex()}", "none"
    if count is not None and end.head_at != count - 1:
        return f"digest {head.hex()} at seq {count - 1}", f"at seq {end.head_at}"
    return None


def check_fork(ours: bytes, theirs: bytes) -> Problem | None:
    """Two inputs of one chain never differ at a seq: these are the digests there."""
    return None if ours == theirs else (theirs.hex(), ours.hex())
