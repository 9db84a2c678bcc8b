"""The events of the cards of a log in the order of its chain, and how decisions went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

from ledger.report import events
from ledger.report.cards import Sight, kind, title
from ledger.report.markup import code, duration, instant, pairs, text
from verifier import Event, History

_CHUNK: Final = 50  # rows that a browser lays out together
_QUICK_MS: Final = 5_000
_BARS: Final = 60
_HEIGHT: Final = 60


class Moment(NamedTuple):
    """One event; `card` is empty for an event of the chain itself."""

    event: Event
    card: str
    issued_at: int | None


def moments(histories: Sequence[History], of_chain: Sequence[Event]) -> list[Moment]:
    """Give the events of all cards, and those of the chain itself, by seq."""
    found = [Moment(event, "", None) for event in of_chain]
    for history in histories:
        issued = next((event.at for event in history.events if event.kind == "issued"), None)
        found += [Moment(event, history.card, issued) for event in history.events]
    return sorted(found, key=lambda moment: moment.event.seq)


def summary(found: Sequence[Moment]) -> Iterator[str]:
    """Give how long decisions took, and a picture of the events over time."""
    waits = [
        moment.event.at - moment.issued_at
        for moment in found
        if moment.event.kind == "resolved" and moment.issued_at is not None
    ]
    if waits:
        quick = sum(0 <= wait < _QUICK_MS for wait in waits)
        rows = (
            ("decisions", f"{len(waits):,}"),
            ("time to decide, median", duration(round(median(waits)))),
            ("shortest and longest", f"{duration(min(waits))} and {duration(max(waits))}"),
            (f"decided in under {duration(_QUICK_MS)}", f"{quick:,}"),
        )
        yield from pairs(rows)
    if len(found) > 1:
        yield from _picture([moment.event for moment in found])


def _picture(found: Sequence[Event]) -> Iterator[str]:
    """Give the number of events, and of refusals among them, in equal stretches of time."""
    first, last = min(event.at for event in found), max(event.at for event in found)
    span = max(1, last - first + 1)
    bars = [[0, 0] for _ in range(_BARS)]
    for event in found:
        bar = bars[(event.at - first) * _BARS // span]
        bar[0] += 1
        bar[1] += event.kind == "refused"
    most = max(bar[0] for bar in bars)
    refused = sum(bar[1] for bar in bars)
    words = f"{len(found):,} events from {text(_day(first))} to {text(_day(last))}, "
    words += f"{refused:,} of them refusals; at most {most:,} in one of {_BARS} equal stretches"
    yield f"<figure><figcaption>{words}.</figcaption>\n"
    yield f'<svg viewBox="0 0 {_BARS * 10} {_HEIGHT}" role="img" aria-label="{words}">\n'
    for number, (events_, refusals) in enumerate(bars):
        yield from _bar(number, events_, most, "all")
        yield from _bar(number, refusals, most, "refused")
    yield "</svg></figure>\n"


def _bar(number: int, count: int, most: int, name: str) -> Iterator[str]:
    if count:
        height = max(1.0, count * _HEIGHT / most)
        yield f'<rect class="{name}" x="{number * 10}" y="{_HEIGHT - height:.1f}" '
        yield f'width="8" height="{height:.1f}"/>\n'


def _day(at: int) -> str:
    return instant(at).partition(">")[2].removesuffix("</time>")


def rows(found: Sequence[Moment], sight: Sight) -> Iterator[str]:
    """Give one line for each event, in lists of a bounded length."""
    return _lists([_event(moment, sight) for moment in found])


def index(histories: Sequence[History], sight: Sight) -> Iterator[str]:
    """Give one line for each card, in lists of a bounded length."""
    return _lists([_card(history, sight) for history in histories])


def _event(moment: Moment, sight: Sight) -> str:
    event = moment.event
    named = (
        f'<a href="#{sight.anchor}{moment.card}">{code(moment.card[:12])}</a> '
        if moment.card
        else ""
    )
    said = events.detail(event, moment.issued_at, sight.drifts.get(event.seq))
    return f"<span>{event.seq}</span> {instant(event.at)} <b>{kind(event)}</b> {named}{said}"


def _card(history: History, sight: Sight) -> str:
    state = text(history.state or "state unknown")
    doubt = " (not sure)" if history.doubt else ""
    found = ", with findings" if history.findings else ""
    named = f'<a href="#{sight.anchor}{history.card}">{code(history.card[:12])}</a>'
    return f"{named} {title(history)} <b>{state}</b>{doubt}{found}"


def _lists(items: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(items), _CHUNK):
        inner = "".join(f"<li>{item}</li>\n" for item in items[start : start + _CHUNK])
        yield f'<ol class="chunk">\n{inner}</ol>\n'
