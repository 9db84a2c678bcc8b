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

    `inherited` says that others may have written to it, whose sync may have failed.
    """

    __slots__ = ("descriptor", "inherited", "number", "path")

    def __init__(self, path: str, number: int, descriptor: int, *, inherited: bool) -> None:
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
            directory.require_private(path, os.fstat(descriptor), 0o600)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, number, descriptor, inherited=True)

    def write_again(self, since: Position | None, end: Position) -> None:
        """Write what stands between two ends of records once more, so that a sync is about it.

        After a failed sync the kernel may take bytes for written that no disk has, and says so to
        those only who had the file open. Without `since` that is every byte before `end`.
        """
        if since is not None and since.segment > self.number:
            return
        start = since.offset if since is not None and since.segment == self.number else 0
        descriptor = directory.open_file(self.path, os.O_RDWR)  # with O_APPEND it would append
        try:
            for at in range(start, end.offset, _AT_ONCE):
                data, done = os.pread(descriptor, min(_AT_ONCE, end.offset - at), at), 0
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
