"""The gates against a naive model that reads like spec §6.2 to §6.5.

The model keeps a plain list of what happened, and looks through all of it for every question.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ledger import Facts, IssuedCard, Ledger, Proposal, Record, Refused
from ledger.errors import ClockWentBack

TTL, GRANT = 60, 30
BLANK = (None, " ", "\u200b")
NEVER_ISSUED = bytes(31) + b"\x01"


@dataclass
class Past:
    """One thing that happened, as the model remembers it."""

    kind: str
    at: int
    card: bytes | None
    record: Record
    facts: dict[str, Any]


class Model:
    """The rules of the spec over a list."""

    def __init__(self) -> None:
        self.past: list[Past] = []

    def of(self, card: bytes, *kinds: str) -> list[Past]:
        return [p for p in self.past if p.card == card and p.kind in kinds]

    def issued(self, card: bytes) -> bool:
        return bool(self.of(card, "issued"))

    def reset_after(self, past: Past) -> bool:
        return any(p.kind == "clock_reset" for p in self.past[self.past.index(past) :])

    def late(self, card: bytes, at: int) -> bool:
        (past,) = self.of(card, "issued")
        return at >= past.facts["not_after"] * 1000 or self.reset_after(past)

    def resolved(self, card: bytes) -> bool:
        return bool(self.of(card, "resolved"))

    def approved(self, card: bytes) -> bool:
        return any(p.facts["decision"] == "approve" for p in self.of(card, "resolved"))

    def rejected(self, card: bytes) -> bool:
        return self.resolved(card) and not self.approved(card)

    def withdrawn(self, card: bytes) -> bool:
        return bool(self.of(card, "withdrawn"))

    def dispatched(self, card: bytes) -> bool:
        return bool(self.of(card, "dispatched"))

    def outcomes(self, card: bytes) -> list[str]:
        return [p.facts["outcome"] for p in self.of(card, "settled")]

    def lapsed(self, card: bytes, at: int) -> bool:
        if not self.approved(card):
            return False
        (past,) = self.of(card, "resolved")
        ttl = self.of(card, "issued")[0].facts["grant_ttl"]
        return self.reset_after(past) or (ttl is not None and at >= past.at + ttl * 1000)

    def step(self, card: bytes) -> str:
        step: str = self.of(card, "issued")[0].facts["step"]
        return step

    def latest(self, step: str) -> bytes | None:
        cards = [p.card for p in self.past if p.kind == "issued" and p.facts["step"] == step]
        return cards[-1] if cards else None

    def is_latest(self, card: bytes) -> bool:
        return self.latest(self.step(card)) == card

    def attempt(self, step: str) -> tuple[bytes, str] | None:
        done = [p.card for p in self.past if p.kind == "dispatched" and p.card is not None]
        here = [card for card in done if self.step(card) == step]
        if not here:
            return None
        outcomes = self.outcomes(here[-1])
        return here[-1], outcomes[-1] if outcomes else "unknown"

    def state(self, card: bytes, at: int) -> str:
        if self.dispatched(card):
            outcomes = self.outcomes(card)
            if not outcomes:
                return "DISPATCHED"
            return "UNKNOWN" if outcomes[-1] == "unknown" else "SETTLED"
        if self.rejected(card):
            return "REJECTED"
        if self.withdrawn(card):
            return "WITHDRAWN"
        if not self.is_latest(card):
            return "SUPERSEDED"
        if self.approved(card):
            return "LAPSED" if self.lapsed(card, at) else "APPROVED"
        return "EXPIRED" if self.late(card, at) else "OPEN"

    def step_state(self, card: bytes, at: int) -> str:
        latest = self.latest(self.step(card))
        assert latest is not None
        return {
            "OPEN": "awaiting_approval",
            "APPROVED": "approved",
            "EXPIRED": "awaiting_reapproval",
            "LAPSED": "awaiting_reapproval",
            "WITHDRAWN": "awaiting_reapproval",
            "REJECTED": "rejected_pre_dispatch",
            "DISPATCHED": "dispatched",
            "SETTLED": "settled",
            "UNKNOWN": "outcome_unknown",
        }[self.state(latest, at)]

    # The tables of §6.4: the first reason that holds

    def issue(
        self, step: str, supersedes: bytes | None, attempt: tuple[bytes, str] | None, at: int
    ) -> str | None:
        latest = self.latest(step)
        waiting = latest is not None and self.state(latest, at) == "OPEN"
        return first(
            open_exists=waiting and supersedes is None,
            supersedes_wrong=supersedes != latest,
            attempt_unnamed=attempt != self.attempt(step),
        )

    def resolve(self, echo: bytes, target: bytes | None, who: str | None, at: int) -> str | None:
        if not self.issued(echo) or target not in (None, echo):
            return "hash_mismatch"
        return first(
            missing_approver=who in BLANK,
            already_resolved=self.resolved(echo),
            expired=self.late(echo, at),
            withdrawn=self.withdrawn(echo),
            not_latest=not self.is_latest(echo),
        )

    def withdraw(self, echo: bytes, target: bytes | None, who: str | None, at: int) -> str | None:
        if not self.issued(echo) or target not in (None, echo):
            return "hash_mismatch"
        over = self.lapsed(echo, at) if self.resolved(echo) else self.late(echo, at)
        return first(
            missing_approver=who in BLANK,
            already_dispatched=self.dispatched(echo),
            already_resolved=self.rejected(echo),
            withdrawn=self.withdrawn(echo),
            not_latest=not self.is_latest(echo),
            expired=over,
        )

    def dispatch(self, card: bytes, same: bool, at: int) -> str | None:
        if not self.issued(card):
            return "unknown_card"
        return first(
            not_approved=not self.approved(card),
            already_dispatched=self.dispatched(card),
            withdrawn=self.withdrawn(card),
            not_latest=not self.is_latest(card),
            grant_expired=self.lapsed(card, at),
            mismatch=not same,
        )

    def settle(self, card: bytes, outcome: str) -> str | None:
        if not self.issued(card):
            return "unknown_card"
        outcomes = self.outcomes(card)
        return first(
            not_dispatched=not self.dispatched(card),
            already_settled="succeeded" in outcomes
            or "failed" in outcomes
            or (outcome == "unknown" and "unknown" in outcomes),
        )

    def repeats(self, card: bytes, decision: str, who: str, at: int) -> Record | None:
        taken = self.of(card, "resolved")
        if not taken or (taken[0].facts["decision"], taken[0].facts["who"]) != (decision, who):
            return None
        over = self.state(card, at) in ("WITHDRAWN", "SUPERSEDED", "LAPSED")
        return None if over else taken[0].record


def first(**reasons: bool) -> str | None:
    return next((reason for reason, holds in reasons.items() if holds), None)


steps = st.sampled_from(["pay", "ship"])
people = st.sampled_from(["user:approver-1", "user:approver-1", "user:approver-2", *BLANK])
decisions = st.sampled_from(["approve", "approve", "reject"])
outcomes = st.sampled_from(["succeeded", "failed", "unknown"])


class Life(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.folder = tempfile.TemporaryDirectory()
        self.patch.setenv("CARDCHAIN_STATE", f"{self.folder.name}/state")
        self.path = Path(self.folder.name, "ledger")
        self.now = 1_800_000_000_000
        self.ledger = Ledger.init(self.path, name="model", clock=self.clock, sync=no_sync)
        self.model = Model()
        self.cards: list[IssuedCard] = []
        self.counts: dict[tuple[str, str, bytes], int] = {}
        self.last_at = self.now

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            self.folder.cleanup()
            self.patch.undo()

    def clock(self) -> int:
        return self.now

    def at(self) -> int:
        return max(self.now, self.last_at)

    def pick(self, data: st.DataObject) -> bytes:
        choices = [card.hash_bytes for card in self.cards]
        return data.draw(st.sampled_from([*choices[-3:], *choices, NEVER_ISSUED]))

    def happened(self, kind: str, record: Record, card: bytes | None, **facts: object) -> None:
        assert (record.kind, record.card, record.at) == (kind, card, self.at())
        self.model.past.append(Past(kind, record.at, card, record, facts))
        self.last_at = record.at

    def refused(self, caught: Refused, gate: str, reason: str, subject: bytes) -> None:
        key = (gate, reason, subject)
        count = self.counts[key] = self.counts.get(key, 0) + 1
        recorded = count <= 8 or count in (16, 32, 64, 128, 256)
        assert (caught.gate, caught.reason, caught.count) == (gate, reason, count)
        assert caught.recorded == recorded
        if recorded:
            assert caught.record.at == self.at()
            self.last_at = caught.record.at

    @rule(seconds=st.sampled_from([0.001, 1, 1, GRANT - 0.001, GRANT, TTL - 0.001, TTL]))
    def time_passes(self, seconds: float) -> None:
        self.now += int(seconds * 1000)

    @rule(seconds=st.sampled_from([0.5, 4, 5]))
    def the_clock_slips(self, seconds: float) -> None:
        self.now = max(self.now - int(seconds * 1000), self.last_at - 5000)

    @rule()
    def the_clock_goes_far_back_and_is_reset(self) -> None:
        self.now = self.last_at - 5001
        with pytest.raises(ClockWentBack):
            self.ledger.resolve(NEVER_ISSUED, "approve", approver="user:approver-1")
        record = self.ledger.clock_reset(by="user:operator-1", reason="clock_fixed")
        assert (record.at, record.body["was"]) == (self.now, self.last_at)
        self.last_at = self.now
        self.happened("clock_reset", record, None)

    @rule(
        step=steps,
        amount=st.sampled_from(["1", "2"]),
        grant=st.sampled_from([None, GRANT]),
        right=st.sampled_from([True, True, True, False]),
        data=st.data(),
    )
    def issue(
        self, step: str, amount: str, grant: int | None, right: bool, data: st.DataObject
    ) -> None:
        supersedes, attempt = self.model.latest(step), self.model.attempt(step)
        if not right:
            supersedes = data.draw(st.sampled_from([None, supersedes, NEVER_ISSUED]))
            attempt = data.draw(st.sampled_from([None, attempt, (NEVER_ISSUED, "unknown")]))
        terms: dict[str, object] = {}
        if supersedes is not None:
            terms["supersedes"] = supersedes.hex()
        if attempt is not None:
            terms["prior_attempt"] = {"card_hash": attempt[0].hex(), "outcome": attempt[1]}
        asked = Proposal.for_tool_call(
            task=("run", step),
            tool_name="pay",
            arguments={"amount": amount},
            reasoning=data.draw(st.sampled_from(["because", "since"])),
            ttl=TTL,
            grant_ttl=grant,
            **terms,
        )
        same = (amount, grant, supersedes, attempt)
        latest = self.model.latest(step)
        stands = latest is not None and self.model.state(latest, self.at()) in ("OPEN", "APPROVED")
        if (
            latest is not None
            and stands
            and self.model.of(latest, "issued")[0].facts["ask"] == same
        ):
            assert self.ledger.issue(asked).record == self.model.of(latest, "issued")[0].record
            return
        reason = self.model.issue(step, supersedes, attempt, self.at())
        if reason is None:
            card = self.ledger.issue(asked)
            self.cards.append(card)
            self.happened(
                "issued",
                card.record,
                card.hash_bytes,
                step=step,
                ask=same,
                amount=amount,
                grant_ttl=grant,
                not_after=self.at() // 1000 + TTL,
            )
            return
        with pytest.raises(Refused) as caught:
            self.ledger.issue(asked)
        self.refused(caught.value, "issue", reason, step.encode())

    def asked_about(self, echo: bytes, target: bytes | None) -> bytes:
        if target is not None and self.model.issued(target):
            return target
        return echo if self.model.issued(echo) else b""

    @rule(decision=decisions, who=people, targeted=st.booleans(), data=st.data())
    def resolve(self, decision: str, who: str | None, targeted: bool, data: st.DataObject) -> None:
        echo = self.pick(data)
        target = data.draw(st.sampled_from([echo, self.pick(data)])) if targeted else None
        reason = self.model.resolve(echo, target, who, self.at())
        arguments: dict[str, Any] = {"approver": who, "target": target}
        if reason is None:
            record = self.ledger.resolve(echo, decision, **arguments)
            self.happened("resolved", record, echo, decision=decision, who=who)
            return
        if reason == "already_resolved" and who is not None:
            before = self.model.repeats(echo, decision, who, self.at())
            if before is not None:
                assert self.ledger.resolve(echo.hex(), decision, **arguments) == before
                return
        with pytest.raises(Refused) as caught:
            self.ledger.resolve(echo, decision, **arguments)
        self.refused(caught.value, "resolve", reason, self.asked_about(echo, target))

    @rule(who=people, targeted=st.booleans(), data=st.data())
    def withdraw(self, who: str | None, targeted: bool, data: st.DataObject) -> None:
        echo = self.pick(data)
        target = data.draw(st.sampled_from([echo, self.pick(data)])) if targeted else None
        reason = self.model.withdraw(echo, target, who, self.at())
        if reason is None:
            record = self.ledger.withdraw(echo, by=who, reason="revoked", target=target)
            self.happened("withdrawn", record, echo)
            return
        with pytest.raises(Refused) as caught:
            self.ledger.withdraw(echo, by=who, reason="revoked", target=target)
        self.refused(caught.value, "withdraw", reason, self.asked_about(echo, target))

    @rule(same=st.sampled_from([True, True, False]), data=st.data())
    def dispatch(self, same: bool, data: st.DataObject) -> None:
        card = self.pick(data)
        known = self.model.of(card, "issued")
        amount = known[0].facts["amount"] if known else "1"
        facts = Facts.for_tool_call("pay", {"amount": amount if same else "3"})
        reason = self.model.dispatch(card, same, self.at())
        if reason is None:
            ticket = self.ledger.dispatch(card, facts)
            assert ticket.arguments == {"amount": amount}
            self.happened("dispatched", ticket.record, card)
            return
        with pytest.raises(Refused) as caught:
            self.ledger.dispatch(card, facts)
        self.refused(caught.value, "dispatch", reason, card if known else b"")

    @rule(outcome=outcomes, data=st.data())
    def settle(self, outcome: str, data: st.DataObject) -> None:
        card = self.pick(data)
        reason = self.model.settle(card, outcome)
        if reason is None:
            record = self.ledger.settle(card, outcome)
            self.happened("settled", record, card, outcome=outcome)
            return
        with pytest.raises(Refused) as caught:
            self.ledger.settle(card, outcome)
        self.refused(caught.value, "settle", reason, card if self.model.issued(card) else b"")

    @precondition(lambda self: hasattr(self, "ledger"))
    @rule(forget=st.booleans())
    def reopen(self, forget: bool) -> None:
        """A ledger opened again, with its index or without, says the same."""
        self.ledger.close()
        if forget and all(count <= 8 for count in self.counts.values()):
            for file in Path(self.folder.name, "state").rglob("index.sqlite*"):
                file.unlink()
        self.ledger = Ledger.open(self.path, clock=self.clock, sync=no_sync)

    @invariant()
    def states_agree(self) -> None:
        for card in getattr(self, "cards", [])[-2:]:
            found = self.ledger.card(card)
            expected = self.model.state(card.hash_bytes, self.at())
            assert found.state == expected
            assert found.step_state == self.model.step_state(card.hash_bytes, self.at())


def no_sync(descriptor: int) -> None:
    """A sync that does nothing: what is tested here is not the disk."""


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=40,
    stateful_step_count=35,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
