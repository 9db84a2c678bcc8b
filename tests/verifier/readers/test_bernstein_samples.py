"""Logs that Bernstein itself wrote get the verdict that stands beside them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from verifier.readers import bernstein
from verifier.report import LogReport

SAMPLES = Path(__file__).parents[4] / "shared" / "bernstein-sample"
EXPECTED: dict[str, dict[str, Any]] = (
    json.loads((SAMPLES / "expected.json").read_text()) if SAMPLES.is_dir() else {}
)


def verify(
    name: str, head: str | None = None, count: int | None = None, *, below: str = ""
) -> LogReport:
    folder = SAMPLES / "tampered" / name
    folder = folder if folder.is_dir() else SAMPLES / name
    return bernstein.verify_log(
        str(folder / below), [str(folder / "audit.key")], expect_head=head, expect_count=count
    )


def test_the_samples_are_at_hand() -> None:
    if not EXPECTED:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{SAMPLES} is missing")
        pytest.skip(f"{SAMPLES} is missing")
    assert len(EXPECTED) > 40


@pytest.mark.parametrize("name", EXPECTED)
def test_sample_has_its_verdict(name: str) -> None:
    assert EXPECTED[name]["verdict"] == verify(name).verdict.value


@pytest.mark.parametrize("name", EXPECTED)
def test_one_edit_gives_one_finding(name: str) -> None:
    expected = 0 if EXPECTED[name]["verdict"] == "VERIFIED" else 1
    assert expected == verify(name).findings_total


@pytest.mark.parametrize("by", ["head", "count", "both"])
@pytest.mark.parametrize(
    "name", [name for name in EXPECTED if "verdict_with_expected_head" in EXPECTED[name]]
)
def test_cut_tail_is_seen_with_an_expected_head_or_count(name: str, by: str) -> None:
    clean = verify("clean")
    report = verify(
        name,
        clean.head if by != "count" else None,
        clean.counts.records if by != "head" else None,
    )
    assert EXPECTED[name]["verdict_with_expected_head"] == report.verdict.value
    assert not report.complete


@pytest.mark.skipif(not EXPECTED, reason=f"{SAMPLES} is missing")
@pytest.mark.parametrize("below", ["", ".sdd", ".sdd/audit"])
def test_any_folder_of_the_path_may_be_given(below: str) -> None:
    report = verify("clean", below=below)
    assert ("VERIFIED", 36) == (report.verdict.value, report.counts.records)


@pytest.mark.skipif(not EXPECTED, reason=f"{SAMPLES} is missing")
def test_the_clean_sample_is_counted() -> None:
    counts = verify("clean").counts
    assert (10, 10, 10) == (counts.cards, counts.envelopes_ok, counts.envelopes_total)
    assert (7, 7, 12, 0) == (
        counts.decisions_ok,
        counts.decisions_total,
        counts.contained,
        counts.contained_dispatched,
    )


@pytest.mark.skipif(not EXPECTED, reason=f"{SAMPLES} is missing")
@pytest.mark.parametrize("name", ["clean", "mixed-v1-v2", "v1-3.7.0", "archived"])
def test_no_byte_of_a_sample_can_change_unseen(name: str, tmp_path: Path) -> None:
    """Every 97th byte of the live files is changed, one after the other."""
    folder = SAMPLES / name
    key = str(folder / "audit.key")
    for path in sorted(folder.glob(".sdd/audit/**/*.jsonl")):
        target = tmp_path / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes()
        for other in folder.glob(".sdd/audit/**/*.jsonl*"):
            copy = tmp_path / other.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(other.read_bytes())
        for at in range(0, len(content), 97):
            target.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            report = bernstein.verify_log(str(tmp_path), [key], None, None)
            assert ("BROKEN", 1) == (report.verdict.value, report.findings_total), at
        target.write_bytes(content)
