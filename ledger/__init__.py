"""Approval cards as events in one chain under an HMAC (docs/spec.md).

    from ledger import Facts, Ledger, Proposal, Refused

`Ledger.init` makes a ledger, `Ledger.open` opens it; `issue`, `resolve` and `dispatch` are the
three calls around a gated tool call.
"""

from __future__ import annotations

from ledger.answers import CardStatus, Evidence, Exported, IssuedCard, Opening, Status, Ticket
from ledger.codec import Record
from ledger.envelope import Envelope
from ledger.errors import LedgerError, ProposalInvalid, Refused
from ledger.guard import Effect, EffectFailed
from ledger.projection import Card, State
from ledger.proposal import Facts, Proposal
from ledger.render import render_card_text, render_changes
from ledger.writer import Ledger

__all__ = [
    "Card",
    "CardStatus",
    "Effect",
    "EffectFailed",
    "Envelope",
    "Evidence",
    "Exported",
    "Facts",
    "IssuedCard",
    "Ledger",
    "LedgerError",
    "Opening",
    "Proposal",
    "ProposalInvalid",
    "Record",
    "Refused",
    "State",
    "Status",
    "Ticket",
    "render_card_text",
    "render_changes",
]
