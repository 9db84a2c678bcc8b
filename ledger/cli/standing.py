"""The command `status`: a ledger or log at a glance, or how the cards stand that somebody names."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from ledger.cli.entries import Entry, Filter, asked, detail
from ledger.cli.filters import with_filter
from ledger.cli.output import emit, quoted, utc
from ledger.cli.views import Evidence, Live, View, on_view


@click.command()
@on_view
@with_filter
def status(view: View, asked_for: Filter, json_: bool) -> None:
    """Say what the ledger or log PATH holds, and what this host remembers of it.

    With an option that chooses events: the state of each card that has one of them.
    """
    if asked_for.asks:
        _cards(view, asked_for, json_)
    elif isinstance(view, Live):
        _ledger(view, json_)
    elif isinstance(view, Evidence):
        _log(view, json_)
    lines, exit_status = view.verdict()
    for said in lines:
        click.echo(f"cardchain: {said}", err=True)
    sys.exit(exit_status)


def _cards(view: View, asked_for: Filter, json_: bool) -> None:
    taken: dict[bytes, list[Entry]] = {}
    for entry in view.entries():
        if entry.card is not None and asked_for.takes(entry):
            taken.setdefault(entry.card, []).append(entry)
    found = [(card, state) for card, state in view.states().items() if card in taken]
    rows = [
        {"card_hash": card, "state": state, "seqs": _seqs(taken[card])} for card, state in found
    ]
    lines = [_line(card, state, taken[card]) for card, state in found]
    emit(json_, {"cards": rows}, *lines or ["no card has such an event"])


def _seqs(entries: Iterable[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


def _line(card: bytes, state: str, entries: list[Entry]) -> str:
    last = entries[-1]
    said = "" if last.kind == "issued" else f", last {last.kind}: {detail(last)}"
    return f"{card.hex()} {state} {asked(last.openings.get('envelope'))}{said}"


def _ledger(view: Live, json_: bool) -> None:
    found = view.ledger.status()
    since = found.guarded_from
    emit(
        json_,
        asdict(found),
        f"name {quoted(found.name)}",
        f"chain {found.chain.hex()}",
        f"kid {found.kid.hex()}",
        f"records {found.count} in {found.segments} segments, the last at {utc(found.at)}",
        f"head {found.head.hex()}",
        f"pending {found.pending}",
        "rollback not guarded" if since is None else f"rollback guarded from seq {since}",
    )


def _log(view: Evidence, json_: bool) -> None:
    log = view.log
    states = Counter(view.states().values())
    document: dict[str, Any] = {"chain": log.chain, "kids": log.kids, "head": log.head}
    document |= {"count": log.counts.records, "states": states, "verdict": log.verdict.value}
    ended = "" if log.end_at is None else f", the last at {utc(log.end_at)}"
    emit(
        json_,
        document,
        f"chain {log.chain}",
        *(f"kid {kid}" for kid in log.kids),
        f"records {log.counts.records}{ended}",
        f"head {log.head}",
        *(f"{state or 'state unknown'} {number}" for state, number in sorted(states.items())),
    )
