"""What the approver sees: the text of a card, `cardchain-text/1` (spec §9.1)."""

from __future__ import annotations

from ledger.envelope import Envelope
from ledger.hidden import shown

__all__ = ["render_card_text", "shown"]


def render_card_text(envelope: Envelope | bytes) -> str:
    """Give the whole card as text, every member in it, ending with the hash to echo."""
    raise NotImplementedError
