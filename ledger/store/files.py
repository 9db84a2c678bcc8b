"""A store of segment files on a local POSIX file system (spec §7.1, §7.4).

One writer at a time holds `flock` on the file `lock`. What it appends is written at the end of the
last segment by one `os.write`; `sync` makes it durable. After a failed write or sync memory and
disk may differ, so the object refuses everything from then on; opening again reads what is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Final, cast

from ledger.errors import BrokenLedger, Dead, StoreFailed, failing
from ledger.store import directory, quarantine, rewriting
from ledger.store.contract import Framing, Position, Stored, TornBytes
from ledger.store.framing import cut, found
from ledger.store.lock import Lock
from ledger.store.segment import Segment, size_of, write
from ledger.store.segments import Segments
from ledger.store.syncing import Syncing

SEGMENT_BYTES: Final = 64 * 1024 * 1024
SYNC: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)
"""Makes the bytes of a file durable, and its size; macOS has `fsync` only."""


class FileStore:
    """The records of one ledger directory.

    `sync` is called with the descriptor of a segment. A segment is cut when the next record would
    take it over `segment_bytes`.
    """

    def __init__(
        self,
        path: Path,
        framing: Framing,
        *,
        sync: Callable[[int], None] = SYNC,
        segment_bytes: int = SEGMENT_BYTES,
        lock_timeout_s: float = 30.0,
    ) -> None:
        """Open the directory, which `directory.make` has made.

        Raises:
            NotALedger: There is none.
            BrokenLedger: A link, a FIFO or a foreign name stands where a file should.
            LooseMode: Others can write there.

        """
        directory.require_ledger(path)
        self._path = path
        self._files = Segments(path)
        self._framing = framing
        self._sync = sync
        self._segment_bytes = segment_bytes
        self._timeout = lock_timeout_s
        self._failure: str | None = None
        self.answered_to: Callable[[], Position | None] = lambda: None
        """Gives an end of records up to which this host knows that they are durable."""
        self._begin()
        self.segments()

    def _begin(self) -> None:
        """Open the lock anew: at first, and in a child after a fork, which shares no lock."""
        self._pid = os.getpid()
        self._syncing = Syncing()
        self._last: Segment | None = None
        self._written = 0
        self._seen_last = False
        self._checked: Position | None = None
        self._pending: list[Stored] = []
        self._lock = Lock(self._path / "lock", self._timeout)

    def close(self) -> None:
        """Let go of the lock file and the last segment, once: numbers are used again."""
        self._let_go()
        self._failure = self._failure or "it was closed"

    def _let_go(self) -> None:
        self._lock.close()
        if self._last is not None:
            with suppress(OSError):
                os.close(self._last.descriptor)
        self._last = None

    def segments(self) -> tuple[int, ...]:
        """Give the seq that each segment begins with, in order."""
        with failing(self._files.folder):
            return self._files.numbers()

    def origin(self) -> Position:
        """Give where the first record begins."""
        first = next(iter(self.segments()), 0)
        return Position(first, first, 0)

    def place(self, segment: int) -> str:
        """Name the file of a segment."""
        with failing(self._files.folder):
            return self._files.place(segment)

    def identity(self) -> int:
        """Give the inode of the directory: a copy has another one."""
        with failing(self._path):
            return os.stat(self._path).st_ino

    # Reading

    def read(self, start: Position) -> Generator[Stored, None, None]:
        """Yield the whole records from `start` on, over all segments."""
        with failing(self._path):
            if self._at_end(start):
                return
        position = start
        while True:
            with failing(self._path), self._files.open(position) as source:
                if source is None:
                    return
                for stored in cut(source, position, self._framing):
                    yield stored
                    position = stored.end
                source.seek(position.offset)
                if source.read(1) or position.seq == position.segment:
                    return
            position = Position(position.seq, position.seq, 0)

    def ends_at(self, end: Position) -> bool:
        """Tell whether nothing stands behind `end` now, without holding the tail."""
        after = self._files.name(end.seq)
        with failing(self._path):
            if end.seq != end.segment and self._files.stands(end.seq):
                return directory.stands(after) and not size_of(after)  # cut, and not appended to
            return size_of(self._files.name(end.segment)) == end.offset

    def at(self, position: Position) -> bytes | None:
        """Give the record that begins at `position`, None if no whole one does."""
        if (waiting := found(self._pending, position)) is not None:
            return waiting
        with failing(self._path), self._files.open(position) as source:
            stored = next(cut(source, position, self._framing), None) if source else None
        return stored.data if stored else None

    # Writing

    @contextmanager
    def exclusive(self) -> Iterator[FileStore]:
        """Hold the tail; the store is its own tail."""
        if os.getpid() != self._pid:
            self._begin_in_child()
        self._check()
        with self._lock.held():
            self._check()
            self._checked = None
            try:
                self._require_same_files()
                yield self
            except OSError as error:  # what it left half done is read again by the next object
                raise self._dies(f"{self._path}: {error.strerror or error}") from error
            finally:
                self._pending = []

    def rest(self, end: Position) -> bytes:
        """Give the bytes behind `end`; a later segment behind them is no work of a crash."""
        last = self._hold(end)
        expected = last.expects(end)
        size = os.fstat(last.descriptor).st_size
        if size < expected:
            raise BrokenLedger(last.path, size, end.seq, f"cut short, expected {expected} bytes")
        if size > expected or not self._seen_last:
            self._require_last(last, end)
        return os.pread(last.descriptor, size - expected, expected)

    def append(self, end: Position, data: bytes) -> Stored:
        """Take in one record for `end`, in a new segment if it does not fit the last."""
        begin = self._follow(end) if self._pending else self._reach(end)
        if begin.offset and begin.offset + len(data) > self._segment_bytes:
            begin = Position(end.seq, end.seq, 0)
        after = Position(end.seq + 1, begin.segment, begin.offset + len(data))
        stored = Stored(begin, after, data)
        self._pending.append(stored)
        return stored

    def _follow(self, end: Position) -> Position:
        """Give where the record after those that wait begins."""
        if self._pending[-1].end != end:
            raise self._dies(f"append at {end}, expected {self._pending[-1].end}")
        return end

    def _reach(self, end: Position) -> Position:
        """Give where the first record of this turn begins, at the end of the last segment."""
        with failing(f"append to {self._files.name(end.segment)}"):
            last = self._hold(end)
            size = os.fstat(last.descriptor).st_size
        if size != last.expects(end):
            raise self._dies(f"{last.path}: {size} bytes, expected {last.expects(end)}")
        return Position(end.seq, last.number, size)

    def take_back(self) -> None:
        """Forget what was appended and not written."""
        self._pending = []

    def write(self) -> None:
        """Write what was appended, by one call for each segment; it is not durable yet."""
        self._check()
        for number, records in groupby(self._pending, lambda stored: stored.position.segment):
            whole = list(records)
            last = cast(Segment, self._last)
            try:
                if number != last.number:
                    last = self._rotate(number)
                write(last.descriptor, b"".join(stored.data for stored in whole))
            except BaseException as error:  # an interrupted write may be half a write
                self._failure = self._failure or f"write to {last.path}: {error}"
                if isinstance(error, OSError):
                    raise StoreFailed(self._failure) from error
                raise
            self._written = whole[-1].end.seq
        self._pending = []

    def sync(self, end: Position) -> None:
        """Make the records before `end` durable; one caller syncs for all who wait.

        Only the segment of `end` can hold bytes that are not: `_rotate` syncs the one before.
        """
        if os.getpid() != self._pid:
            self._begin_in_child()
        self._check()
        if end.seq > self._syncing.durable:
            self._syncing.reach(end.seq, lambda: self._sync_to(end))

    def _sync_to(self, end: Position) -> int:
        """Sync, and give how many records are durable then."""
        self._check()
        written, last = self._written, self._last
        try:
            if last is None or last.number != end.segment:
                self._sync_other(end)
                return end.seq
            if last.inherited:
                last.write_again(self.answered_to(), end)
            self._sync(last.descriptor)
            last.inherited = 0
            return max(written, end.seq)
        except OSError as error:
            raise self._dies(f"sync of {self._files.name(end.segment)}: {error}") from error

    def _sync_other(self, end: Position) -> None:
        """Sync a segment that another writer began since this object held the tail.

        One that was cut and removed or compressed since is durable before that.
        """
        try:
            segment = Segment.open(self.place(end.segment), end.segment)
        except FileNotFoundError:
            if self.segments()[-1] > end.segment:
                return
            raise
        try:
            segment.write_again(self.answered_to(), end)
            self._sync(segment.descriptor)
        finally:
            os.close(segment.descriptor)

    def cut(self, end: Position) -> None:
        """Begin a new segment for the record after `end`, so that the one before is closed."""
        if self._hold(end).expects(end):
            self._rotate(end.seq)

    def tidy(self) -> None:
        """Finish what a command that rewrites segments left half done."""
        try:
            rewriting.tidy(self._files)
        except OSError as error:
            raise self._dies(f"tidy {self._files.folder}: {error}") from error

    def set_aside(self, end: Position) -> tuple[TornBytes, ...]:
        """Move the bytes behind `end` to `quarantine/`, and cut the segment there."""
        folder = self._path / "quarantine"
        try:
            if torn := self.rest(end):
                quarantine.keep(folder, end.seq, torn)
                last = self._hold(end)
                os.ftruncate(last.descriptor, last.expects(end))
                os.fsync(last.descriptor)
            return quarantine.kept(folder, end.seq)
        except OSError as error:
            raise self._dies(f"quarantine in {folder}: {error}") from error

    def _hold(self, end: Position) -> Segment:
        """Give the segment that the next record goes to, open for append.

        That is the one that `end` stands in, or a later one that begins with this very seq.
        """
        if self._last is not None and self._at_end(end):
            return self._last
        for number in dict.fromkeys((end.seq, end.segment)):
            if self._last is not None and self._last.number == number:
                break
            with suppress(FileNotFoundError):
                self._use(Segment.open(self._files.name(number), number))
                break
        else:
            self._rotate(end.seq)
        self._written = max(self._written, end.seq)
        return cast(Segment, self._last)

    def _at_end(self, end: Position) -> bool:
        """Tell whether `end` is the end of the segment that is held, and of the store."""
        last = self._last
        if last is None or last.number != end.segment:
            return False
        if self._checked != end:
            if os.fstat(last.descriptor).st_size != end.offset:
                return False
            if self._files.stands(end.seq):
                return False
            self._checked = end  # nobody else writes while this turn has the lock
        return True

    def _rotate(self, number: int) -> Segment:
        """Begin a new segment; the one before is durable first, so that only the last is not."""
        path = self._files.name(number)
        try:
            with self._syncing.kept_away():
                if self._last is not None:
                    self._sync(self._last.descriptor)
            fresh = Segment(path, number, directory.create(path))
            self._use(fresh)
        except OSError as error:
            raise self._dies(f"new segment {path}: {error}") from error
        return fresh

    def _use(self, segment: Segment) -> None:
        """Make `segment` the last one, and its name durable."""
        directory.sync(self._files.folder)
        with self._syncing.kept_away():
            before, self._last = self._last, segment
            if before is not None:
                with suppress(OSError):
                    os.close(before.descriptor)
            self._syncing.durable = max(self._syncing.durable, segment.number)

    def _require_last(self, last: Segment, end: Position) -> None:
        """Refuse a later segment, or bytes at the end of the one before: no crash leaves these."""
        later = self.segments()[-1]
        if later > last.number:
            reason = f"no record that leads to segment {later}"
            raise BrokenLedger(last.path, last.expects(end), end.seq, reason)
        before = self._files.name(end.segment)
        if last.number != end.segment and size_of(before) > end.offset:
            raise BrokenLedger(before, end.offset, end.seq, "bytes that are no record")
        self._seen_last = True

    def _require_same_files(self) -> None:
        """Notice a lock or a segment that was replaced or removed under this object.

        A segment that another follows may be: it was rewritten, compressed or pruned (spec §15).
        """
        self._require_same(f"{self._path}/lock", self._lock.descriptor)
        last = self._last
        if last is None:
            return
        try:
            self._require_same(last.path, last.descriptor)
        except StoreFailed:
            if self.segments()[-1:] <= (last.number,):
                raise
            self._failure = None
            with self._syncing.kept_away():
                os.close(last.descriptor)
                self._last = None

    def _require_same(self, path: str, descriptor: int) -> None:
        try:
            found = os.lstat(path)
        except OSError as error:
            raise self._dies(f"{path}: {error.strerror}") from error
        if not os.path.samestat(found, os.fstat(descriptor)):
            raise self._dies(f"{path}: it was replaced by another file")

    def _begin_in_child(self) -> None:
        self._let_go()
        self._begin()

    def _check(self) -> None:
        if self._failure is not None:
            raise Dead(self._failure)

    def _dies(self, what: str) -> StoreFailed:
        self._failure = what
        return StoreFailed(what)
