"""The commands that look at a ledger or a log: its events, its cards, what is pending."""

from __future__ import annotations

import sys
from typing import Any

import click

from ledger import jcs
from ledger.answers import CardStatus
from ledger.cli.entries import Filter, asked, line
from ledger.cli.filters import with_filter
from ledger.cli.output import emit, put, put_bytes, to_json, utc_seconds
from ledger.cli.parameters import card_prefix, on_ledger, rule_hash
from ledger.cli.views import View, card, notes, on_view
from ledger.envelope import differences, parse
from ledger.render import render_changes
from ledger.writer import Ledger


@click.command()
@on_view
@click.option("--follow", is_flag=True, help="Go on as events are appended; end it with Ctrl-C.")
@with_filter
def log(view: View, asked_for: Filter, follow: bool, json_: bool) -> None:
    """List the events of the ledger or log PATH, oldest first.

    With --json, one object a line, with the whole envelope.
    """
    for entry in view.follow() if follow else view.entries():
        if asked_for.takes(entry):
            put(to_json(entry.document) if json_ else line(entry))
    _end(view)


def _end(view: View) -> None:
    """Say on standard error what a log that was verified is worth, and exit with that."""
    lines, status = view.verdict()
    for said in lines:
        click.echo(f"cardchain: {said}", err=True)
    if status:
        sys.exit(status)


@click.command()
@on_view
@click.argument("prefix", metavar="HASH|PREFIX", type=card_prefix)
@click.option("--raw", is_flag=True, help="Print the envelope bytes alone, for sha256sum.")
def show(view: View, prefix: str, raw: bool, json_: bool) -> None:
    """Show one card as the approver saw it, and what happened to it.

    PATH is a ledger, an export, a receipt or a foreign log; of one that is not a ledger of this
    host the verdict is said last, and is the exit status.

    \b
    The hash of a card is the SHA-256 of its envelope:
      cardchain show PATH HASH --raw | sha256sum
    """
    seen = view.card(prefix)
    if raw:
        _print_raw(seen.envelope)
    else:
        events = [entry.document for entry in seen.entries]
        document = {**seen.document, "text": seen.text, "events": events}
        lines = [*seen.notes, f"state: {seen.state}", "", *map(line, seen.entries)]
        emit(json_, document, seen.text, *lines)
    _end(view)


def _print_raw(envelope: bytes | None) -> None:
    if envelope is None:
        raise click.UsageError("--raw: the envelope is not in this log")
    if sys.stdout.isatty():
        raise click.UsageError("--raw prints text of the agent as it is: pipe it into a program")
    put_bytes(envelope)


@click.command()
@on_ledger
def pending(ledger: Ledger, json_: bool) -> None:
    """List the cards that wait for a decision."""
    found = ledger.pending()
    lines = [said for each in found for said in (_waiting(each), *notes(each))]
    emit(json_, {"pending": [card(each) for each in found]}, *lines or ["nothing is pending"])


def _waiting(status: CardStatus) -> str:
    before = utc_seconds(status.card.not_after)
    return f"{status.hash} decide before {before} {asked(status.envelope.bytes)}"


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
    found = ledger.affected(rules)
    lines = [f"{each.hash} {each.state} {asked(each.envelope.bytes)}" for each in found]
    emit(json_, {"affected": [card(each) for each in found]}, *lines or ["nothing is affected"])


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
