"""Records in a stream of bytes, and among those that wait to be written."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import BinaryIO, Final

from ledger.errors import Malformed
from ledger.store.contract import Framing, Position, Stored

FIRST_READ: Final = 8_192
LAST_READ: Final = 1_048_576
"""How much is read at once: little for one record, more and more for many."""


def cut(source: BinaryIO, start: Position, framing: Framing) -> Generator[Stored, None, None]:
    """Yield the whole records of a segment, whose stream stands at `start`.

    It ends before the first bytes that are not a whole record; whether they may be there is for
    the caller to say.
    """
    buffer, at, position, wanted = b"", 0, start, FIRST_READ
    while True:
        length = _length(buffer, at, framing)
        if length is None:
            more = source.read(wanted)
            if not more:
                return
            buffer, at = buffer[at:] + more, 0
            wanted = min(2 * wanted, LAST_READ)
            continue
        if length == 0:
            return
        end = Position(position.seq + 1, position.segment, position.offset + length)
        yield Stored(position, end, buffer[at : at + length])
        at, position = at + length, end


def found(waiting: Sequence[Stored], position: Position) -> bytes | None:
    """Give the record at `position` among those that follow one another and wait to be written."""
    place = position.seq - waiting[0].position.seq if waiting else -1
    if 0 <= place < len(waiting) and waiting[place].position == position:
        return waiting[place].data
    return None


def _length(buffer: bytes, at: int, framing: Framing) -> int | None:
    """Give the length of the next record: None if more bytes are needed, 0 if there is none."""
    if at == len(buffer):
        return None
    try:
        return framing(buffer, at)
    except Malformed:
        return 0
