from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier import Finding, LogReport, Report, Verdict, render_text, verify
from verifier.escape import is_hidden
from verifier.report import Approval, Counts, Drift, Input, Outcome, Property, Row
from verifier.text import diagnostic, utc

HOSTILE = st.text(max_size=20) | st.sampled_from(["\x1b[2J", "a\nVERIFIED\n", "\u202e", "\udcff"])


def report_with(text: str) -> Report:
    found = Property(Outcome.PASS, text)
    finding = Finding("tag", Verdict.BROKEN, text, 1, 2, 3, text, text, text, text)
    log = LogReport(
        path=text,
        format=text,
        verdict=Verdict.BROKEN,
        rows=(Row("tag", "§3.1", "holds", Outcome.FAIL, text),),
        findings=(finding,),
        findings_total=2,
        warnings=(text,),
        not_checked=(text,),
        counts=Counts(kinds=((text, 1),), exceptions=((text, 1),)),
        approvals=(Approval("ab", found, found, found, (("basis engine", text),)),),
        drifts=(Drift(1, "ab", "refused", ((text, "request"),), True),),
        inputs=(Input(text, 1, "ab"),),
        last_seq=3,
        first_seq=0,
    )
    return Report((log,))


@given(HOSTILE, st.booleans())
def test_no_hidden_character_reaches_the_terminal(text: str, verbose: bool) -> None:
    shown = render_text(report_with(text), verbose)
    assert not any(is_hidden(character) for character in shown.replace("\n", ""))
    assert len(shown.splitlines()) == len(render_text(report_with("x"), verbose).splitlines())


@pytest.mark.parametrize("verdict", Verdict)
def test_the_last_line_is_the_verdict(verdict: Verdict) -> None:
    text = render_text(Report((LogReport("p", "cardchain/1", verdict),)))
    assert text.endswith(f"\n{verdict.value}\n")


def test_a_whole_report(log: Any, key: str, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    text = render_text(verify([str(path)], [key], environ={}))
    for line in (
        f"chain: {log.chain.hex()}",
        f"kids: {log.kid.hex()}",
        "seq: 0 to 2",
        "time: 2026-01-01T00:00:00.000Z to 2026-01-01T00:00:02.000Z",
        f"head: {log.digests[-1].hex()}",
        "records: 3, cards: 1",
        "events: issued 1, opened 1, resolved 1",
        "not checked: the log may go on beyond seq 2; give --expect-head HEX",
        "2 of 2 envelopes still hash to their card hash",
        "1 of 1 decisions echoed an issued, unexpired envelope",
        "0 late or wrong decisions were contained, none of them dispatched",
    ):
        assert f"{line}\n" in text


def test_a_finding_says_what_where_why_and_what_next(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    card = log.issue()
    log.resolve(card)
    log.resolve((card[0], card[1], 2))
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    lines = render_text(verify([str(path)], [key], environ={})).splitlines()
    start = lines.index("finding 1 of 1: decided_once")
    offset = len(b"".join(log.records[:3]))
    assert lines[start + 1] == f"  where: {path}, offset {offset}, seq 3"
    assert [line.split(":")[0] for line in lines[start + 2 : start + 6]] == [
        "  expected",
        "  found",
        "  cause",
        "  next",
    ]


def test_verbose_shows_every_row(log: Any, key: str, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    report = verify([str(path)], [key], environ={})
    text = render_text(report, verbose=True)
    for row in report.logs[0].rows:
        assert f"{row.outcome.value:<11} {row.check}: " in text


def test_an_expected_end_is_not_called_open(log: Any, key: str, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    text = render_text(verify([str(path)], [key], expect_count=3, environ={}))
    assert "may go on" not in text


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_times_are_utc(at: int) -> None:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=at)
    assert utc(at) == moment.isoformat(timespec="milliseconds") + "Z"


def test_a_time_beyond_the_year_9999_is_still_a_text() -> None:
    assert utc(2**53 - 1) == "287396-10-12T08:59:00.991Z"


def test_a_diagnostic_is_two_safe_lines() -> None:
    text = diagnostic("a\x1b", "b\n")
    assert text == "cardchain-verify: error: a\\u{1b}\ncardchain-verify: hint: b\\n\n"
