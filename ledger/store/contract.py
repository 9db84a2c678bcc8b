"""What a store of records promises; it knows no cards, no keys and no chain (spec §7.1).

A store holds one sequence of records. Whoever appends is alone while the tail is held; the bytes
are durable only after `Store.sync`, which is called when the tail is no longer held, so that the
next writer need not wait for the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

Framing = Callable[[bytes, int], int | None]
"""Gives the length of the record that begins at an offset of a buffer, None if it is cut short.

It raises `ledger.errors.Malformed` where no record can begin.
"""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where a record begins: its seq, the seq that its segment begins with, the byte in there."""

    seq: int
    segment: int
    offset: int


ORIGIN = Position(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Stored:
    """One record as it is stored, where it begins, and where the next one would."""

    position: Position
    end: Position
    data: bytes


class Tail(Protocol):
    """The end of the store, held by one writer at a time."""

    def read(self, start: Position) -> Iterator[Stored]:
        """Yield the whole records from `start` on, up to the first bytes that are not one."""

    def rest(self, end: Position) -> bytes:
        """Give all bytes behind `end`, of its segment and of every later one."""

    def append(self, end: Position, data: bytes) -> Stored:
        """Write one record at `end`, which must be where the store ends; not yet durable.

        Raises:
            Dead: The bytes could not be written whole. The store must be opened again.

        """

    def quarantine(self, end: Position) -> None:
        """Move all bytes behind `end` aside, durably, and end the store there."""


class Store(Protocol):
    """A durable sequence of records."""

    def exclusive(self) -> AbstractContextManager[Tail]:
        """Hold the tail, alone among all processes and threads.

        Raises:
            LockTimeout: Another writer holds it for too long. Nothing was written.

        """

    def sync(self, count: int) -> None:
        """Return only when the first `count` records are durable.

        Raises:
            Dead: They may not be. The store must be opened again.

        """

    def read(self, start: Position) -> Iterator[Stored]:
        """Yield the whole records from `start` on without holding the tail."""

    def at(self, position: Position) -> bytes:
        """Give the record that begins at `position`."""

    def place(self, position: Position) -> str:
        """Name the place of a position for people: a file and an offset."""

    def close(self) -> None:
        """Let go of everything that is open."""
