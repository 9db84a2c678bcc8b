"""Approval cards as events in one chain under an HMAC (docs/spec.md).

    from ledger import Facts, Ledger, Proposal, Refused

`Ledger.init` makes a ledger, `Ledger.open` opens it; `issue`, `resolve` and `dispatch` are the
three calls around a gated tool call.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.aio import AsyncLedger
    from ledger.answers import CardStatus, Evidence, Exported, IssuedCard, Opening, Status, Ticket
    from ledger.checkpoint import Signed
    from ledger.codec import Record
    from ledger.envelope import Envelope
    from ledger.errors import LedgerError, ProposalInvalid, Refused
    from ledger.guard import Effect, EffectFailed
    from ledger.keys import KeySource
    from ledger.projection import Card, State
    from ledger.proposal import Facts, Proposal
    from ledger.render import render_card_text, render_changes
    from ledger.writer import Ledger

_MODULES = {
    "AsyncLedger": "aio",
    "Card": "projection",
    "CardStatus": "answers",
    "Effect": "guard",
    "EffectFailed": "guard",
    "Envelope": "envelope",
    "Evidence": "answers",
    "Exported": "answers",
    "Facts": "proposal",
    "IssuedCard": "answers",
    "KeySource": "keys",
    "Ledger": "writer",
    "LedgerError": "errors",
    "Opening": "answers",
    "Proposal": "proposal",
    "ProposalInvalid": "errors",
    "Record": "codec",
    "Refused": "errors",
    "Signed": "checkpoint",
    "State": "projection",
    "Status": "answers",
    "Ticket": "answers",
    "render_card_text": "render",
    "render_changes": "render",
}

__all__ = [
    "AsyncLedger",
    "Card",
    "CardStatus",
    "Effect",
    "EffectFailed",
    "Envelope",
    "Evidence",
    "Exported",
    "Facts",
    "IssuedCard",
    "KeySource",
    "Ledger",
    "LedgerError",
    "Opening",
    "Proposal",
    "ProposalInvalid",
    "Record",
    "Refused",
    "Signed",
    "State",
    "Status",
    "Ticket",
    "render_card_text",
    "render_changes",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for, so that `cardchain --help` is fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'ledger' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"ledger.{_MODULES[name]}"), name)
    return value
