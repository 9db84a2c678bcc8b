"""What a replay remembers of policy for the records that follow (spec §8, §10.3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifier import LogReport, notes, verify

PROFILE = (
    Path(__file__).parents[2]
    / "fixtures"
    / "cases"
    / "intact_profile_given_as_a_file"
    / "profile.json"
).read_bytes()


@pytest.fixture
def judge(key: str, tmp_path: Path) -> Callable[[bytes], LogReport]:
    def run(data: bytes) -> LogReport:
        path = tmp_path / "log.cbor"
        path.write_bytes(data)
        return verify([str(path)], [key], environ={}).logs[0]

    return run


def rows(log: LogReport) -> dict[str, str]:
    return {row.check: row.detail for row in log.rows}


def test_rules_are_not_checked_where_no_profile_is_in_force(
    log: Any, judge: Callable[[bytes], LogReport]
) -> None:
    found = rows(judge(log.data))
    for check in ("floor", "fixed_parameter", "self_approval", "assurance", "profile"):
        assert found[check] == "no card under a profile"
    assert found["profile_form"] == "no profile in the log"
    assert found["claim"] == "no approval basis"
    assert found["manifest"] == "no review manifest"
    assert found["auditor_floor"] == "give --floor"


def test_rules_are_checked_for_cards_issued_under_a_profile(
    log: Any, judge: Callable[[bytes], LogReport]
) -> None:
    body = {"by": "user:operator-1", "profile": hashlib.sha256(PROFILE).digest()}
    log.add("configured", None, body, {"profile": PROFILE})
    assert rows(judge(log.data))["floor"] == "no card under a profile"
    log.resolve(log.issue(2))
    found = rows(judge(log.data))
    checks = ("profile_form", "floor", "fixed_parameter", "self_approval", "assurance", "profile")
    assert [found[check] for check in checks] == [""] * 6


def test_rules_are_not_checked_where_an_unsound_record_may_have_changed_them(
    log: Any, judge: Callable[[bytes], LogReport]
) -> None:
    broken = log.data[:-1] + bytes([log.data[-1] ^ 1])
    detail = "a missing or unsound record may have changed the profile in force"
    assert rows(judge(broken))["floor"] == detail


def test_so_many_drifts_are_listed_and_the_rest_is_said(
    log: Any, judge: Callable[[bytes], LogReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "MAX_DRIFTS", 2)
    card = log.issue(2)
    of = log.resolve(card)
    for count in (1, 2, 3):
        state = [{"ref": "order", "version": str(count)}]
        rebuilt = log.jcs({**json.loads(card[1]), "preconditions": state})
        body = {"of": of, "gate": "dispatch", "reason": "mismatch", "count": count}
        body["rebuilt"] = hashlib.sha256(rebuilt).digest()
        log.add("refused", card[0], body, {"envelope": card[1], "rebuilt": rebuilt})
    report = judge(log.data)
    assert report.findings == ()
    expected = [(seq, (("/preconditions", "business object"),)) for seq in (5, 6)]
    assert [(drift.seq, drift.pointers) for drift in report.drifts] == expected
    assert "where more than 2 rebuilt envelopes differ" in report.not_checked
