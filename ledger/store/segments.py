"""The folder of segment files: their names, and how each of them is read (spec §7.1)."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

from ledger.errors import BrokenLedger
from ledger.store import directory
from ledger.store.contract import Position
from ledger.store.segment import reader

GZIP_MAGIC: Final = b"\x1f\x8b"
_SEGMENT: Final = re.compile(r"([0-9]{20})\.cbor(\.gz)?")


class Segments:
    """The segments of one ledger directory; each is named by the seq of its first record."""

    def __init__(self, ledger: Path) -> None:
        """Take the ledger directory."""
        self.ledger = ledger.absolute()
        self.folder = self.ledger / "segments"

    def numbers(self) -> tuple[int, ...]:
        """Give the seq that each segment begins with, in order."""
        numbers: list[int] = []
        for name in os.listdir(self.folder):
            match = _SEGMENT.fullmatch(name)
            if match is None or int(match[1]) in numbers:
                raise BrokenLedger(self.folder / name, 0, None, "not the name of a segment")
            numbers.append(int(match[1]))
        return tuple(sorted(numbers))

    def name(self, number: int) -> str:
        """Give the path of a segment that is not compressed."""
        return f"{self.folder}/{number:020}.cbor"

    def place(self, number: int) -> str:
        """Give the path of a segment, compressed or not."""
        plain = self.name(number)
        packed = f"{plain}.gz"
        return packed if directory.stands(packed) and not directory.stands(plain) else plain

    def stands(self, number: int) -> bool:
        """Tell whether there is a segment of this number."""
        return directory.stands(self.place(number))

    @contextmanager
    def open(self, position: Position) -> Iterator[BinaryIO | None]:
        """Give a segment that stands at `position`, None if there is none."""
        with ExitStack() as stack:
            source = self._source(position.segment, stack)
            try:
                if source is not None:
                    source.seek(position.offset)
                yield source
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                place = self.place(position.segment)
                raise BrokenLedger(place, position.offset, None, f"gzip: {error}") from error

    def _source(self, number: int, stack: ExitStack) -> BinaryIO | None:
        plain = self.name(number)
        with suppress(FileNotFoundError):
            raw = stack.enter_context(reader(plain))
            return unpacked(raw, stack) if is_packed(raw) else raw
        with suppress(FileNotFoundError):
            return unpacked(stack.enter_context(reader(f"{plain}.gz")), stack)
        return None


def is_packed(raw: BinaryIO) -> bool:
    """Tell whether a file is compressed, as one is for a moment before it gets its new name."""
    return os.pread(raw.fileno(), len(GZIP_MAGIC), 0) == GZIP_MAGIC


def unpacked(raw: BinaryIO, stack: ExitStack) -> BinaryIO:
    """Give what a compressed file holds."""
    return cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=raw)))
