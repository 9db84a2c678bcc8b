"""The command `status`: a ledger or log at a glance, or how the cards stand that somebody names."""

from __future__ import annotations

from collections.abc import Iterable

import click

from ledger.cli.entries import Entry, Filter, asked, detail
from ledger.cli.filters import with_filter
from ledger.cli.output import emit
from ledger.cli.sight import View
from ledger.cli.views import end, on_view


@click.command()
@on_view
@with_filter
def status(view: View, asked_for: Filter, json_: bool) -> None:
    """Say what a ledger or log holds and what this host remembers of it.

    With an option that chooses events: the state of each card that has one of them.
    """
    if asked_for.asks:
        _cards(view, asked_for, json_)
    else:
        found = view.glance()
        emit(json_, found.document, *found.lines)
    end(view)


def _cards(view: View, asked_for: Filter, json_: bool) -> None:
    taken: dict[bytes, list[Entry]] = {}
    for entry in view.entries():
        if entry.card is not None and asked_for.takes(entry):
            taken.setdefault(entry.card, []).append(entry)
    found = {card: view.state(card) for card in taken}
    rows = [
        {"card_hash": card, "state": state, "seqs": _seqs(taken[card])}
        for card, state in found.items()
    ]
    lines = [_line(card, state, taken[card]) for card, state in found.items()]
    emit(json_, {"cards": rows}, *lines or ["no card has such an event"])


def _seqs(entries: Iterable[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


def _line(card: bytes, state: str, entries: list[Entry]) -> str:
    last = entries[-1]
    said = "" if last.kind == "issued" else f", last {last.kind}: {detail(last)}"
    return f"{card.hex()} {state} {asked(last.openings.get('envelope'))}{said}"
