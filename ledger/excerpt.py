"""Excerpts: some records of a log, with proofs that they stand in it (spec §14)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger import reading
from ledger.codec import Record, deterministic
from ledger.errors import LedgerError
from ledger.kinds import bound_openings
from ledger.log import Log
from ledger.view import NO_CARD, View

FORMAT: Final = "cardchain-excerpt/1"
MAX_BYTES: Final = 67_108_864
MAX_OPENED: Final = 1_073_741_824
"""The most bytes of openings, each counted for every record that binds it (spec §14.1)."""
_FOOTING: Final = frozenset({"opened", "rekeyed", "configured", "clock_reset"})


class ExcerptTooLarge(LedgerError):
    """The excerpt would be over a limit (spec §14.1); nothing was written."""

    exit_status = 2
    hint = "choose fewer records, or leave openings out with --withhold"

    def __init__(self, size: int, limit: int) -> None:
        """Take what there would be and what there may be, in bytes."""
        what = "excerpt" if limit == MAX_BYTES else "excerpt with openings in all its records"
        super().__init__(f"{what} of {size} bytes, limit {limit}")
        self.size = size
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Selection:
    """The records that belong into an excerpt, in the order of seq, and what they are of."""

    scope: Mapping[str, Any]
    records: tuple[Record, ...]

    def bare_ends(self) -> tuple[Record, ...]:
        """Give the records whose successor is not among them: each needs a proof (spec §14.2)."""
        seqs = {record.seq for record in self.records}
        return tuple(record for record in self.records if record.seq + 1 not in seqs)


def of_card(view: View, card: bytes) -> Selection:
    """Select every record of an issued card, and what bears on them (spec §14.2).

    A refusal to issue the same card before it was issued is left out, since a receipt begins with
    the record that issued it.
    """
    events = reading.events(view, card)
    issued = next(record.seq for record in events if record.kind == "issued")
    chosen = {record.seq: record for record in events if record.seq >= issued}
    last = max(chosen)
    later = _without_card(view, lambda seq: seq > issued)
    between = [each for each in later if each.kind == "clock_reset" and each.seq < last]
    return _selected({"card": card}, [*chosen.values(), *between], later)


def of_range(log: Log, first: int, last: int) -> Selection:
    """Select the records from seq `first` to `last`, and what they rest on (spec §14.2)."""
    chosen = tuple(reading.records(log, first, last + 1))
    cards = {record.card for record in chosen if record.card is not None}

    def rest(view: View) -> Selection:
        earlier = [
            view.record(card, place.seq)
            for card in cards
            for place in view.views.events(card)
            if place.seq < first
        ]
        others = _without_card(view, lambda seq: not first <= seq <= last)
        footing = [each for each in others if each.seq < first and each.kind in _FOOTING]
        scope = {"to": last, "from": first}
        return _selected(scope, [*chosen, *earlier, *footing], others)

    return log.look(rest)


def encode(selection: Selection, proofs: Sequence[str], withhold: frozenset[str]) -> bytes:
    """Give the bytes of an excerpt (spec §14.1), without the openings named in `withhold`."""
    openings = {
        hashlib.sha256(data).digest(): data
        for record in selection.records
        for name, data in record.openings.items()
        if name not in withhold
    }
    bound = (bound_openings(each.kind, each.card, each.body) for each in selection.records)
    opened = sum(len(openings.get(digest, b"")) for each in bound for digest in each.values())
    if opened > MAX_OPENED:
        raise ExcerptTooLarge(opened, MAX_OPENED)
    data = deterministic(
        [
            FORMAT,
            selection.scope,
            [record.bare for record in selection.records],
            [*proofs],
            [openings[digest] for digest in sorted(openings)],
        ]
    )
    if len(data) > MAX_BYTES:
        raise ExcerptTooLarge(len(data), MAX_BYTES)
    return data


def _selected(
    scope: Mapping[str, Any], chosen: Iterable[Record], others: Iterable[Record]
) -> Selection:
    """Give a selection with every redaction that names one of its records."""
    by_seq = {record.seq: record for record in chosen}
    redactions = [each for each in others if each.kind == "redacted" and each.body["seq"] in by_seq]
    by_seq.update({each.seq: each for each in redactions})
    return Selection(scope, tuple(by_seq[seq] for seq in sorted(by_seq)))


def _without_card(view: View, wanted: Callable[[int], bool]) -> list[Record]:
    """Give the records without a card at the seqs that are wanted."""
    places = view.views.events(NO_CARD)
    return [view.source.replay.read(place) for place in places if wanted(place.seq)]
