"""The command `report`: one page for people, from the verifier's own reading of a log."""

from __future__ import annotations

import sys

import click

from ledger.cli.auditor import Auditor, Wanted, with_auditor
from ledger.cli.output import emit
from ledger.cli.parameters import card_prefix, json_option
from ledger.hidden import shown
from ledger.report import render_page
from verifier import Report, every_card, save, verdict_line, wants_colour


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--card",
    "prefixes",
    metavar="HASH|PREFIX",
    multiple=True,
    type=card_prefix,
    help="Show only this card; without it the page shows every card.",
)
@with_auditor
@click.option(
    "-o", "--output", metavar="FILE", required=True, help="Write the page to this .html file."
)
@json_option
def report(
    paths: tuple[str, ...],
    prefixes: tuple[str, ...],
    auditor: Auditor,
    output: str,
    json_: bool,
) -> None:
    """Write one HTML page: the verdict, what each approver saw, what was decided and what ran.

    PATH is a ledger, an export, a receipt or a foreign log. The exit status is that of the
    verdict; the page is written whatever it is, and says it first.
    """
    for option, file in (("--output", output), ("--pin", auditor.pin)):
        if file is not None:
            auditor.refuse_place(option, file, paths)
    found = auditor.verify(paths, _wanted(prefixes))
    count = _check_found(found, prefixes)
    save(output, render_page(found, only=", ".join(prefixes)))
    said = verdict_line(found.verdict, not json_ and wants_colour(sys.stdout)).removesuffix("\n")
    document = {"output": output, "cards": count, "verdict": found.verdict.value}
    emit(json_, document, f"wrote {shown(output)}", said)
    auditor.keep_head(found)
    sys.exit(found.verdict.exit_code)


def _wanted(prefixes: tuple[str, ...]) -> Wanted:
    return (lambda card: card.startswith(prefixes)) if prefixes else every_card


def _check_found(found: Report, prefixes: tuple[str, ...]) -> int:
    """Count the cards of a page; refuse one that lacks a card that was asked for."""
    cards = {history.card for log in found.logs for history in log.histories}
    for prefix in prefixes:
        if not any(card.startswith(prefix) for card in cards):
            raise click.UsageError(
                f"--card: no record names a card {prefix}; nothing was written; "
                f"the verdict was {found.verdict.value}"
            )
    return len(cards)
