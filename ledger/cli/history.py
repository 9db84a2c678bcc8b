"""The commands that read a ledger: its events, its cards, what is pending."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import click

from ledger.answers import CardStatus
from ledger.cli.output import (
    emit,
    full,
    put,
    put_bytes,
    quoted,
    to_json,
    utc,
    utc_seconds,
)
from ledger.cli.parameters import card_prefix, on_ledger
from ledger.codec import Record
from ledger.kinds import KINDS
from ledger.render import render_card_text
from ledger.writer import Ledger

_KINDS: Final = {
    **{kind: kind for kind in KINDS},
    **{f"chat.approval_card.{kind}": kind for kind in ("issued", "refused", "resolved")},
}
_POLL_S: Final = 0.2


@click.command()
@on_ledger
@click.option("--follow", is_flag=True, help="Go on as events are appended; end it with Ctrl-C.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    type=click.Choice(list(_KINDS)),
    help="Only events of this kind, also as chat.approval_card.issued, .refused or .resolved.",
)
def log(ledger: Ledger, follow: bool, kinds: tuple[str, ...], json_: bool) -> None:
    """List the events of the ledger DIR, oldest first.

    With --json, one object a line, with the whole envelope.
    """
    wanted = {_KINDS[kind] for kind in kinds or _KINDS}
    for record in _followed(ledger) if follow else ledger.records():
        if record.kind in wanted:
            put(to_json(full(record)) if json_ else _line(record))


def _followed(ledger: Ledger) -> Iterator[Record]:
    start = 0
    while True:
        for record in ledger.records(start):
            yield record
            start = record.seq + 1
        time.sleep(_POLL_S)


def _line(record: Record) -> str:
    card = "-" * 12 if record.card is None else record.card.hex()[:12]
    return f"{record.seq:>6} {utc(record.at)} {record.kind:<11} {card} {_detail(record)}".rstrip()


def _detail(record: Record) -> str:
    """Give what matters of a body in a few words."""
    body = record.body
    match record.kind:
        case "issued":
            envelope = record.openings.get("envelope")
            return "redacted" if envelope is None else _asked(json.loads(envelope))
        case "resolved":
            return f"{body['decision']} by {quoted(body['approver']['id'])}"
        case "refused":
            return f"{body['gate']}: {body['reason']} (count {body['count']})"
        case "withdrawn" | "clock_reset":
            return f"{body['reason']} by {quoted(body['by'])}"
        case "settled":
            return str(body["outcome"])
        case "opened":
            return quoted(body["name"])
        case _:
            return ""


def _asked(document: dict[str, Any]) -> str:
    task, tool = document["task"], document["action"]["tool_name"]
    return f"{quoted(tool)} for {quoted(task['id'])} {quoted(task['step'])}"


@click.command()
@on_ledger
@click.argument("prefix", metavar="HASH|PREFIX", type=card_prefix)
@click.option("--raw", is_flag=True, help="Print the envelope bytes alone, for sha256sum.")
def show(ledger: Ledger, prefix: str, raw: bool, json_: bool) -> None:
    """Show one card as the approver sees it, and what happened to it.

    \b
    The hash of a card is the SHA-256 of its envelope:
      cardchain show DIR HASH --raw | sha256sum
    """
    status = ledger.card(ledger.find(prefix))
    if raw:
        _print_raw(status.envelope.bytes)
        return
    events = ledger.events(status.card.hash)
    text = render_card_text(status.envelope)
    document = {**_card(status), "text": text, "events": [full(record) for record in events]}
    emit(json_, document, text, f"state: {status.state}", "", *map(_line, events))


def _print_raw(envelope: bytes) -> None:
    if sys.stdout.isatty():
        raise click.UsageError("--raw prints text of the agent as it is: pipe it into a program")
    put_bytes(envelope)


@click.command()
@on_ledger
def pending(ledger: Ledger, json_: bool) -> None:
    """List the cards that wait for a decision."""
    cards = ledger.pending()
    lines = [
        f"{card.hash} decide before {utc_seconds(card.card.not_after)} "
        f"{_asked(card.envelope.document)}"
        for card in cards
    ]
    emit(json_, {"pending": [_card(card) for card in cards]}, *lines or ["nothing is pending"])


def _card(status: CardStatus) -> dict[str, Any]:
    return {
        "card_hash": status.hash,
        "state": status.state,
        "step_state": status.step_state,
        "seq": status.card.seq,
        "not_after": status.card.not_after,
        "envelope": status.envelope.document,
    }
