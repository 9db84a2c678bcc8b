"""Closed segments that are replaced whole: some bytes taken out, or compressed (spec §7.1, §15).

Whoever calls holds the tail, but for `packed`. The new file is made outside `segments/`, where any
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
class Part:
    """A new file that waits for its place, locked by whoever makes it; `source` is what it copies.

    It is removed if it gets no place.
    """

    number: int
    path: Path
    raw: BinaryIO
    source: os.stat_result | None = None

    def finish(self) -> None:
        """Make what was written durable."""
        self.raw.flush()
        os.fsync(self.raw.fileno())


def rewrite(
    files: Segments, number: int, framing: Framing, change: Callable[[Stored], bytes]
) -> list[Stored]:
    """Replace each record of a closed segment by what `change` gives for it.

    Gives where each stands now and where it ends; the bytes are left out.
    """
    start = Position(number, number, 0)
    place = files.place(number)
    moved: list[Stored] = []
    with new(files, number) as part, files.open(start) as source:
        if source is None:
            raise BrokenLedger(place, 0, number, "the segment is gone")
        with ExitStack() as stack:
            out = _packing(part.raw, stack) if place.endswith(".gz") else part.raw
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
        part.finish()
        os.rename(part.path, place)
        directory.sync(files.folder)
    return moved


@contextmanager
def packed(files: Segments, number: int) -> Iterator[Part | None]:
    """Give a compressed copy of a closed segment; None if it is compressed already, or gone.

    The tail need not be held: appending goes on meanwhile.
    """
    plain = files.name(number)
    with ExitStack() as stack:
        try:
            source = stack.enter_context(reader(plain))
        except FileNotFoundError:
            yield None
            return
        if is_packed(source):
            yield None
            return
        part = stack.enter_context(new(files, number, os.fstat(source.fileno())))
        with ExitStack() as packing:
            out = _packing(part.raw, packing)
            while chunk := source.read(CHUNK):
                out.write(chunk)
        part.finish()
        source.seek(0)
        _require_same(source, part.path, plain)
        yield part


def put_packed(files: Segments, part: Part) -> bool:
    """Give a compressed copy the place of its segment; False if that is another one by now."""
    plain = files.name(part.number)
    try:
        if part.source is None or not os.path.samestat(os.lstat(plain), part.source):
            return False
    except FileNotFoundError:
        return False
    os.rename(part.path, plain)
    directory.sync(files.folder)
    _rename(files, part.number)
    return True


def put_before(files: Segments, part: Part) -> None:
    """Give a new segment its place before the first, where nothing may stand."""
    if files.stands(part.number):
        raise StoreFailed(f"{files.place(part.number)}: something is there already")
    os.rename(part.path, files.name(part.number))
    directory.sync(files.folder)


@contextmanager
def new(files: Segments, number: int, source: os.stat_result | None = None) -> Iterator[Part]:
    """Give a new private file of the ledger directory."""
    path, raw = _locked(files)
    with raw:
        try:
            yield Part(number, path, raw, source)
        finally:
            path.unlink(missing_ok=True)


def _locked(files: Segments) -> tuple[Path, BinaryIO]:
    """Make a file and lock it; one that was tidied away before that is made again."""
    while True:
        path = files.ledger / f".{secrets.token_hex(8)}.part"
        raw = os.fdopen(directory.create(path), "w+b")
        try:
            fcntl.flock(raw.fileno(), fcntl.LOCK_EX)
            if os.fstat(raw.fileno()).st_nlink:
                return path, raw
        except BaseException:
            raw.close()
            raise
        raw.close()


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


def _packing(raw: BinaryIO, stack: ExitStack) -> BinaryIO:
    """Compress what is written; the same bytes always give the same file."""
    packing = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    return cast(BinaryIO, stack.enter_context(packing))


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
