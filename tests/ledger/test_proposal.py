"""Proposals of other shapes than a tool call, and those that replace a card (spec §2.3, §2.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ledger import Facts, Ledger, Proposal, Refused
from ledger.errors import ProposalInvalid

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"email": {"type": "string", "format": "email"}},
    "required": ["email"],
}
ASKED = {"message": "Where to send it?", "requestedSchema": SCHEMA}
MESSAGE: dict[str, Any] = {
    "kind": "message",
    "messageId": "m-1",
    "role": "agent",
    "parts": [{"kind": "text", "text": "Which account?"}],
}
Propose = Callable[..., Proposal]


def elicitation(**members: Any) -> Proposal:
    return Proposal.for_elicitation(
        "Where to send it?", SCHEMA, "mcp:mailer", task=("run-7", "ask"), ttl=600, **members
    )


# Questions


def test_an_elicitation_is_a_card_like_any_other() -> None:
    assert elicitation(reasoning="needed", purpose="delivery").document == {
        "kind": "elicitation",
        "task": {"id": "run-7", "step": "ask"},
        "action": {
            "tool_name": "elicitation/create",
            "arguments": ASKED,
            "capability": {"server": "mcp:mailer"},
        },
        "reasoning": "needed",
        "purpose": "delivery",
        "ttl": 600,
    }


def test_an_input_required_task_is_a_card_like_any_other() -> None:
    found = Proposal.for_input_required(
        MESSAGE, "agent:books", task=("task-1", "input"), ttl=600, grant_ttl=60
    )
    assert found.document == {
        "kind": "input_required",
        "task": {"id": "task-1", "step": "input"},
        "action": {
            "tool_name": "input-required",
            "arguments": {"message": MESSAGE},
            "capability": {"agent": "agent:books"},
        },
        "reasoning": "",
        "ttl": 600,
        "grant_ttl": 60,
    }


@pytest.mark.parametrize(
    ("message", "schema", "server", "place"),
    [
        (b"bytes", SCHEMA, "s", "/action/arguments/message"),
        ("m", {1: 2}, "s", "/action/arguments/requestedSchema"),
        ("m", SCHEMA, float("nan"), "/action/capability/server"),
    ],
)
def test_a_question_that_is_no_json_is_refused(
    message: Any, schema: Any, server: Any, place: str
) -> None:
    with pytest.raises(ProposalInvalid) as caught:
        Proposal.for_elicitation(message, schema, server, task=("a", "b"), ttl=60)
    assert caught.value.pointer == place


# Answers


def test_accept_approves_and_keeps_the_answer_under_the_card_that_was_issued(
    ledger: Ledger,
) -> None:
    card = ledger.issue(elicitation())
    record = ledger.answer(
        card.hash, "accept", {"email": "a@b"}, approver="user:approver-1", target=card
    )
    assert record.card == card.record.card == record.body["echo"] == record.body["target"]
    assert record.body["decision"] == "approve"
    assert record.body["channel"] == "elicitation"
    assert record.openings["response"] == b'{"email":"a@b"}'
    assert record.body["response"]["media_type"] == "application/json"


def test_the_same_answer_again_is_the_same_record_and_another_is_refused(ledger: Ledger) -> None:
    card = ledger.issue(elicitation())
    answer = lambda text: ledger.answer(  # noqa: E731
        card.hash, "accept", {"email": text}, approver="user:approver-1"
    )
    assert answer("a@b") == answer("a@b")
    with pytest.raises(Refused, match="already_resolved"):
        answer("c@d")


def test_decline_rejects(ledger: Ledger) -> None:
    card = ledger.issue(elicitation())
    record = ledger.answer(card.hash, "decline", approver="user:approver-1", channel="chat")
    assert (record.kind, record.body["decision"]) == ("resolved", "reject")
    assert record.body["channel"] == "chat"
    assert "response" not in record.openings
    assert ledger.card(card).state == "REJECTED"


def test_cancel_withdraws_in_the_name_of_who_cancelled(ledger: Ledger) -> None:
    card = ledger.issue(elicitation())
    record = ledger.answer(card.hash, "cancel", approver="user:approver-1", target=card)
    assert record.kind == "withdrawn"
    assert dict(record.body) == {
        "of": 1,
        "echo": card.hash_bytes,
        "reason": "cancelled",
        "by": "user:approver-1",
    }


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_every_answer_needs_somebody_and_the_right_echo(ledger: Ledger, action: str) -> None:
    card = ledger.issue(elicitation())
    other = ledger.issue(elicitation(purpose="x").superseding(card))
    with pytest.raises(Refused, match="missing_approver"):
        ledger.answer(other.hash, action, approver=" ")
    with pytest.raises(Refused, match="hash_mismatch"):
        ledger.answer(card.hash, action, approver="user:approver-1", target=other)
    assert ledger.card(other).state == "OPEN"


@pytest.mark.parametrize(
    ("action", "content", "place"),
    [
        ("Accept", None, "action"),
        ("yes", None, "action"),
        ("cancel", {"email": "a@b"}, "content"),
        ("accept", {"n": float("inf")}, "/n"),
        ("accept", {1: 2}, ""),
    ],
)
def test_an_answer_of_another_shape_is_an_error_of_the_caller(
    ledger: Ledger, action: str, content: Any, place: str
) -> None:
    card = ledger.issue(elicitation())
    with pytest.raises(ProposalInvalid) as caught:
        ledger.answer(card.hash, action, content, approver="user:approver-1")
    assert caught.value.pointer == place
    assert ledger.status().count == 2


def test_an_answer_can_be_handed_over_once(ledger: Ledger) -> None:
    card = ledger.issue(elicitation())
    ledger.answer(card.hash, "accept", {"email": "a@b"}, approver="user:approver-1")
    now = Facts.for_tool_call("elicitation/create", ASKED, capability={"server": "mcp:mailer"})
    assert ledger.dispatch(card, now).arguments == ASKED
    with pytest.raises(Refused, match="already_dispatched"):
        ledger.dispatch(card, now)


# Replacing a card


def test_a_proposal_that_supersedes_keeps_the_task(ledger: Ledger, proposal: Propose) -> None:
    card = ledger.issue(proposal())
    again = proposal("another step", purpose="smaller").superseding(card)
    assert again.document["task"] == {"id": "run-7", "step": "refund"}
    assert again.document["supersedes"] == card.hash
    assert "prior_attempt" not in again.document
    ledger.issue(again)
    assert ledger.card(card).state == "SUPERSEDED"


def test_a_proposal_that_supersedes_a_dispatched_card_names_the_attempt(
    ledger: Ledger, proposal: Propose, facts: Callable[..., Facts]
) -> None:
    first = ledger.issue(proposal())
    ledger.resolve(first.hash, "approve", approver="user:approver-1")
    ledger.dispatch(first, facts())
    attempt = {"card_hash": first.hash, "outcome": "unknown"}
    second = ledger.issue(proposal().superseding(first, outcome="unknown"))
    assert second.envelope.document["prior_attempt"] == attempt
    third = ledger.issue(proposal(purpose="smaller").superseding(ledger.card(second)))
    assert third.envelope.document["prior_attempt"] == attempt
    assert third.envelope.effect_key == first.envelope.effect_key


def test_an_outcome_that_is_none_is_refused(ledger: Ledger, proposal: Propose) -> None:
    card = ledger.issue(proposal())
    with pytest.raises(ProposalInvalid, match="/prior_attempt/outcome"):
        proposal().superseding(card, outcome="done")
