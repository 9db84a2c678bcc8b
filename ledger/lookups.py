"""What is looked up in the index by people, beside the cards and steps that gates ask for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, Final

from ledger.database import IndexContradicts
from ledger.projection import Card, State
from ledger.store.contract import Position

CARD = tuple(each.name for each in fields(Card))
GIVE_CARD: Final = f"SELECT {', '.join(CARD)} FROM cards"
_IN_TIME: Final = (
    "state = 'OPEN' AND not_after > ? / 1000 AND seq > coalesce((SELECT seq FROM reset), -1)"
)


class Lookups(ABC):
    """The questions over many cards, or over the events of one."""

    @abstractmethod
    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Give the rows of a query, with what was changed and not yet put into the file."""

    def cards_from(self, first: bytes, last: bytes) -> list[bytes]:
        """Give the hashes of the issued cards from `first` to `last`, both included."""
        rows = self.query("SELECT hash FROM cards WHERE hash BETWEEN ? AND ?", first, last)
        return [row[0] for row in rows]

    def open_cards(self, at: int) -> list[Card]:
        """Give the cards that nobody decided and that are in time, in the order of their issue."""
        rows = self.query(f"{GIVE_CARD} WHERE {_IN_TIME} ORDER BY seq", at)
        return [card_of(row) for row in rows]

    def count_open(self, at: int) -> int:
        """Give the number of these cards."""
        (row,) = self.query(f"SELECT count(*) FROM cards WHERE {_IN_TIME}", at)
        count: int = row[0]
        return count

    def granted_cards(self) -> list[Card]:
        """Give the cards that were approved and not dispatched, in the order of their issue."""
        rows = self.query(f"{GIVE_CARD} WHERE state = 'APPROVED' ORDER BY seq")
        return [card_of(row) for row in rows]

    def asked_before(self, card: Card, at: int) -> list[Card]:
        """Give the earlier cards of other tasks that asked for the same call and came to nothing.

        Of those that were rejected, of those that have expired, and of those of which the grant
        has lapsed, the newest.
        """
        reset = "(SELECT seq FROM reset)"
        ends: tuple[tuple[str, tuple[int, ...]], ...] = (
            ("state = 'REJECTED'", ()),
            (f"state = 'OPEN' AND (not_after * 1000 <= ? OR seq < {reset})", (at,)),
            (
                "state = 'APPROVED' AND (resolved_at + grant_ttl * 1000 <= ?"
                f" OR resolved_seq < {reset})",
                (at,),
            ),
        )
        asked = f"{GIVE_CARD} WHERE ask = ? AND task != ? AND seq < ?"
        return [
            card_of(row)
            for end, more in ends
            for row in self.query(
                f"{asked} AND {end} ORDER BY seq DESC LIMIT 1",
                *(card.ask, card.task, card.seq, *more),
            )
        ]

    def events(self, card: bytes) -> list[Position]:
        """Give where the events of a card stand, in order, refusals too."""
        rows = self.query(
            "SELECT seq, segment, offset FROM events WHERE card = ? ORDER BY seq", card
        )
        return [Position(*row) for row in rows]

    def event(self, card: bytes, seq: int) -> Position | None:
        """Give where one event of a card stands."""
        rows = self.query(
            "SELECT seq, segment, offset FROM events WHERE card = ? AND seq = ?", card, seq
        )
        return Position(*rows[0]) if rows else None

    def going_on(self, before: int) -> list[Card]:
        """Give the cards issued below a seq that may not be ended, in the order of their issue."""
        states = "'OPEN', 'APPROVED', 'DISPATCHED', 'UNKNOWN'"
        rows = self.query(f"{GIVE_CARD} WHERE seq < ? AND state IN ({states}) ORDER BY seq", before)
        return [card_of(row) for row in rows]

    def redactions(self, seq: int) -> list[tuple[int, str]]:
        """Give what is said to be erased of a record: the event that says so, and the opening."""
        return [
            (row[0], row[1])
            for row in self.query(
                "SELECT event, name FROM redactions WHERE seq = ? ORDER BY event, name", seq
            )
        ]

    def all_redactions(self) -> list[tuple[int, str]]:
        """Give everything that is said to be erased: seq of the record, and opening."""
        rows = self.query("SELECT DISTINCT seq, name FROM redactions ORDER BY seq, name")
        return [(row[0], row[1]) for row in rows]

    def to_erase(self) -> list[tuple[int, str]]:
        """Give what is said to be erased and may still be there: seq of the record, and opening."""
        rows = self.query("SELECT seq, name FROM redactions WHERE done = 0 ORDER BY seq, name")
        return [(row[0], row[1]) for row in rows]

    def missing(self) -> list[tuple[int, str]]:
        """Give what is not there and not said to be erased: seq of the record, and opening."""
        rows = self.query("SELECT seq, name FROM missing ORDER BY seq, name")
        return [(row[0], row[1]) for row in rows]

    def card_of(self, seq: int) -> bytes:
        """Give the card that a record is about, empty for none."""
        rows = self.query("SELECT card FROM events WHERE seq = ?", seq)
        return rows[0][0] if rows else b""

    def cards_in(self, segment: int) -> dict[int, bytes]:
        """Give the card that each record of a segment is about, empty for none, by seq."""
        rows = self.query("SELECT seq, card FROM events WHERE segment = ?", segment)
        return dict(rows)

    def pruned_below(self) -> int:
        """Give the seq below which records may be gone, as the last `pruned` record says."""
        rows = self.query("SELECT before FROM pruned")
        return rows[0][0] if rows else 0

    def configured(self) -> list[tuple[int, bytes]]:
        """Give where profiles were put in force, and which, in order."""
        return [
            (row[0], row[1])
            for row in self.query("SELECT seq, digest FROM configured ORDER BY seq")
        ]

    def left_edge(self) -> tuple[int, bytes] | None:
        """Give the seq that the log began at when it was read, and the digest before, if not 0."""
        rows = self.query("SELECT seq, prev FROM edge")
        return (rows[0][0], rows[0][1]) if rows else None


def card_of(row: tuple[Any, ...]) -> Card:
    """Give the card of a row, or raise `IndexContradicts`."""
    values = dict(zip(CARD, row, strict=True))
    try:
        return Card(**{**values, "state": State(values["state"])})
    except ValueError as error:
        raise IndexContradicts("index: a card with an unknown state") from error
