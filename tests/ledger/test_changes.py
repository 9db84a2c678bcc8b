"""What changed since a card: shown before an approver, and found when a rule changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from ledger import Facts, IssuedCard, Ledger, Proposal, render_card_text, render_changes
from ledger.errors import ProposalInvalid

Propose = Callable[..., Proposal]
ONE, TWO, THREE = "01" * 32, "02" * 32, "03" * 32


def approve(ledger: Ledger, card: IssuedCard) -> None:
    ledger.resolve(card.hash, "approve", approver="user:approver-1", target=card)


def amount(value: str) -> dict[str, Any]:
    return {"order": "SO-1001", "amount": value}


# The text of changes


def whole(text: str) -> str:
    """Join the lines that were cut at the edge of a screen."""
    assert max(map(len, text.split("\n"))) <= 76
    return text.replace("\n\\", "")


def test_every_place_that_differs_is_shown_with_both_values(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    old = ledger.issue(proposal(purpose="x"))
    clock.forward(2)
    ask = proposal(arguments={**amount("99.00"), "tags": []}, reasoning="less")
    new = ledger.issue(ask.superseding(old))
    a, b = old.envelope.document, new.envelope.document
    assert whole(render_changes(old.envelope, new.envelope)) == (
        f"changes (cardchain-changes/2)\nsince card: {old.hash}\n"
        f'  "/action/args_digest":\n    "{a["action"]["args_digest"]}"\n'
        f'    -> "{b["action"]["args_digest"]}"\n'
        '  "/action/arguments/amount": "199.00" -> "99.00"\n'
        '  "/action/arguments/tags": not stated -> []\n'
        f'  "/effect_key":\n    "{a["effect_key"]}"\n    -> "{b["effect_key"]}"\n'
        f'  "/issued_at": {a["issued_at"]} -> {b["issued_at"]}\n'
        f'  "/not_after": {a["not_after"]} -> {b["not_after"]}\n'
        '  "/purpose": "x" -> not stated\n'
        '  "/reasoning": "duplicate payment" -> "less"\n'
        f'  "/supersedes":\n    not stated\n    -> "{old.hash}"\n'
    )


def test_hostile_text_in_a_change_is_escaped(ledger: Ledger, proposal: Propose) -> None:
    hostile = 'a" -> "b\n  "/purpose": "\x1b[2J\u202e'
    old = ledger.issue(proposal(arguments={hostile: hostile}))
    new = ledger.issue(proposal(arguments={hostile: "not stated"}).superseding(old))
    text = whole(render_changes(old.envelope, new.envelope))
    shown = 'a\\" -> \\"b\\n  \\"~1purpose\\": \\"\\u{1b}[2J\\u{202e}'.replace("~1", "/")
    name = shown.replace("/", "~1")
    assert f'  "/action/arguments/{name}":\n    "{shown}"\n    -> "not stated"\n' in text
    assert all(character == "\n" or " " <= character <= "~" for character in text)


def test_an_approver_sees_what_changed_and_then_all_of_the_card(
    ledger: Ledger, proposal: Propose
) -> None:
    old = ledger.issue(proposal())
    ask = proposal(arguments=amount("99.00")).superseding(old)
    new = ledger.issue(ask)
    expected = render_changes(old.envelope, new.envelope) + "\n" + render_card_text(new.envelope)
    assert new.text == ledger.card(new).text == ledger.issue(ask).text == expected
    assert new.text.endswith(f"to decide, echo this hash:\n  {new.hash}\n")
    assert old.text == ledger.card(old).text == render_card_text(old.envelope)


def test_a_superseded_card_that_is_gone_is_said_to_be(ledger: Ledger, proposal: Propose) -> None:
    old = ledger.issue(proposal())
    new = ledger.issue(proposal(purpose="x").superseding(old))
    alone = IssuedCard(new.envelope, new.record)
    assert alone.text == (
        "changes: not shown, the envelope before is not at hand\n\n"
        + render_card_text(new.envelope)
    )


# Affected by a rule


def basis(*hashes: str) -> dict[str, Any]:
    return {
        "verdict": "require_approval",
        "engine": "engine/1",
        "evidence_class": "none",
        "profile": "00" * 32,
        "rules": [{"id": f"rule-{each[:2]}", "sha256": each} for each in hashes],
    }


@pytest.fixture
def cards(ledger: Ledger, proposal: Propose, facts: Callable[..., Facts]) -> dict[str, IssuedCard]:
    """Make a card in each state, all citing rule one, and some that do not."""
    weak = json.dumps(
        {
            "assurance": "label",
            "basis_drift": "review",
            "critical": [],
            "fixed_parameters": [],
            "format": "cardchain-profile/1",
            "grant_ttl": "optional",
            "minimum": "none",
            "required": [],
            "self_approval": "allow",
        },
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
    ledger.configure(profile=weak, by="user:operator-1")
    named = {"profile": hashlib.sha256(weak).hexdigest()}

    def issue(step: str, *hashes: str, **members: Any) -> IssuedCard:
        return ledger.issue(proposal(step, approval_basis={**basis(*hashes), **named}, **members))

    found = {
        "open": issue("open", ONE),
        "approved": issue("approved", TWO, ONE),
        "rejected": issue("rejected", ONE),
        "dispatched": issue("dispatched", ONE),
        "lapsing": issue("lapsing", ONE, grant_ttl=60),
        "expiring": issue("expiring", ONE, ttl=60),
        "other": issue("other", TWO),
        "without": ledger.issue(proposal("without")),
    }
    for name in ("approved", "dispatched", "lapsing"):
        approve(ledger, found[name])
    ledger.resolve(found["rejected"].hash, "reject", approver="user:approver-1")
    now = Facts.for_tool_call(
        "refund.create", amount("199.00"), approval_basis={**basis(ONE), **named}
    )
    ledger.dispatch(found["dispatched"], now)
    return found


def test_a_rule_that_changed_affects_the_open_cards_and_grants_that_cite_it(
    ledger: Ledger, cards: dict[str, IssuedCard], clock: Any
) -> None:
    def names(*rules: str | bytes) -> list[str]:
        by_hash = {card.hash: name for name, card in cards.items()}
        return [by_hash[each.hash] for each in ledger.affected(rules)]

    assert names(ONE) == ["open", "approved", "lapsing", "expiring"]
    clock.forward(60)
    assert names(ONE) == ["open", "approved"]
    assert names(bytes.fromhex(TWO)) == ["approved", "other"]
    assert names(TWO, ONE) == ["open", "approved", "other"]
    assert names(THREE) == []
    assert names() == []


@pytest.mark.parametrize("rule", ["01", "A" * 64, 7, b"short"])
def test_a_rule_is_named_by_a_whole_digest(ledger: Ledger, rule: Any) -> None:
    with pytest.raises(ProposalInvalid, match="rule"):
        ledger.affected([rule])


# The same call under another task


def test_a_call_that_comes_back_under_another_task_is_told(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    rejected = ledger.issue(proposal("one"))
    ledger.resolve(rejected.hash, "reject", approver="user:approver-1")
    expired = ledger.issue(proposal("two", ttl=60))
    approved = ledger.issue(proposal("three"))
    approve(ledger, approved)
    clock.forward(60)
    again = ledger.issue(proposal("four", reasoning="in other words", kind="other"))
    told = [(each.hash, each.state) for each in ledger.card(again).returned]
    assert told == [(rejected.hash_bytes, "REJECTED"), (expired.hash_bytes, "EXPIRED")]
    (waiting,) = ledger.pending()
    assert waiting.returned == ledger.card(again).returned


def test_only_the_newest_is_told_and_only_earlier_ones_of_other_tasks(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    def rejected(step: str, **members: Any) -> IssuedCard:
        card = ledger.issue(proposal(step, **members))
        ledger.resolve(card.hash, "reject", approver="user:approver-1")
        return card

    rejected("one")
    newest = rejected("two")
    rejected("three", arguments=amount("1.00"))
    rejected("four", tool_name="refund.other")
    clock.forward(1)
    own = rejected("five")
    clock.forward(1)
    card = ledger.issue(proposal("five").superseding(own))
    clock.forward(1)
    rejected("six")
    assert [each.hash for each in ledger.card(card).returned] == [newest.hash_bytes]
    first = ledger.card(rejected("seven", arguments=amount("7.00")))
    assert first.returned == ()


def test_a_card_that_still_waits_or_was_dispatched_has_not_come_back(
    ledger: Ledger, proposal: Propose
) -> None:
    ledger.issue(proposal("one"))
    assert ledger.card(ledger.issue(proposal("two"))).returned == ()


def test_a_grant_that_lapsed_comes_back_too(ledger: Ledger, proposal: Propose, clock: Any) -> None:
    lapsed, kept = ledger.issue(proposal("one", grant_ttl=60)), ledger.issue(proposal("two"))
    approve(ledger, lapsed)
    approve(ledger, kept)
    clock.forward(59)
    again = ledger.issue(proposal("three"))
    assert ledger.card(again).returned == ()
    clock.forward(1)
    told = [(each.hash, each.state) for each in ledger.card(again).returned]
    assert told == [(lapsed.hash_bytes, "LAPSED")]
    clock.forward(-3600)
    ledger.clock_reset(by="user:operator-1", reason="clock_fixed")
    told = [(each.hash, each.state) for each in ledger.card(again).returned]
    assert told == [(kept.hash_bytes, "LAPSED")]


def test_a_clock_reset_ends_a_card_for_this_too(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    ended = ledger.issue(proposal("one"))
    clock.forward(-3600)
    ledger.clock_reset(by="user:operator-1", reason="clock_fixed")
    card = ledger.issue(proposal("two"))
    assert [(each.hash, each.state) for each in ledger.card(card).returned] == [
        (ended.hash_bytes, "EXPIRED")
    ]
