"""Closed segments that are replaced whole: some bytes taken out, or compressed (spec §7.1, §15).

Whoever calls holds the tail, but for `prepare`. The new file is made outside `segments/`, where any
foreign name would be a finding, and takes the place of the old one by one rename. Who reads the old
one goes on reading it; whoever comes after that reads the new one. At no instant is there a segment
too few or too many.

A segment is compressed under its old name, and renamed after that: so there is always one file of
its number, and readers tell by its first bytes how to read it.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from ledger.errors import BrokenLedger, StoreFailed
from ledger.store import directory
from ledger.store.contract import Framing, Position, Stored
from ledger.store.framing import cut
from ledger.store.segment import reader
from ledger.store.segments import Segments, is_packed

CHUNK: Final = 1_048_576
_PART: Final = re.compile(r"\.[0-9a-f]{16}\.part")


@dataclass(frozen=True, slots=True)
class Packed:
    """A compressed copy of a segment that waits for its place, and the file it is a copy of."""

    number: int
    part: Path
    source: os.stat_result


def rewrite(
    files: Segments, number: int, framing: Framing, change: Callable[[Stored], bytes]
) -> list[Stored]:
    """Replace each record of a closed segment by what `change` gives for it.

    Gives where each stands now and how long it is; the bytes are left out.
    """
    start = Position(number, number, 0)
    place = files.place(number)
    moved: list[Stored] = []
    with _part(files.ledger) as (part, raw), files.open(start) as source:
        if source is None:
            raise BrokenLedger(place, 0, number, "the segment is gone")
        with ExitStack() as stack:
            out = _packing(raw, stack) if place.endswith(".gz") else raw
            position, read = start, start
            for stored in cut(source, start, framing):
                data = change(stored)
                out.write(data)
                end = Position(stored.end.seq, number, position.offset + len(data))
                moved.append(Stored(position, end, b""))
                position, read = end, stored.end
            source.seek(read.offset)
            if source.read(1):
                raise BrokenLedger(place, read.offset, read.seq, "bytes that are no record")
        _replace(files, part, raw, place)
    return moved


def prepare(files: Segments, number: int) -> Packed | None:
    """Make a compressed copy of a closed segment; None if it is compressed already.

    The tail need not be held: appending goes on meanwhile.
    """
    plain = files.name(number)
    try:
        with reader(plain) as source:
            if is_packed(source):
                return None
            found = os.fstat(source.fileno())
            with _part(files.ledger, keep=True) as (part, raw):
                with ExitStack() as stack:
                    out = _packing(raw, stack)
                    while chunk := source.read(CHUNK):
                        out.write(chunk)
                raw.flush()
                os.fsync(raw.fileno())
                source.seek(0)
                _require_same(source, part, plain)
            return Packed(number, part, found)
    except FileNotFoundError:
        return None


def put(files: Segments, packed: Packed) -> bool:
    """Give a compressed copy the place of its segment; False if that is another one by now."""
    plain = files.name(packed.number)
    try:
        if not os.path.samestat(os.lstat(plain), packed.source):
            return False
        os.rename(packed.part, plain)
    except FileNotFoundError:
        return False
    finally:
        packed.part.unlink(missing_ok=True)
    directory.sync(files.folder)
    _rename(files, packed.number)
    return True


def tidy(files: Segments) -> None:
    """Finish what a crash left half done, and remove the copies that nobody is making any more."""
    for number in files.numbers()[:-1]:
        with suppress(FileNotFoundError), reader(files.name(number)) as source:
            if is_packed(source):
                _rename(files, number)
    for name in filter(_PART.fullmatch, os.listdir(files.ledger)):
        with suppress(FileNotFoundError):
            _remove_if_free(files.ledger / name)


def remove(files: Segments, number: int) -> None:
    """Remove a segment, durably."""
    os.unlink(files.place(number))
    directory.sync(files.folder)


def add(files: Segments, number: int, pieces: Iterator[bytes]) -> None:
    """Put a segment before the first, durably and whole; nothing may stand there."""
    if files.stands(number):
        raise StoreFailed(f"{files.place(number)}: something is there already")
    with _part(files.ledger) as (part, raw):
        for piece in pieces:
            raw.write(piece)
        _replace(files, part, raw, files.name(number))


@contextmanager
def _part(ledger: Path, *, keep: bool = False) -> Iterator[tuple[Path, BinaryIO]]:
    """Give a new private file of the ledger directory, locked while it is made.

    It is removed at the end, but where it is to be kept and nothing failed.
    """
    part = ledger / f".{secrets.token_hex(8)}.part"
    with os.fdopen(directory.create(part), "w+b") as raw:
        fcntl.flock(raw.fileno(), fcntl.LOCK_EX)
        try:
            yield part, raw
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        if not keep:
            part.unlink(missing_ok=True)


def _packing(raw: BinaryIO, stack: ExitStack) -> BinaryIO:
    """Compress what is written; the same bytes always give the same file."""
    packing = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    return cast(BinaryIO, stack.enter_context(packing))


def _replace(files: Segments, part: Path, raw: BinaryIO, place: str) -> None:
    raw.flush()
    os.fsync(raw.fileno())
    os.rename(part, place)
    directory.sync(files.folder)


def _rename(files: Segments, number: int) -> None:
    """Give a segment that is compressed the name that says so."""
    plain = files.name(number)
    os.rename(plain, f"{plain}.gz")
    directory.sync(files.folder)


def _require_same(source: BinaryIO, part: Path, plain: str) -> None:
    with gzip.open(part) as copy:
        while chunk := source.read(CHUNK):
            if copy.read(len(chunk)) != chunk:
                raise StoreFailed(f"{plain}: its compressed copy holds other bytes")
        if copy.read(1):
            raise StoreFailed(f"{plain}: its compressed copy is longer")


def _remove_if_free(part: Path) -> None:
    """Remove a file that is not being made: whoever makes it has it locked."""
    with open(part, "rb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        part.unlink(missing_ok=True)
