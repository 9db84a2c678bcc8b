"""The rules of findings (spec §10.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifier import Report, Verdict, verify
from verifier.replay import MAX_FINDINGS
from verifier.report import Outcome

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


def test_a_beginning_that_was_moved_is_one_finding(judge: Judge, long_log: Any) -> None:
    first, *rest = long_log.records
    assert found(judge(b"".join([*rest[:4], first, *rest[4:]]))) == [("sequence", 0)]


def test_a_record_cut_within_its_tag_is_one_finding(judge: Judge, long_log: Any) -> None:
    records = list(long_log.records)
    records[3] = records[3][:-5]
    assert found(judge(b"".join(records))) == [("tag", 3)]


def test_bytes_after_another_finding_are_a_finding_of_their_own(
    judge: Judge, long_log: Any
) -> None:
    records = list(long_log.records)
    records[4:6] = [records[5], b"no record"]
    assert found(judge(b"".join(records))) == [("sequence", 5), ("framing", None)]


def test_another_chain_in_the_first_record_is_one_finding_without_a_key(
    long_log: Any, tmp_path: Path
) -> None:
    data = bytearray(long_log.data)
    data[data.index(long_log.chain)] ^= 1
    path = tmp_path / "log.cbor"
    path.write_bytes(data)
    checks = [check for check, _ in found(verify([str(path)], [], environ={}))]
    assert checks.count("chain") == 1


def test_each_record_of_another_chain_is_a_finding(judge: Judge, new_log: Any) -> None:
    foreign = new_log(bytes(16))
    foreign.open()
    log = new_log()
    log.open()
    log.resolve(log.issue())
    records = [log.records[0], foreign.data, log.records[1], foreign.data, log.records[2]]
    assert [check for check, _ in found(judge(b"".join(records)))].count("chain") == 2


def test_a_refusal_that_comes_too_late_belongs_to_its_gap(judge: Judge, new_log: Any) -> None:
    log = new_log()
    log.open()
    card = log.issue()
    refusal = {"of": card[2], "gate": "dispatch", "reason": "not_approved"}
    for count in (1, 2, 3):
        log.add("refused", card[0], {**refusal, "count": count}, {"envelope": card[1]})
    order = [log.records[number] for number in (0, 1, 3, 4, 2)]
    assert found(judge(b"".join(order))) == [("sequence", 3)]


@pytest.mark.parametrize("gate", ["dispatch", "settle"])
def test_a_refusal_that_names_another_target_has_not_this_card(
    judge: Judge, new_log: Any, gate: str
) -> None:
    log = new_log()
    log.open()
    card = log.issue()
    reason = {"dispatch": "not_approved", "settle": "not_dispatched"}[gate]
    body = {"of": card[2], "gate": gate, "reason": reason, "count": 1, "target": bytes(32)}
    log.add("refused", card[0], body, {"envelope": card[1]})
    assert found(judge(log.data)) == [("refusal_reason", 2)]


@pytest.mark.parametrize(
    "changed",
    [
        {"prior_attempt": 5},
        {"prior_attempt": {"card_hash": "none", "outcome": 1}},
        {"prior_attempt": {"card_hash": "00" * 32, "outcome": "failed"}},
    ],
    ids=str,
)
def test_of_a_later_format_only_the_version_is_said(
    judge: Judge, new_log: Any, changed: dict[str, Any]
) -> None:
    log = new_log()
    log.open()
    log.issue(format="cardchain-card/2", **changed)
    assert found(judge(log.data)) == [("version", 1)]


def redacted_at_issue(log: Any, body: dict[str, Any], **changed: Any) -> tuple[bytes, bytes, int]:
    """Issue a card whose envelope is redacted from its record, with other members in the body."""
    log.open()
    data = log.jcs(envelope := log.envelope(**changed))
    card = hashlib.sha256(data).digest()
    task = hashlib.sha256(log.jcs(envelope["task"])).digest()
    right = {"task": task, "not_after": envelope["not_after"], **body}
    seq = log.add("issued", card, right)
    reason = {"by": "user:operator-1", "reason": "erasure_request", "openings": ["envelope"]}
    log.add("redacted", None, {"seq": seq, "target": log.digests[seq], **reason})
    return card, data, seq


@pytest.mark.parametrize(
    "body", [{}, {"not_after": 2**52}, {"task": bytes(32)}, {"grant_ttl": 9}], ids=str
)
def test_an_issue_without_its_envelope_is_held_against_the_first_one_shown(
    judge: Judge, new_log: Any, body: dict[str, Any]
) -> None:
    log = new_log()
    log.resolve(redacted_at_issue(log, body))
    assert found(judge(log.data)) == ([("issued_body", 3)] if body else [])


def test_policy_evidence_is_seen_where_the_envelope_is_first_shown(
    judge: Judge, new_log: Any
) -> None:
    digest = "00" * 32
    basis = {"verdict": "ask", "engine": "rules", "evidence_class": "none"}
    log = new_log()
    changed = {"approval_basis": {**basis, "profile": digest, "rules": []}}
    log.resolve(redacted_at_issue(log, {}, **changed))
    report = judge(log.data)
    assert found(report) == [("profile", 3)]
    assert report.verdict is Verdict.CANNOT_VERIFY


def test_what_cannot_be_verified_hides_nothing_that_is_broken(judge: Judge, new_log: Any) -> None:
    log = new_log()
    log.open()
    basis = {"verdict": "ask", "engine": "rules", "evidence_class": "none", "rules": []}
    for number in range(MAX_FINDINGS + 1):
        log.issue(number, approval_basis={**basis, "profile": f"{number:064x}"})
    log.add("opened", None, {"name": "test", "software": "tests"})
    report = judge(log.data)
    assert report.verdict is Verdict.BROKEN
    assert found(report)[MAX_FINDINGS - 1 :] == [
        ("profile", MAX_FINDINGS),
        ("opened", MAX_FINDINGS + 2),
    ]
    assert report.logs[0].findings_total == MAX_FINDINGS + 2


def test_an_envelope_that_hashes_to_no_card_does_not_count(judge: Judge, log: Any) -> None:
    """Whatever check failed before that of the hash: here the tag, or the tag alone."""
    both = log.data.replace(b"duplicate payment", b"duplicate Payment")
    (edited,) = judge(both[:-1] + bytes([both[-1] ^ 1])).logs
    (tag,) = judge(log.data[:-1] + bytes([log.data[-1] ^ 1])).logs
    total = log.data.count(b"duplicate payment")
    assert [(one.counts.envelopes_ok, one.counts.envelopes_total) for one in (edited, tag)] == [
        (0, total),
        (total, total),
    ]


def test_no_profile_is_held_against_envelopes_that_nobody_sees(judge: Judge, new_log: Any) -> None:
    log = new_log()
    redacted_at_issue(log, {})
    rows = {row.check: row.outcome for row in judge(log.data).logs[0].rows}
    names = ("floor", "fixed_parameter", "self_approval", "assurance", "profile")
    assert {rows[name] for name in names} == {Outcome.NOT_CHECKED}


@pytest.mark.parametrize("count", [0, 2])
def test_a_tag_of_a_later_version_is_checked_at_the_first_record_too(
    judge: Judge, new_log: Any, count: int
) -> None:
    log = new_log()
    log.add("opened", None, {"name": "test", "software": "tests"}, v="cardchain/2")
    for number in range(count):
        log.issue(number)
    first, *rest = log.records
    report = judge(log.data)
    assert (report.verdict, found(report)[0]) == (Verdict.CANNOT_VERIFY, ("version", None))
    report = judge(b"".join([first[:-1] + bytes([first[-1] ^ 1]), *rest]))
    assert (report.verdict, found(report)[0]) == (Verdict.BROKEN, ("tag", None))


def test_a_finding_quotes_only_the_beginning_of_a_long_text(judge: Judge, new_log: Any) -> None:
    log = new_log()
    log.open()
    log.issue(**{"k" * 900_000: 1})
    report = judge(log.data)
    assert found(report) == [("envelope_schema", 1)]
    assert len(report.logs[0].findings[0].found) < 2000
