"""What a ledger says of its cards: answers that change nothing (spec §6.1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from ledger.answers import CardStatus, Returned, Status
from ledger.codec import Record
from ledger.envelope import parse
from ledger.errors import AmbiguousPrefix, BrokenLedger, StoreFailed, UnknownCard
from ledger.hidden import word
from ledger.log import Log
from ledger.policy import rule_hashes
from ledger.projection import Card, State, StepState, state_at, step_state
from ledger.request import prefix
from ledger.store.contract import Position
from ledger.view import View


def find(view: View, digits: str) -> bytes:
    """Give the hash of the one issued card that begins with these digits."""
    found = view.views.cards_from(*prefix(digits))
    if not found:
        raise unknown(view, digits)
    if len(found) > 1:
        raise AmbiguousPrefix(digits, len(found))
    return found[0]


def status_of(view: View, card_hash: bytes, now: int) -> CardStatus:
    """Give a card as it is at a time in milliseconds."""
    card = _card(view, card_hash)
    return _status(view, card, now)


def state_of(view: View, card_hash: bytes, now: int) -> tuple[State, StepState]:
    """Give the state of a card and of its step at a time, its envelope redacted or not."""
    card = _card(view, card_hash)
    view.last_event(card)
    return _states(view, card, now)


def redactions(view: View, card_hash: bytes) -> tuple[Record, ...]:
    """Give the records that say which openings of a card were erased (spec §15.3)."""
    return view.redactions(_card(view, card_hash).hash)


def pending(view: View, now: int) -> tuple[CardStatus, ...]:
    """Give the cards that wait for a decision and are in time."""
    return tuple(_status(view, card, now) for card in view.views.open_cards(now))


def affected(view: View, rules: frozenset[str], now: int) -> tuple[CardStatus, ...]:
    """Give the open cards and standing grants whose basis cites one of these rules (spec §8.1)."""
    reset = view.views.last_reset()
    standing = sorted(
        [*view.views.open_cards(now), *view.views.granted_cards()], key=lambda card: card.seq
    )
    alive = (State.OPEN, State.APPROVED)
    cards = (card for card in standing if state_at(card, now, reset) in alive)
    statuses = (_status(view, card, now) for card in cards)
    return tuple(each for each in statuses if rules & rule_hashes(each.envelope.document))


def events(view: View, card_hash: bytes) -> tuple[Record, ...]:
    """Give every record about a card in order, refusals too."""
    view.last_event(_card(view, card_hash))
    places = view.views.events(card_hash)
    return tuple(view.record(card_hash, place.seq) for place in places)


def status(view: View, log: Log, now: int) -> Status:
    """Give a ledger at a glance."""
    opened = view.first()
    covered = view.covered
    return Status(
        name=opened.body["name"] if opened.kind == "opened" else None,
        first=opened.seq,
        chain=log.chain,
        count=covered.position.seq + 1,
        head=covered.digest,
        at=covered.at,
        kid=covered.kid,
        segments=len(log.store.segments()),
        pending=view.views.count_open(now),
        guarded_from=log.recall.since,
        warnings=tuple(log.recall.warnings),
    )


def records(log: Log, start: int, end: int) -> Iterator[Record]:
    """Yield the records from seq `start` up to `end`, each held against its link and tag.

    Raises:
        BrokenLedger: One does not hold, or is missing.

    """
    numbers = log.store.segments()
    start = max(start, min(numbers, default=0))  # the left edge of a pruned ledger (spec §15.2)
    segment = max((number for number in numbers if number <= start), default=0)
    position, before = Position(segment, segment, 0), None
    with closing(log.store.read(position)) as stored:
        while position.seq < end:
            found = next(stored, None)
            if found is None:
                if log.store.origin().seq > position.seq:
                    raise StoreFailed(f"records from seq {position.seq} on were pruned meanwhile")
                place = log.store.place(position.segment)
                raise BrokenLedger(place, position.offset, position.seq, "no whole record")
            position = found.end
            if position.seq > start:
                record = log.replay.checked(found)
                if before is not None and record.prev != before:
                    place = log.store.place(found.position.segment)
                    reason = "prev is not the chain digest of the record before"
                    raise BrokenLedger(place, found.position.offset, record.seq, reason)
                before = record.digest
                yield record


def _card(view: View, card_hash: bytes) -> Card:
    card = view.views.card(card_hash)
    if card is None:
        raise unknown(view, card_hash.hex())
    return card


def unknown(view: View, asked: str) -> UnknownCard:
    """Give the error for a card that is not there, which says so where it may have been pruned."""
    error = UnknownCard(asked)
    if before := view.views.pruned_below():
        error.hint = (
            f"what was issued below seq {before} was pruned: look in the archive, "
            f"or put it back with: cardchain restore {word(view.source.path)} --archive FILE"
        )
    return error


def _states(view: View, card: Card, now: int) -> tuple[State, StepState]:
    step = view.views.step(card.task)
    latest = view.views.card(step.latest) if step else None
    reset = view.views.last_reset()
    return state_at(card, now, reset), step_state(state_at(latest or card, now, reset))


def _status(view: View, card: Card, now: int) -> CardStatus:
    state, of_step = _states(view, card, now)
    reset = view.views.last_reset()
    earlier = view.views.asked_before(card, now)
    envelope = parse(view.envelope(card))
    return CardStatus(
        card=card,
        state=state,
        step_state=of_step,
        envelope=envelope,
        replaced=view.envelope_of(envelope.supersedes),
        returned=tuple(Returned(each.hash, state_at(each, now, reset)) for each in earlier),
    )
