"""The commands that read a ledger: its events, its cards, what is pending."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import click

from ledger import jcs
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
from ledger.cli.parameters import card_prefix, on_ledger, rule_hash
from ledger.codec import Record
from ledger.envelope import differences, differing_pointers, parse
from ledger.errors import places
from ledger.kinds import KINDS
from ledger.policy import drift_classes
from ledger.render import render_changes
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
            return f"{body['gate']}: {body['reason']}{_places(record)} (count {body['count']})"
        case "withdrawn" | "clock_reset":
            return f"{body['reason']} by {quoted(body['by'])}"
        case "settled":
            return str(body["outcome"])
        case "opened":
            return quoted(body["name"])
        case "configured":
            return f"by {quoted(body['by'])}"
        case "dispatched":
            return ", ".join(map(quoted, body.get("exceptions", ())))
        case _:
            return ""


def _places(record: Record) -> str:
    """Say where the envelope that was rebuilt differs from the card, where it was kept."""
    card, rebuilt = (record.openings.get(name) for name in ("envelope", "rebuilt"))
    if card is None or rebuilt is None:
        return ""
    pointers = differing_pointers(parse(card), parse(rebuilt))
    return places(pointers, drift_classes(pointers))


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
    document = {**_card(status), "text": status.text, "events": [full(record) for record in events]}
    notes = [*_notes(status), f"state: {status.state}"]
    emit(json_, document, status.text, *notes, "", *map(_line, events))


def _notes(status: CardStatus) -> list[str]:
    """Say what an approver should know and no envelope tells."""
    return [
        f"note: another task asked for the same call before; {each.state}: card {each.hash.hex()}"
        for each in status.returned
    ]


def _print_raw(envelope: bytes) -> None:
    if sys.stdout.isatty():
        raise click.UsageError("--raw prints text of the agent as it is: pipe it into a program")
    put_bytes(envelope)


@click.command()
@on_ledger
def pending(ledger: Ledger, json_: bool) -> None:
    """List the cards that wait for a decision."""
    cards = ledger.pending()
    lines = [line for card in cards for line in (_waiting(card), *_notes(card))]
    emit(json_, {"pending": [_card(card) for card in cards]}, *lines or ["nothing is pending"])


def _waiting(card: CardStatus) -> str:
    before = utc_seconds(card.card.not_after)
    return f"{card.hash} decide before {before} {_asked(card.envelope.document)}"


@click.command()
@on_ledger
@click.option(
    "--rule",
    "rules",
    metavar="SHA256",
    required=True,
    multiple=True,
    type=rule_hash,
    help="The digest of a rule that changed, as the basis of a card cites it.",
)
def affected(ledger: Ledger, rules: tuple[str, ...], json_: bool) -> None:
    """List the open cards and unused grants that a changed rule asked for."""
    cards = ledger.affected(rules)
    lines = [f"{card.hash} {card.state} {_asked(card.envelope.document)}" for card in cards]
    emit(json_, {"affected": [_card(card) for card in cards]}, *lines or ["nothing is affected"])


@click.command()
@on_ledger
@click.argument("prefix", metavar="HASH|PREFIX", type=card_prefix)
@click.argument("other", metavar="[HASH|PREFIX]", required=False, type=card_prefix)
def diff(ledger: Ledger, prefix: str, other: str | None, json_: bool) -> None:
    """Show what changed since the card that another one supersedes.

    With a second card: what changed from the first to the second.
    """
    first = ledger.card(ledger.find(prefix))
    if other is None:
        if first.replaced is None:
            raise click.UsageError(f"card {first.hash} supersedes none that is still in the log")
        old, new = parse(first.replaced), first.envelope
    else:
        old, new = first.envelope, ledger.card(ledger.find(other)).envelope
    changes = [
        {"pointer": each.pointer, **_values(before=each.before, after=each.after)}
        for each in differences(old, new)
    ]
    document = {"from": old.card_hash, "to": new.card_hash, "changes": changes}
    emit(json_, document, render_changes(old, new).removesuffix("\n"))


def _values(**sides: bytes | None) -> dict[str, Any]:
    return {name: jcs.load(value) for name, value in sides.items() if value is not None}


def _card(status: CardStatus) -> dict[str, Any]:
    returned = [{"card_hash": each.hash.hex(), "state": each.state} for each in status.returned]
    return {
        "returned": returned,
        "card_hash": status.hash,
        "state": status.state,
        "step_state": status.step_state,
        "seq": status.card.seq,
        "not_after": status.card.not_after,
        "envelope": status.envelope.document,
    }
