"""Answers that change nothing (spec §6.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ledger import Facts, Ledger, Proposal, Refused
from ledger.errors import AmbiguousPrefix, BrokenLedger, UnknownCard

Propose = Callable[..., Proposal]


def test_a_card_is_shown_as_it_is_and_as_it_was_at_a_time(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    card = ledger.issue(proposal(grant_ttl=900))
    end = card.envelope.not_after * 1000
    assert ledger.card(card).state == "OPEN"
    assert ledger.card(card, now=end - 1).state == "OPEN"
    expired = ledger.card(card, now=end)
    assert (expired.state, expired.step_state) == ("EXPIRED", "awaiting_reapproval")
    assert expired.envelope == card.envelope
    clock.forward(1800)
    assert ledger.card(card).state == "EXPIRED"


def test_the_state_of_a_step_is_that_of_its_latest_card(ledger: Ledger, proposal: Propose) -> None:
    old = ledger.issue(proposal())
    new = ledger.issue(proposal(supersedes=old.hash))
    ledger.resolve(new.hash, "reject", approver="user:approver-1")
    shown = ledger.card(old)
    assert (shown.state, shown.step_state) == ("SUPERSEDED", "rejected_pre_dispatch")


def test_pending_cards_are_open_and_in_time_oldest_first(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    early = ledger.issue(proposal("early", ttl=60))
    first, second = (ledger.issue(proposal(step)) for step in ("first", "second"))
    decided = ledger.issue(proposal("decided"))
    ledger.resolve(decided.hash, "approve", approver="user:approver-1")
    assert [card.hash for card in ledger.pending()] == [early.hash, first.hash, second.hash]
    clock.forward(60)
    assert [card.hash for card in ledger.pending()] == [first.hash, second.hash]
    assert ledger.status().pending == 2


def test_a_card_is_found_by_a_prefix_that_only_it_has(ledger: Ledger, proposal: Propose) -> None:
    cards = [ledger.issue(proposal(f"step {number}")).hash for number in range(40)]
    for card in cards:
        unique = next(
            length
            for length in range(1, 65)
            if sum(other.startswith(card[:length]) for other in cards) == 1
        )
        assert ledger.find(card[:unique]).hex() == card
        assert ledger.find(card).hex() == card
        if unique > 1:
            with pytest.raises(AmbiguousPrefix):
                ledger.find(card[: unique - 1])


def test_an_unknown_card_is_said(ledger: Ledger) -> None:
    for ask in (ledger.card, ledger.events, ledger.find):
        with pytest.raises(UnknownCard):
            ask("0" * 64)


def test_records_begin_anywhere(ledger: Ledger, proposal: Propose) -> None:
    for number in range(5):
        ledger.issue(proposal(f"step {number}"))
    whole = list(ledger.records())
    assert [record.seq for record in whole] == list(range(6))
    for start in range(8):
        assert list(ledger.records(start)) == whole[start:]


def test_records_end_with_the_last_one_appended_before(ledger: Ledger, proposal: Propose) -> None:
    ledger.issue(proposal("a"))
    records = ledger.records()
    ledger.issue(proposal("b"))
    assert [record.seq for record in records] == [0, 1]


def test_a_record_that_was_changed_is_not_given(ledger: Ledger, proposal: Propose) -> None:
    for step in ("a", "b"):
        ledger.issue(proposal(step))
    first, second, _ = ledger.records()
    file = ledger.path / "segments" / f"{0:020}.cbor"
    content = bytearray(file.read_bytes())
    content[len(first.raw) + len(second.raw) - 1] ^= 1
    file.write_bytes(content)
    records = ledger.records()
    assert next(records) == first
    with pytest.raises(BrokenLedger) as caught:
        next(records)
    assert (caught.value.offset, caught.value.seq) == (len(first.raw), 1)


def test_events_of_a_card_are_all_that_name_it(
    ledger: Ledger, proposal: Propose, facts: Callable[..., Facts]
) -> None:
    card, other = ledger.issue(proposal("a")), ledger.issue(proposal("b"))
    with pytest.raises(Refused):
        ledger.dispatch(card, facts())
    ledger.resolve(other.hash, "approve", approver="user:approver-1")
    ledger.resolve(card.hash, "approve", approver="user:approver-1")
    assert [record.seq for record in ledger.events(card)] == [1, 3, 5]
    assert [record.seq for record in ledger.events(other.hash)] == [2, 4]


def test_reading_appends_nothing(ledger: Ledger, proposal: Propose) -> None:
    card = ledger.issue(proposal())
    before = (ledger.path / "segments" / f"{0:020}.cbor").read_bytes()
    ledger.card(card)
    ledger.events(card)
    ledger.pending()
    ledger.find(card.hash[:4])
    ledger.status()
    list(ledger.records())
    assert (ledger.path / "segments" / f"{0:020}.cbor").read_bytes() == before


def test_status_says_what_the_ledger_is(ledger: Ledger, proposal: Propose) -> None:
    card = ledger.issue(proposal())
    status = ledger.status()
    assert (status.name, status.chain, status.count) == ("test", ledger.chain, 2)
    assert (status.head, status.at) == (card.record.digest, card.record.at)
    assert (status.kid, status.segments, status.pending) == (card.record.kid, 1, 1)
    assert (status.guarded_from, status.warnings) == (0, ())
