"""The ledger: issue, resolve, withdraw, dispatch, settle, and read (spec §5, §6)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

from ledger.answers import CardStatus, Evidence, Exported, IssuedCard, Opening, Status, Ticket
from ledger.codec import Record
from ledger.envelope import Facts, Proposal

Hash = str | bytes | IssuedCard | Ticket | CardStatus
"""A card hash: 64 lower-case hexadecimal digits, 32 bytes, or a value that has one."""

Clock = Callable[[], int]
Progress = Callable[[int], None]


class Ledger:
    """One ledger directory, opened for append. Safe across threads, processes and forks."""

    @classmethod
    def init(
        cls, path: str | os.PathLike[str], *, name: str, clock: Clock = ..., sync: Callable[[int], None] = ...
    ) -> Self:
        """Make a ledger and its key; the directory must not exist or be empty."""
        raise NotImplementedError

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        keys: Iterable[str | os.PathLike[str]] = (),
        clock: Clock = ...,  # unix milliseconds
        sync: Callable[[int], None] = ...,  # os.fsync
        progress: Progress | None = None,  # called with the count of replayed records
    ) -> Self:
        """Open a ledger for append."""
        raise NotImplementedError

    @classmethod
    def adopt(cls, path: str | os.PathLike[str], *, keys: Iterable[str | os.PathLike[str]] = ()) -> Self:
        """Open a copied directory and make it the one this host writes to."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of all files."""
        raise NotImplementedError

    def issue(
        self,
        proposal: Proposal,
        *,
        presented: Opening | None = None,
        runtime: Mapping[str, str] | None = None,
    ) -> IssuedCard:
        raise NotImplementedError

    def resolve(
        self,
        echo: Hash,
        decision: str,
        *,
        approver: str | None,
        target: Hash | None = None,
        channel: str = "api",
        assurance: str = "label",
        evidence: Evidence | None = None,
        note: str | None = None,
        presented: Opening | None = None,
        response: Opening | None = None,
    ) -> Record:
        raise NotImplementedError

    def withdraw(
        self,
        echo: Hash,
        *,
        by: str | None,
        reason: str,  # revoked | cancelled
        target: Hash | None = None,
        channel: str | None = None,
        note: str | None = None,
    ) -> Record:
        raise NotImplementedError

    def dispatch(self, card: Hash, facts: Facts) -> Ticket:
        raise NotImplementedError

    def settle(
        self,
        card: Hash,
        outcome: str,
        *,
        by: str | None = None,
        receipt_digest: bytes | None = None,
    ) -> Record:
        raise NotImplementedError

    def clock_reset(self, *, by: str, reason: str) -> Record:
        raise NotImplementedError

    def rotate(self) -> Record:
        """Make a new key and put it in force (spec §4.2)."""
        raise NotImplementedError

    def export(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Exported:
        raise NotImplementedError

    def find(self, prefix: str) -> bytes:
        """Give the hash of the one issued card that begins so: UnknownCard, AmbiguousPrefix."""
        raise NotImplementedError

    def card(self, card: Hash, *, now: int | None = None) -> CardStatus:
        raise NotImplementedError

    def events(self, card: Hash) -> tuple[Record, ...]:
        raise NotImplementedError

    def records(self, start: int = 0) -> Iterator[Record]:
        raise NotImplementedError

    def pending(self, now: int | None = None) -> tuple[CardStatus, ...]:
        raise NotImplementedError

    def status(self) -> Status:
        raise NotImplementedError
