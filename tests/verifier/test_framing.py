from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from verifier.framing import MAX_CANDIDATES, MAX_DAMAGE, Frames, Lost
from verifier.spec import HEADER, MAX_RECORD


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def pieces(data: bytes, size: int = 1 << 20) -> list[tuple[str, int, int | None]]:
    """What each piece is, its offset and its seq."""
    frames = Frames("log", chunks(data, size))
    found = []
    while (piece := frames.next()) is not None:
        names = [name for name in ("framing", "torn", "limit") if getattr(piece, name)]
        found.append((names[0] if names else "record", piece.offset, piece.seq))
    return found


@pytest.mark.parametrize("size", [1, 7, 997, 1 << 20])
def test_records_are_found_whatever_the_chunks(log: Any, size: int) -> None:
    offsets = [sum(map(len, log.records[:n])) for n in range(3)]
    assert pieces(log.data, size) == [("record", offsets[n], n) for n in range(3)]


def test_every_cut_is_a_torn_tail_and_nothing_else(log: Any) -> None:
    last = len(log.data) - len(log.records[2])
    for end in range(last + 1, len(log.data)):
        assert pieces(log.data[:end], 512)[2:] == [("torn", last, None)]


def test_bytes_between_records_are_one_piece(log: Any) -> None:
    one, two, three = log.records
    data = one + b"junk" + HEADER + b"junk" + two + b"\n" + three + b"\n"
    assert pieces(data, 64) == [
        ("record", 0, 0),
        ("framing", len(one), None),
        ("record", len(one) + 16, 1),
        ("framing", len(one + two) + 16, None),
        ("record", len(one + two) + 17, 2),
        ("framing", len(one + two + three) + 17, None),
    ]


def test_a_length_that_swallows_the_next_record_is_no_torn_tail(log: Any) -> None:
    one, two, three = log.records
    place = two.index(b"\x59") + 1
    swallowing = two[:place] + b"\xff\xff" + two[place + 2 :]
    found = pieces(one + swallowing + three)
    assert found == [
        ("record", 0, 0),
        ("framing", len(one), None),
        ("record", len(one + two), 2),
    ]


def test_a_length_beyond_the_limit_is_not_read(log: Any) -> None:
    huge = HEADER + bytes(8) + b"\xa1\x68envelope\x5b" + (1 << 60).to_bytes(8, "big")
    assert pieces(huge + log.records[0]) == [
        ("limit", 0, None),
        ("record", len(huge), 0),
    ]


def test_no_more_is_kept_than_a_record_may_have(log: Any) -> None:
    frames = Frames("log", chunks(log.records[0] + b"\xff" * (MAX_DAMAGE // 2), 1 << 16))
    most = 0
    while frames.next() is not None:
        most = max(most, len(frames.buffer))
    assert most < MAX_RECORD


@pytest.mark.parametrize(
    "damage", [b"\x00" * 1024 * 1024 * 17, (HEADER + b"\x00" * 8) * (MAX_CANDIDATES + 10)]
)
def test_endless_damage_is_given_up(log: Any, damage: bytes) -> None:
    frames = Frames("log", chunks(damage + log.data, 1 << 20))
    piece = frames.next()
    assert piece is not None
    assert piece.framing is not None
    with pytest.raises(Lost):
        frames.next()
