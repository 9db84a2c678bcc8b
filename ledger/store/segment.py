"""One segment file: appended to while it is the last, and read at any time (spec §7.1)."""

from __future__ import annotations

import os
from typing import BinaryIO, Final

from ledger.store import directory
from ledger.store.contract import Position
from ledger.store.framing import FIRST_READ

_AT_ONCE: Final = 1 << 20


class Segment:
    """The last segment, open for append.

    The first `inherited` bytes were there when it was opened, and the sync of whoever wrote them
    may have failed.
    """

    __slots__ = ("descriptor", "inherited", "number", "path")

    def __init__(self, path: str, number: int, descriptor: int, inherited: int = 0) -> None:
        """Take a path, the seq of the first record, and a descriptor open for append."""
        self.path = path
        self.number = number
        self.descriptor = descriptor
        self.inherited = inherited

    def expects(self, end: Position) -> int:
        """Give the size that this segment has if the records end at `end`."""
        return end.offset if self.number == end.segment else 0

    @classmethod
    def open(cls, path: str, number: int) -> Segment:
        """Open a segment that is there, or raise `LooseMode` if others can write to it."""
        descriptor = directory.open_file(path, os.O_RDWR | os.O_APPEND)
        try:
            found = os.fstat(descriptor)
            directory.require_private(path, found, 0o600)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, number, descriptor, found.st_size)

    def write_again(self, since: Position | None, end: Position) -> None:
        """Write once more what was there and may not be durable, so that a sync is about it.

        After a failed sync the kernel may take bytes for written that no disk has, and says so to
        those only who had the file open. What stands before `since` is durable; whole records end
        at `end`. A file that is gone was synced by whoever replaced it.
        """
        start = 0 if since is None or since.segment < self.number else since.offset
        stop = min(self.inherited, end.offset)
        if start >= stop or (since is not None and since.segment > self.number):
            return
        try:
            descriptor = directory.open_file(self.path, os.O_RDWR)  # O_APPEND would append
        except FileNotFoundError:
            return
        try:
            for at in range(start, stop, _AT_ONCE):
                data, done = os.pread(descriptor, min(_AT_ONCE, stop - at), at), 0
                while done < len(data):
                    done += os.pwrite(descriptor, data[done:], at + done)
        finally:
            os.close(descriptor)


def reader(path: str) -> BinaryIO:
    """Open a segment to read it from its beginning."""
    return os.fdopen(directory.open_file(path, os.O_RDONLY), "rb", FIRST_READ)


def size_of(path: str) -> int:
    """Give the size of a file, 0 if there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def write(descriptor: int, data: bytes) -> None:
    """Write all bytes, in as many pieces as the system takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
