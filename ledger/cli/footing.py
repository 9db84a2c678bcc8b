"""What a ledger stands on at this host, read without changing anything: neither file nor name.

Each fact is looked up once. Who asks again for one that could not be had gets the same error.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ledger.chain import Tagger, authentic
from ledger.cli.auditor import state_of
from ledger.cli.parameters import show_progress
from ledger.codec import ZERO, Record, decode, digest_of, next_length
from ledger.database import IndexContradicts
from ledger.errors import BrokenLedger, LedgerError, Malformed
from ledger.head import Head, HeadFile
from ledger.index import VERSION, Covered
from ledger.keys import VARIABLE, HeldKey, KeyFiles, KeyRing, KeySource
from ledger.lookups import Lookups
from ledger.signing import Signing
from ledger.store.contract import ORIGIN, Position, Stored
from ledger.store.framing import cut
from ledger.store.segments import Segments
from ledger.view import NO_CARD

T = TypeVar("T")

_WAL_FILES: Final = ("-wal", "-shm")


class Unknown(Exception):
    """A fact cannot be told, for a reason that is said elsewhere."""


class Tail(NamedTuple):
    """The last record that holds: `read` records before it were checked just now.

    `torn` bytes stand behind it; `unkeyed` says that a tag could not be checked for want of a key.
    """

    end: Position
    digest: bytes
    at: int
    kid: bytes
    read: int = 0
    torn: int = 0
    unkeyed: bool = False

    @property
    def size(self) -> int:
        """How many records there are, pruned ones too."""
        return self.end.seq


class fact(Generic[T]):  # noqa: N801 - used as `property` is
    """A fact about a footing, looked up once; so is the error with which that failed."""

    def __init__(self, look: Callable[[Any], T]) -> None:
        """Take how it is looked up."""
        self._look = look
        self.__doc__ = look.__doc__
        self._name = look.__name__

    def __get__(self, footing: Footing, _: object = None) -> T:
        """Give the fact, or raise the error."""
        if self._name in footing.errors:
            raise footing.errors[self._name]
        try:
            value = footing.__dict__[self._name] = self._look(footing)
        except (LedgerError, OSError, Unknown) as error:
            footing.errors[self._name] = error
            raise
        return value


class Footing:
    """The facts about one ledger directory."""

    def __init__(self, directory: Path, sources: Iterable[KeySource], stack: ExitStack) -> None:
        """Take the directory and the keys that were given; `stack` closes what is opened."""
        self.directory = directory
        self._files = Segments(directory)
        self._sources = tuple(sources)
        self._stack = stack
        self.errors: dict[str, Exception] = {}

    def distrust(self, name: str, why: str) -> None:
        """Have a fact count as unknown from now on."""
        self.__dict__.pop(name, None)
        self.errors[name] = Unknown(why)

    # The files

    def segments(self) -> tuple[int, ...]:
        """Give where each segment begins."""
        return self._files.numbers()

    def place(self, segment: int) -> str:
        """Name the file of a segment."""
        return self._files.place(segment)

    def records(self, start: Position) -> Iterator[Stored]:
        """Yield the whole records from `start` on, over all segments."""
        position = start
        while True:
            with self._files.open(position) as source:
                if source is None:
                    return
                for stored in cut(source, position, next_length):
                    yield stored
                    position = stored.end
            if position.seq == position.segment:
                return
            position = Position(position.seq, position.seq, 0)

    def record(self, position: Position) -> Record:
        """Give the record at a position, as it stands there."""
        stored = next(self.records(position), None)
        if stored is None or stored.position != position:
            raise IndexContradicts(f"index: no record at seq {position.seq}")
        return decode(stored.data)

    @fact
    def chain(self) -> bytes:
        """The chain that the first record names."""
        first = min(self.segments(), default=0)
        origin = Position(first, first, 0)
        stored = next(self.records(origin), None)
        if stored is None:
            raise BrokenLedger(self.place(first), 0, first, "no whole record at the beginning")
        try:
            return decode(stored.data).chain
        except Malformed as error:
            raise BrokenLedger(self.place(first), 0, first, error.reason) from error

    # The host

    @fact
    def state(self) -> Path:
        """The state directory, which need not exist."""
        return state_of(self.chain)

    @fact
    def keys(self) -> KeyRing:
        """The keys of this chain that are at hand."""
        sources = [*self._sources]
        if value := os.environ.get(VARIABLE):
            sources.append(KeyFiles(Path(value)))
        if (own := self.state / "keys").is_dir():
            sources.append(KeyFiles(own))
        found: list[HeldKey] = [key for each in sources for key in each.keys(self.chain)]
        return KeyRing(self.chain, found)

    @fact
    def head(self) -> Head | None:
        """The last record that this host has answered for."""
        return HeadFile(self.state / "head", self.directory).read()

    @fact
    def signing(self) -> Signing:
        """The signer of this host, not held."""
        return Signing(self.chain, self.state)

    @fact
    def snapshot(self) -> Snapshot:
        """The index as it was committed last."""
        return self._stack.enter_context(Snapshot(self.state / "index.sqlite"))

    # The chain

    @fact
    def tail(self) -> Tail:
        """The last record, reached from what the index covers by records that hold.

        Raises:
            BrokenLedger: Something behind it cannot be the work of a crash.

        """
        tail = self._begin()
        reason = "bytes that are no record"
        for stored in self.records(tail.end):
            try:
                tail = self._next(tail, stored)
                show_progress(tail.size)
            except Malformed as error:
                reason = error.reason
                break
        later = [number for number in self.segments() if number > tail.end.segment]
        rest = self._size(tail.end.segment) - tail.end.offset
        empty_next = later == [tail.end.seq] and not self._size(tail.end.seq)
        known = self.head is not None and self.head.seq < tail.size
        if (rest or later) and not empty_next and (later or not known):
            place = self.place(tail.end.segment)
            raise BrokenLedger(place, tail.end.offset, tail.end.seq, reason)
        return tail._replace(torn=rest)

    def _begin(self) -> Tail:
        try:
            covered = self.snapshot.covered()
            if covered is not None and self.digest(covered.position) == covered.digest:
                return Tail(covered.end, covered.digest, covered.at, covered.kid)
        except (Unknown, LedgerError):  # the row of the index says why
            pass
        first = min(self.segments(), default=0)
        return Tail(Position(first, first, 0) if first else ORIGIN, ZERO, 0, b"")

    def digest_at(self, head: Head) -> bytes | None:
        """Give the chain digest of a remembered record: its segment may have been rewritten."""
        place = Position(head.seq, head.segment, head.offset)
        if (found := self.digest(place)) == head.digest:
            return found
        first = max((each for each in self.segments() if each <= head.seq), default=0)
        stored = (each for each in self.records(Position(first, first, 0)))
        at = next((each.position for each in stored if each.position.seq == head.seq), place)
        return self.digest(at)

    def digest(self, position: Position) -> bytes | None:
        """Give the chain digest of the record at a position, None if none begins there."""
        stored = next(self.records(position), None)
        try:
            return digest_of(stored.data) if stored and stored.position == position else None
        except Malformed:
            return None

    def _next(self, tail: Tail, stored: Stored) -> Tail:
        """Go on by one record, or raise `Malformed` where it does not hold."""
        record = decode(stored.data)
        if record.chain != self.chain or record.seq != stored.position.seq:
            raise Malformed(f"seq {record.seq}, expected {stored.position.seq}")
        if record.prev != tail.digest and (tail.read or tail.kid or not stored.position.seq):
            raise Malformed("prev is not the chain digest of the record before")
        key = self._key(record.kid)
        if key is not None and not authentic(record, key):
            raise Malformed("the tag does not hold under the key")
        kid: bytes = record.body["kid"] if record.kind == "rekeyed" else record.kid
        unkeyed = tail.unkeyed or key is None
        return Tail(stored.end, record.digest, record.at, kid, tail.read + 1, 0, unkeyed)

    def _key(self, kid: bytes) -> Tagger | None:
        try:
            return self.keys.find(kid)
        except LedgerError:  # the row of the keys says why
            return None

    def _size(self, segment: int) -> int:
        """Give how many bytes a segment holds, unpacked."""
        with self._files.open(Position(segment, segment, 0)) as source:
            return 0 if source is None else source.seek(0, os.SEEK_END)

    @fact
    def chain_events(self) -> tuple[Record, ...]:
        """The events without a card, in order."""
        return tuple(map(self.record, self.snapshot.events(NO_CARD)))


class Snapshot(Lookups):
    """The index, read as it lies there."""

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            Unknown: There is none, or it cannot be read without writing to it.
            IndexContradicts: It is damaged, or of another version.

        """
        self.path = path
        if not path.exists():
            raise Unknown("there is no index; the next command makes it anew")
        wal, shm = (Path(f"{path}{suffix}") for suffix in _WAL_FILES)
        pending = wal.exists() and wal.stat().st_size > 0
        if pending and not shm.exists():
            raise Unknown("a writer ended in between; the next command brings the index up")
        options = "mode=ro" if pending else "mode=ro&immutable=1"
        self._database = sqlite3.connect(
            f"{path.absolute().as_uri()}?{options}", isolation_level=None, uri=True
        )
        ((version,),) = self.query("PRAGMA user_version")
        if version != VERSION:
            raise IndexContradicts(f"index: version {version}, expected {VERSION}")

    def __enter__(self) -> Snapshot:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the file."""
        self._database.close()

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Give the rows of a query."""
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise IndexContradicts(f"index: {error}") from error

    def covered(self) -> Covered | None:
        """Give the last record that the index covers."""
        rows = self.query("SELECT seq, segment, offset, size, digest, at, kid FROM covered")
        if not rows:
            return None
        seq, segment, offset, size, digest, at, kid = rows[0]
        return Covered(Position(seq, segment, offset), size, digest, at, kid)

    def last_reset(self) -> int | None:
        """Give the seq of the last `clock_reset`."""
        rows = self.query("SELECT seq FROM reset")
        return rows[0][0] if rows else None
