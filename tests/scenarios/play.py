"""Plays a scenario on a driver and holds what it observes against what the scenario says."""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import corpus
from business import Business
from driver import Answer, Denied, Document, Driver, NoAnswer


class Clock:
    """Milliseconds; it begins at a whole second and stands still until it is told to move."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


class Play:
    """One run of a scenario. `check` raises AssertionError with the step that went otherwise."""

    def __init__(self, scenario: Document, make: Callable[[Clock, Document], Driver]) -> None:
        self.given = scenario["given"]
        self.when = scenario["when"]
        self.then = scenario["then"]
        self.clock = Clock()
        self.driver = make(self.clock, self.given)
        self.business = Business()
        self.let_through: list[str] = []
        self.cards = corpus.card_documents(self.given)
        self.answers: list[Answer | list[Answer] | None] = [None]

    def check(self) -> None:
        for number, step in enumerate(self.when, 1):
            expected: Document = {}
            for entry in self.then:
                if entry["after"] == number:
                    expected |= entry
            answer = self.take(step)
            self.answers.append(answer)
            try:
                self.check_answer(step, answer, expected)
                self.check_world(expected)
            except AssertionError as failure:
                failure.add_note(f"after step {number}: {step}")
                raise
        if not {"tamper", "storage"} & {step["do"] for step in self.when}:
            self.check_end()

    def check_end(self) -> None:
        """Whatever was let through is on record and nothing else, and the log verifies."""
        on_record = [
            event["card"] for event in self.driver.events() if event["kind"] == "dispatched"
        ]
        assert sorted(on_record) == sorted(self.let_through)
        assert len(self.business.effects) <= len(on_record)
        assert self.driver.verdict(None) == "VERIFIED"

    # Steps

    def take(self, step: Document) -> Answer | list[Answer] | None:
        act = getattr(self, f"do_{step['do']}")
        return act(**{name: value for name, value in step.items() if name != "do"})

    def do_issue(self, card: str, meddle: Document | None = None) -> Answer:
        mine = self.filled(self.cards[card])
        answer = self.driver.issue(card, mine)
        _meddle(mine, meddle)
        return answer

    def do_resolve(
        self,
        card: str,
        decision: str,
        by: str | None,
        assurance: str = "label",
        response: Any = None,
        **echo: str | None,
    ) -> Answer:
        return self.driver.resolve(card, echo.get("echo", card), decision, by, assurance, response)

    def do_withdraw(self, card: str, by: str | None, reason: str, **echo: str | None) -> Answer:
        return self.driver.withdraw(card, echo.get("echo", card), by, reason)

    def do_dispatch(
        self,
        card: str,
        now: Document | None = None,
        absent: list[str] | None = None,
        policy_outcome: str | None = None,
        approver_authorised: bool = True,
        business: str = "commits",
        meddle: Document | None = None,
    ) -> Answer:
        world = corpus.edited(self.cards[card], now or {}, absent or [])
        mine = self.filled(corpus.facts_of(world))
        answer = self.driver.dispatch(card, mine, policy_outcome, approver_authorised)
        _meddle(mine, meddle)
        if answer.outcome == "accepted":
            assert answer.effect_key is not None
            self.let_through.append(card)
            with contextlib.suppress(Denied, NoAnswer):
                if business != "not_called":
                    self.business.call(answer.effect_key, answer.arguments, business)
        return answer

    def do_guard(
        self,
        card: str,
        now: Document | None = None,
        absent: list[str] | None = None,
        business: str = "commits",
    ) -> Answer:
        def call(effect_key: str, arguments: Document) -> None:
            self.let_through.append(card)
            self.business.call(effect_key, arguments, business)

        world = corpus.edited(self.cards[card], now or {}, absent or [])
        return self.driver.guard(card, self.filled(corpus.facts_of(world)), call)

    def do_settle(self, card: str, outcome: str) -> Answer:
        return self.driver.settle(card, outcome)

    def do_configure(self, profile: str) -> Answer:
        return self.driver.configure(corpus.profile_documents(self.given)[profile])

    def do_clock_reset(self) -> Answer:
        return self.driver.clock_reset()

    def do_affected(self, rules: list[str]) -> Answer:
        return self.driver.affected([self.driver.digest(text) for text in rules])

    def do_verify(self, floor: str | None = None) -> Answer:
        return Answer(self.driver.verdict(floor))

    def do_advance_clock(self, seconds: float) -> None:
        self.clock.now += round(seconds * 1000)

    def do_restart(self, without: list[str] | None = None) -> None:
        self.driver.restart(without or [])

    def do_storage(self, works: bool) -> None:
        self.driver.storage(works)

    def do_tamper(self, find: str, replace: str) -> None:
        self.driver.tamper(find, replace)

    def do_together(self, steps: list[Document]) -> list[Answer]:
        with ThreadPoolExecutor(len(steps)) as pool:
            return list(pool.map(self.take, steps))  # type: ignore[arg-type]

    # What was answered

    def check_answer(
        self, step: Document, answer: Answer | list[Answer] | None, expected: Document
    ) -> None:
        if isinstance(answer, list):
            found = Counter(each.reason or each.outcome for each in answer)
            assert dict(found) == expected["outcomes"]
            return
        if answer is None:
            return
        if step["do"] == "verify":
            assert answer.outcome == expected["verdict"]
            return
        if step["do"] == "affected":
            assert answer.labels == expected["affected"]
            return
        assert (answer.outcome, answer.reason) == _outcome(expected)
        assert sorted(answer.exceptions) == expected.get("exceptions", [])
        if "differs" in expected or answer.differs:
            assert sorted(answer.differs) == sorted(expected["differs"])
        if "drift" in expected:
            assert answer.drift == expected["drift"]
        if answer.outcome == "accepted":
            self.check_record(answer, expected)

    def check_record(self, answer: Answer, expected: Document) -> None:
        """An accepted step is an event of its own, unless the scenario says which it repeats."""
        before = [each.record for each in self.answers[:-1] if isinstance(each, Answer)]
        if "same_as" in expected:
            assert answer.record == self.answers[expected["same_as"]].record  # type: ignore[union-attr]
        else:
            assert answer.record not in [record for record in before if record is not None]

    # What can be seen afterwards

    def check_world(self, expected: Document) -> None:
        driver = self.driver
        seen_from_outside = {"dispatch_count", "business_effect_count"}
        needed = "trace" in expected or set(expected.get("counts", {})) - seen_from_outside
        events = driver.events() if needed else []
        for name, count in expected.get("counts", {}).items():
            assert (name, self.count(name, events)) == (name, count)
        for label, state in expected.get("state", {}).items():
            allowed = state if isinstance(state, list) else [state]
            assert driver.state(label) in allowed, (label, driver.state(label), allowed)
        for label, state in expected.get("step_state", {}).items():
            assert (label, driver.step_state(label)) == (label, state)
        for label, who in expected.get("approver", {}).items():
            assert (label, driver.approver(label)) == (label, who)
        for of, groups in expected.get("same", {}).items():
            for labels in groups:
                assert len({self.named(of, label) for label in labels}) == 1, (of, labels)
        for of, groups in expected.get("different", {}).items():
            for labels in groups:
                assert len({self.named(of, label) for label in labels}) == len(labels)
        for label, pieces in expected.get("shown", {}).items():
            for piece in pieces:
                text = piece if isinstance(piece, str) else driver.effect_key(piece["effect_key"])
                assert text in driver.text(label)
        for label, pieces in expected.get("hidden", {}).items():
            for piece in pieces:
                assert piece not in driver.text(label)
        for label, trace in expected.get("trace", {}).items():
            assert _trace(label, events) == trace
        if "business_got" in expected:
            assert self.business.got == expected["business_got"]

    def count(self, name: str, events: list[Document]) -> int:
        if name == "business_effect_count":
            return len(self.business.effects)
        if name == "dispatch_count":
            return len(self.let_through)
        return sum(1 for event in events if event["kind"] == name.removesuffix("_count"))

    def named(self, of: str, label: str) -> str:
        if of == "card":
            return self.driver.identity(label)
        assert of == "effect_key"
        return self.driver.effect_key(label)

    def filled(self, document: Document) -> Document:
        driver = self.driver
        filled: Document = corpus.filled(
            copy.deepcopy(document), driver.digest, driver.identity, driver.profile
        )
        return filled


def _outcome(expected: Document) -> tuple[str, str | None]:
    if "refused" in expected:
        return "refused", expected["refused"]
    for outcome in ("invalid", "stopped"):
        if expected.get(outcome):
            return outcome, None
    return "accepted", None


def _meddle(document: Document, changes: Document | None) -> None:
    """Change a caller's own copy after the fact, in place."""
    if changes:
        new = corpus.edited(document, changes, [])
        document["action"]["arguments"].clear()
        document["action"]["arguments"].update(new["action"]["arguments"])


def _trace(label: str, events: list[Document]) -> Document:
    """Give what the trace of a card shows, its digests as compared with the proposed one."""
    trace: Document = {}
    for event in events:
        if event.get("card") == label:
            for name in ("approved", "execution_time"):
                if name in event:
                    same = event[name] == event["proposed"]
                    trace[name] = "same" if same else "different"
            if "execution_time" in event and event["kind"] == "refused":
                trace["reason"] = event["reason"]
    return trace
