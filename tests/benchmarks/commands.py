"""What a command costs in a fresh process: to start, and in a ledger that grew.

A start is a ratio to `python -c pass`. Processor time, of the process that was started.
"""

from __future__ import annotations

from pathlib import Path

import logs
from generator import Card
from measure import PASS, Spread, python, rounds

# As the installed commands start, without what `python -m` adds.
VERIFY = ("-c", "import sys; from verifier.cli import main; sys.exit(main())")
CARDCHAIN = ("-c", "import sys; from ledger.cli import main; sys.exit(main())")
BROKEN = 3
Ledger = tuple[Path, list[Card]]


def verify_start(folder: Path) -> Spread:
    """Verifying a log of one record, over starting Python."""
    log, key = logs.export(folder, 1)
    call = (*VERIFY, str(log), "--key", str(key))
    assert "VERIFIED" in python(*call)[1]
    python(*VERIFY, str(logs.flipped(log)), "--key", str(key), expect=BROKEN)
    return rounds(lambda: python(*call)[0], lambda: python(*PASS)[0])


def help_start() -> Spread:
    """Printing the help, over starting Python. No log is read, so there is nothing to reject."""
    call = (*CARDCHAIN, "--help")
    assert "issue" in python(*call)[1]
    return rounds(lambda: python(*call)[0], lambda: python(*PASS)[0])


def approve(small: Ledger, large: Ledger) -> Spread:
    """Approving a card: in the large ledger over the small."""

    def one(ledger: Ledger) -> float:
        path, cards = ledger
        call = ("approve", str(path), cards.pop().hash.hex(), "--approver", "user:approver-1")
        seconds, output = python(*CARDCHAIN, *call)
        assert "approved" in output, output
        return seconds

    return rounds(lambda: one(large), lambda: one(small))


def show(small: Ledger, large: Ledger) -> Spread:
    """Showing a card: in the large ledger over the small."""

    def one(ledger: Ledger) -> float:
        path, cards = ledger
        card = cards[0].hash.hex()
        seconds, output = python(*CARDCHAIN, "show", str(path), card)
        assert card in output, output
        return seconds

    return rounds(lambda: one(large), lambda: one(small))
