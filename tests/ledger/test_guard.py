"""A guard dispatches before the effect and settles what it knows after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ledger import EffectFailed, Facts, IssuedCard, Ledger, Proposal, Refused
from ledger.errors import ProposalInvalid

RECEIPT = bytes(range(32))


@pytest.fixture
def card(ledger: Ledger, proposal: Callable[..., Proposal]) -> IssuedCard:
    card = ledger.issue(proposal())
    ledger.resolve(card.hash, "approve", approver="user:approver-1", target=card)
    return card


def last(ledger: Ledger, card: IssuedCard) -> dict[str, Any]:
    record = ledger.events(card)[-1]
    assert record.kind == "settled"
    return dict(record.body)


def test_a_block_that_ends_has_succeeded(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts]
) -> None:
    with ledger.guard(card, facts()) as effect:
        assert ledger.card(card).state == "DISPATCHED"
        assert effect.arguments == {"order": "SO-1001", "amount": "199.00"}
        assert effect.effect_key == card.envelope.effect_key == effect.ticket.effect_key
        effect.receipt_digest = RECEIPT
    assert last(ledger, card) == {"of": 3, "outcome": "succeeded", "receipt_digest": RECEIPT}


def test_a_block_that_knows_that_nothing_happened_has_failed(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts]
) -> None:
    with pytest.raises(EffectFailed, match="no funds"), ledger.guard(card, facts()):
        raise EffectFailed("no funds")
    assert last(ledger, card) == {"of": 3, "outcome": "failed"}


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError("no answer"),
        ValueError("a bug"),
        KeyboardInterrupt(),
        SystemExit(3),
        asyncio.CancelledError(),
        GeneratorExit(),
    ],
)
def test_any_other_end_is_unknown_and_the_error_goes_on(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts], error: BaseException
) -> None:
    with pytest.raises(type(error)) as caught, ledger.guard(card, facts()):
        raise error
    assert caught.value is error
    assert last(ledger, card) == {"of": 3, "outcome": "unknown"}
    assert ledger.card(card).step_state == "outcome_unknown"


def test_a_failure_speaks_of_the_innermost_guard_that_it_leaves(
    ledger: Ledger,
    card: IssuedCard,
    proposal: Callable[..., Proposal],
    facts: Callable[..., Facts],
) -> None:
    inner = ledger.issue(proposal("inner"))
    ledger.resolve(inner.hash, "approve", approver="user:approver-1", target=inner)
    with pytest.raises(EffectFailed), ledger.guard(card, facts()), ledger.guard(inner, facts()):
        raise EffectFailed("the inner one")
    assert last(ledger, inner)["outcome"] == "failed"
    assert last(ledger, card)["outcome"] == "unknown"


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "unknown"])
@pytest.mark.parametrize("error", [None, ValueError("after the effect"), EffectFailed("late")])
def test_what_the_block_says_stands_whatever_happens_afterwards(
    ledger: Ledger,
    card: IssuedCard,
    facts: Callable[..., Facts],
    outcome: str,
    error: Exception | None,
) -> None:
    def block() -> None:
        with ledger.guard(card, facts()) as effect:
            effect.outcome = outcome
            assert effect.outcome == outcome
            if error is not None:
                raise error

    if error is None:
        block()
    else:
        with pytest.raises(type(error)):
            block()
    assert last(ledger, card)["outcome"] == outcome


def test_a_refusal_is_raised_before_the_block(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts]
) -> None:
    ran = []
    with pytest.raises(Refused, match="mismatch"), ledger.guard(card, facts("1.00")):
        ran.append("effect")
    with (
        pytest.raises(Refused, match="policy_denied"),
        ledger.guard(card, facts(), policy_outcome="deny"),
    ):
        ran.append("effect")
    assert ran == []
    assert ledger.card(card).state == "APPROVED"


def test_an_effect_is_guarded_once(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts]
) -> None:
    guard = ledger.guard(card, facts())
    with guard:
        pass
    with pytest.raises(Refused, match="already_dispatched"), guard:
        raise AssertionError("it ran twice")


def test_what_dispatch_is_asked_goes_through(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts]
) -> None:
    with ledger.guard(card, facts(), policy_outcome="allow", approver_check="directory") as effect:
        pass
    body = effect.ticket.record.body
    assert (body["policy_outcome"], body["approver_check"]) == ("allow", "directory")


@pytest.mark.parametrize(
    ("name", "value"), [("outcome", "done"), ("outcome", None), ("receipt_digest", "00" * 32)]
)
def test_what_the_block_says_wrong_is_told_to_it(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts], name: str, value: Any
) -> None:
    with pytest.raises(ProposalInvalid, match=name), ledger.guard(card, facts()) as effect:
        setattr(effect, name, value)
    assert last(ledger, card) == {"of": 3, "outcome": "unknown"}


def test_an_outcome_that_cannot_be_recorded_does_not_hide_the_error_of_the_block(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts]
) -> None:
    def block() -> None:
        with ledger.guard(card, facts()) as effect:
            ledger.settle(effect.ticket, "succeeded")
            raise TimeoutError("no answer")

    with pytest.raises(TimeoutError) as caught:
        block()
    (note,) = caught.value.__notes__
    assert "the outcome unknown could not be recorded" in note
    assert "already_settled" in note


def test_an_outcome_that_cannot_be_recorded_is_raised_where_the_block_ended_well(
    ledger: Ledger, card: IssuedCard, facts: Callable[..., Facts]
) -> None:
    with pytest.raises(Refused, match="already_settled"), ledger.guard(card, facts()) as effect:
        ledger.settle(effect.ticket, "failed")
