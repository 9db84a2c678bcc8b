"""The power fails at any instant of the life of a small ledger (spec §7; the model is `disk`).

For every state that a disk may be left in: who was answered finds the record, nothing else is
there, the host and the verifier agree, and it goes on. `dev.py soak` goes through all states.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from disk import Disk, State
from truth import AT, Known, fill, require_truth, require_verified

from ledger import Ledger, LedgerError

ROOT = Path(__file__).parents[2]
RECORDER = Path(__file__).parent / "recorder.py"
SEGMENT_BYTES = 2_500
SHARDS = 8
Soak = Callable[[int, int], int]


@dataclass
class Told:
    """What had been answered at one instant."""

    answered: dict[int, str] = field(default_factory=dict)
    note: bytes = b""
    exported: bool = False

    def after(self, event: dict[str, Any]) -> Told:
        """Take in one event."""
        answered = self.answered | dict(event.get("records", []))
        note = event["note"].encode() if "note" in event else self.note
        return Told(answered, note, self.exported or event["do"] == "exported")


@dataclass
class Life:
    """Every state of a life, and what had been answered when it could last be left behind."""

    folder: Path
    states: list[tuple[State, Told]]
    ever: frozenset[str]
    instants: int


@pytest.fixture(scope="module")
def life(fast: Path) -> Iterator[Life]:
    folder = fast / "host"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, str(RECORDER), str(folder), str(SEGMENT_BYTES)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    happened = json.loads(done.stdout)
    disk, told = Disk(), Told()
    found: dict[int, tuple[State, Told]] = {}
    for event in happened:
        disk.take(event)
        told = told.after(event)
        found |= {state.key: (state, told) for state in disk.states()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", str(folder / "state"))
        patch.delenv("CARDCHAIN_KEY", raising=False)
        with Ledger.open(folder / "approvals", clock=lambda: AT) as ledger:
            ever = frozenset(record.digest.hex() for record in ledger.records())
        yield Life(folder, list(found.values()), ever, len(happened))


def require_all_of_it(life: Life, state: State, told: Told) -> None:
    """Hold one state against what had been answered."""
    fill(life.folder, state.files)
    path = life.folder / "approvals"
    if not told.answered and not opens(path):
        return
    if told.exported:
        require_verified(life.folder / "export.cbor", life.folder / "state", 13)
    known = Known(told.answered, ever=life.ever)
    records = require_truth(life.folder, known, sound_before=False, forgot=not told.answered)
    assert len(records) >= len(told.answered)
    if told.note:
        require_signer_goes_on(path, told.note)


def opens(path: Path) -> bool:
    """Whether a ledger stands there; if not, an error says so and what to do."""
    hint = ""
    try:
        Ledger.open(path, clock=lambda: AT).close()
    except LedgerError as error:
        hint = error.hint
    else:
        return True
    assert hint
    return False


def require_signer_goes_on(path: Path, note: bytes) -> None:
    """The next checkpoint extends the one that was handed out."""
    with Ledger.open(path, clock=lambda: AT) as ledger:
        ledger.checkpoint()
        assert ledger.consistency(note)[0].startswith(b"old ")


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_power_fails(life: Life, shard: int, soak: Soak) -> None:
    mine = life.states[shard::SHARDS]
    count = soak(16, len(mine))
    chosen = random.Random(shard).sample(mine, min(count, len(mine)))
    broken = []
    for number, (state, told) in enumerate(chosen):
        try:
            require_all_of_it(life, state, told)
        except (AssertionError, LedgerError, OSError) as error:
            broken.append(f"{number}: {type(error).__name__}: {str(error)[:500]}: {told_of(state)}")
    assert not broken, "\n".join(broken)
    print(f"{life.instants} instants, {len(life.states)} states, {len(chosen)} of them here")


def told_of(state: State) -> str:
    """Name the files of a state, for whoever looks into it."""
    return " ".join(
        f"{name}:{'/' if data is None else len(data)}" for name, data in state.files.items()
    )
