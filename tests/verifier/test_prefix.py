"""What stands before the records to be verified is passed over, or hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from verifier.framing import Frames
from verifier.prefix import after, chain_digests, hop
from verifier.source import Segment


@pytest.fixture
def mixed(new_log: Callable[..., Any]) -> Any:
    """A log of records of several forms: long and short payloads, other openings, two kids."""
    log = new_log()
    log.open()
    for number in range(4):
        card = log.issue(number)
        response = {"digest": hashlib.sha256(b"yes").digest()}
        log.resolve(card, response=response)
    log.kid = b"8 bytes!"
    log.issue(9, purpose="p" * 3000)
    log.add("anchored", None, {"size": 3, "root": bytes(32), "note": bytes(32)})
    return log


def frames(data: bytes, size: int) -> Frames:
    return Frames("log", iter([data[n : n + size] for n in range(0, len(data), size)]))


@pytest.mark.parametrize("size", [1, 13, 700, 10**6])
def test_every_record_before_a_seq_is_passed_over(mixed: Any, size: int) -> None:
    for seq in range(mixed.seq):
        reader = frames(mixed.data, size)
        assert hop(reader, seq)
        assert reader.offset == sum(map(len, mixed.records[:seq]))
        found = reader.next()
        assert found is not None
        assert found.data == mixed.records[seq]


@pytest.mark.parametrize("size", [1, 13, 700, 10**6])
def test_digests_are_those_of_the_chain(mixed: Any, size: int) -> None:
    for seq in range(mixed.seq + 1):
        reader = frames(mixed.data, size)
        assert list(chain_digests(reader, seq)) == list(enumerate(mixed.digests[:seq]))


def test_a_log_that_ends_before_the_seq_has_nothing_there(mixed: Any) -> None:
    assert not hop(frames(mixed.data, 700), mixed.seq)
    assert not hop(frames(b"", 700), 0)


def test_bytes_that_are_no_record_are_passed_over_too(mixed: Any) -> None:
    parts = [*mixed.records[:2], b"not a record", mixed.records[3][:-40], *mixed.records[4:]]
    reader = frames(b"".join(parts), 700)
    assert hop(reader, 6)
    found = reader.next()
    assert found is not None
    assert found.seq == 6


def test_segments_that_end_before_the_seq_are_left_out() -> None:
    segments = [Segment(str(seq), seq) for seq in (0, 5, 9)]
    for seq, first in ((0, 0), (4, 0), (5, 5), (8, 5), (9, 9), (100, 9)):
        assert after(segments, seq)[0].seq == first
    assert [segment.seq for segment in after([Segment("file")], 7)] == [None]
