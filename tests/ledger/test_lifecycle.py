"""What stands in the records of a card's life, member by member (spec §3.5, §6.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from ledger import Evidence, Facts, IssuedCard, Ledger, Opening, Proposal, Refused

Propose = Callable[..., Proposal]
Gather = Callable[..., Facts]
UNKNOWN = bytes(range(32))
WHO = {"id": "user:approver-1", "assurance": "label"}


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def refusal(act: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as caught:
        act()
    return caught.value


@pytest.fixture
def card(ledger: Ledger, proposal: Propose) -> IssuedCard:
    return ledger.issue(proposal(grant_ttl=900))


@pytest.fixture
def approve(ledger: Ledger) -> Callable[..., Any]:
    return lambda card: ledger.resolve(card.hash, "approve", approver="user:approver-1")


def test_issued_repeats_the_envelope_and_names_what_was_presented(
    ledger: Ledger, proposal: Propose, clock: Callable[[], int]
) -> None:
    presented = Opening(b"<b>a page</b>", "text/html", "page/3", truncated=True)
    runtime = {"name": "loop", "run": "7", "call": "c-1"}
    card = ledger.issue(proposal(grant_ttl=900), presented=presented, runtime=runtime)
    assert card.record.kind == "issued"
    assert card.record.card == card.hash_bytes == sha(card.envelope.bytes)
    assert card.record.body == {
        "task": sha(b'{"id":"run-7","step":"refund"}'),
        "not_after": clock() // 1000 + 1800,
        "grant_ttl": 900,
        "presented": {
            "digest": sha(b"<b>a page</b>"),
            "media_type": "text/html",
            "renderer": "page/3",
            "truncated": True,
        },
        "runtime": runtime,
    }
    assert card.record.openings == {
        "envelope": card.envelope.bytes,
        "presented": b"<b>a page</b>",
    }


def test_a_card_that_supersedes_names_the_latest_and_the_last_attempt(
    ledger: Ledger, card: IssuedCard, proposal: Propose, approve: Any, facts: Gather
) -> None:
    approve(card)
    ledger.dispatch(card, facts())
    again = ledger.issue(
        proposal(
            supersedes=card.hash,
            prior_attempt={"card_hash": card.hash, "outcome": "unknown"},
        )
    )
    assert again.record.body["supersedes"] == card.hash_bytes
    assert again.envelope.effect_key == card.envelope.effect_key
    assert again.hash != card.hash


def test_resolved_keeps_all_that_was_said(ledger: Ledger, card: IssuedCard) -> None:
    record = ledger.resolve(
        card.hash,
        "reject",
        approver="user:approver-1",
        target=card,
        channel="chat",
        assurance="authenticated",
        evidence=Evidence("oidc", bytes(32)),
        note="too much",
        presented=Opening(b"shown"),
        response=Opening(b"no", "text/plain"),
    )
    note = "text/plain; charset=utf-8"
    assert record.body == {
        "of": 1,
        "echo": card.hash_bytes,
        "target": card.hash_bytes,
        "decision": "reject",
        "approver": {
            "id": "user:approver-1",
            "assurance": "authenticated",
            "evidence": {"type": "oidc", "digest": bytes(32)},
        },
        "channel": "chat",
        "note": {"digest": sha(b"too much"), "media_type": note},
        "presented": {"digest": sha(b"shown")},
        "response": {"digest": sha(b"no"), "media_type": "text/plain"},
    }
    assert record.openings == {
        "envelope": card.envelope.bytes,
        "note": b"too much",
        "presented": b"shown",
        "response": b"no",
    }


def test_every_record_about_a_card_carries_its_envelope(
    ledger: Ledger, card: IssuedCard, approve: Any, facts: Gather
) -> None:
    approve(card)
    refusal(lambda: ledger.dispatch(card, facts("1.00")))
    ledger.settle(ledger.dispatch(card, facts()), "unknown", receipt_digest=bytes(32), by="job:1")
    ledger.settle(card, "failed")
    records = ledger.events(card)
    assert [record.kind for record in records] == [
        "issued",
        "resolved",
        "refused",
        "dispatched",
        "settled",
        "settled",
    ]
    assert {record.openings["envelope"] for record in records} == {card.envelope.bytes}
    assert [record.body.get("of") for record in records] == [None, 1, 2, 2, 4, 5]


def test_a_ticket_holds_the_approved_bytes_whatever_became_of_the_caller_s_copy(
    ledger: Ledger, proposal: Propose, approve: Any
) -> None:
    arguments: dict[str, Any] = {"n": 1e1, "list": [1]}
    card = ledger.issue(proposal(arguments=arguments))
    approve(card)
    ticket = ledger.dispatch(card, Facts.for_tool_call("refund.create", {"list": [1], "n": 10}))
    arguments["list"].append(2)
    ticket.arguments["list"].append(3)
    assert ticket.arguments_json == b'{"list":[1],"n":10}'
    assert ticket.arguments == {"list": [1], "n": 10}
    assert ticket.effect_key == card.envelope.effect_key
    assert ticket.record.body == {"of": 2, "rebuilt": card.hash_bytes}


def test_withdrawn_names_who_and_why(ledger: Ledger, card: IssuedCard) -> None:
    record = ledger.withdraw(card.hash, by="user:owner-1", reason="cancelled", note="no need")
    assert record.kind == "withdrawn"
    assert {**record.body, "note": None} == {
        "of": 1,
        "echo": card.hash_bytes,
        "reason": "cancelled",
        "by": "user:owner-1",
        "note": None,
    }
    assert record.openings["note"] == b"no need"


def test_a_refusal_at_issue_keeps_the_envelope_that_would_have_been_issued(
    ledger: Ledger, card: IssuedCard, proposal: Propose
) -> None:
    record = refusal(lambda: ledger.issue(proposal(arguments={"order": "SO-2"}))).record
    assert record.card == sha(record.openings["envelope"]) != card.hash_bytes
    assert b'"SO-2"' in record.openings["envelope"]
    assert record.body == {
        "gate": "issue",
        "reason": "open_exists",
        "count": 1,
        "task": card.envelope.task_digest,
    }


def test_a_hash_seen_only_in_a_refused_issue_is_not_issued(
    ledger: Ledger, card: IssuedCard, proposal: Propose
) -> None:
    refused = refusal(lambda: ledger.issue(proposal(arguments={"order": "SO-2"}))).record
    again = refusal(lambda: ledger.resolve(refused.card, "approve", approver="user:approver-1"))
    assert again.reason == "hash_mismatch"
    assert again.record.card is None


def test_a_card_that_is_over_is_not_issued_again_in_its_second(
    ledger: Ledger, card: IssuedCard, proposal: Propose
) -> None:
    """The same proposal gives the same envelope then, so the refusal names the old card."""
    ledger.resolve(card.hash, "reject", approver="user:approver-1")
    caught = refusal(lambda: ledger.issue(proposal(grant_ttl=900)))
    assert caught.reason == "supersedes_wrong"
    assert caught.record.card == card.hash_bytes
    assert "of" not in caught.record.body


def test_a_refused_decision_keeps_who_tried_what_about_which_card(
    ledger: Ledger, card: IssuedCard
) -> None:
    caught = refusal(
        lambda: ledger.resolve(UNKNOWN, "approve", approver="user:approver-1", target=card)
    )
    assert caught.record.card == card.hash_bytes
    assert caught.record.body == {
        "gate": "resolve",
        "reason": "hash_mismatch",
        "count": 1,
        "of": 1,
        "echo": UNKNOWN,
        "target": card.hash_bytes,
        "decision": "approve",
        "approver": WHO,
        "channel": "api",
    }
    assert ledger.card(card).state == "OPEN"


@pytest.mark.parametrize("who", [None, "", "  ", "\u200b", "\u2060"])
def test_a_decision_of_nobody_is_refused_and_names_nobody(
    ledger: Ledger, card: IssuedCard, who: str | None
) -> None:
    caught = refusal(lambda: ledger.resolve(card.hash, "approve", approver=who))
    assert caught.reason == "missing_approver"
    assert "approver" not in caught.record.body


def test_a_refused_withdrawal_has_an_approver_too(ledger: Ledger) -> None:
    caught = refusal(
        lambda: ledger.withdraw(UNKNOWN, by="user:approver-1", reason="revoked", channel="chat")
    )
    assert caught.record.card is None
    assert caught.record.openings == {}
    assert caught.record.body == {
        "gate": "withdraw",
        "reason": "hash_mismatch",
        "count": 1,
        "echo": UNKNOWN,
        "approver": WHO,
        "channel": "chat",
    }


def test_a_mismatch_keeps_the_rebuilt_envelope_and_says_where_it_differs(
    ledger: Ledger, card: IssuedCard, approve: Any, facts: Gather
) -> None:
    approve(card)
    caught = refusal(lambda: ledger.dispatch(card, facts("999.00")))
    record = caught.record
    assert caught.pointers == (
        "/action/args_digest",
        "/action/arguments/amount",
        "/effect_key",
    )
    assert record.openings["envelope"] == card.envelope.bytes
    assert b'"999.00"' in record.openings["rebuilt"]
    assert record.body == {
        "gate": "dispatch",
        "reason": "mismatch",
        "count": 1,
        "of": 2,
        "rebuilt": sha(record.openings["rebuilt"]),
    }


def test_a_refusal_never_burns_a_grant(
    ledger: Ledger, card: IssuedCard, approve: Any, facts: Gather
) -> None:
    approve(card)
    refusal(lambda: ledger.dispatch(card, facts("999.00")))
    assert ledger.dispatch(card, facts()).record.kind == "dispatched"
    assert refusal(lambda: ledger.dispatch(card, facts())).reason == "already_dispatched"


@pytest.mark.parametrize(
    ("gate", "act"),
    [
        ("dispatch", lambda ledger, facts: ledger.dispatch(UNKNOWN, facts)),
        ("settle", lambda ledger, facts: ledger.settle(UNKNOWN, "failed")),
    ],
)
def test_an_unknown_card_is_refused_by_its_target(
    ledger: Ledger, facts: Gather, gate: str, act: Callable[..., object]
) -> None:
    record = refusal(lambda: act(ledger, facts())).record
    assert (record.card, dict(record.openings)) == (None, {})
    assert record.body == {"gate": gate, "reason": "unknown_card", "count": 1, "target": UNKNOWN}


def test_a_flood_is_recorded_to_eight_and_then_at_powers_of_two(ledger: Ledger) -> None:
    caught = [refusal(lambda: ledger.settle(UNKNOWN, "failed")) for _ in range(70)]
    assert [refused.count for refused in caught] == list(range(1, 71))
    expected = [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]
    assert [refused.count for refused in caught if refused.recorded] == expected
    assert [refused.record.body["count"] for refused in caught if refused.recorded] == expected
    assert ledger.status().count == 1 + len(expected)


def test_floods_are_counted_apart_by_gate_reason_and_subject(
    ledger: Ledger, card: IssuedCard, proposal: Propose
) -> None:
    other = ledger.issue(proposal("other"))
    counts = [
        refusal(lambda: ledger.settle(UNKNOWN, "failed")).count,
        refusal(lambda: ledger.dispatch(UNKNOWN, Facts.for_tool_call("t", {}))).count,
        refusal(lambda: ledger.settle(card, "failed")).count,
        refusal(lambda: ledger.settle(other, "failed")).count,
        refusal(lambda: ledger.resolve(card.hash, "approve", approver=None)).count,
        refusal(lambda: ledger.settle(card, "failed")).count,
    ]
    assert counts == [1, 1, 1, 1, 1, 2]


def test_the_same_decision_again_gives_the_first_record(
    ledger: Ledger, card: IssuedCard, facts: Gather
) -> None:
    def decide(**changes: Any) -> Any:
        said = {"approver": "user:approver-1", "response": Opening(b"yes"), **changes}
        return ledger.resolve(card.hash, said.pop("decision", "approve"), **said)

    first = decide()
    assert decide(note="again", channel="chat") == first
    for change in (
        {"decision": "reject"},
        {"approver": "user:approver-2"},
        {"response": None},
        {"response": Opening(b"no")},
    ):
        assert refusal(lambda change=change: decide(**change)).reason == "already_resolved"
    ledger.dispatch(card, facts())
    assert decide() == first


def test_the_same_decision_does_not_revive_a_grant_that_is_over(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    def approved(step: str) -> Callable[[], object]:
        card = ledger.issue(proposal(step, grant_ttl=900))
        decide = lambda: ledger.resolve(card.hash, "approve", approver="user:approver-1")  # noqa: E731
        decide()
        if step == "withdrawn":
            ledger.withdraw(card.hash, by="user:approver-1", reason="revoked")
        if step == "superseded":
            ledger.issue(proposal(step, supersedes=card.hash))
        return decide

    for step in ("withdrawn", "superseded", "lapsed"):
        decide = approved(step)
        clock.forward(900)
        assert refusal(decide).reason == "already_resolved"


def test_a_resumed_node_gets_the_card_that_stands(
    ledger: Ledger, card: IssuedCard, proposal: Propose, clock: Any, approve: Any
) -> None:
    clock.forward(60)
    same = ledger.issue(proposal(grant_ttl=900, reasoning="in other words"))
    assert same.record == card.record
    assert same.envelope == card.envelope
    approve(card)
    assert ledger.issue(proposal(grant_ttl=900)).record == card.record
    assert ledger.status().count == 3


@pytest.mark.parametrize("moment", [-0.001, 0, 0.001])
def test_windows_are_half_open(
    ledger: Ledger, proposal: Propose, clock: Any, moment: float
) -> None:
    card = ledger.issue(proposal())
    clock.forward(1800 + moment)
    late = moment >= 0
    act = lambda: ledger.resolve(card.hash, "approve", approver="user:approver-1")  # noqa: E731
    if late:
        assert refusal(act).reason == "expired"
    else:
        assert act().kind == "resolved"


@pytest.mark.parametrize("moment", [-0.001, 0])
def test_grants_are_half_open_too(
    ledger: Ledger, card: IssuedCard, approve: Any, facts: Gather, clock: Any, moment: float
) -> None:
    approve(card)
    clock.forward(900 + moment)
    if moment >= 0:
        assert refusal(lambda: ledger.dispatch(card, facts())).reason == "grant_expired"
        assert ledger.card(card).state == "LAPSED"
    else:
        assert ledger.dispatch(card, facts()).record.kind == "dispatched"


def test_a_clock_reset_ends_every_open_card_and_every_unspent_grant(
    ledger: Ledger, proposal: Propose, facts: Gather, clock: Any, approve: Any
) -> None:
    waiting, granted, spent = (ledger.issue(proposal(step)) for step in ("a", "b", "c"))
    approve(granted)
    approve(spent)
    ticket = ledger.dispatch(spent, facts())
    clock.forward(-3600)
    record = ledger.clock_reset(by="user:operator-1", reason="clock_fixed")
    assert record.body == {
        "was": ticket.record.at,
        "by": "user:operator-1",
        "reason": "clock_fixed",
    }
    assert [ledger.card(card).state for card in (waiting, granted, spent)] == [
        "EXPIRED",
        "LAPSED",
        "DISPATCHED",
    ]
    assert refusal(lambda: ledger.dispatch(granted, facts())).reason == "grant_expired"
    assert ledger.settle(ticket, "succeeded").kind == "settled"
