"""One segment file: appended to while it is the last, and read at any time (spec §7.1)."""

from __future__ import annotations

import os
from typing import BinaryIO

from ledger.store import directory
from ledger.store.contract import Position
from ledger.store.framing import FIRST_READ


class Segment:
    """The last segment, open for append."""

    __slots__ = ("descriptor", "number", "path")

    def __init__(self, path: str, number: int, descriptor: int) -> None:
        """Take a path, the seq of the first record, and a descriptor open for append."""
        self.path = path
        self.number = number
        self.descriptor = descriptor

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
        return cls(path, number, descriptor)


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
