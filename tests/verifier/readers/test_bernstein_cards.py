"""What may happen to a card in a Bernstein log, and what the reader says about the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from verifier.readers import bernstein
from verifier.report import LogReport

NAN = float("nan")
PINNED = {
    "worktree_id": "wt-1",
    "thread_id": "C1",
    "issued_worktree_id": "wt-1",
    "issued_thread_id": "C1",
}


def verify(log: Any) -> LogReport:
    return bernstein.verify_log(str(log.write().root), [log.key_file], None, None)


def codes(report: LogReport) -> list[str]:
    return [finding.check.removeprefix("bernstein.") for finding in report.findings]


def check(log: Any, *expected: str) -> LogReport:
    report = verify(log)
    assert list(expected) == codes(report)
    assert ("BROKEN" if expected else "VERIFIED") == report.verdict.value
    return report


def expire(log: Any) -> str:
    card = str(log.issue())
    log.at += 700
    log.refuse(card, "expired")
    return card


# Lawful lives.


def test_approve_reject_expire_and_release(log: Any) -> None:
    log.resolve(log.issue())
    log.resolve(log.issue(), "reject")
    expire(log)
    log.release(expire(log), reason="")
    log.issue()
    counts = check(log).counts
    assert (5, 5, 2, 2, 2) == (
        counts.cards,
        counts.envelopes_ok,
        counts.decisions_ok,
        counts.decisions_total,
        counts.contained,
    )


def test_a_pinned_card_is_decided_from_its_place(log: Any) -> None:
    log.resolve(log.issue(worktree="wt-1", thread="C1"), **PINNED)
    check(log)


def test_an_unpinned_card_is_decided_from_anywhere(log: Any) -> None:
    log.resolve(log.issue(), worktree_id="wt-9", thread_id="C9")
    check(log)


def test_every_reason_of_a_refusal(log: Any) -> None:
    log.refuse("no hash at all", "hash_mismatch", expected="")
    log.refuse("x", "missing_approver", "", expected="")
    card = log.issue(worktree="wt-1", thread="C1")
    log.refuse(card, "missing_approver", "", expected="")
    log.refuse(card, "invalid_decision")
    log.refuse(card, "before_issue")
    log.refuse(card, "cross_worktree", worktree_id="wt-2", expected_worktree_id="wt-1")
    log.refuse(card, "cross_conversation", thread_id="C2", expected_thread_id="C1")
    log.refuse(card, "cross_conversation", thread_id="", expected_thread_id="C1")
    log.resolve(card, **PINNED)
    log.refuse(card, "already_settled")
    late = expire(log)
    log.refuse(late, "already_settled")
    log.refuse(late, "hash_mismatch", expected="")
    report = check(log)
    assert (12, 2) == (report.counts.contained, report.counts.asserted)


def test_a_refusal_of_an_old_release_has_fewer_members(log: Any) -> None:
    log.scheme = 1
    card = log.issue(worktree="wt-1")
    gone = {"thread_id": ..., "expected_thread_id": ..., "expected_worktree_id": ...}
    log.at += 700
    log.refuse(card, "expired", **gone)
    log.refuse(card, "expired", "", actor="operator", **gone)
    log.refuse("x", "hash_mismatch", expected="", **gone)
    check(log)


def test_a_decision_of_an_old_release(log: Any) -> None:
    log.scheme = 1
    log.resolve_old(log.issue(worktree="wt-1"), "approve", "user:approver-1", worktree_id="wt-1")
    log.resolve_old(log.issue(), "reject")
    log.resolve_old(log.issue(), "approve_all", "user:approver-1")
    report = check(log)
    assert 3 == report.counts.decisions_ok
    assert 2 == len(report.warnings)


def test_an_envelope_of_an_old_release_may_hold_whole_numbers(log: Any) -> None:
    log.scheme = 1
    envelope = log.envelope()
    envelope["created_at"], envelope["not_after"] = int(log.at), int(log.at) + 600
    log.resolve_old(log.issue(envelope), "approve", "user:approver-1")
    check(log)


def test_more_members_in_details_are_allowed(log: Any) -> None:
    card = log.issue(note="x")
    log.resolve(card, more={"a": [1, None]})
    check(log)


def test_resolved_at_may_be_a_whole_number(log: Any) -> None:
    log.resolve(log.issue(), resolved_at=int(log.at) + 1)
    check(log)


@pytest.mark.parametrize("wait", [0.0, 0.25, 60.0, 299.0])
def test_a_writer_may_wait_between_decision_and_record(log: Any, wait: float) -> None:
    card = log.issue()
    log.at += wait
    log.resolve(card, resolved_at=log.at - wait)
    check(log)


def test_the_last_moment_is_in_time(log: Any) -> None:
    card = log.issue()
    not_after = log.at - 1 + 600
    log.at = not_after + 0.5
    log.resolve(card, resolved_at=not_after - 0.001)
    check(log)


def test_an_unknown_reason_is_a_warning(log: Any) -> None:
    log.refuse(log.issue(), "too_late_for_today")
    report = check(log)
    assert (1, 1) == (report.counts.asserted, len(report.warnings))


def test_events_about_other_things_are_not_judged(log: Any) -> None:
    log.append("chat.approval.requested", {"card_hash": 1, "envelope": []})
    log.append("task.resolved", {"decision": None})
    check(log)


def test_an_unknown_event_about_a_card_cannot_be_verified(log: Any) -> None:
    log.card_event("withdrawn", log.issue(), "x", {})
    report = verify(log)
    assert ("CANNOT VERIFY", ["version"]) == (report.verdict.value, codes(report))


def test_a_newer_card_cannot_be_verified(log: Any) -> None:
    log.resolve(log.issue(log.envelope() | {"card_version": "v3", "more": 1}))
    report = verify(log)
    assert ("CANNOT VERIFY", ["version"]) == (report.verdict.value, codes(report))


# Decisions that the log contradicts.


def test_decision_without_a_card(log: Any) -> None:
    log.resolve("d" * 64)
    check(log, "not_issued")


def test_decision_before_its_card(log: Any) -> None:
    envelope = log.envelope()
    card = log.issue(envelope)
    line = log.days["2026-09-01.jsonl"].pop()
    log.prev = "0" * 64
    log.resolve(card)
    log.issue(envelope)
    assert line
    check(log, "not_issued")


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_second_decision(log: Any, decision: str) -> None:
    card = log.issue()
    log.resolve(card)
    log.resolve(card, decision)
    check(log, "decided_once")


def test_decision_after_the_refusal_that_ended_the_card(log: Any) -> None:
    card = expire(log)
    log.resolve(card, resolved_at=log.at - 690)
    check(log, "decided_once")


def test_decision_after_release(log: Any) -> None:
    card = expire(log)
    log.release(card)
    log.resolve(card, resolved_at=log.at - 690)
    check(log, "decided_once")


@pytest.mark.parametrize("late", [0.0, 0.5, 10_000.0])
def test_resolved_at_not_after_or_later(log: Any, late: float) -> None:
    card = log.issue()
    log.at += 599 + late
    log.resolve(card, resolved_at=log.at)
    check(log, "in_time")


@pytest.mark.parametrize("late", [6.0, 60.0, 172_800.0])
def test_backdated_resolved_at_of_a_late_record(log: Any, late: float) -> None:
    card = log.issue()
    at = log.at
    log.at += 599 + late
    log.resolve(card, resolved_at=at)
    check(log, "in_time")


def test_backdated_record_after_the_log_had_passed_not_after(log: Any) -> None:
    card = log.issue()
    at = log.at
    log.at += 5_000
    log.append()
    log.at = at
    log.resolve(card)
    check(log, "in_time")


def test_resolved_at_before_created_at(log: Any) -> None:
    log.resolve(log.issue(), resolved_at=log.at - 10)
    check(log, "in_time")


@pytest.mark.parametrize("away", [-301.0, 10.0])
def test_resolved_at_far_from_the_time_of_the_record(log: Any, away: float) -> None:
    card = log.issue()
    log.at += 400
    log.resolve(card, resolved_at=log.at + away)
    check(log, "clock")


@pytest.mark.parametrize(
    "value", [NAN, float("inf"), 0.0, -1.0, 0, True, None, "1788253203.0", [], ...]
)
def test_resolved_at_that_is_no_time(log: Any, value: Any) -> None:
    log.resolve(log.issue(), resolved_at=value)
    check(log, "in_time")


@pytest.mark.parametrize("decision", ["", "Approve", "approve ", "approved", "yes"])
def test_decision_that_is_neither(log: Any, decision: str) -> None:
    log.resolve(log.issue(), decision)
    check(log, "decision")


@pytest.mark.parametrize("scheme", [1, 2])
def test_strange_decision_of_a_new_release(log: Any, scheme: int) -> None:
    log.scheme = scheme
    log.resolve(log.issue(), "approve_all")
    check(log, "decision")


@pytest.mark.parametrize("approver", ["", " ", "\t\n", "\u200b", "\u2028"])
@pytest.mark.parametrize("actor", [None, "operator", "unattributed"])
def test_decision_by_nobody(log: Any, approver: str, actor: str | None) -> None:
    log.resolve(log.issue(), "approve", approver, actor=actor)
    check(log, "approver")


def test_actor_is_another(log: Any) -> None:
    log.resolve(log.issue(), actor="user:approver-2")
    log.refuse(log.issue(), "invalid_decision", actor="user:approver-2")
    log.release(expire(log), released_by="user:approver-2")
    check(log, "approver", "approver", "approver")


@pytest.mark.parametrize(
    "changes",
    [
        {"worktree_id": "wt-2"},
        {"worktree_id": ""},
        {"thread_id": "C2"},
        {"thread_id": ""},
        {"issued_worktree_id": "wt-2"},
        {"issued_thread_id": "C2"},
        {"worktree_id": "wt-2", "issued_worktree_id": "wt-2"},
        {"thread_id": "C2", "issued_thread_id": "C2"},
    ],
)
def test_decision_from_elsewhere(log: Any, changes: dict[str, Any]) -> None:
    log.resolve(log.issue(worktree="wt-1", thread="C1"), **(PINNED | changes))
    check(log, "pin")


def test_decision_that_invents_a_pin(log: Any) -> None:
    log.resolve(log.issue(), issued_thread_id="C1", thread_id="C1")
    check(log, "pin")


def test_old_decision_from_elsewhere(log: Any) -> None:
    log.scheme = 1
    log.resolve_old(log.issue(worktree="wt-1"), "approve", "user:approver-1", worktree_id="wt-2")
    check(log, "pin")


@pytest.mark.parametrize(
    "name",
    [
        "decision",
        "approver",
        "worktree_id",
        "thread_id",
        "issued_worktree_id",
        "issued_thread_id",
        "card_hash",
        "prev_chain_digest",
    ],
)
@pytest.mark.parametrize("value", [..., None, 1, {}])
def test_decision_without_a_member(log: Any, name: str, value: Any) -> None:
    log.resolve(log.issue(), actor="user:approver-1", **{name: value})
    check(log, "card_event")


def test_scheme_2_knows_no_old_decision(log: Any) -> None:
    log.resolve_old(log.issue(), "approve", "user:approver-1")
    check(log, "card_event")


def test_resource_is_another(log: Any) -> None:
    log.resolve(log.issue(), changes={"id_": "e" * 64})
    log.resolve(log.issue(), changes={"type_": "task"})
    check(log, "card_event", "card_event")


# Issued events.


def test_card_issued_twice(log: Any) -> None:
    envelope = log.envelope()
    card = log.issue(envelope, worktree="wt-1")
    log.issue(envelope, worktree="wt-2")
    log.resolve(card, worktree_id="wt-2", issued_worktree_id="wt-2")
    report = check(log, "issued_once")
    assert 1 == report.findings[0].seq


def test_ended_card_issued_again(log: Any) -> None:
    envelope = log.envelope()
    log.resolve(log.issue(envelope))
    log.resolve(log.issue(envelope))
    check(log, "issued_once")


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(envelope: dict[str, Any]) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            envelope = envelope[parent]
        if value is ...:
            del envelope[name]
        else:
            envelope[name] = value

    return apply


LEAVES = [
    "approval_id",
    "action.tool_name",
    "action.args_digest",
    "reasoning",
    "impact.rationale",
    "impact.score",
    "impact.hard_one_way",
    "impact.fired_detectors",
    "rollback.procedure",
    "rollback.irreversible",
    "created_at",
    "not_after",
    "card_version",
]


@pytest.mark.parametrize("path", [*LEAVES, "action", "impact", "rollback"])
def test_member_changed_or_removed_before_the_record_was_sealed(
    new_log: Callable[[], Any], path: str
) -> None:
    for value in (..., "other", 5, 0.75, True, [], ["x"], {}, None):
        log = new_log()
        envelope = log.envelope()
        card = log.issue(envelope)
        before = json.dumps(envelope)
        change(path, value)(envelope)
        if json.dumps(envelope) == before:
            continue
        log.days, log.prev = {}, "0" * 64
        log.issue(envelope, card=card)
        log.resolve(card)
        report = verify(log)
        assert ["card_hash"] == codes(report), value
        assert 0 == report.counts.envelopes_ok


@pytest.mark.parametrize(
    ("path", "value", "normalised"),
    [
        ("extra", 1, True),
        ("action.extra", 1, True),
        ("impact.hard_one_way", 0, True),
        ("rollback.irreversible", ..., True),
        ("card_version", ..., True),
        ("impact.score", "0.25", True),
        ("reasoning", "other", False),
    ],
)
def test_change_that_the_writers_own_check_normalises_away_is_named(
    log: Any, path: str, value: Any, normalised: bool
) -> None:
    envelope = log.envelope()
    card = log.issue(envelope)
    change(path, value)(envelope)
    log.days, log.prev = {}, "0" * 64
    log.issue(envelope, card=card)
    report = check(log, "card_hash")
    assert normalised == ("overlooks" in report.findings[0].cause)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("extra", 1),
        ("action.extra", 1),
        ("impact.extra", 1),
        ("rollback.extra", 1),
        ("approval_id", ...),
        ("action.tool_name", ...),
        ("impact.score", ...),
        ("rollback.procedure", ...),
        ("approval_id", 1),
        ("action", "x"),
        ("action.tool_name", None),
        ("action.args_digest", "A" * 64),
        ("action.args_digest", "a" * 63),
        ("reasoning", "x" * 601),
        ("impact.score", 1.01),
        ("impact.score", -0.01),
        ("impact.score", True),
        ("impact.score", 1),
        ("impact.rationale", []),
        ("impact.fired_detectors", ["x", 1]),
        ("impact.fired_detectors", "x"),
        ("impact.hard_one_way", 0),
        ("impact.hard_one_way", True),
        ("rollback.irreversible", True),
        ("rollback.irreversible", "no"),
        ("created_at", 1),
        ("created_at", "x"),
        ("not_after", 1.0),
        ("not_after", None),
        ("card_version", ...),
        ("card_version", "2"),
        ("card_version", 2),
    ],
)
def test_envelope_outside_the_schema_under_its_own_hash(log: Any, path: str, value: Any) -> None:
    envelope = log.envelope()
    change(path, value)(envelope)
    log.resolve(log.issue(envelope))
    check(log, "envelope")


@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_number_that_is_not_finite_in_an_envelope(log: Any, value: float) -> None:
    log.issue(log.envelope() | {"not_after": value}, card="a" * 64)
    check(log, "card_hash")


def test_lone_surrogate_in_an_envelope(log: Any) -> None:
    log.issue(log.envelope() | {"reasoning": "\ud800"}, card="a" * 64)
    check(log, "card_hash")


@pytest.mark.parametrize("reasoning", ["x" * 600, "\U0001f600" * 600, ""])
def test_reasoning_of_every_lawful_length(log: Any, reasoning: str) -> None:
    log.issue(log.envelope() | {"reasoning": reasoning})
    check(log)


def test_an_irreversible_card_is_lawful(log: Any) -> None:
    envelope = log.envelope()
    envelope["impact"] |= {"hard_one_way": True, "score": 1.0, "fired_detectors": ["shell_rm_rf"]}
    envelope["rollback"]["irreversible"] = True
    log.resolve(log.issue(envelope))
    check(log)


def test_floats_keep_their_spelling(log: Any) -> None:
    envelope = log.envelope()
    envelope["impact"]["score"] = 1e-07
    envelope["created_at"] = log.at + 0.1234567
    log.issue(envelope)
    check(log)


@pytest.mark.parametrize("card", ["", "A" * 64, "a" * 63, "x" * 64])
def test_card_hash_that_is_no_hash(log: Any, card: str) -> None:
    log.issue(card=card)
    check(log, "card_event")


@pytest.mark.parametrize("envelope", [None, [], "x", ...])
def test_issued_event_without_an_envelope(log: Any, envelope: Any) -> None:
    log.card_event(
        "issued", "a" * 64, "x", {"envelope": envelope, "worktree_id": "", "thread_id": ""}
    )
    check(log, "card_event")


def test_a_card_from_the_future_is_a_warning(log: Any) -> None:
    envelope = log.envelope()
    envelope["created_at"] += 100
    log.issue(envelope)
    assert 1 == len(check(log).warnings)


# Refusals and releases.


@pytest.mark.parametrize(
    "reason",
    [
        "expired",
        "already_settled",
        "invalid_decision",
        "before_issue",
        "cross_worktree",
        "cross_conversation",
    ],
)
def test_refusal_about_a_card_that_was_not_issued(log: Any, reason: str) -> None:
    log.refuse("d" * 64, reason)
    check(log, "refusal")


@pytest.mark.parametrize(
    "reason", ["expired", "invalid_decision", "before_issue", "cross_worktree"]
)
def test_refusal_of_an_open_card_after_its_end(log: Any, reason: str) -> None:
    card = log.issue()
    log.resolve(card)
    log.at += 700
    log.refuse(card, reason, worktree_id="wt-2")
    check(log, "refusal")


def test_refused_as_expired_before_not_after(log: Any) -> None:
    """Such a refusal would end a card that can still be approved."""
    card = log.issue()
    log.at += 500
    log.refuse(card, "expired")
    check(log, "refusal")


def test_refused_as_settled_while_open(log: Any) -> None:
    log.refuse(log.issue(), "already_settled")
    check(log, "refusal")


def test_refused_as_unknown_while_open(log: Any) -> None:
    log.refuse(log.issue(), "hash_mismatch", expected="")
    check(log, "refusal")


def test_an_old_release_knew_only_its_own_cards(log: Any) -> None:
    log.scheme = 1
    log.refuse(log.issue(), "hash_mismatch", expected="")
    check(log)


def test_refused_as_unknown_because_another_card_was_asked_about(log: Any) -> None:
    card = log.issue()
    log.refuse(log.issue(), "hash_mismatch", expected=card)
    check(log)


def test_refused_for_no_approver_though_one_is_named(log: Any) -> None:
    log.refuse("x", "missing_approver", expected="")
    check(log, "refusal")


@pytest.mark.parametrize(
    ("reason", "details"),
    [
        ("cross_worktree", {"worktree_id": "wt-1", "expected_worktree_id": "wt-1"}),
        ("cross_worktree", {"worktree_id": "wt-2", "expected_worktree_id": "wt-3"}),
        ("cross_conversation", {"thread_id": "C1", "expected_thread_id": "C1"}),
        ("cross_conversation", {"thread_id": "C2", "expected_thread_id": "C3"}),
    ],
)
def test_refused_as_from_elsewhere_though_it_was_not(
    log: Any, reason: str, details: dict[str, Any]
) -> None:
    log.refuse(log.issue(worktree="wt-1", thread="C1"), reason, **details)
    check(log, "refusal")


@pytest.mark.parametrize("reason", ["cross_worktree", "cross_conversation"])
def test_refused_as_from_elsewhere_though_the_card_is_bound_to_none(log: Any, reason: str) -> None:
    log.refuse(log.issue(), reason, worktree_id="wt-2", thread_id="C2")
    check(log, "refusal")


def test_refusal_that_expected_another_card(log: Any) -> None:
    log.refuse(log.issue(), "invalid_decision", expected="e" * 64)
    check(log, "refusal")


@pytest.mark.parametrize("name", ["reason", "approver", "card_hash"])
@pytest.mark.parametrize("value", [..., None, 7])
def test_refusal_without_a_member(log: Any, name: str, value: Any) -> None:
    details = {"reason": "invalid_decision", name: value}
    log.refuse(log.issue(), details.pop("reason"), actor="user:approver-1", **details)
    check(log, "card_event")


def test_release_of_a_card_that_was_not_refused(log: Any) -> None:
    log.release("d" * 64)
    log.release(log.issue())
    resolved = log.issue()
    log.resolve(resolved)
    log.release(resolved)
    check(log, "released", "released", "released")


def test_release_twice(log: Any) -> None:
    card = expire(log)
    log.release(card)
    log.release(card)
    check(log, "released")


@pytest.mark.parametrize("value", [NAN, 0.0, None, "x", ..., 5.0])
def test_release_at_no_time(log: Any, value: Any) -> None:
    log.release(expire(log), released_at=value)
    check(log, "clock")


# One edit, one finding.


def test_a_card_with_a_finding_has_no_others(log: Any) -> None:
    card = log.issue()
    log.resolve(card, "maybe")
    log.resolve(card, "approve", "")
    log.refuse(card, "expired")
    check(log, "decision")


def test_a_removed_card_is_not_missed_again_by_its_decision(log: Any) -> None:
    log.append()
    card = log.issue()
    log.append()
    log.resolve(card)
    log.refuse(card, "already_settled")
    del log.days["2026-09-01.jsonl"][1]
    check(log, "link")


def test_a_removed_decision_is_not_missed_again_by_a_refusal(log: Any) -> None:
    card = log.issue()
    log.resolve(card)
    log.refuse(card, "already_settled")
    later = log.issue()
    log.resolve(later)
    log.resolve(later)
    del log.days["2026-09-01.jsonl"][1]
    check(log, "link", "decided_once")


def test_findings_are_listed_up_to_a_limit(log: Any) -> None:
    for number in range(1_200):
        log.resolve(f"{number:064x}")
    report = verify(log)
    assert (1_200, 1_000) == (report.findings_total, len(report.findings))
    assert "BROKEN" == report.verdict.value
    assert any("1000" in warning for warning in report.warnings)
