"""What the chain says at one moment: its cards, and the records that show them (spec §6.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.codec import Record
from ledger.database import IndexContradicts
from ledger.errors import LedgerError, StoreFailed
from ledger.hidden import shown
from ledger.index import Covered, Index
from ledger.profile import Profile
from ledger.profile import parse as parse_profile
from ledger.projection import STATES_AFTER, Card
from ledger.replay import Replay

NO_CARD: Final = b""
"""How the index names the card of events that have none."""


class Redacted(LedgerError):
    """What a card said was erased, and a record says so (spec §15.3)."""

    exit_status = 2
    hint = "what is left of it: cardchain show DIR HASH"

    def __init__(self, card: bytes, record: Record) -> None:
        """Take the card and the `redacted` record."""
        by, reason = shown(record.body["by"]), record.body["reason"]
        super().__init__(f"card {card.hex()} was redacted by {by}: {reason}, seq {record.seq}")
        self.card = card
        self.record = record


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records of a ledger are read and the time is told.

    `clock` gives unix milliseconds. `profiles` are those that cards may name and the chain does
    not hold, by digest.
    """

    path: Path
    replay: Replay
    clock: Callable[[], int]
    profiles: Mapping[bytes, Profile]


class View:
    """The chain up to `covered`. What is looked up is held against the record it points to."""

    def __init__(self, source: Source, views: Index, covered: Covered) -> None:
        """Take the index, which covers the chain up to `covered`, and where the records are."""
        self.source = source
        self.views = views
        self.covered = covered

    def time(self, now: int | None) -> int:
        """Give the time to read at, in milliseconds: `now`, or the clock, or the last record's."""
        return max(self.source.clock(), self.covered.at) if now is None else now

    def record(self, card: bytes | None, seq: int) -> Record:
        """Give an event of a card, or of none, held against the record that the index points to."""
        position = self.views.event(card or NO_CARD, seq)
        record = self.source.replay.read(position) if position else None
        if record is None or record.card != card:
            named = "no card" if card is None else f"card {card.hex()}"
            raise IndexContradicts(f"index: no event of {named} at seq {seq}")
        return record

    def profile(self, digest: bytes) -> Profile | None:
        """Give a profile that this host was given or that the chain holds (spec §8.5)."""
        if digest in self.source.profiles:
            return self.source.profiles[digest]
        text = self.views.profile_bytes(digest)
        found = None if text is None else parse_profile(text)
        if found is not None and found.digest != digest:
            raise IndexContradicts(f"index: another profile than {digest.hex()}")
        return found

    def first(self) -> Record:
        """Give the first record: `opened`, or the one at the left edge of a pruned ledger."""
        return self.source.replay.read(self.source.replay.origin())

    def envelope(self, card: Card) -> bytes:
        """Give the envelope of a card, from its last event or the one that issued it."""
        text = self._envelope(card)
        if text is not None:
            return text
        if (redaction := self.redaction(card)) is not None:
            raise Redacted(card.hash, redaction)
        raise StoreFailed(f"the envelope of card {card.hash.hex()} was removed from the log")

    def redactions(self, card: bytes) -> tuple[Record, ...]:
        """Give the `redacted` records that name records of a card, in order."""
        named = {
            event
            for place in self.views.events(card)
            for event, _ in self.views.redactions(place.seq)
        }
        return tuple(self.record(None, event) for event in sorted(named))

    def redaction(self, card: Card) -> Record | None:
        """Give the first record that says why the envelope of a card is gone, None if none does."""
        for event, name in self.views.redactions(card.seq):
            if name == "envelope":
                return self.record(None, event)
        return None

    def envelope_of(self, card_hash: bytes | None) -> bytes | None:
        """Give the envelope of an issued card, None if there is none or it was removed."""
        card = None if card_hash is None else self.views.card(card_hash)
        return None if card is None else self._envelope(card)

    def _envelope(self, card: Card) -> bytes | None:
        text = self.last_event(card).openings.get("envelope")
        if text is None and card.last != card.seq:
            text = self.record(card.hash, card.seq).openings.get("envelope")
        return text

    def last_event(self, card: Card) -> Record:
        """Give the last event of a card other than `refused`; the card must agree with it."""
        record = self.record(card.hash, card.last)
        if card.state not in STATES_AFTER[record.kind]:
            raise IndexContradicts(f"index: card {card.hash.hex()} is not {card.state}")
        return record
