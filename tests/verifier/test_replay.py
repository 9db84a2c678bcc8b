"""The rules of findings (spec §10.3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifier import Report, Verdict, verify
from verifier.replay import MAX_FINDINGS

Judge = Callable[[bytes], Report]


@pytest.fixture
def judge(key: str, tmp_path: Path) -> Judge:
    def run(data: bytes) -> Report:
        path = tmp_path / "log.cbor"
        path.write_bytes(data)
        return verify([str(path)], [key], environ={})

    return run


def found(report: Report) -> list[tuple[str, int | None]]:
    return [(finding.check, finding.seq) for log in report.logs for finding in log.findings]


@pytest.fixture
def long_log(new_log: Callable[..., Any]) -> Any:
    """A log of five cards, each issued and approved."""
    log = new_log()
    log.open()
    for number in range(5):
        log.resolve(log.issue(number))
    return log


def test_a_sound_log_is_verified(judge: Judge, long_log: Any) -> None:
    report = judge(long_log.data)
    assert report.verdict is Verdict.VERIFIED
    counts = report.logs[0].counts
    assert (counts.records, counts.cards, counts.envelopes_ok) == (11, 5, 10)
    assert (counts.decisions_ok, counts.decisions_total) == (5, 5)
    assert report.logs[0].head == long_log.digests[-1].hex()


def test_every_bit_of_a_log_counts(judge: Judge, log: Any) -> None:
    for place in range(0, len(log.data), 5):
        data = bytearray(log.data)
        data[place] ^= 1 << place % 8
        report = judge(bytes(data))
        assert report.verdict is not Verdict.VERIFIED, place
        assert len(report.logs[0].findings) == 1 or place < len(log.records[0]), place


def test_every_record_that_is_lost_is_one_finding(judge: Judge, long_log: Any) -> None:
    for lost in range(1, 10):
        data = b"".join(r for n, r in enumerate(long_log.records) if n != lost)
        assert found(judge(data)) == [("sequence", lost + 1)]


def test_every_record_that_is_repeated_is_one_finding(judge: Judge, long_log: Any) -> None:
    for again in range(11):
        for place in range(again, 11):
            records = list(long_log.records)
            records.insert(place + 1, records[again])
            assert found(judge(b"".join(records))) == [("sequence", again)]


def test_two_records_that_change_places_are_one_finding(judge: Judge, long_log: Any) -> None:
    for place in range(1, 10):
        records = list(long_log.records)
        records[place], records[place + 1] = records[place + 1], records[place]
        assert found(judge(b"".join(records))) == [("sequence", place + 1)]


def test_a_stretch_that_is_moved_is_one_finding(judge: Judge, long_log: Any) -> None:
    records = list(long_log.records)
    moved = records[:2] + records[4:] + records[2:4]
    assert found(judge(b"".join(moved))) == [("sequence", 4)]


def test_a_record_of_the_right_key_out_of_another_history_breaks_the_link(
    judge: Judge, new_log: Callable[..., Any]
) -> None:
    one, other = new_log(), new_log()
    for log, number in ((one, 1), (other, 2)):
        log.open()
        log.issue(number)
        log.issue(number + 2)
        log.issue(number + 4)
    assert found(judge(b"".join(one.records[:2] + other.records[2:]))) == [("link", 2)]


def test_a_tag_that_cannot_be_checked_accuses_nobody(log: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    report = verify([str(path)], [], environ={})
    assert report.verdict is Verdict.CANNOT_VERIFY
    assert found(report) == [("key_missing", 0)]
    assert log.kid.hex() in report.logs[0].findings[0].next_command
    assert "--key" in report.logs[0].findings[0].next_command


def test_without_a_key_a_broken_link_is_still_broken(log: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    changed = bytearray(log.records[1])
    changed[-1] ^= 1
    path.write_bytes(log.records[0] + bytes(changed) + log.records[2])
    report = verify([str(path)], [], environ={})
    assert report.verdict is Verdict.BROKEN
    assert found(report) == [("key_missing", 0), ("link", 2)]


def test_no_expected_tag_is_shown(judge: Judge, log: Any) -> None:
    tag = log.records[1][-32:].hex()
    changed = log.records[1][:-32] + bytes(32)
    report = judge(log.records[0] + changed + log.records[2])
    assert found(report) == [("tag", 1)]
    assert tag[:16] not in repr(report)


def test_a_missing_key_hides_no_broken_rule(log: Any, tmp_path: Path) -> None:
    card = log.issue(7)
    log.resolve(card)
    log.resolve((card[0], card[1], log.seq - 1), "reject")
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    assert found(verify([str(path)], [], environ={})) == [("key_missing", 0), ("decided_once", 5)]


def test_what_an_unsound_record_could_explain_is_not_reported(
    judge: Judge, new_log: Callable[..., Any]
) -> None:
    log = new_log()
    log.open()
    card = log.issue(1)
    grant = log.resolve(card)
    log.add("dispatched", card[0], {"of": grant, "rebuilt": card[0]}, {"envelope": card[1]})
    later = log.issue(2)
    log.resolve(later, of=99)
    data = b"".join(r for n, r in enumerate(log.records) if n != grant)
    assert found(judge(data)) == [("sequence", grant + 1), ("of", 5)]


def test_a_step_whose_beginning_is_lost_is_not_judged(
    judge: Judge, new_log: Callable[..., Any]
) -> None:
    log = new_log()
    log.open()
    first = log.issue(1)
    second = log.issue(1, supersedes=first[0].hex(), reasoning="again")
    third = log.issue(1, supersedes=second[0].hex(), reasoning="once more")
    log.resolve(third)
    data = log.records[0] + b"".join(log.records[2:])
    report = judge(data)
    assert found(report) == [("sequence", 2)]
    damaged = log.records[0] + bytes(len(log.records[1])) + b"".join(log.records[2:])
    assert found(judge(damaged)) == [("framing", None)]


def test_findings_are_bounded(judge: Judge, new_log: Callable[..., Any]) -> None:
    log = new_log()
    log.open()
    for _ in range(MAX_FINDINGS + 10):
        log.open()
    report = judge(log.data)
    assert report.logs[0].findings_total == MAX_FINDINGS
    assert any("stopped after" in sentence for sentence in report.logs[0].not_checked)
    assert all(row.outcome.value != "PASS" for row in report.logs[0].rows if row.check == "time")


def test_a_loop_and_a_table_that_disagree_give_no_verdict(
    judge: Judge, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verifier import checks

    card = log.issue(5)
    log.at = 0
    log.resolve(card)
    assert found(judge(log.data)) == [("time", 4)]
    kept = tuple(check for check in checks.CHECKS if check.id != "time")
    monkeypatch.setattr(checks, "CHECKS", kept)
    with pytest.raises(RuntimeError, match="disagree"):
        judge(log.data)
