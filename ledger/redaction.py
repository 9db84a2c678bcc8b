"""Openings that are erased: a record says so first, and then the segments are rewritten (§15.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ledger import export, reading
from ledger.codec import Record, decode, next_length
from ledger.errors import LedgerError
from ledger.index import Covered, Index
from ledger.kinds import OPENINGS
from ledger.log import Log
from ledger.projection import State, ended, state_at
from ledger.store import quarantine, rewriting
from ledger.store.contract import Position, Stored, Tail
from ledger.store.framing import cut
from ledger.store.segments import Segments
from ledger.turn import Turn
from ledger.view import View

ERASABLE: Final = tuple(name for name in OPENINGS if name != "profile")
_BEGINNING: Final = 32
"""How much of an erased opening a torn piece must hold to be known as a piece of it."""


class NotEnded(LedgerError):
    """Something is still to come of a card, so it cannot be redacted or pruned (spec §15.1)."""

    exit_status = 2

    def __init__(self, card: bytes, state: State, what: str) -> None:
        """Take the card, its state now, and what cannot be done."""
        super().__init__(
            f"{what}: card {card.hex()} is {state}, which is no end",
            "settle a dispatched card, withdraw an open one or a grant, or wait until it expires; "
            "nothing was changed",
        )
        self.card = card
        self.state = state


@dataclass(frozen=True, slots=True)
class Redaction:
    """What was said to be erased of a card, and how many records were rewritten without it."""

    records: tuple[Record, ...]
    rewritten: int


def forgotten(log: Log, card: bytes) -> list[Record]:
    """Give the records of a card that were pruned and put back; no index knows them (§15.2)."""
    below = log.look(lambda view: view.views.pruned_below())
    return [record for record in reading.records(log, 0, below) if record.card == card]


def say(
    turn: Turn, card: bytes, old: Iterable[Record], names: frozenset[str], by: str, reason: str
) -> tuple[Record, ...]:
    """Append a `redacted` event for each record of a card that holds one of these openings.

    `old` are its records that were pruned and put back. A card that was refused and never issued
    can be redacted too, and so can what is left of one that was pruned.

    Raises:
        UnknownCard: No record is about this card.
        NotEnded: Something is still to come of it.

    """
    known = turn.views.card(card)
    records = [*old, *(turn.record(card, place.seq) for place in turn.views.events(card))]
    if not records:
        raise reading.unknown(turn, card.hex())
    reset = turn.views.last_reset()
    if known is not None and not ended(known, turn.at, reset):
        raise NotEnded(card, state_at(known, turn.at, reset), "not redacted")
    said = {"by": by, "reason": reason}
    made = []
    for record in records:
        named = {name for _, name in turn.views.redactions(record.seq)}
        here = [name for name in record.openings if name in names and name not in named]
        if here:
            made.append(turn.append("redacted", None, turn.redacted(record, here, said)))
    return tuple(made)


def unfinished(view: View) -> bool:
    """Tell whether something that was said to be erased may still be there, or is not accounted."""
    return bool(view.views.to_erase() or view.views.missing())


def finish(files: Segments, log: Log) -> int:
    """Erase what is said to be erased, and give of how many records; others wait meanwhile.

    A crash in between leaves it to the next call.
    """
    log.run(_account)
    return log.alone(lambda tail, index, covered: _erase(files, tail, index, covered))


def _account(turn: Turn) -> None:
    """Say what a crash kept from being said: why a refusal has no envelope (spec §15.3)."""
    for seq, name in turn.views.missing():
        card = turn.views.card(turn.views.card_of(seq)) if name == "envelope" else None
        earlier = turn.redaction(card) if card else None
        if card is not None and earlier is not None:
            record = turn.record(card.hash, seq)
            turn.append("redacted", None, turn.redacted(record, [name], earlier.body))


def _erase(files: Segments, tail: Tail, index: Index, covered: Covered) -> int:
    wanted: dict[int, set[str]] = {}
    for seq, name in index.to_erase():
        wanted.setdefault(seq, set()).add(name)
    if not wanted:
        return 0
    by_segment: dict[int, set[int]] = {}
    for seq in wanted:
        number = max(each for each in files.numbers() if each <= seq)
        by_segment.setdefault(number, set()).add(seq)
    if covered.position.segment in by_segment:
        tail.cut(covered.end)  # whoever appends from now on does so to another file
    for number, seqs in by_segment.items():
        named = {seq: frozenset(wanted[seq]) for seq in seqs}
        _clear_quarantine(files, number, named)
        moved = rewriting.rewrite(files, number, next_length, partial(_without, named))
        covered = _take_in(index, number, moved, covered)
    index.erased(wanted, {index.card_of(seq) for seq in wanted})
    return len(wanted)


def _without(named: Mapping[int, frozenset[str]], stored: Stored) -> bytes:
    names = named.get(stored.position.seq)
    return stored.data if names is None else export.without(decode(stored.data), names)


def _take_in(index: Index, number: int, moved: list[Stored], covered: Covered) -> Covered:
    """Bring the index to where the records of a segment stand now."""
    cards = index.cards_in(number)
    places = [
        (each.position.offset, each.position.seq, cards[each.position.seq])
        for each in moved
        if each.position.seq in cards  # what was pruned and put back is not
    ]
    last = moved[-1]
    if last.position.seq == covered.position.seq:
        size = last.end.offset - last.position.offset
        covered = replace(covered, position=last.position, size=size)
    index.move(places, covered)
    return covered


def _clear_quarantine(files: Segments, number: int, named: Mapping[int, frozenset[str]]) -> None:
    """Remove the torn pieces in which the beginning of an erased opening stands."""
    start = Position(number, number, 0)
    beginnings: set[bytes] = set()
    with files.open(start) as source:
        for stored in cut(source, start, next_length) if source else ():
            names = named.get(stored.position.seq, frozenset())
            openings = decode(stored.data).openings if names else {}
            beginnings.update(openings[name][:_BEGINNING] for name in names & openings.keys())
    quarantine.remove(files.ledger / "quarantine", beginnings - {b""})
