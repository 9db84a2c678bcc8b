"""A store in memory: nothing survives the process, everything else is as the contract says."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from io import BytesIO

from ledger.errors import Dead, LockTimeout, StoreFailed
from ledger.store.contract import ORIGIN, Framing, Position, Stored, TornBytes
from ledger.store.framing import cut, found


class MemoryStore:
    """Records in one byte array. `sync` may be given to make it fail or wait."""

    def __init__(
        self,
        framing: Framing,
        *,
        sync: Callable[[], None] = lambda: None,
        lock_timeout_s: float = 10.0,
    ) -> None:
        """Begin empty; `framing` tells records apart."""
        self.content = bytearray()
        self._framing = framing
        self._sync = sync
        self._timeout = lock_timeout_s
        self._mutex = threading.Lock()
        self._pending: list[Stored] = []
        self._aside: list[tuple[Position, TornBytes]] = []
        self._failure: str | None = None

    @contextmanager
    def exclusive(self) -> Iterator[MemoryStore]:
        """Hold the tail; the store is its own tail."""
        self._check()
        if not self._mutex.acquire(timeout=self._timeout):
            raise LockTimeout("memory", self._timeout)
        try:
            self._check()
            yield self
        finally:
            self._pending = []
            self._mutex.release()

    def sync(self, end: Position) -> None:
        """Return when the given function has; nothing in memory is durable."""
        self._check()
        try:
            self._sync()
        except OSError as error:
            self._failure = str(error)
            raise StoreFailed(f"sync of {end.seq} records: {error}") from error

    def read(self, start: Position) -> Generator[Stored, None, None]:
        """Yield the whole records from `start` on."""
        return cut(BytesIO(bytes(self.content[start.offset :])), start, self._framing)

    def rest(self, end: Position) -> bytes:
        """Give the bytes behind `end`."""
        return bytes(self.content[end.offset :])

    def append(self, end: Position, data: bytes) -> Stored:
        """Take in one record for `end`."""
        expected = self._pending[-1].end.offset if self._pending else len(self.content)
        if end.offset != expected:
            self._failure = "bytes that this writer did not write"
            raise StoreFailed(f"append at {end.offset}: the store ends at {expected}")
        after = Position(end.seq + 1, end.segment, end.offset + len(data))
        self._pending.append(Stored(end, after, data))
        return self._pending[-1]

    def take_back(self) -> None:
        """Forget what was appended and not written."""
        self._pending = []

    def write(self) -> None:
        """Write what was appended."""
        self.content += b"".join(stored.data for stored in self._pending)
        self._pending = []

    def cut(self, end: Position) -> None:
        """Do nothing: there is one segment."""

    def tidy(self) -> None:
        """Do nothing: nothing is left half done."""

    def set_aside(self, end: Position) -> tuple[TornBytes, ...]:
        """Drop the bytes behind `end`, and give what was ever dropped there."""
        torn = self.rest(end)
        if torn:
            self._aside.append((end, TornBytes(len(torn), hashlib.sha256(torn).digest())))
            del self.content[end.offset :]
        return tuple(bytes_ for at, bytes_ in self._aside if at == end)

    def ends_at(self, end: Position) -> bool:
        """Tell whether nothing stands behind `end`."""
        return end.offset == len(self.content)

    def at(self, position: Position) -> bytes | None:
        """Give the record that begins at `position`, None if no whole one does."""
        if (waiting := found(self._pending, position)) is not None:
            return waiting
        stored = next(self.read(position), None)
        return stored.data if stored else None

    def segments(self) -> tuple[int, ...]:
        """Give the one segment that there is."""
        return (0,)

    def origin(self) -> Position:
        """Give where the first record begins."""
        return ORIGIN

    def place(self, segment: int) -> str:
        """Name the one segment."""
        return "memory"

    def identity(self) -> int:
        """Give the number of this object."""
        return id(self)

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def _check(self) -> None:
        if self._failure is not None:
            raise Dead(self._failure)
