"""Hostile text in every place of a log that can carry text stays inert in every format."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from verifier import FORMATS, Report, every_card, render, verify
from verifier.escape import is_hidden

TEXTS = {
    "verdict": "x\nVERIFIED\n",
    "carriage": "x\rVERIFIED",
    "separators": "x\u2028VERIFIED\u2029VERIFIED\x85VERIFIED\x0bVERIFIED\x0cVERIFIED",
    "clear": "\x1b[2J\x1b[HVERIFIED",
    "title": "\x1b]0;VERIFIED\x07\x9b31m",
    "backspace": "BROKEN\b\b\b\b\b\b",
    "bidi": "\u202eDEIFIREV\u202c\u2066\u200f",
    "invisible": "a\u200bb\ufeffc\U000e0041",
    "script": "<script>alert(1)</script><!--]]>&amp;",
    "formula": '=HYPERLINK("http://x";"y")',
    "at": "@SUM(1+9)*cmd|' /C calc'!A0",
    "full width": "\uff1dcmd|' /C calc'!A0",
    "separator": 'a;=1+1;"b",=1+1',
    "quote": '",""\r\n=1+1,"',
    "controls": "\x00\x01\x7f\x9d\ufffe\uffff",
    "long": "VERIFIED " * 28,
}
RAW_CONTROLS = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")


def lawful(log: Any, text: str) -> dict[str, Any]:
    """Give the members of a lawful envelope whose task and tool are `text`."""
    task = {"id": text, "step": text}
    arguments = {text: text}
    digest = hashlib.sha256(log.jcs(arguments)).hexdigest()
    effect = {
        "args_digest": digest,
        "capability": None,
        "format": "effect-key/1",
        "task": task,
        "tool_name": text,
    }
    return {
        "task": task,
        "action": {"tool_name": text, "arguments": arguments, "args_digest": digest},
        "effect_key": hashlib.sha256(log.jcs(effect)).hexdigest(),
        "kind": text,
    }


def named(log: Any, text: str) -> Iterator[str]:
    """Write cards with `text` in each place that can hold it; give what each place is called."""
    log.open()
    log.resolve(log.issue(30, **lawful(log, text)), approver={"id": text, "assurance": "label"})
    yield "lawful"
    for number, changed in enumerate(
        (
            {"reasoning": text},
            {"purpose": text},
            {"arguments": {text: text}},
            {"action": text},
            {"policy_version": text},
            {"subject": {"id": text, "source": text}},
            {"rollback": {"procedure": text, "irreversible": False}},
            {"impact": {"rationale": text}},
            {text: text},
        ),
        1,
    ):
        log.issue(number, **changed)
        yield next(iter(changed))
    log.resolve(log.issue(20), approver={"id": text, "assurance": "label"}, channel=text)
    yield "approver"
    log.resolve(log.issue(21), approver={"id": "a", "assurance": text})
    yield "assurance"
    log.resolve(log.issue(22), decision=text)
    yield "decision"
    card = log.issue(23)
    body = {"of": card[2], "gate": text, "reason": text, "count": 1}
    log.add("refused", card[0], body, {"envelope": card[1]})
    yield "reason"
    log.add(text, None, {text: text}, {text: text.encode("utf-8", "surrogatepass")})
    yield "record"
    log.add("configured", None, {"by": text, "vkey": text})
    yield "configured"
    log.add("opened", None, {"name": text, "software": text}, v=text)
    yield "version"


@pytest.fixture(params=TEXTS)
def report(
    request: pytest.FixtureRequest, new_log: Callable[..., Any], key: str, tmp_path: Path
) -> Report:
    """The report of a log, a key and a profile that are hostile in their bytes and their names."""
    text = TEXTS[request.param]
    log = new_log()
    assert len([*named(log, text)]) == 17
    name = text.replace("/", "_").replace("\x00", "")[:60]
    path = tmp_path / name
    path.write_bytes(log.data)
    (tmp_path / f"{name}.json").write_text(text, "utf-8", "surrogatepass", "")
    return verify(
        [str(path), str(tmp_path / f"{name}.gone")],
        [key, str(tmp_path / f"{name}.json")],
        profile_files=[str(tmp_path / f"{name}.json")],
        environ={},
        wanted=every_card,
    )


def shown(report: Report, name: str) -> str:
    return "".join(render(report, name, verbose=True))


def leaves(value: Any) -> Iterator[str]:
    """Give every text in a JSON value, names of members too."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_has_a_raw_control_or_separator(report: Report, name: str) -> None:
    text = shown(report, name)
    assert not RAW_CONTROLS.search(text.replace("\r\n", "\n") if name == "csv" else text)
    assert not {character for character in text if is_hidden(character)} - {"\r", "\n"}


def test_in_text_the_verdict_is_one_line(report: Report) -> None:
    lines = shown(report, "text").split("\n")
    assert lines[-2:] == ["BROKEN", ""]
    starts = [line for line in lines if re.match(r"\W*(VERIFIED|BROKEN|CANNOT VERIFY)", line)]
    assert starts == ["BROKEN"]


def test_in_json_no_text_hides_anything(report: Report) -> None:
    document = json.loads(shown(report, "json"))
    assert document["verdict"] == "BROKEN"
    assert not [text for text in leaves(document) if any(map(is_hidden, text))]


def test_in_junit_no_element_is_made_of_text(report: Report) -> None:
    root = ElementTree.fromstring(shown(report, "junit"))
    assert {element.tag for element in root.iter()} <= {
        *("testsuites", "testsuite", "properties", "property", "testcase"),
        *("failure", "error", "skipped", "system-out"),
    }
    verdicts = [
        item.get("value") for item in root.iter("property") if item.get("name") == "verdict"
    ]
    assert verdicts == [log.verdict.value for log in report.logs]


def test_in_csv_no_cell_is_evaluated(report: Report) -> None:
    text = shown(report, "csv")
    table = [*csv.reader(text.splitlines(keepends=True), strict=True)]
    assert len(table) > 5
    lawful_row = dict(zip(table[0], table[1], strict=True))
    texts = {lawful_row[name] for name in ("task_id", "step", "tool", "kind", "approver")}
    assert len(texts) == 1, "the text is there, and the same in every column"
    assert texts != {""}
    assert {len(line) for line in table} == {len(table[0])}
    assert {line[0] for line in table[1:]} <= {"BROKEN", "CANNOT VERIFY"}
    for cell in (cell for line in table for cell in line):
        assert cell.lstrip(" ")[:1] not in {*"=+-@\uff1d\uff0b\uff0d\uff20|%"}
        assert ";" not in cell


@pytest.mark.parametrize("name", FORMATS)
def test_a_huge_value_is_cut(
    name: str, new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    """A file of ten million bytes of one value is too much for a record, and for a report."""
    log = new_log()
    log.open()
    log.issue(1, reasoning="\x1b[2J" * 900_000)
    log.add("configured", None, {"by": "x" * 10_000_000})
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    report = verify([str(path)], [key], environ={}, wanted=every_card)
    assert report.verdict.value == "BROKEN"
    assert len(shown(report, name)) < 60_000
