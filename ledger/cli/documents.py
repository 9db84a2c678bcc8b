"""The commands that need no ledger: a hash, a text."""

from __future__ import annotations

from typing import BinaryIO, Final

import click

from ledger.cli.output import emit
from ledger.cli.parameters import DOCUMENT, json_option, read_document
from ledger.envelope import parse, project
from ledger.errors import EnvelopeMalformed, ProposalInvalid
from ledger.proposal import Proposal
from ledger.render import render_card_text

_TIME: Final = click.IntRange(0, 253402300799)  # spec §1


@click.command()
@click.argument("proposal", metavar="PROPOSAL.json|-", type=DOCUMENT)
@click.option(
    "--issued-at", metavar="N", required=True, type=_TIME, help="When it is issued, unix seconds."
)
@json_option
def hash(proposal: BinaryIO, issued_at: int, json_: bool) -> None:
    """Print the hash that a proposal has if issued at a given second."""
    envelope = project(Proposal.from_json(read_document(proposal)), issued_at)
    digest = envelope.card_hash.hex()
    emit(json_, {"card_hash": digest, "envelope": envelope.document}, digest)


@click.command()
@click.argument("envelope", metavar="ENVELOPE.json|-", type=DOCUMENT)
@json_option
def render(envelope: BinaryIO, json_: bool) -> None:
    """Print an envelope as the approver sees it."""
    try:
        card = parse(read_document(envelope))
    except EnvelopeMalformed as error:  # of a file that somebody gave, so nothing is broken
        raise ProposalInvalid(error.pointer, error.reason) from None
    text = render_card_text(card)
    emit(json_, {"card_hash": card.card_hash.hex(), "text": text}, text.removesuffix("\n"))
