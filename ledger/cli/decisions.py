"""The commands that append an event about a card. Each prints only what is durable."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

import click

from ledger.answers import Ticket
from ledger.cli.output import emit, emit_record, plain_json, summary
from ledger.cli.parameters import (
    DOCUMENT,
    card_argument,
    on_ledger,
    on_ledger_with_profiles,
    read_document,
    text,
)
from ledger.proposal import Facts, Proposal
from ledger.writer import Ledger

_CHANNEL: Final = "cli"


@click.command()
@on_ledger_with_profiles
@click.argument("proposal", metavar="PROPOSAL.json|-", type=DOCUMENT)
def issue(ledger: Ledger, proposal: BinaryIO, json_: bool) -> None:
    """Issue a card for a proposal and print its hash.

    PROPOSAL.json is an envelope without what the ledger computes, plus `ttl` in seconds.
    The same proposal again gives the card that is there, while it can still run.
    """
    card = ledger.issue(Proposal.from_json(read_document(proposal)))
    emit_record(json_, "issued", card.record, text=card.text)


@click.command()
@on_ledger_with_profiles
@card_argument
@click.option("--approver", metavar="ID", required=True, type=text, help="Who decides.")
@click.option("--note", metavar="TEXT", type=text, help="A sentence kept beside the decision.")
def approve(ledger: Ledger, card: str, approver: str, note: str | None, json_: bool) -> None:
    """Approve the card HASH, the hash that was on the screen.

    All 64 digits: they are the echo that binds the decision to what was shown.
    """
    _resolve(ledger, card, "approve", approver, note, json_)


@click.command()
@on_ledger_with_profiles
@card_argument
@click.option("--approver", metavar="ID", required=True, type=text, help="Who decides.")
@click.option("--note", metavar="TEXT", type=text, help="A sentence kept beside the decision.")
def reject(ledger: Ledger, card: str, approver: str, note: str | None, json_: bool) -> None:
    """Reject the card HASH, the hash that was on the screen.

    All 64 digits: they are the echo that binds the decision to what was shown.
    """
    _resolve(ledger, card, "reject", approver, note, json_)


def _resolve(
    ledger: Ledger, card: str, decision: str, approver: str, note: str | None, json_: bool
) -> None:
    record = ledger.resolve(card, decision, approver=approver, channel=_CHANNEL, note=note)
    emit_record(json_, {"approve": "approved", "reject": "rejected"}[decision], record)


@click.command()
@on_ledger
@card_argument
@click.option(
    "--reason",
    required=True,
    type=click.Choice(["revoked", "cancelled"]),
    help="Revoked: the approval is taken back. Cancelled: it is no longer needed.",
)
@click.option("--by", metavar="ID", required=True, type=text, help="Who withdraws.")
def withdraw(ledger: Ledger, card: str, reason: str, by: str, json_: bool) -> None:
    """Withdraw the open card or the unused grant HASH."""
    record = ledger.withdraw(card, by=by, reason=reason, channel=_CHANNEL)
    emit_record(json_, "withdrawn", record)


@click.command()
@on_ledger_with_profiles
@card_argument
@click.option(
    "--facts",
    metavar="FACTS.json|-",
    required=True,
    type=DOCUMENT,
    help="What is true now: the call about to run, never a copy from the card.",
)
@click.option(
    "--policy-outcome",
    metavar="WORD",
    type=text,
    help="What policy says now: deny refuses; allow may let its basis differ.",
)
@click.option(
    "--approver-check",
    metavar="TEXT",
    type=text,
    help="How it was looked up that the approver still may approve.",
)
def dispatch(
    ledger: Ledger,
    card: str,
    facts: BinaryIO,
    policy_outcome: str | None,
    approver_check: str | None,
    json_: bool,
) -> None:
    """Spend the grant of the card HASH, right before the effect.

    Prints the arguments to run with and the key that makes the effect idempotent.
    """
    now = Facts.from_json(read_document(facts))
    ticket = ledger.dispatch(
        card, now, policy_outcome=policy_outcome, approver_check=approver_check
    )
    exceptions = ticket.record.body.get("exceptions", [])
    lines = [
        f"dispatched {ticket.card_hash.hex()} seq {ticket.record.seq}",
        f"effect key {ticket.effect_key}",
        f"arguments {plain_json(ticket.arguments_json.decode())}",
    ]
    document = {**_ticket(ticket), "exceptions": exceptions}
    emit(json_, document, *lines, *(f"exception {name}" for name in exceptions))


def _ticket(ticket: Ticket) -> dict[str, Any]:
    return {
        **summary(ticket.record),
        "effect_key": ticket.effect_key,
        "arguments": ticket.arguments,
        "arguments_json": ticket.arguments_json.decode(),
    }


@click.command()
@on_ledger
@card_argument
@click.option(
    "--outcome",
    required=True,
    type=click.Choice(["succeeded", "failed", "unknown"]),
    help="Unknown may be followed by one of the others.",
)
def settle(ledger: Ledger, card: str, outcome: str, json_: bool) -> None:
    """Record how the dispatched card HASH ended."""
    record = ledger.settle(card, outcome)
    emit_record(json_, f"settled {outcome}", record)
