"""The hashes of the tree on disk, so that a proof needs no pass over the log.

A disposable cache in the state directory: whoever hands out a proof made of it holds the proof
against a signed root first. One file holds the leaf hashes in order, one the roots of every 256
leaves, one the roots of every 256 of these, and so on. Nothing is synced: what a crash leaves
behind does not lead to a signed root, and the cache is made anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ledger.errors import StoreFailed
from ledger.tree import HASH_SIZE, node

LEVELS: Final = 8
"""A tile is a complete subtree of this many levels: 256 hashes at its foot."""
_WIDTH: Final = 1 << LEVELS


class TilesLacking(Exception):
    """The cache does not hold a subtree that was asked for."""


class Tiles:
    """The cache of one tree; `subtree` is what `tree` asks for proofs."""

    def __init__(self, folder: Path) -> None:
        """Take the folder, which is made by the first `extend`."""
        self._folder = folder

    def count(self) -> int:
        """Give how many leaf hashes there are."""
        try:
            return os.stat(self._file(0)).st_size // HASH_SIZE
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def extend(self, start: int, leaves: bytes) -> None:
        """Put leaf hashes, one after another, from leaf `start` on.

        Where fewer than `start` are there nothing is done, since a gap cannot be filled. Leaves
        that are there are replaced, and all behind the new ones are dropped.
        """
        if self.count() < start:
            return
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._put(0, start, leaves)
        except OSError as error:
            raise StoreFailed(f"tree in {self._folder}: {error.strerror}") from error

    def begin_at(self, start: int) -> None:
        """Make room for leaves that are gone, so that those from `start` on can be put."""
        if self.count() < start:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with self._open(0, os.O_RDWR | os.O_CREAT) as file:
                os.ftruncate(file, start * HASH_SIZE)

    def clear(self) -> None:
        """Forget everything."""
        for file in self._folder.glob("*.hashes"):
            file.unlink(missing_ok=True)

    def subtree(self, level: int, index: int) -> bytes:
        """Give the root of a complete subtree; raises `TilesLacking`."""
        foot = level - level % LEVELS
        count = 1 << level - foot
        try:
            return fold(self._get(foot, index * count, count))
        except OSError as error:
            raise TilesLacking(f"{self._folder}: {error.strerror}") from error

    def _put(self, level: int, start: int, hashes: bytes) -> None:
        end = start + len(hashes) // HASH_SIZE
        with self._open(level, os.O_RDWR | os.O_CREAT) as file:
            os.pwrite(file, hashes, start * HASH_SIZE)
            os.ftruncate(file, end * HASH_SIZE)
        first, last = start // _WIDTH, end // _WIDTH
        roots = [fold(self._get(level, tile * _WIDTH, _WIDTH)) for tile in range(first, last)]
        if roots or self._file(level + LEVELS).exists():
            self._put(level + LEVELS, first, b"".join(roots))

    def _get(self, level: int, start: int, count: int) -> list[bytes]:
        with self._open(level, os.O_RDONLY) as file:
            data = os.pread(file, count * HASH_SIZE, start * HASH_SIZE)
        if len(data) != count * HASH_SIZE:
            raise TilesLacking(f"{self._folder}: level {level} ends before hash {start + count}")
        return [data[at : at + HASH_SIZE] for at in range(0, len(data), HASH_SIZE)]

    @contextmanager
    def _open(self, level: int, flags: int) -> Iterator[int]:
        descriptor = os.open(self._file(level), flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _file(self, level: int) -> Path:
        return self._folder / f"{level:02}.hashes"


def fold(hashes: Sequence[bytes]) -> bytes:
    """Give the root over hashes whose number is a power of two."""
    while len(hashes) > 1:
        pairs = zip(hashes[::2], hashes[1::2], strict=True)
        hashes = [node(left, right) for left, right in pairs]
    return hashes[0]
