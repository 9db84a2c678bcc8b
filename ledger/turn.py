"""One hold of the tail: what the chain says, the clock, and the right to append."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ledger.codec import Record
from ledger.errors import ClockWentBack
from ledger.index import Covered, Index
from ledger.store.contract import Tail
from ledger.view import Source, View

HELD_MS: Final = 5_000
"""How far the clock may go back before the ledger refuses, in milliseconds (spec §5)."""


class Turn(View):
    """A view that can append; what it appended counts at once, and is written with the batch."""

    def __init__(self, source: Source, views: Index, covered: Covered, tail: Tail) -> None:
        """Take the index and the tail, which is held."""
        super().__init__(source, views, covered)
        self.appended = False
        self._tail = tail
        self._at: int | None = None

    @property
    def at(self) -> int:
        """The clock, read once, and held for up to 5 seconds where it went back (spec §5)."""
        if self._at is None:
            now, last = self.source.clock(), self.covered.at
            if now < last - HELD_MS:
                raise ClockWentBack(self.source.path, last, now)
            self._at = max(now, last)
        return self._at

    @staticmethod
    def redacted(record: Record, names: list[str], said: Mapping[str, Any]) -> dict[str, Any]:
        """Give the body that says what is taken out of a record, by whom and why (spec §15.3)."""
        return {
            "seq": record.seq,
            "target": record.digest,
            "openings": names,
            "by": said["by"],
            "reason": said["reason"],
        }

    def append(
        self,
        kind: str,
        card: bytes | None,
        body: Mapping[str, Any],
        openings: Mapping[str, bytes] | None = None,
        *,
        at: int | None = None,
    ) -> Record:
        """Append one event at the time of this turn, or at `at` for a `clock_reset`."""
        at = self.at if at is None else at
        self.appended = True
        record, self.covered = self.source.replay.append(
            self._tail, self.views, self.covered, at, kind, card, body, openings or {}
        )
        return record
