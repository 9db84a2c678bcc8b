from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ledger import Facts, Ledger, Proposal


@dataclass
class Clock:
    """A clock that stands still until it is told to move; milliseconds."""

    now: int = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host that remembers nothing yet: gives its state directory."""
    state = tmp_path / "state"
    monkeypatch.setenv("CARDCHAIN_STATE", str(state))
    monkeypatch.delenv("CARDCHAIN_KEY", raising=False)
    return state


@pytest.fixture
def ledger(host: Path, tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger.init(tmp_path / "approvals", name="test", clock=clock) as made:
        yield made


@pytest.fixture
def proposal() -> Callable[..., Proposal]:
    """Make a proposal of a refund for a step; `members` replace the ordinary ones."""

    def make(step: str = "refund", **members: object) -> Proposal:
        ordinary = {
            "tool_name": "refund.create",
            "arguments": {"order": "SO-1001", "amount": "199.00"},
            "reasoning": "duplicate payment",
            "ttl": 1800,
        }
        return Proposal.for_tool_call(task=("run-7", step), **{**ordinary, **members})

    return make


@pytest.fixture
def facts() -> Callable[..., Facts]:
    """Make the facts of the call that the ordinary proposal asks for."""

    def make(amount: str = "199.00") -> Facts:
        return Facts.for_tool_call("refund.create", {"order": "SO-1001", "amount": amount})

    return make
