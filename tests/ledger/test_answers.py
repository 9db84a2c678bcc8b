"""The values that are handed out cannot be changed, and give copies of what could be."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from ledger import Ledger, Opening, Proposal, Ticket, render_card_text


def test_the_digest_of_an_opening_is_of_exactly_its_bytes() -> None:
    assert Opening(b"abc").digest == hashlib.sha256(b"abc").digest()


def test_an_issued_card_names_itself_in_every_form(
    ledger: Ledger, proposal: Callable[..., Proposal]
) -> None:
    card = ledger.issue(proposal())
    assert bytes.fromhex(card.hash) == card.hash_bytes == card.record.card
    assert card.seq == card.record.seq == 1
    assert card.text == render_card_text(card.envelope)
    assert ledger.card(card).hash == card.hash


def test_arguments_of_a_ticket_are_fresh_copies(
    ledger: Ledger, proposal: Callable[..., Proposal]
) -> None:
    record = ledger.issue(proposal()).record
    ticket = Ticket(bytes(32), b'{"list":[1]}', "key", record)
    ticket.arguments["list"].append(2)
    assert ticket.arguments == {"list": [1]}


@pytest.mark.parametrize("field", ["card_hash", "arguments_json", "effect_key"])
def test_a_ticket_cannot_be_changed(
    ledger: Ledger, proposal: Callable[..., Proposal], field: str
) -> None:
    ticket: Any = Ticket(bytes(32), b"{}", "key", ledger.issue(proposal()).record)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(ticket, field, b"other")
