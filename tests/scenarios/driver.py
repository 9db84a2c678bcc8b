"""What a project brings to run the scenarios: one driver (docs/conformance.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

Document = dict[str, Any]
Call = Callable[[str, Document], None]
"""Calls the business system with an effect key and arguments; raises `Denied` or `NoAnswer`."""


class Denied(Exception):
    """The business system said no: there is no effect."""


class NoAnswer(Exception):
    """Nobody knows whether there is an effect."""


@dataclass
class Answer:
    """What a gate answered.

    `outcome` is accepted, refused, invalid (the caller's error, nothing is recorded) or stopped
    (the host's fault, nothing may run). `record` names the event that the answer stands for.
    """

    outcome: str
    reason: str | None = None
    record: Any = None
    differs: list[str] = field(default_factory=list)
    drift: list[str] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)
    arguments: Document | None = None
    effect_key: str | None = None
    labels: list[str] = field(default_factory=list)


class Driver(Protocol):
    """One implementation under test. Cards are named by their labels, times come from a clock."""

    def issue(self, card: str, proposal: Document) -> Answer: ...

    def resolve(
        self,
        card: str,
        echo: str | None,
        decision: str,
        by: str | None,
        assurance: str,
        response: Any,
    ) -> Answer: ...

    def withdraw(self, card: str, echo: str | None, by: str | None, reason: str) -> Answer: ...

    def dispatch(
        self, card: str, facts: Document, policy_outcome: str | None, approver_authorised: bool
    ) -> Answer: ...

    def guard(self, card: str, facts: Document, call: Call) -> Answer:
        """Dispatch, call and settle in one; what the call raises goes no further."""

    def settle(self, card: str, outcome: str) -> Answer: ...

    def configure(self, profile: Document) -> Answer: ...

    def clock_reset(self) -> Answer: ...

    def affected(self, rules: list[str]) -> Answer: ...

    def restart(self, without: list[str]) -> None: ...

    def storage(self, works: bool) -> None: ...

    def tamper(self, find: str, replace: str) -> None: ...

    def digest(self, text: str) -> str: ...

    def profile(self, label: str) -> str: ...

    def identity(self, card: str) -> str: ...

    def state(self, card: str) -> str: ...

    def step_state(self, card: str) -> str: ...

    def effect_key(self, card: str) -> str: ...

    def approver(self, card: str) -> str | None: ...

    def text(self, card: str) -> str: ...

    def events(self) -> list[Document]:
        """Give each event as {kind, card?, reason?, proposed, approved?, execution_time?}."""

    def verdict(self, floor: str | None) -> str: ...
