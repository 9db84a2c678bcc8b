"""The page says of every fixture what the verifier in Python says: two programs, one spec (§10)."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from cases import CASES, FIXTURES, PAGE, VERIFY_ALL, options, request, single
from webdriver import Browser

from verifier import every_card, verify
from verifier.report import History, LogReport, Outcome, Report, Verdict
from verifier.state import Edge

AT_ONCE = 40


@pytest.fixture(scope="module")
def reports(chromium: Browser) -> dict[str, dict[str, Any]]:
    """The report of the page on each case."""
    chromium.open(PAGE)
    names, found = list(CASES), {}
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        answers = chromium.run(VERIFY_ALL, [request(name) for name in some])
        found.update(zip(some, answers, strict=True))
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the fixtures in which key files are private, as a checkout cannot say."""
    copy = tmp_path_factory.mktemp("corpus") / "fixtures"
    shutil.copytree(FIXTURES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, case in CASES.items():
        for key in case["keys"]:
            (copy / "cases" / name / key).chmod(0o600)
    return copy / "cases"


def in_page(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Give what the two verifiers are compared by, of a report of the page."""
    return [
        {
            "verdict": log["verdict"],
            "findings": [
                (finding["check"], finding["seq"], finding["file"], finding["offset"])
                for finding in log["findings"]
            ],
            "counts": {name: log["counts"][name] for name in COUNTS},
            "kinds": log["counts"]["kinds"],
            "exceptions": log["counts"]["exceptions"],
            "rows": [(row["check"], row["section"], row["claim"]) for row in log["rows"]],
            "not checked": [row["check"] for row in log["rows"] if row["outcome"] == "NOT CHECKED"],
            "warnings": len(log["warnings"]),
            "ends": (log["chain"], log["head"], log["firstSeq"], log["lastSeq"], log["kids"]),
            "inputs": [(part["bytes"], part["sha256"]) for part in log["inputs"]],
            "assurance": (log["assurance"], log["signedTo"], log["pinnedTo"]),
            "withheld": [(one["seq"], one["openings"]) for one in log["withheld"]],
            "believed": [said for said in log["notChecked"] if said in WHO],
        }
        for log in report["logs"]
    ]


def in_python(log: LogReport) -> dict[str, Any]:
    """Give the same of a report of the verifier in Python."""
    counts = log.counts
    return {
        "verdict": log.verdict.value,
        "findings": [(f.check, f.seq, f.file, f.offset) for f in log.findings],
        "counts": {name: getattr(counts, field) for name, field in COUNTS.items()},
        "kinds": dict(counts.kinds),
        "exceptions": dict(counts.exceptions),
        "rows": [(row.check, row.section.replace("-", "–"), row.claim) for row in log.rows],
        "not checked": [row.check for row in log.rows if row.outcome is Outcome.NOT_CHECKED],
        "warnings": len(log.warnings),
        "ends": (log.chain, log.head, log.first_seq, log.last_seq, list(log.kids)),
        "inputs": [(part.bytes, part.sha256) for part in log.inputs],
        "assurance": (list(log.assurance), log.signed_to, log.pinned_to),
        "withheld": [(one.seq, list(one.openings)) for one in log.withheld],
        "believed": [said for said in log.not_checked if said in WHO],
    }


def verified(name: str) -> Report:
    """Give the report of the verifier in Python, in the folder of the case."""
    case, given = CASES[name], options(CASES[name])
    head, count = single(given, "--expect-head"), single(given, "--expect-count")
    seq, _, digest = (single(given, "--since") or "").partition(":")
    edge = Edge(int(seq) + 1, bytes.fromhex(digest)) if seq else None
    return verify(
        case["inputs"],
        case["keys"],
        expect_head=None if head is None else bytes.fromhex(head),
        expect_count=None if count is None else int(count),
        profile_files=case.get("profiles", []),
        floor=single(given, "--floor") or "none",
        vkeys=case.get("vkeys", []),
        checkpoint_files=[*case.get("checkpoints", []), *case.get("proofs", [])],
        pin_file=case.get("pin"),
        required=given.get("--require", []),
        allow_withheld="--allow-withheld" in given,
        since=case.get("since", edge),
        environ={},
        wanted=every_card,
    )


WHO = (
    "who made the log: whoever holds a key can make HMACs, so they prove nothing to others",
    "that the signer of the checkpoint tells everybody the same: whoever holds its key can sign "
    "another history, and HMACs prove nothing to others",
)
"""Whom a log convinces (spec §10.4)."""

COUNTS = {
    "records": "records",
    "cards": "cards",
    "envelopes": "envelopes_ok",
    "envelopesTotal": "envelopes_total",
    "decisions": "decisions_ok",
    "decisionsTotal": "decisions_total",
    "contained": "contained",
    "containedDispatched": "contained_dispatched",
    "asserted": "asserted",
}


@pytest.mark.parametrize("name", CASES)
def test_page_and_python_say_the_same(
    reports: dict[str, dict[str, Any]], corpus: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus / name)
    found = in_page(reports[name])
    expected = [in_python(log) for log in verified(name).logs]
    for one, other in zip(found, expected, strict=True):
        for field in DIFFERENT.get(name, ()):
            assert one.pop(field) != other.pop(field), f"{field} agrees now"
        assert other == one


@pytest.mark.parametrize(
    "name", ["another_record_in_the_place_of_the_record_since", "ends_before_the_record_since"]
)
def test_page_names_the_digests_of_python_where_a_log_does_not_end_as_kept(
    reports: dict[str, dict[str, Any]], corpus: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus / name)
    (log,), (other,) = verified(name).logs, reports[name]["logs"]
    said = [f"{one.expected} {one.found}" for one in log.findings]
    seen = [f"{one['expected']} {one['found']}" for one in other["findings"]]
    assert re.findall("[0-9a-f]{64}", str(said)) == re.findall("[0-9a-f]{64}", str(seen))


ROWS = 50  # of cards on one page of the list
OUTCOME = re.compile(", (succeeded|failed)")
OTHER_CARDS = ("card_on_chain_event", "gzip_damaged")
"""Python lists the card of a malformed record; the page those before a wrong check value."""


def test_page_lists_the_cards_of_python_with_the_same_doubts(
    reports: dict[str, dict[str, Any]], corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No rule says the state of a card whose events contradict each other (spec §6.1)."""
    differing = []
    for name in CASES:
        monkeypatch.chdir(corpus / name)
        report = verified(name)
        histories = [history for log in report.logs for history in log.histories]
        expected = [(each.card[:16], stated(each)) for each in histories[:ROWS]]
        found = [(row[0], OUTCOME.sub("", row[1])) for row in reports[name]["listed"]]
        if report.verdict is Verdict.BROKEN:
            expected = [(card, doubt_in(state)) for card, state in expected]
            found = [(card, doubt_in(state)) for card, state in found]
        if expected != found:
            differing.append(name)
    assert tuple(differing) == OTHER_CARDS


def stated(history: History) -> str:
    """Give the state of a card as a list of cards has it."""
    if not history.state:
        return "not known"
    return f"{history.state} (not sure)" if history.doubt else history.state


def doubt_in(state: str) -> str:
    return state if state == "not known" else state.partition(" (")[2]


NO_RECORD_THERE = ("opening_length_not_shortest", "opening_repeated", "openings_unsorted")
"""Python counts a record whose outer form is wrong; to the page these bytes are none."""

DIFFERENT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(NO_RECORD_THERE, ("counts",)),
    # the page reads the records before the wrong check value, as spec §7.1 says
    "gzip_damaged": ("not checked", "counts", "kinds", "ends"),
}
"""Where the two are known to differ, and by what; an entry that is out of date is an error."""


def test_a_plain_name_may_hold_the_gzip_form_for_an_instant(chromium: Browser) -> None:
    chromium.open(PAGE)
    asked = request("intact_every_state")
    (log,) = asked["inputs"]
    log["file"] = b64encode(gzip.compress(b64decode(log["file"]))).decode()
    (report,) = chromium.run(VERIFY_ALL, [asked])
    assert (report["verdict"], report["logs"][0]["findings"]) == ("VERIFIED", [])


def test_findings_are_those_of_the_cases(reports: dict[str, dict[str, Any]]) -> None:
    """Held against the fixtures alone, whatever the verifier in Python says."""
    found = {
        name: [
            {key: finding[key] for key in ("check", "seq", "file", "offset")}
            for log in report["logs"]
            for finding in log["findings"]
        ]
        for name, report in reports.items()
    }
    assert {name: case["findings"] for name, case in CASES.items()} == found


def test_verdicts_and_what_they_rest_on_are_those_of_the_cases(
    reports: dict[str, dict[str, Any]],
) -> None:
    expected = {
        name: (case["verdict"], case.get("assurance"), moved_pin(name, case))
        for name, case in CASES.items()
    }
    found = {
        name: (
            report["verdict"],
            None if expected[name][1] is None else reached(report),
            report["pinAfter"],
        )
        for name, report in reports.items()
    }
    assert expected == found


def moved_pin(name: str, case: dict[str, Any]) -> dict[str, Any] | None:
    """Give the pin that a case ends with, or None where that is the one given."""
    after = case.get("pin_after")
    given = FIXTURES / "cases" / name / case.get("pin", "")
    stays = after is not None and given.is_file() and json.loads(given.read_text("utf-8")) == after
    return None if stays else after


def reached(report: dict[str, Any]) -> list[str]:
    """Give the words of spec §16.1 that a report reaches, as a case states them."""
    return [word for word in report["logs"][0]["assurance"] if word != "integrity only"]
