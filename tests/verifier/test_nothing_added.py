"""A log that ends with what the auditor kept: nothing was added (spec §15.2, decision 16)."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verifier import LogReport, Outcome, Verdict, render_json, render_text, verify
from verifier.state import Edge


@pytest.fixture
def log(new_log: Callable[..., Any]) -> Any:
    made = new_log()
    made.open()
    for number in range(3):
        made.resolve(made.issue(number))
    return made


def kept(log: Any, seq: int) -> Edge:
    return Edge(seq + 1, log.digests[seq])


def report(path: Path, data: bytes, key: str, since: Edge, **more: Any) -> LogReport:
    path.write_bytes(data)
    return verify([str(path)], [key], environ={}, since=since, **more).logs[0]


def ledger(folder: Path, parts: dict[int, bytes]) -> Path:
    segments = folder / "ledger" / "segments"
    segments.mkdir(parents=True)
    for seq, data in parts.items():
        (segments / f"{seq:020d}.cbor").write_bytes(data)
    return segments.parent


def said(one: LogReport) -> list[tuple[str, str, str]]:
    return [(item.check, item.expected, item.found) for item in one.findings]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_log_that_ends_anywhere_was_kept_there(
    log: Any, key: str, tmp_path: Path, jobs: int
) -> None:
    """Up to the kept record nothing was added, one record less is none of it, one more is new."""
    path = tmp_path / "log.cbor"
    for seq in range(1, log.seq - 1):
        data = [b"".join(log.records[: seq + more]) for more in range(3)]
        short, same, longer = (report(path, one, key, kept(log, seq), jobs=jobs) for one in data)
        assert (short.verdict, same.verdict) == (Verdict.CANNOT_VERIFY, Verdict.VERIFIED)
        assert (same.counts.records, same.first_seq, same.last_seq) == (0, None, seq)
        assert (same.head, same.chain) == (log.digests[seq].hex(), log.chain.hex())
        assert (longer.verdict, longer.counts.records) == (Verdict.VERIFIED, 1)
        assert [part.sha256 for part in same.inputs] == [hashlib.sha256(data[1]).hexdigest()]
        expected = f"at least one record from seq {seq + 1} on, or an end at seq {seq} as kept"
        assert said(short) == [("empty", expected, "none")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_flipped_bit_of_the_kept_record_is_the_record(
    log: Any, key: str, tmp_path: Path, data: st.DataObject
) -> None:
    """But in an opening, and in a length before one: the digest is not of these."""
    last = log.records[-1]
    payload = last.rindex(b"cardchain/1") - 1
    bit = data.draw(st.integers(8 * payload, 8 * len(last) - 1))
    changed = bytearray(log.data)
    changed[len(log.data) - len(last) + bit // 8] ^= 1 << bit % 8
    shown = report(tmp_path / "log.cbor", bytes(changed), key, kept(log, log.seq - 1))
    assert shown.verdict is not Verdict.VERIFIED


def test_openings_are_not_looked_at(log: Any, key: str, tmp_path: Path) -> None:
    """They stand outside the digest, also where their map has no form that a writer uses."""
    log.add("anchored", None, {"size": 3, "root": bytes(32), "note": bytes(32)})
    empty = log.records[-1].index(b"\xa0")
    changed = log.records[-1][:empty] + b"\xb8\x00" + log.records[-1][empty + 1 :]
    data = b"".join(log.records[:-1]) + changed
    shown = report(tmp_path / "log.cbor", data, key, kept(log, log.seq - 1))
    assert (shown.verdict, shown.chain) == (Verdict.VERIFIED, log.chain.hex())


def test_a_finding_names_both_digests(log: Any, key: str, tmp_path: Path) -> None:
    edge = Edge(log.seq, bytes(32))
    shown = report(tmp_path / "log.cbor", log.data, key, edge)
    last = log.seq - 1
    expected = f"digest {'00' * 32} at seq {last}, which was kept"
    found = f"digest {log.digests[last].hex()} there, at the end of the log"
    assert said(shown) == [("empty", expected, found)]
    assert (shown.verdict, shown.last_seq, shown.head) == (Verdict.CANNOT_VERIFY, None, None)
    assert shown.warnings == ()
    assert {row.outcome for row in shown.rows if row.check != "unreadable"} == {
        Outcome.FAIL,
        Outcome.NOT_CHECKED,
    }


def test_a_report_says_that_nothing_was_added(log: Any, key: str, tmp_path: Path) -> None:
    path, last = tmp_path / "log.cbor", log.seq - 1
    path.write_bytes(log.data)
    whole = verify([str(path)], [key], environ={}, since=kept(log, last))
    lines = render_text(whole).splitlines()
    assert f"warning: nothing was added since seq {last}: no record was verified" in lines
    assert f"head: {log.digests[last].hex()}" in lines
    assert {"records: 0, cards: 0", "assurance: none"} < set(lines)
    open_end = f"not checked: the log may go on beyond seq {last}; give --expect-head HEX"
    assert (open_end in lines, lines[-1]) == (True, "VERIFIED")
    (document,) = json.loads(render_json(whole))["logs"]
    assert (document["first_seq"], document["last_seq"]) == (None, last)
    assert (document["assurance"], document["head"]) == ([], log.digests[last].hex())
    (log_report,) = whole.logs
    outcomes = {row.check: (row.outcome, row.detail) for row in log_report.rows}
    assert outcomes["empty"] == outcomes["left_edge"] == (Outcome.PASS, "")
    assert outcomes["tag"] == (Outcome.NOT_CHECKED, "no record")


def test_what_is_required_was_not_reached(log: Any, key: str, tmp_path: Path) -> None:
    edge = kept(log, log.seq - 1)
    shown = report(tmp_path / "log.cbor", log.data, key, edge, required=["signed"])
    assert said(shown) == [("required", "a log that is signed", "none")]


def test_an_expected_head_closes_the_end(log: Any, key: str, tmp_path: Path) -> None:
    last = log.seq - 1
    more = {"expect_head": log.digests[last], "expect_count": log.seq}
    shown = report(tmp_path / "log.cbor", log.data, key, kept(log, last), **more)
    assert (shown.verdict, shown.complete) == (Verdict.VERIFIED, True)
    assert (shown.assurance, shown.pinned_to) == (("pinned",), last)
    rows = {row.check: row.outcome for row in shown.rows}
    assert rows["expected_head"] is rows["expected_count"] is Outcome.PASS


def test_a_key_file_may_pin_a_record_that_is_missing(log: Any, key: str, tmp_path: Path) -> None:
    document = json.loads(Path(key).read_text())
    document["pin"] = {"seq": log.seq, "digest": "00" * 32}
    Path(key).write_text(json.dumps(document))
    last = log.seq - 1
    shown = report(tmp_path / "log.cbor", log.data, key, kept(log, last))
    assert shown.verdict is Verdict.VERIFIED
    assert any(one.endswith(f"ends before it, at seq {last}") for one in shown.warnings)


def test_only_the_segment_of_the_kept_record_is_read(log: Any, key: str, tmp_path: Path) -> None:
    tail = b"".join(log.records[5:])
    folder = ledger(tmp_path, {0: b"never read", 5: tail, log.seq: b""})
    shown = verify([str(folder)], [key], environ={}, since=kept(log, log.seq - 1)).logs[0]
    assert (shown.verdict, shown.counts.records) == (Verdict.VERIFIED, 0)
    assert [Path(part.file).name for part in shown.inputs] == [
        f"{5:020d}.cbor",
        f"{log.seq:020d}.cbor",
    ]


def test_a_segment_that_begins_with_the_next_record_is_enough(
    log: Any, key: str, tmp_path: Path
) -> None:
    folder = ledger(tmp_path, {0: b"never read", 5: b"".join(log.records[5:])})
    shown = verify([str(folder)], [key], environ={}, since=kept(log, 4)).logs[0]
    assert (shown.verdict, shown.counts.records) == (Verdict.VERIFIED, log.seq - 5)
    assert len(shown.inputs) == 1


def test_a_compressed_segment_that_ends_early_is_not_its_end(
    log: Any, key: str, tmp_path: Path
) -> None:
    packed = gzip.compress(log.data)
    path = tmp_path / "log.cbor.gz"
    whole = report(path, packed, key, kept(log, log.seq - 1))
    cut = report(path, packed[:-6], key, kept(log, log.seq - 1))
    assert (whole.verdict, cut.verdict) == (Verdict.VERIFIED, Verdict.CANNOT_VERIFY)
    assert [item.check for item in cut.findings] == ["unreadable"]
    assert cut.last_seq is None


def test_an_empty_segment_that_others_follow_is_told(log: Any, key: str, tmp_path: Path) -> None:
    head, next_ = b"".join(log.records[:-1]), log.records[-1]
    seq = log.seq - 1
    folder = ledger(tmp_path, {0: head, seq: b"", seq + 1: next_})
    shown = verify([str(folder)], [key], environ={}, since=kept(log, seq - 1)).logs[0]
    assert "segment_name" in [item.check for item in shown.findings]


def test_two_copies_that_end_there_move_the_pin_on(log: Any, key: str, tmp_path: Path) -> None:
    paths = [tmp_path / "one.cbor", tmp_path / "two.cbor"]
    for path in paths:
        path.write_bytes(log.data)
    pin = tmp_path / "pin.json"
    edge = kept(log, log.seq - 1)
    given_ = {"environ": {}, "since": edge, "pin_file": str(pin)}
    assert verify([*map(str, paths)], [key], **given_).verdict is Verdict.VERIFIED
    assert json.loads(pin.read_text())["seq"] == log.seq - 1
