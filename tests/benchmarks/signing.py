"""What checkpoints and receipts cost in a ledger that grew: nothing that grows with it."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import logs
from measure import Spread, cpu, exactly, rounds

if TYPE_CHECKING:
    from ledger import Ledger, Proposal

BEHIND = 50
"""How many records a checkpoint is behind when it is measured."""
ARGUMENTS = {"order": "SO-1001", "amount": "199.00"}
_NUMBERS = count()


def checkpoint(small: Path, large: Path) -> Spread:
    """Sign a checkpoint some records after the last one: in the large ledger over the small."""
    from ledger import Ledger

    with Ledger.open(small) as one, Ledger.open(large) as other:
        one.checkpoint()
        other.checkpoint()
        return rounds(lambda: signed(other), lambda: signed(one))


def signed(ledger: Ledger) -> float:
    """Give the seconds of a checkpoint some records after the last one."""
    ledger.issue_many([_ask() for _ in range(BEHIND)])
    seconds = cpu(ledger.checkpoint)
    assert ledger.checkpoint().checkpoint.size == ledger.status().count
    return seconds


def receipt(small: Path, large: Path, folder: Path) -> Spread:
    """Write the receipt of a card that lived: in the large ledger over the small."""
    from ledger import Ledger

    def written(ledger: Ledger, card: str) -> float:
        path = folder / f"{next(_NUMBERS)}.receipt"
        return cpu(lambda: ledger.receipt(card, path))

    with Ledger.open(small) as one, Ledger.open(large) as other:
        cards = _lived(one), _lived(other)
        measured = rounds(lambda: written(other, cards[1]), lambda: written(one, cards[0]))
        _check(other, cards[1], folder)
        return measured


def receipt_size(large: Path, folder: Path) -> Spread:
    """Give the bytes of the receipt of a card that lived, without its envelope."""
    from ledger import Ledger

    with Ledger.open(large) as ledger:
        card = _lived(ledger)
        done = ledger.receipt(card, folder / f"{next(_NUMBERS)}.receipt")
        assert done.count == 4
        _check(ledger, card, folder)
        return exactly(done.size - len(ledger.card(card).envelope.bytes))


def _check(ledger: Ledger, card: str, folder: Path) -> None:
    """The receipt of a card is VERIFIED, and BROKEN with one bit of it changed."""
    from verifier import verify

    state = Path(os.environ["CARDCHAIN_STATE"], "cardchain", ledger.chain.hex())
    keys = [str(key) for key in (state / "keys").iterdir()]
    vkeys = (state / "signer" / "vkeys").read_text().splitlines()
    path = folder / f"{next(_NUMBERS)}.receipt"
    ledger.receipt(card, path)
    report = verify([str(path)], keys, vkeys=vkeys)
    assert report.verdict.value == "VERIFIED", report
    assert verify([str(logs.flipped(path))], keys, vkeys=vkeys).verdict.value == "BROKEN"


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
