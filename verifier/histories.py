"""What happened to the cards that somebody asked for, kept while a log is replayed.

Only sound records count (spec §10.3), so a history says what the replay went by. Memory grows with
the records of the cards asked for, not with the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from functools import partial
from typing import NamedTuple

from verifier.approvals import doubt
from verifier.cards import (
    APPROVED,
    DISPATCHED,
    FAILED,
    NOT_LATEST,
    REJECTED,
    SUCCEEDED,
    UNKNOWN,
    WITHDRAWN,
    Cards,
)
from verifier.evidence import Evidence, frame, parse
from verifier.framing import Frames
from verifier.replay import Replay
from verifier.report import Event, Finding, History

NOT_ISSUED = "NOT ISSUED"
ENDED = "ENDED"  # of a card that a pruned record made forgotten (spec §15.1, §15.2)


class Standing(NamedTuple):
    """The state of a card at the end of a log, and why it is not sure, if it is not."""

    state: str
    doubt: str


class Histories(Iterable[History], Sized):
    """The histories of the cards asked for, in the order in which the log names them."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        """Keep the cards whose hash in hex is `wanted`."""
        self._wanted = wanted
        self._events: dict[str, list[Event]] = {}
        self._envelopes: dict[str, bytes] = {}
        self._unsound: dict[str, list[tuple[str, int]]] = {}
        self._findings: dict[tuple[str, int | None], list[Finding]] = {}
        self._standing: Callable[[str, bool], Standing] = lambda *_: Standing("", "")

    def __len__(self) -> int:
        """Count the cards."""
        return len(self._events)

    def __iter__(self) -> Iterator[History]:
        """Make the history of one card after the other."""
        for card, events in self._events.items():
            places = [(event.file, event.offset) for event in events]
            places += self._unsound.get(card, ())
            findings = [found for place in places for found in self._findings.get(place, ())]
            was_issued = any(event.kind == "issued" for event in events)
            state, why = self._standing(card, was_issued)
            envelope = self._envelopes.get(card)
            yield History(card, envelope, tuple(events), state, why, tuple(findings))

    def add(self, card: str, event: Event, envelope: bytes | None) -> None:
        """Take in an event of a card."""
        if self._wanted(card):
            self._events.setdefault(card, []).append(event)
            if envelope is not None:
                self._envelopes.setdefault(card, envelope)

    def touch(self, card: str, file: str, offset: int) -> None:
        """Note the place of an unsound record that names a card; what it says is not taken in."""
        if self._wanted(card):
            self._events.setdefault(card, [])
            self._unsound.setdefault(card, []).append((file, offset))

    def close(self, findings: Iterable[Finding], standing: Callable[[str, bool], Standing]) -> None:
        """Take the findings of the log, and how each card stands at its end.

        `standing` is asked with a card hash in hex, and whether an event issued the card.
        """
        for found in findings:
            self._findings.setdefault((found.file, found.offset), []).append(found)
        self._standing = standing


class Collector:
    """Hands the records of a replay over to the histories."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        """Keep the cards that are `wanted`."""
        self.histories = Histories(wanted)
        self.chain_events: list[Event] = []

    def passed(self, frames: Frames, start: int) -> None:
        """Take in what the fused loop accepted: the sound records from `start` on."""
        before, pos = frames.offset - frames.pos, start
        while pos < frames.pos:
            end = frame(frames.buffer, pos)
            self.take(parse(frames.file, before + pos, frames.buffer[pos:end]), sound=True)
            pos = end

    def take(self, record: Evidence, sound: bool) -> None:
        """Take in a record that the table of checks has judged."""
        card = None if record.card is None else record.card.hex()
        if not sound:
            if card is not None:
                self.histories.touch(card, record.file, record.offset)
            return
        openings = {name: data for name, data in record.openings.items() if name != "envelope"}
        seq, kind, at = record.seq or 0, record.kind or "", record.at or 0
        event = Event(seq, kind, at, record.body, openings, record.file, record.offset)
        if card is None:
            self.chain_events.append(event)
        else:
            self.histories.add(card, event, record.envelope)

    def close(self, replay: Replay) -> Histories:
        """Give the histories at the end of a log."""
        self.histories.close(replay.findings, partial(_standing, replay))
        return self.histories


def _standing(replay: Replay, card: str, was_issued: bool) -> Standing:
    cards = replay.state.cards
    number = cards.numbers.get(bytes.fromhex(card))
    if number is not None:
        return Standing(state_of(cards, number, replay.tally.end_at or 0), doubt(replay, number))
    if was_issued:
        return Standing(ENDED, "")
    if replay.state.disturbed or replay.begins_at:
        return Standing("", "its issue may be lost")
    return Standing(NOT_ISSUED, "")


def state_of(cards: Cards, number: int, at: int) -> str:
    """Give the state of a card at a time in unix milliseconds (spec §6.1)."""
    flags = cards.flags[number]
    for bits, state in (
        (SUCCEEDED | FAILED, "SETTLED"),
        (UNKNOWN, "UNKNOWN"),
        (DISPATCHED, "DISPATCHED"),
        (WITHDRAWN, "WITHDRAWN"),
        (REJECTED, "REJECTED"),
        (NOT_LATEST, "SUPERSEDED"),
    ):
        if flags & bits:
            return state
    late = cards.over(number, at)
    if flags & APPROVED:
        return "LAPSED" if late else "APPROVED"
    return "EXPIRED" if late else "OPEN"
