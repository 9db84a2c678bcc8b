from __future__ import annotations

import pytest

from verifier.cards import APPROVED, DISPATCHED, NOT_LATEST, REJECTED, WITHDRAWN, Cards

A, B, C, TASK = b"a" * 32, b"b" * 32, b"c" * 32, b"t" * 32


@pytest.fixture
def cards() -> Cards:
    cards = Cards()
    cards.issue(A, 1, TASK, 100, 10)
    return cards


def test_a_new_card_is_open_until_not_after(cards: Cards) -> None:
    assert cards.is_open(0)
    assert not cards.over(0, 99_999)
    assert cards.over(0, 100_000)


def test_a_grant_lapses_after_its_ttl(cards: Cards) -> None:
    cards.resolve(0, 2, 50_000, "approve")
    assert cards.flags[0] == APPROVED
    assert not cards.over(0, 59_999)
    assert cards.over(0, 60_000)


def test_a_grant_without_ttl_never_lapses(cards: Cards) -> None:
    cards.issue(B, 2, b"u" * 32, 100, None)
    cards.resolve(1, 3, 50_000, "approve")
    assert not cards.over(1, 2**53 - 1)


def test_a_clock_reset_ends_what_stands_before_it(cards: Cards) -> None:
    cards.fold("clock_reset", None, 5, 0, {})
    cards.issue(B, 6, b"u" * 32, 100, None)
    assert cards.over(0, 0)
    assert not cards.over(1, 0)


def test_forgotten_cards_are_as_if_never_issued(cards: Cards) -> None:
    cards.dispatch(0, 2)
    cards.issue(B, 3, TASK, 100, None)
    cards.issue(C, 4, b"u" * 32, 100, None)
    assert cards.forget(3) == [A]
    assert (cards.numbers.get(A), cards.numbers[B]) == (None, 1)
    step = cards.step(TASK)
    assert step is not None
    assert (cards.latest(step), cards.last_dispatched(step)) == (1, None)
    assert cards.forget(4) == [B]
    assert cards.step(TASK) is None
    assert cards.forget(2) == []
    cards.issue(A, 5, TASK, 100, None)
    step = cards.step(TASK)
    assert step == cards.numbers[A] == 3
    assert cards.latest(step) == 3
    assert not cards.flags[3] & NOT_LATEST


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        ([], False),
        ([("resolved", {"decision": "approve"})], False),
        ([("resolved", {"decision": "reject"})], True),
        ([("withdrawn", {})], True),
        ([("resolved", {"decision": "approve"}), ("dispatched", {})], False),
        ([("dispatched", {}), ("settled", {"outcome": "unknown"})], False),
        ([("dispatched", {}), ("settled", {"outcome": "failed"})], True),
    ],
)
def test_a_card_is_ended_when_nothing_can_come_of_it(
    cards: Cards, events: list[tuple[str, dict[str, str]]], ended: bool
) -> None:
    for seq, (kind, body) in enumerate(events, 2):
        cards.fold(kind, A, seq, 10, body)
    assert cards.unended(2, 20, 0) == (None if ended else 0)
    assert cards.unended(2, 20, 1) is None
    assert cards.unended(1, 20, 0) is None


def test_the_next_card_of_a_step_replaces_the_latest(cards: Cards) -> None:
    cards.dispatch(0, 2)
    cards.issue(B, 3, TASK, 100, None)
    assert cards.flags[0] & NOT_LATEST
    step = cards.step(TASK)
    assert cards.latest(step) == 1
    assert cards.last_dispatched(step) == 0
    assert cards.step_of(1) == step
    assert (cards.hash_of(0), cards.hash_of(1)) == (A, B)


@pytest.mark.parametrize("outcome", ["unknown", "succeeded", "failed"])
def test_the_last_outcome_is_kept(cards: Cards, outcome: str) -> None:
    cards.fold("dispatched", A, 2, 0, {})
    assert cards.outcome(0) == "unknown"
    cards.fold("settled", A, 3, 0, {"outcome": "unknown"})
    cards.fold("settled", A, 4, 0, {"outcome": outcome})
    assert cards.outcome(0) == outcome
    assert cards.last[0] == 4


def test_events_are_folded_as_they_stand(cards: Cards) -> None:
    cards.fold("resolved", A, 2, 0, {"decision": "reject"})
    cards.fold("withdrawn", A, 3, 0, {})
    cards.fold("dispatched", A, 4, 0, {})
    assert cards.flags[0] == REJECTED | WITHDRAWN | DISPATCHED
    cards.fold("refused", A, 5, 0, {})
    cards.fold("resolved", B, 6, 0, {"decision": "approve"})
    assert cards.last[0] == 4
    assert len(cards.flags) == 1


def test_issuing_again_makes_no_second_card(cards: Cards) -> None:
    cards.issue(A, 9, TASK, 200, None)
    assert len(cards.flags) == 1
    assert cards.last[0] == 9


def test_a_grant_of_no_seconds_lapses_at_once() -> None:
    cards = Cards()
    cards.issue(A, 1, bytes(32), 9, 0)
    cards.resolve(0, 2, 5000, "approve")
    assert cards.over(0, 5000)
