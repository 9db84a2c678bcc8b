"""The commands that look at a ledger or a log: its events, its cards, what is pending."""

from __future__ import annotations

import sys
from typing import Any

import click

from ledger import jcs
from ledger.answers import CardStatus
from ledger.cli.account import account
from ledger.cli.entries import Filter, asked, line
from ledger.cli.filters import with_filter
from ledger.cli.live import card, notes
from ledger.cli.output import emit, put, put_bytes, to_json, utc, utc_seconds
from ledger.cli.parameters import card_prefix, on_ledger, rule_hash
from ledger.cli.sight import Seen, View
from ledger.cli.views import end, on_view
from ledger.envelope import differences, parse
from ledger.errors import AmbiguousPrefix, UnknownCard
from ledger.render import render_changes
from ledger.writer import Ledger


@click.command()
@on_view
@click.option("--follow", is_flag=True, help="Go on as events are appended; end it with Ctrl-C.")
@with_filter
def log(view: View, asked_for: Filter, follow: bool, json_: bool) -> None:
    """List the events of a ledger or log, oldest first.

    With --json, one object a line, with the whole envelope.
    """
    for entry in view.follow() if follow else view.entries():
        if asked_for.takes(entry):
            put(to_json(entry.document) if json_ else line(entry))
    end(view)


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
    seen = _seen(view, prefix)
    if raw:
        _print_raw(seen.envelope)
    else:
        emit(json_, _document(seen), seen.text, *_lines(seen))
    end(view)


def _seen(view: View, prefix: str) -> Seen:
    """Give the card; of a log that is not verified, that it is not there counts for less."""
    try:
        return view.card(prefix)
    except (UnknownCard, AmbiguousPrefix) as error:
        if view.verdict()[1]:
            click.echo(f"cardchain: error: {error}\ncardchain: hint: {error.hint}", err=True)
            end(view)
        raise


def _document(seen: Seen) -> dict[str, Any]:
    return {
        **seen.document,
        "text": seen.text,
        "events": [entry.document for entry in seen.entries],
        "redactions": [entry.document for entry in seen.redactions],
    }


def _lines(seen: Seen) -> list[str]:
    as_of = "" if seen.as_of is None else f" at the end of this log, {utc(seen.as_of)}"
    state = f"state: {seen.state}{as_of}"
    return [*seen.notes, state, *account(seen), "", *map(line, seen.entries)]


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
