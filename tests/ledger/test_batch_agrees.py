"""For all asks: a batch decides as its asks would be decided one by one (architecture.md)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import Facts, Ledger, Proposal, Refused, lifecycle
from ledger.answers import Now
from ledger.batch import Ask, Batch
from ledger.turn import Turn

NOW = 1_700_000_000_000
STEPS = ("a", "b")
Act = tuple[str, str, str]


class Thrown(Exception):
    """What a caller's own code may raise in the middle."""


ACTS = st.one_of(
    st.tuples(st.just("issue"), st.sampled_from(STEPS), st.sampled_from(("", "again"))),
    st.tuples(st.just("resolve"), st.sampled_from(STEPS), st.sampled_from(("approve", "reject"))),
    st.tuples(st.just("withdraw"), st.sampled_from(STEPS), st.just("revoked")),
    st.tuples(st.just("dispatch"), st.sampled_from(STEPS), st.sampled_from(("1", "2"))),
    st.tuples(st.just("settle"), st.sampled_from(STEPS), st.sampled_from(("failed", "unknown"))),
    st.tuples(st.just("throw"), st.sampled_from(STEPS), st.sampled_from(("before", "after"))),
)


def proposal(step: str, reasoning: str = "") -> Proposal:
    return Proposal.for_tool_call(
        task=("run", step), tool_name="t", arguments={"n": "1"}, reasoning=reasoning, ttl=600
    )


def body(act: Act) -> Callable[[Turn], Any]:
    """What a turn does for an act; the card of a step is the one issued last for it, or none."""
    what, step, how = act

    def latest(turn: Turn) -> bytes:
        found = turn.views.step(proposal_task(step))
        return found.latest if found else bytes(32)

    def run(turn: Turn) -> Any:
        if what == "issue":
            return lifecycle.issue(turn, proposal(step, how), {}, None)
        card = latest(turn)
        approver = {"id": "user:approver-1", "assurance": "label"}
        if what == "resolve":
            asked = {"echo": card, "decision": how, "channel": "cli", "approver": approver}
            return lifecycle.resolve(turn, asked, {})
        if what == "withdraw":
            return lifecycle.withdraw(turn, {"echo": card, "approver": approver}, how, {})
        if what == "dispatch":
            return lifecycle.dispatch(turn, card, Now(Facts.for_tool_call("t", {"n": how})))
        if what == "settle":
            return lifecycle.settle(turn, card, {"outcome": how})
        if how == "after":
            turn.append("configured", None, {"by": "user:operator-1", "vkey": "k"})
        raise Thrown

    return run


def proposal_task(step: str) -> bytes:
    from ledger.envelope import project

    return project(proposal(step), NOW // 1000).task_digest


def told(answer: Any) -> tuple[Any, ...]:
    """What can be compared between two chains: kinds, places and bodies, and reasons."""
    if isinstance(answer, Exception):
        record = answer.record if isinstance(answer, Refused) else None
        return (type(answer), str(answer), record and record.body)
    record = getattr(answer, "record", answer)
    return (record.kind, record.seq, record.card, record.body, record.openings)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set variables for a while; one run of Hypothesis is one test, so no fixture can."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def ledger() -> Iterator[Ledger]:
    with (
        TemporaryDirectory() as folder,
        environment(CARDCHAIN_STATE=f"{folder}/s"),
        Ledger.init(Path(folder) / "l", name="t", clock=lambda: NOW, sync=lambda _: None) as made,
    ):
        yield made


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(ACTS, min_size=1, max_size=8), min_size=1, max_size=4))
def test_a_batch_is_decided_as_one_by_one(batches: list[list[Act]]) -> None:
    with ledger() as alone, ledger() as shared:
        for acts in batches:
            one_by_one = []
            for act in acts:
                try:
                    one_by_one.append(told(alone._log.run(body(act))))
                except Thrown as error:
                    one_by_one.append(told(error))
            asks = [Ask(body(act)) for act in acts]
            batch = Batch(asks[0])
            batch.asks += asks[1:]
            shared._log._lead(batch)
            assert batch.durable
            assert one_by_one == [told(ask.error or ask.answer) for ask in asks]
        records = [list(each.records(1)) for each in (alone, shared)]
        assert [told(record) for record in records[0]] == [told(record) for record in records[1]]
        statuses = [[(s.hash, s.state) for s in each.pending()] for each in (alone, shared)]
        assert statuses[0] == statuses[1]
