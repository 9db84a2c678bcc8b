"""The histories of the cards of a Bernstein log, in the words of a cardchain log."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from verifier import History, Report, every_card, render, verify
from verifier.readers import bernstein


def report_of(log: Any, wanted: Any = every_card) -> Report:
    return verify([str(log.write().root)], [log.key_file], environ={}, wanted=wanted)


def histories(log: Any) -> list[History]:
    return [*report_of(log).logs[0].histories]


def rows(log: Any) -> list[dict[str, str]]:
    text = "".join(render(report_of(log), "csv"))
    return [*csv.DictReader(text.splitlines(keepends=True), strict=True)]


def test_a_card_from_issue_to_decision(log: Any) -> None:
    card = log.issue()
    log.refuse(card, "before_issue")
    log.resolve(card)
    (found,) = histories(log)
    assert (found.card, found.state, found.doubt) == (card, "APPROVED", "")
    assert [event.kind for event in found.events] == ["issued", "refused", "resolved"]
    assert [event.seq for event in found.events] == [0, 1, 2]
    (row,) = rows(log)
    assert (row["verdict"], row["task_id"], row["tool"]) == ("VERIFIED", "ap-1", "Edit")
    assert (row["issued_at"], row["not_after"]) == (
        "2026-09-01T09:00:00.000Z",
        "2026-09-01T09:10:00.000Z",
    )
    assert (row["decision"], row["decision_latency_seconds"]) == ("approve", "2.000")
    assert (row["refusals"], row["refusal_reasons"]) == ("1", "resolve:before_issue")


def test_the_states(log: Any) -> None:
    log.issue()
    log.resolve(log.issue(), "reject")
    for release in (False, True):
        card = log.issue()
        log.at += 700
        log.refuse(card, "expired")
        if release:
            log.release(card, reason="")
    assert [found.state for found in histories(log)] == ["OPEN", "REJECTED", "EXPIRED", "RELEASED"]


def test_only_the_cards_asked_for_are_kept(log: Any) -> None:
    cards = [log.issue() for _ in range(5)]
    found = report_of(log, lambda card: card == cards[3]).logs[0].histories
    assert [history.card for history in found] == [cards[3]]
    assert report_of(log, None).logs[0].histories == ()


def test_a_broken_log_leaves_every_state_in_doubt(log: Any) -> None:
    card = log.issue()
    other = log.issue()
    log.resolve(card)
    day = next(iter(log.days))
    log.days[day][2] = log.days[day][2].replace(b'"approve"', b'"reject" ')
    first, second = histories(log)
    assert (first.card, second.card) == (card, other)
    assert [event.kind for event in first.events] == ["issued"]
    assert len(first.findings) == 1
    assert {first.doubt, second.doubt} == {"the log is BROKEN"}


@pytest.mark.parametrize("kind", ["settled", "withdrawn", "redacted", "seen"])
def test_an_unknown_event_beside_a_fault_is_left_out(log: Any, kind: str) -> None:
    """Neighbouring faults are one finding, so it has none of its own; its body has no members."""
    card = log.issue()
    log.resolve(card)
    log.card_event(kind, card, "x", {})
    day = next(iter(log.days))
    log.days[day][1] = log.days[day][1].replace(b"user:approver-1", b"user:approver-2")
    log.days[day][2] = log.days[day][2].replace(b'"actor": "x"', b'"actor": "y"')
    (found,) = histories(log)
    assert [event.kind for event in found.events] == ["issued"]
    (row,) = rows(log)
    assert (row["verdict"], row["outcome"]) == ("BROKEN", "")


@pytest.mark.parametrize(
    "text", ["=1+1", "x\nVERIFIED\n", "\x1b[2J", "\u202e", "a;=1", "y" * 10_000_000], ids=ascii
)
def test_hostile_text_is_inert(log: Any, text: str) -> None:
    envelope = log.envelope()
    envelope["action"]["tool_name"] = envelope["approval_id"] = text
    log.resolve(log.issue(envelope), approver=text)
    log.refuse(text, text)
    for row in rows(log):
        for cell in row.values():
            assert cell.lstrip(" ")[:1] not in {*"=+-@"}
            assert cell.isprintable()
            assert ";" not in cell
            assert len(cell) < 6_000
        assert row["card_hash"] == "" or len(row["card_hash"]) == 64
    assert rows(log)[0]["tool"] != ""


def test_a_log_that_changes_between_the_readings_is_told(log: Any) -> None:
    log.issue()
    report = report_of(log, None).logs[0]
    (day,) = log.audit.glob("*.jsonl")
    log.issue()
    log.write()
    assert {found.doubt for found in bernstein.histories(report, every_card)} == {
        "the log changed while it was read"
    }
    day.unlink()
    assert [*bernstein.histories(report, every_card)] == []
