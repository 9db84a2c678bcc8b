from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier import every_card, render, verify
from verifier.csvreport import COLUMNS, MAX_CELL, cell
from verifier.escape import is_hidden
from verifier.report import Event, History, LogReport, Report, Verdict

FORMULAS = "=+-@\uff1d\uff0b\uff0d\uff20\u2212\ufe66\ufe62\ufe63\ufe6b\t\r\n"


def unescaped(text: str) -> str:
    """Undo spec §9.2, by its own words."""
    short = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(
        r"\\(?:u\{([0-9a-f]+)\}|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else short.get(m[2], m[2]),
        text,
    )


def rows(report: Report) -> list[dict[str, str]]:
    text = "".join(render(report, "csv"))
    assert text.endswith("\r\n")
    return [*csv.DictReader(text.splitlines(keepends=True), strict=True)]


def read(log: Any, key: str, folder: Path, *keys: str) -> list[dict[str, str]]:
    path = folder / "log.cbor"
    path.write_bytes(log.data)
    return rows(verify([str(path)], [key], environ={}, wanted=every_card))


@given(st.text(max_size=MAX_CELL))
def test_a_cell_is_inert_and_says_what_it_was_made_of(text: str) -> None:
    shown = cell(text)
    assert shown.lstrip(" ")[:1] not in set(FORMULAS)
    assert not any(map(is_hidden, shown))
    assert ";" not in shown
    assert unescaped(shown) == text


@pytest.mark.parametrize("begin", [*FORMULAS, *(" " + sign for sign in FORMULAS)])
def test_what_begins_like_a_formula_is_written_out(begin: str) -> None:
    shown = cell(f"{begin}cmd|' /C calc'!A0")
    assert shown.lstrip(" ").startswith("\\")
    assert unescaped(shown) == f"{begin}cmd|' /C calc'!A0"


def test_a_long_text_is_cut_and_its_length_said() -> None:
    shown = cell("a" * 10_000_000)
    assert shown == "a" * MAX_CELL + "… (10000000 characters)"


def test_a_card_from_issue_to_outcome(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    card = log.issue()
    log.at += 500
    of = log.resolve(card)
    log.add(
        "refused",
        card[0],
        {"of": of, "gate": "settle", "reason": "not_dispatched", "count": 1},
        {"envelope": card[1]},
    )
    of = log.add("dispatched", card[0], {"of": of, "rebuilt": card[0]}, {"envelope": card[1]})
    log.add("settled", card[0], {"of": of, "outcome": "succeeded"}, {"envelope": card[1]})
    (row,) = read(log, key, tmp_path)
    verified_at = row.pop("verified_at")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", verified_at)
    assert row == {
        "verdict": "VERIFIED",
        "log": str(tmp_path / "log.cbor"),
        "log_sha256": hashlib.sha256(log.data).hexdigest(),
        "head": log.digests[-1].hex(),
        "log_assurance": "integrity only",
        "software": "cardchain-verify 0.1.0",
        "card_hash": card[0].hex(),
        "task_id": "run-1",
        "step": "refund",
        "tool": "refund.create",
        "kind": "tool_call",
        "issued_at": "2026-01-01T00:00:01.000Z",
        "not_after": "2026-01-01T00:30:01.000Z",
        "decision": "approve",
        "approver": "user:approver-1",
        "assurance": "label",
        "decided_at": "2026-01-01T00:00:02.500Z",
        "decision_latency_seconds": "1.500",
        "dispatched_at": "2026-01-01T00:00:04.500Z",
        "outcome": "succeeded",
        "state": "SETTLED",
        "refusals": "1",
        "refusal_reasons": "settle:not_dispatched",
        "supersedes": "",
        "seqs": "1 2 3 4 5",
        "findings": "",
        "doubt": "",
    }


def test_running_counts_are_not_added_up() -> None:
    def refusal(seq: int, reason: str, count: int) -> Event:
        body = {"gate": "resolve", "reason": reason, "count": count}
        return Event(seq, "refused", 0, body, {}, "log.cbor", 0)

    events = (refusal(1, "expired", 8), refusal(2, "expired", 16), refusal(3, "not_latest", 1))
    log = LogReport(
        "log.cbor",
        "cardchain/1",
        Verdict.VERIFIED,
        histories=(History("ab", None, events, "NOT ISSUED", "", ()),),
    )
    (row,) = rows(Report((log,)))
    assert (row["refusals"], row["refusal_reasons"]) == (
        "17",
        "resolve:expired resolve:not_latest",
    )


def test_refusals_to_issue_other_cards_of_a_step_are_not_counted(tmp_path: Path) -> None:
    case = Path(__file__).parents[2] / "fixtures" / "cases" / "intact_refusals_at_issue"
    keys = [str(case.parents[1] / "keys" / "a.json")]
    report = verify([str(case / "log.cbor")], keys, environ={}, wanted=every_card)
    refused = sum(
        event.kind == "refused" for each in report.logs[0].histories for event in each.events
    )
    assert refused > 0
    assert sum(int(row["refusals"]) for row in rows(report)) == refused


def test_an_unsound_record_says_nothing_but_its_finding(log: Any, key: str, tmp_path: Path) -> None:
    data = log.data
    log.records = [data[:-1] + bytes([data[-1] ^ 1])]
    (row,) = read(log, key, tmp_path)
    assert (row["verdict"], row["findings"], row["seqs"]) == ("BROKEN", "tag", "1")
    assert (row["decision"], row["approver"], row["state"]) == ("", "", "OPEN")
    assert row["doubt"] == "a missing or unsound record stands after it"


def test_a_card_of_which_nothing_sound_is_known_has_a_row(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    card = log.issue()
    log.records[1] = log.records[1].replace(b"duplicate payment", b"duplicate pAyment")
    (row,) = read(log, key, tmp_path)
    assert (row["card_hash"], row["findings"]) == (card[0].hex(), "card_hash")
    assert (row["task_id"], row["tool"], row["seqs"], row["state"]) == ("", "", "", "")
    assert row["doubt"] == "its issue may be lost"


@pytest.mark.parametrize("data", [b"", b"nothing of ours"])
def test_a_log_without_cards_has_a_row_with_its_verdict(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(data)
    report = verify([str(path)], environ={}, wanted=every_card)
    (row,) = rows(report)
    assert (row["verdict"], row["card_hash"]) == (report.verdict.value, "")
    assert row["verdict"] != "VERIFIED"
    assert row["log_sha256"] == hashlib.sha256(data).hexdigest()


def test_the_digest_of_a_directory_is_that_of_its_list(log: Any, key: str, tmp_path: Path) -> None:
    segments = tmp_path / "ledger" / "segments"
    segments.mkdir(parents=True)
    (segments / f"{0:020}.cbor").write_bytes(log.records[0])
    (segments / f"{1:020}.cbor").write_bytes(b"".join(log.records[1:]))
    report = verify([str(tmp_path / "ledger")], [key], environ={}, wanted=every_card)
    (row,) = rows(report)
    lines = "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(segments.iterdir())
    )
    assert row["verdict"] == "VERIFIED"
    assert row["log_sha256"] == hashlib.sha256(lines.encode()).hexdigest()


def test_an_envelope_of_a_later_format_is_not_guessed_at() -> None:
    issued = Event(1, "issued", 0, {}, {}, "log.cbor", 0)
    envelope = b'{"action":7,"format":"cardchain-card/9","kind":[],"task":null}'
    log = LogReport(
        "log.cbor",
        "cardchain/1",
        Verdict.CANNOT_VERIFY,
        histories=(History("ab", envelope, (issued,), "OPEN", "", ()),),
    )
    (row,) = rows(Report((log,)))
    assert {row[name] for name in ("task_id", "step", "tool", "kind", "not_after")} == {""}


def test_a_card_of_an_excerpt_is_in_doubt() -> None:
    sure = History("ab", None, (), "APPROVED", "", ())
    unsure = History("cd", None, (), "OPEN", "a key is missing", ())
    log = LogReport(
        "refund.receipt",
        "cardchain-excerpt/1",
        Verdict.VERIFIED,
        scope="card ab",
        histories=(sure, unsure),
    )
    assert [row["doubt"] for row in rows(Report((log,)))] == [
        "an excerpt cannot show that no later record of the card exists",
        "a key is missing",
    ]


def test_many_rows_come_in_pieces() -> None:
    history = History("ab" * 32, None, (), "OPEN", "", ())
    log = LogReport("log.cbor", "cardchain/1", Verdict.VERIFIED, histories=(history,) * 2000)
    pieces = [*render(Report((log,)), "csv")]
    assert len(pieces) > 2
    table = [*csv.reader("".join(pieces).splitlines())]
    assert table[0] == [*COLUMNS]
    assert len(table) == 2001
