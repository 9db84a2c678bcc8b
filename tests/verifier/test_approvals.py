"""Three properties of each approval, kept apart (spec §8), and what is only asserted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifier import Report, render_json, render_text, verify

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
KEY = str(CASES.parent / "keys" / "a.json")


def judged(name: str, **options: Any) -> Report:
    return verify([str(CASES / name / "log.cbor")], [KEY], environ={}, **options)


def lines(name: str, **options: Any) -> list[tuple[str, str, str]]:
    """Outcome and reason of the three properties of each approval of a fixture."""
    return [
        tuple(
            f"{found.outcome.value}: {found.detail}"
            for found in (approval.execution, approval.provenance, approval.presentation)
        )
        for approval in judged(name, **options).logs[0].approvals
    ]


RAN = "PASS: what was rebuilt at dispatch is what was approved"
NOT_RUN = "NOT CHECKED: not dispatched"
NO_BASIS = "NOT CHECKED: no approval basis"
NO_MANIFEST = "NOT CHECKED: no review manifest"
NO_KEY = "NOT CHECKED: a key is missing"


def test_cards_without_policy_evidence_say_so() -> None:
    assert lines("intact_life") == [
        (RAN, NO_BASIS, NO_MANIFEST),
        (NOT_RUN, NO_BASIS, NO_MANIFEST),
    ]


@pytest.mark.parametrize(
    ("name", "card", "expected"),
    [
        (
            "intact_chain_and_card_profile",
            0,
            (
                RAN,
                "PASS: evidence class fired_rules, claimed and derived",
                "PASS: 1 fields say what the envelope says",
            ),
        ),
        (
            "intact_drift_under_the_exception",
            0,
            (
                "PASS: what was rebuilt differs as the exception basis_drift allows",
                "PASS: evidence class fired_rules, claimed and derived",
                NO_MANIFEST,
            ),
        ),
        (
            "intact_drift_of_which_the_envelope_is_redacted",
            0,
            (
                "NOT CHECKED: an exception, and an envelope is absent",
                "PASS: evidence class fired_rules, claimed and derived",
                NO_MANIFEST,
            ),
        ),
        (
            "intact_manifests",
            0,
            (
                NOT_RUN,
                NO_BASIS,
                "PASS: 5 fields say what the envelope says, and its view is the text presented",
            ),
        ),
        (
            "intact_manifests",
            1,
            (
                NOT_RUN,
                NO_BASIS,
                "PASS: 1 fields say what the envelope says, "
                "and its view is of no text that the log binds",
            ),
        ),
        ("drift_of_the_arguments", 0, ("FAIL: rebuilt", *(2 * [None]))),
        ("claim_of_fired_rules_without_rules", 0, (None, "FAIL: claim", None)),
        ("assurance_too_weak_for_the_card_profile", 0, (None, "FAIL: assurance", None)),
        ("dispatch_twice", 2, ("FAIL: dispatched_once", NO_BASIS, NO_MANIFEST)),
        ("key_missing", 0, (NO_KEY, NO_KEY, NO_KEY)),
    ],
)
def test_each_property_ends_on_its_own(
    name: str, card: int, expected: tuple[str | None, ...]
) -> None:
    keys = [] if name == "key_missing" else [KEY]
    log = verify([str(CASES / name / "log.cbor")], keys, environ={}).logs[0]
    approval = list(log.approvals)[card]
    found = (approval.execution, approval.provenance, approval.presentation)
    shown = [f"{each.outcome.value}: {each.detail}" for each in found]
    kept = [text if want is not None else None for want, text in zip(expected, shown, strict=True)]
    assert kept == list(expected)


def test_a_missing_profile_leaves_the_provenance_open() -> None:
    (first, _) = lines("profile_not_at_hand")
    assert first[1].startswith("NOT CHECKED: the profile ")
    assert first[1].endswith(" is not at hand")


def test_below_the_floor_of_the_auditor_the_provenance_is_open() -> None:
    name = "approval_below_the_floor_of_the_auditor"
    found = [line[1] for line in lines(name, floor="selection")]
    assert found == [
        NO_BASIS,
        "NOT CHECKED: the floor of the auditor is above fired_rules",
        "PASS: evidence class selection, claimed and derived",
    ]
    assert judged(name).verdict.value == "VERIFIED"


def test_a_floor_never_judges_a_recorded_reason_again() -> None:
    assert (
        judged("intact_refusals_for_policy_at_issue", floor="whole_policy").logs[0].findings == ()
    )


def test_what_is_asserted_is_listed_and_no_check() -> None:
    log = judged("intact_chain_and_card_profile").logs[0]
    asserted = dict(next(iter(log.approvals)).asserted)
    assert asserted["basis verdict"] == "review"
    assert asserted["basis engine"] == "rules-1"
    assert asserted["basis profile_id"] == "refunds"
    assert asserted["manifest selector"] == "44" * 32
    assert any("selector is complete" in sentence for sentence in log.not_checked)


def test_approvals_count_without_being_made() -> None:
    approvals = judged("intact_evidence_classes").logs[0].approvals
    assert len(approvals) == 5
    assert next(iter(approvals)) in approvals
    assert approvals == judged("intact_evidence_classes").logs[0].approvals
    assert approvals != judged("intact_life").logs[0].approvals


def test_text_shows_three_lines_for_an_approval_where_asked_for() -> None:
    report = judged("intact_drift_under_the_exception")
    text, short = render_text(report, verbose=True), render_text(report)
    for name in ("execution integrity", "decision provenance", "presentation integrity"):
        assert text.count(f"  {name}: ") == 1
        assert name not in short
    assert '  asserted: basis engine "rules-1"\n' in text
    for shown in (text, short):
        assert "exceptions: basis_drift 1\n" in shown
        assert '  differs at "/approval_basis/verdict" (policy and capability)\n' in shown


def test_json_holds_the_properties_and_where_rebuilt_envelopes_differ() -> None:
    log = json.loads(render_json(judged("intact_refusals_at_dispatch_and_settle")))["logs"][0]
    assert log["approvals"][0]["decision_provenance"] == {
        "outcome": "NOT CHECKED",
        "detail": "no approval basis",
    }
    assert [drift["event"] for drift in log["drifts"]] == ["refused", "refused"]
    assert log["drifts"][0]["differs"] == [
        {"pointer": "/action/args_digest", "class": "request"},
        {"pointer": "/action/arguments/amount", "class": "request"},
        {"pointer": "/effect_key", "class": "request"},
    ]
    assert log["drifts"][1]["differs"] == [
        {"pointer": "/preconditions", "class": "business object"}
    ]


def test_evidence_is_held_against_the_envelope_that_is_shown_first(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    profile = (CASES / "intact_profile_given_as_a_file" / "profile.json").read_bytes()
    basis = {
        "verdict": "review",
        "engine": "rules-1",
        "evidence_class": "selection",
        "profile": hashlib.sha256(profile).hexdigest(),
        "rules": [],
    }
    log.add("opened", None, {"name": "test", "software": "tests"})
    envelope = log.envelope(approval_basis=basis)
    data = log.jcs(envelope)
    card = hashlib.sha256(data).digest()
    task = hashlib.sha256(log.jcs(envelope["task"])).digest()
    seq = log.add("issued", card, {"task": task, "not_after": envelope["not_after"]})
    redacted = {"seq": seq, "target": log.prev, "openings": ["envelope"], "by": "user:o"}
    log.add("redacted", None, {**redacted, "reason": "secret"})
    log.resolve((card, data, seq))
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    report = verify([str(path)], [key], environ={})
    assert [(found.check, found.seq) for found in report.logs[0].findings] == [("claim", 3)]
