"""What a store of records promises; it knows no cards, no keys and no chain (spec §7).

A store holds one sequence of records. Whoever appends is alone while the tail is held. What is
appended reaches the file by one `Tail.write`, and is durable only after `Store.sync`, which is
called when the tail is no longer held, so that the next writer need not wait for the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ledger.errors import LedgerError
from ledger.hidden import shown, word

Framing = Callable[[bytes, int], int | None]
"""Gives the length of the record that begins at an offset of a buffer, None if it is cut short.

It raises `Malformed` where no record can begin.
"""


class NotALedger(LedgerError):
    """There is no ledger at this path."""

    exit_status = 2

    def __init__(self, path: Path, reason: str, hint: str = "") -> None:
        """Take the path, a safe reason, and what to do if that is not to make a ledger."""
        super().__init__(
            f"{shown(str(path))}: no ledger: {reason}",
            hint or f"make one with: cardchain init {word(path)}",
        )
        self.path = path
        self.reason = reason


class AlreadyThere(LedgerError):
    """Something stands where a ledger or a file was to be made; it was left as it is."""

    exit_status = 2
    hint = "choose another path; nothing was changed"

    def __init__(self, path: Path) -> None:
        """Take the path."""
        super().__init__(f"{shown(str(path))}: something is there already")
        self.path = path


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where a record begins: its seq, the seq that its segment begins with, the byte in there."""

    seq: int
    segment: int
    offset: int


ORIGIN = Position(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Stored:
    """One record as it is stored, where it begins, and where the next one may."""

    position: Position
    end: Position
    data: bytes


@dataclass(frozen=True, slots=True)
class TornBytes:
    """Bytes that were moved aside because no record could be made of them (spec §7.4)."""

    length: int
    sha256: bytes


class Tail(Protocol):
    """The end of a store, held by one writer at a time."""

    def read(self, start: Position) -> Generator[Stored, None, None]:
        """Yield the whole records from `start` on, up to the first bytes that are not one."""

    def rest(self, end: Position) -> bytes:
        """Give the bytes behind `end`.

        Raises:
            BrokenLedger: They are not the last ones of the store, so no crash left them.

        """

    def append(self, end: Position, data: bytes) -> Stored:
        """Take in one record for `end`, where the store must end, and give its place.

        It is read back by `Store.at` from now on, and lost if the tail is let go before `write`.

        Raises:
            StoreFailed: The store does not end there. It must be opened again.

        """

    def take_back(self) -> None:
        """Forget what was appended since the last `write`."""

    def write(self) -> None:
        """Write what was appended; it is not durable yet.

        Raises:
            StoreFailed: The bytes could not be written whole. The store must be opened again.

        """

    def cut(self, end: Position) -> None:
        """Close the segment before `end`, where the store must end: it may be replaced then."""

    def tidy(self) -> None:
        """Finish what a command that replaces segments left half done."""

    def set_aside(self, end: Position) -> tuple[TornBytes, ...]:
        """Move all bytes behind `end` aside, durably, and end the store there.

        Gives everything that was ever set aside at this end, so that a crash half-way loses no
        account of it.
        """


class Store(Protocol):
    """A durable sequence of records."""

    def exclusive(self) -> AbstractContextManager[Tail]:
        """Hold the tail, alone among all threads and processes.

        Raises:
            LockTimeout: Another writer holds it for too long. Nothing was written.
            Dead: A write or sync of this object has failed before.

        """

    def sync(self, end: Position) -> None:
        """Return only when all records before `end` are durable; they were written or read.

        Raises:
            StoreFailed: They may not be. The store must be opened again.
            Dead: A write or sync of this object has failed before.

        """

    def read(self, start: Position) -> Generator[Stored, None, None]:
        """Yield the whole records from `start` on without holding the tail."""

    def ends_at(self, end: Position) -> bool:
        """Tell whether nothing stands behind `end` now, without holding the tail."""

    def at(self, position: Position) -> bytes | None:
        """Give the record that begins at `position`, None if no whole one does."""

    def segments(self) -> tuple[int, ...]:
        """Give the seq that each segment begins with, in order."""

    def origin(self) -> Position:
        """Give where the first record begins: at a seq above 0 where older ones were pruned."""

    def place(self, segment: int) -> str:
        """Name the file of a segment, for people."""

    def identity(self) -> int:
        """Give a number that a copy of the store does not share."""

    def close(self) -> None:
        """Let go of everything that is open."""
