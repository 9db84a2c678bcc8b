"""A ledger as it is looked at: questions that change nothing (spec §6.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from ledger import reading, request
from ledger.answers import CardStatus, Status
from ledger.codec import Record
from ledger.log import Log
from ledger.request import Hash


class Reader:
    """The questions that one open ledger answers."""

    def __init__(self, path: Path, log: Log) -> None:
        """Take a log that is ready; use `init`, `open` or `adopt`."""
        self.path = path
        self._log = log

    def __enter__(self) -> Self:
        """Give the ledger itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let go of all files."""
        self._log.close()

    @property
    def chain(self) -> bytes:
        """The 16 bytes that name this ledger."""
        return self._log.chain

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for people about what this host has lost, such as its memory of the ledger."""
        return tuple(self._log.recall.warnings)

    def find(self, prefix: str) -> bytes:
        """Give the hash of the one card that begins with 1 to 64 digits.

        Raises:
            UnknownCard, AmbiguousPrefix: There is none, or more than one.

        """
        return self._log.look(lambda view: reading.find(view, prefix))

    def card(self, card: Hash, *, now: int | None = None) -> CardStatus:
        """Give a card as it is now, or at a time in unix milliseconds; `UnknownCard` if none."""
        card_hash = request.card_hash("card", card)
        return self._log.look(lambda view: reading.status_of(view, card_hash, view.time(now)))

    def state(self, card: Hash, *, now: int | None = None) -> tuple[str, str]:
        """Give the state of a card and that of its step (spec §6.1), its envelope erased or not."""
        card_hash = request.card_hash("card", card)
        return self._log.look(lambda view: reading.state_of(view, card_hash, view.time(now)))

    def redactions(self, card: Hash) -> tuple[Record, ...]:
        """Give the records that say which openings of a card were erased, by whom and why."""
        card_hash = request.card_hash("card", card)
        return self._log.look(lambda view: reading.redactions(view, card_hash))

    def events(self, card: Hash) -> tuple[Record, ...]:
        """Give every record about a card in order, refusals too; `UnknownCard` if none."""
        card_hash = request.card_hash("card", card)
        return self._log.look(lambda view: reading.events(view, card_hash))

    def records(self, start: int = 0) -> Iterator[Record]:
        """Yield the records from seq `start` to the last one appended before the call."""
        end = self._log.look(lambda view: view.covered.end.seq)
        return reading.records(self._log, start, end)

    def pending(self, now: int | None = None) -> tuple[CardStatus, ...]:
        """Give the cards that wait for a decision, oldest first."""
        return self._log.look(lambda view: reading.pending(view, view.time(now)))

    def affected(
        self, changed_rule_hashes: Iterable[str | bytes], *, now: int | None = None
    ) -> tuple[CardStatus, ...]:
        """Give the open cards and standing grants whose basis cites a rule that changed.

        A rule is named by the SHA-256 that the basis binds it by, as 64 digits or 32 bytes.
        """
        rules = frozenset(request.hexadecimal("rule", each) for each in changed_rule_hashes)
        return self._log.look(lambda view: reading.affected(view, rules, view.time(now)))

    def status(self) -> Status:
        """Give the ledger at a glance."""
        return self._log.look(lambda view: reading.status(view, self._log, view.time(None)))
