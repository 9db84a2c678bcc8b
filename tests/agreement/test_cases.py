"""The verifier says of every fixture exactly what its case.json says (spec §10)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from player import copied_pin, played, resolved

from verifier import checks, fast
from verifier.report import Outcome, Report

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
CASES = {
    path.parent.name: json.loads(path.read_text("utf-8"))
    for path in sorted(FIXTURES.glob("cases/*/case.json"))
}
EXIT_CODES = {"VERIFIED": 0, "BROKEN": 3, "CANNOT VERIFY": 4}
OPTIONS = {
    "keys": "--key",
    "profiles": "--profile",
    "vkeys": "--vkey",
    "checkpoints": "--checkpoint",
    "proofs": "--checkpoint",
}
ASSURED = ("assurance", "signed_to", "pinned_to", "withheld", "not_checked")
NOT_CHECKED = Outcome.NOT_CHECKED
SAMPLE = [
    "approval_below_the_floor_of_the_auditor",
    "checkpoints_stripped_and_required",
    "file_missing",
    "intact_nothing_after_the_record_since",
    "intact_opening_withheld",
    "intact_pin_moves_on",
    "intact_profile_given_as_a_file",
    "intact_segments",
    "key_missing",
    "receipt_does_not_extend_the_checkpoint",
    "right_receipt_newer_than_the_checkpoint",
    "right_since_a_checkpoint",
    "tag_bit_flipped",
    "tail_cut_head_expected",
    "torn_tail_in_live_directory",
    "two_logs_forked",
    "worked_example",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the fixtures in which key files are private, as a checkout cannot say."""
    copy = tmp_path_factory.mktemp("corpus") / "fixtures"
    shutil.copytree(FIXTURES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, case in CASES.items():
        for key in case["keys"]:
            (copy / "cases" / name / key).chmod(0o600)
    return copy / "cases"


def judged(folder: Path, case: dict[str, Any]) -> dict[str, Any]:
    """Give verdict, findings, warnings and counts in the form of a case."""
    with tempfile.TemporaryDirectory() as scratch:
        pin = copied_pin(folder, case, Path(scratch))
        report = played(folder, case, pin)
        pin_after = content(pin)
    return {
        **assured(report, case),
        "pin_after": pin_after,
        "verdict": report.verdict.value,
        "findings": [
            {
                "check": finding.check,
                "seq": finding.seq,
                "file": os.path.relpath(finding.file, folder),
                "offset": finding.offset,
            }
            for log in report.logs
            for finding in log.findings
        ],
        "warnings": len({warning for log in report.logs for warning in log.warnings}),
        "counts": {
            "records": sum(log.counts.records for log in report.logs),
            "envelopes": sum(log.counts.envelopes_ok for log in report.logs),
            "decisions": sum(log.counts.decisions_ok for log in report.logs),
            "contained": sum(log.counts.contained for log in report.logs),
        },
        "asserted": sum(log.counts.asserted for log in report.logs),
        "exceptions": dict(pair for log in report.logs for pair in log.counts.exceptions),
    }


def content(path: str | Path | None) -> Any:
    return json.loads(Path(path).read_bytes()) if path and Path(path).exists() else None


def assured(report: Report, case: dict[str, Any]) -> dict[str, Any]:
    """Give how much the verdict rests on, and which of the rows that a case names are not made."""
    (log, *_) = report.logs
    rows = {row.check for log in report.logs for row in log.rows if row.outcome is NOT_CHECKED}
    return {
        "assurance": [word for word in log.assurance if word != "integrity only"],
        "signed_to": log.signed_to,
        "pinned_to": log.pinned_to,
        "withheld": sum(log.withheld_total for log in report.logs),
        "not_checked": [check for check in case.get("not_checked", []) if check in rows],
    }


def expected(folder: Path, case: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Give what a case expects; what it does not state is taken as it is."""
    pin_before = content(folder / case["pin"]) if "pin" in case else None
    return {
        "verdict": case["verdict"],
        "findings": case["findings"],
        "warnings": case.get("warnings", 0),
        "counts": case.get("counts", found["counts"]),
        "asserted": case.get("asserted", found["asserted"]),
        "exceptions": case.get("exceptions", found["exceptions"]),
        **{name: case.get(name, found[name]) for name in ASSURED},
        "pin_after": case.get("pin_after", pin_before),
    }


@pytest.mark.parametrize("name", CASES)
def test_verdict_and_findings_are_those_of_the_case(corpus: Path, name: str) -> None:
    found = judged(corpus / name, CASES[name])
    assert expected(corpus / name, CASES[name], found) == found


@pytest.mark.parametrize("name", CASES)
def test_named_checks_alone_say_the_same(
    corpus: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fused_loop(monkeypatch)
    found = judged(corpus / name, CASES[name])
    assert expected(corpus / name, CASES[name], found) == found


def without_fused_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every record to the table of checks: the loop that only accepts accepts nothing."""
    monkeypatch.setattr(fast, "advance", lambda *_: False)


@pytest.mark.parametrize("name", SAMPLE)
def test_command_line_says_the_same(corpus: Path, name: str, tmp_path: Path) -> None:
    case, folder = CASES[name], corpus / name
    options = list(case.get("args", []))
    for member, option in OPTIONS.items():
        options += [w for file in resolved(folder, case.get(member, [])) for w in (option, file)]
    options += ["--since", os.path.normpath(folder / case["since"])] if "since" in case else []
    pin = copied_pin(folder, case, tmp_path)
    options += [] if pin is None else ["--pin", pin]
    command = [sys.executable, "-m", "verifier", "--format", "json", *options]
    run = subprocess.run(
        [*command, *resolved(folder, case["inputs"])],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        env={"PATH": os.environ["PATH"]},
    )
    assert run.returncode == EXIT_CODES[case["verdict"]]
    document = json.loads(run.stdout)
    assert document["verdict"] == case["verdict"]
    checks_found = [finding["check"] for log in document["logs"] for finding in log["findings"]]
    assert checks_found == [finding["check"] for finding in case["findings"]]


@pytest.mark.parametrize("check", [check.id for check in checks.CHECKS])
def test_every_check_catches_what_no_other_does(
    corpus: Path, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fused_loop(monkeypatch)
    monkeypatch.setattr(checks, "CHECKS", table_without(check))
    verdicts = {
        changed_verdict(corpus / name, case)
        for name, case in CASES.items()
        if any(finding["check"] == check for finding in case["findings"])
    }
    assert ELSEWHERE.get(check, "VERIFIED") in verdicts


def table_without(check: str) -> tuple[checks.Check, ...]:
    """Give the table without a row; the one row about several logs stays and finds nothing."""
    blind = {"fork": lambda *_: None}
    return tuple(
        row._replace(function=blind[check]) if row.id == check else row
        for row in checks.CHECKS
        if row.id != check or check in blind
    )


ELSEWHERE = {
    "chain": "CANNOT VERIFY",  # a secret of the other chain is missing as well
    "issued_once": "BROKEN",  # a card cannot name itself, so it supersedes another than the latest
}
"""The verdict without a check, where the rest of the table cannot but notice something too."""


def changed_verdict(folder: Path, case: dict[str, Any]) -> str | None:
    """Give the verdict where the findings differ now; that the verifier stops short is none."""
    try:
        found = judged(folder, case)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return None if found["findings"] == case["findings"] else str(found["verdict"])


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("receipt_record_changed", 0),
        ("dispatch_of_a_rejected_card", 1),
        ("signed_over_a_second_dispatch", 1),
    ],
)
def test_a_dispatch_that_was_edited_is_none_that_broke_a_rule(
    corpus: Path, name: str, count: int
) -> None:
    (log,) = played(corpus / name, CASES[name], None).logs
    assert (log.verdict.value, log.counts.contained_dispatched) == ("BROKEN", count)


def test_verifying_changes_no_file(corpus: Path) -> None:
    def contents() -> dict[str, tuple[bytes, int]]:
        files = [path for path in corpus.parent.rglob("*") if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = contents()
    for name in SAMPLE:
        judged(corpus / name, CASES[name])
    assert before == contents()


def test_generator_gives_the_stored_fixtures() -> None:
    run = subprocess.run(
        [sys.executable, "-S", "-E", str(FIXTURES / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_generator_names_a_file_that_differs(tmp_path: Path) -> None:
    copy = tmp_path / "fixtures"
    shutil.copytree(FIXTURES, copy)
    changed = copy / "cases" / "tag_bit_flipped" / "log.cbor"
    changed.write_bytes(changed.read_bytes() + b"\x00")
    (copy / "cases" / "left_over").write_bytes(b"")
    run = subprocess.run(
        [sys.executable, str(copy / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1
    assert run.stdout.splitlines() == [
        "differs: fixtures/cases/left_over",
        "differs: fixtures/cases/tag_bit_flipped/log.cbor",
    ]


def test_every_check_of_the_spec_has_a_case() -> None:
    named = {finding["check"] for case in CASES.values() for finding in case["findings"]}
    assert named == {check.id for check in checks.CHECKS}


@pytest.mark.parametrize("number", range(1, 25))
def test_every_requirement_about_a_log_has_a_case(number: int) -> None:
    assert any(f"R{number:02}" in case.get("requirement", []) for case in CASES.values())
