"""Archives: the oldest records of a ledger in one file, the same bytes (spec §15.2)."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from ledger import reading, wholefile
from ledger.codec import Record, decode, next_length
from ledger.errors import LedgerError, Malformed
from ledger.hidden import shown
from ledger.index import Covered, Index
from ledger.log import Log
from ledger.projection import Card, State, ended, state_at
from ledger.store import directory
from ledger.store.contract import Position, Stored, Tail
from ledger.store.framing import cut
from ledger.store.segments import is_packed, unpacked

GZIP: Final = ".gz"
_CHUNK: Final = 1_048_576


class NothingToArchive(LedgerError):
    """No segment can be archived yet; the last one was closed, so that one can be later."""

    exit_status = 2
    hint = "nothing was written; do it again when the cards below that seq are ended"

    def __init__(self, path: Path, end: int, blocked: Blocked | None) -> None:
        """Take the ledger, the seq where its last segment ends now, and what stands against it."""
        why = f"; {blocked}" if blocked else ""
        super().__init__(
            f"{shown(str(path))}: no segment can be archived: the first ends at seq {end}{why}"
        )
        self.end = end
        self.blocked = blocked


class ArchiveUnfit(LedgerError):
    """A file is not the archive of these records."""

    exit_status = 2
    hint = "nothing was changed; to prune, make it again: cardchain archive DIR --ended -o FILE"

    def __init__(self, path: Path, reason: str) -> None:
        """Take the file and a safe reason."""
        super().__init__(f"archive {shown(str(path))}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Blocked:
    """A card that is not ended, and so keeps its segment and all after it (spec §15.1)."""

    card: bytes
    seq: int
    state: State

    def __str__(self) -> str:
        """Name it."""
        return f"card {self.card.hex()}, issued at seq {self.seq}, is {self.state}"


@dataclass(frozen=True, slots=True)
class Archived:
    """A finished archive: of the records from `first` up to `before` - 1, `size` bytes of them.

    `head` is the chain digest of the last; `blocked` is what keeps a later edge from being pruned.
    """

    first: int
    before: int
    size: int
    head: bytes
    blocked: Blocked | None


@dataclass(frozen=True, slots=True)
class Edge:
    """Where an archive may end."""

    first: int
    before: int
    blocked: Blocked | None


def first_unended(index: Index, before: int, at: int) -> Card | None:
    """Give the first card issued below a seq of which something is still to come."""
    reset = index.last_reset()
    going = index.going_on(before)
    return next((card for card in going if not ended(card, at, reset)), None)


def blocked_by(card: Card | None, index: Index, at: int) -> Blocked | None:
    """Give a card that is not ended as what blocks."""
    if card is None:
        return None
    return Blocked(card.hash, card.seq, state_at(card, at, index.last_reset()))


def choose(path: Path, log: Log, before: int | None) -> Edge:
    """Choose the last edge that is a segment boundary, at most `before`.

    Without `before`, the last that leaves only ended cards below. The last segment is closed where
    the edge is its end, or where there is no edge yet.

    Raises:
        NothingToArchive: There is none.

    """

    def look(tail: Tail, index: Index, covered: Covered) -> Edge | NothingToArchive:
        end, at = covered.end.seq, max(log.clock(), covered.at)
        card = first_unended(index, end, at)
        blocked = blocked_by(card, index, at)
        limit = before if before is not None else end if card is None else card.seq
        numbers = log.store.segments()
        edges = [each for each in (*numbers[1:], end) if numbers[0] < each <= limit]
        if not edges or edges[-1] == end:
            tail.cut(covered.end)
        if not edges:
            return NothingToArchive(path, (*numbers[1:], end)[0], blocked)
        return Edge(numbers[0], edges[-1], blocked)

    found = log.alone(look)
    if isinstance(found, NothingToArchive):
        raise found
    return found


def write(log: Log, path: Path, edge: Edge, *, overwrite: bool) -> Archived:
    """Write the records below an edge, each held against its link and tag, compressed for `.gz`."""
    size, head = 0, b""

    def pieces() -> Iterator[bytes]:
        nonlocal size, head
        for record in reading.records(log, edge.first, edge.before):
            size, head = size + len(record.raw), record.digest
            yield record.raw

    packed = path.name.endswith(GZIP)
    wholefile.write(path, _packed(pieces()) if packed else pieces(), overwrite=overwrite)
    return Archived(edge.first, edge.before, size, head, edge.blocked)


def sha256(path: Path) -> bytes:
    """Give the SHA-256 of a file as it stands."""
    digest = hashlib.sha256()
    with _opened(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()


@contextmanager
def records(path: Path, log: Log) -> Iterator[Iterator[Record]]:
    """Give the records of an archive, each held against its link, its tag and its place.

    Raises:
        ArchiveUnfit: It is not whole records of this chain, one after another.

    """
    with ExitStack() as stack:
        raw = stack.enter_context(_opened(path))
        source = unpacked(raw, stack) if is_packed(raw) else raw
        try:
            yield _records(path, log, source)
        except (EOFError, zlib.error, OSError) as error:
            raise ArchiveUnfit(path, f"it cannot be read: {error}") from error


def _records(path: Path, log: Log, source: BinaryIO) -> Iterator[Record]:
    begin = Position(_first_seq(path, source), 0, 0)
    source.seek(0)
    before: Record | None = None
    end = begin
    with closing(cut(source, begin, next_length)) as following:
        for stored in following:
            record = _record(path, log, stored)
            if before is not None and record.prev != before.digest:
                raise ArchiveUnfit(path, f"seq {record.seq} does not link to the record before")
            before, end = record, stored.end
            yield record
    source.seek(end.offset)
    if source.read(1):
        raise ArchiveUnfit(path, f"bytes that are no record, after seq {end.seq - 1}")


def _record(path: Path, log: Log, stored: Stored) -> Record:
    seq = stored.position.seq
    try:
        record = decode(stored.data)
    except Malformed as error:
        raise ArchiveUnfit(path, f"seq {seq}: {error.reason}") from error
    if record.chain != log.chain or record.seq != seq or not log.replay.holds(record):
        raise ArchiveUnfit(path, f"seq {seq} is no record of this ledger")
    return record


def _first_seq(path: Path, source: BinaryIO) -> int:
    first = next(cut(source, Position(0, 0, 0), next_length), None)
    try:
        if first is not None:
            return decode(first.data).seq
    except Malformed as error:
        raise ArchiveUnfit(path, error.reason) from error
    raise ArchiveUnfit(path, "it holds no record")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with os.fdopen(directory.open_file(path, os.O_RDONLY), "rb") as file:
        yield file


def _packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Compress; the header holds no time and no name."""
    packing = zlib.compressobj(wbits=31)
    for piece in pieces:
        yield packing.compress(piece)
    yield packing.flush()
