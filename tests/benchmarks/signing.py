"""What checkpoints and receipts cost in a ledger that grew: nothing that grows with it."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Spread, cpu, rounds

if TYPE_CHECKING:
    from ledger import Ledger, Proposal

BEHIND = 50
"""How many records a checkpoint is behind when it is measured."""
ARGUMENTS = {"order": "SO-1001", "amount": "199.00"}
_NUMBERS = count()


def checkpoint(small: Path, large: Path) -> Spread:
    """Sign a checkpoint some records after the last one: in the large ledger over the small."""
    from ledger import Ledger

    def signed(ledger: Ledger) -> float:
        ledger.issue_many([_ask() for _ in range(BEHIND)])
        seconds = cpu(ledger.checkpoint)
        assert ledger.checkpoint().checkpoint.size == ledger.status().count
        return seconds

    with Ledger.open(small) as one, Ledger.open(large) as other:
        one.checkpoint()
        other.checkpoint()
        return rounds(lambda: signed(other), lambda: signed(one))


def receipt(small: Path, large: Path, folder: Path) -> Spread:
    """Write the receipt of a card that lived: in the large ledger over the small."""
    from ledger import Ledger

    def written(ledger: Ledger, card: str) -> float:
        path = folder / f"{next(_NUMBERS)}.receipt"
        seconds = cpu(lambda: ledger.receipt(card, path))
        assert path.read_bytes().startswith(b"\x85\x73cardchain-excerpt/1")
        return seconds

    with Ledger.open(small) as one, Ledger.open(large) as other:
        cards = _lived(one), _lived(other)
        return rounds(lambda: written(other, cards[1]), lambda: written(one, cards[0]))


def receipt_size(large: Path, folder: Path) -> float:
    """Give the bytes of the receipt of a card that lived, without its envelope."""
    from ledger import Ledger

    with Ledger.open(large) as ledger:
        card = _lived(ledger)
        done = ledger.receipt(card, folder / f"{next(_NUMBERS)}.receipt")
        assert done.count == 4
        return done.size - len(ledger.card(card).envelope.bytes)


def _lived(ledger: Ledger) -> str:
    """Give a card that was issued, approved, dispatched and settled, each between other records."""
    from ledger import Facts

    card = ledger.issue(_ask()).hash
    ledger.issue(_ask())
    ledger.resolve(card, "approve", approver="user:approver-1", target=card)
    ledger.issue(_ask())
    ticket = ledger.dispatch(card, Facts.for_tool_call("refund.create", ARGUMENTS))
    ledger.issue(_ask())
    ledger.settle(ticket, "succeeded")
    ledger.issue(_ask())
    ledger.checkpoint()
    return card


def _ask() -> Proposal:
    from ledger import Proposal

    return Proposal.for_tool_call(
        task=("signing", str(next(_NUMBERS))),
        tool_name="refund.create",
        arguments=ARGUMENTS,
        reasoning="paid twice",
        ttl=3_600,
    )
