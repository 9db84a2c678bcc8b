from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml

from verifier import Finding, LogReport, Outcome, Report, Row, Verdict, render, verify
from verifier.escape import is_hidden
from verifier.report import Header, Input


def junit(report: Report) -> str:
    return "".join(render(report, "junit"))


def row(check: str, outcome: Outcome, detail: str = "") -> Row:
    return Row(check, "§3.1", "it holds", outcome, detail)


def finding(check: str, verdict: Verdict) -> Finding:
    return Finding(check, verdict, "log.cbor", 7, None, 3, "a", "b", "c", "d")


def test_each_check_is_one_test_case() -> None:
    log = LogReport(
        "log.cbor",
        "cardchain/1",
        Verdict.BROKEN,
        rows=(
            row("framing", Outcome.PASS),
            row("fork", Outcome.NOT_CHECKED, "no other input of this chain"),
            row("tag", Outcome.FAIL, "2 findings"),
            row("key_missing", Outcome.NOT_CHECKED, "findings: 1"),
            row("link", Outcome.FAIL, "1 finding"),
        ),
        findings=(
            finding("tag", Verdict.BROKEN),
            finding("tag", Verdict.BROKEN),
            finding("key_missing", Verdict.CANNOT_VERIFY),
            finding("nowhere", Verdict.BROKEN),
        ),
        findings_total=5,
    )
    (suite,) = ElementTree.fromstring(junit(Report((log,))))
    ended = {case.get("name"): [part.tag for part in case] for case in suite.iter("testcase")}
    assert ended == {
        "framing": ["system-out"],
        "fork": ["skipped", "system-out"],
        "tag": ["failure", "system-out"],
        "key_missing": ["error", "system-out"],
        "link": ["failure", "system-out"],
        "nowhere": ["failure"],
    }
    numbers = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert numbers == ["6", "3", "1", "1"]
    (skipped,) = suite.iter("skipped")
    assert skipped.get("message") == "no other input of this chain"
    (failure,) = suite.findall("testcase[@name='tag']/failure")
    assert failure.attrib == {"type": "BROKEN", "message": "BROKEN: 2 findings"}
    assert str(failure.text).splitlines() == 2 * [
        "finding: tag",
        "  where: log.cbor, offset 7, seq 3",
        "  expected: a",
        "  found: b",
        "  cause: c",
        "  next: d",
    ]


def test_the_evidence_stands_in_the_properties(log: Any, key: str, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    (suite,) = JUnitXml.fromstring(junit(verify([str(path)], [key], environ={})).encode())
    found = {item.name: item.value for item in suite.properties()}
    assert found["verdict"] == "VERIFIED"
    assert found["assurance"] == "integrity only"
    assert found["head"] == log.digests[-1].hex()
    assert found["kids"] == log.kid.hex()
    assert found["events resolved"] == "1"
    assert found["software"].startswith("cardchain-verify ")
    assert found["input"].startswith(f"{path}, {len(log.data)} bytes, sha256 ")
    assert suite.timestamp == found["started"][:19]
    assert suite.name == str(path)


@given(st.text(max_size=30) | st.sampled_from(["\x1b[2J", "]]>", "<script>", "\udcff", "\ufffe"]))
def test_no_text_leaves_its_place(text: str) -> None:
    log = LogReport(
        text,
        text,
        Verdict.BROKEN,
        rows=(row("tag", Outcome.FAIL, text), row("fork", Outcome.NOT_CHECKED, text)),
        findings=(Finding("tag", Verdict.BROKEN, text, 1, 2, 3, text, text, text, text),),
        warnings=(text,),
        not_checked=(text,),
        inputs=(Input(text, 1, "ab"),),
    )
    shown = junit(Report((log,), Header("s 1", None, "p", 0, 1500)))
    assert shown.isascii()
    root = ElementTree.fromstring(shown)
    plain = ElementTree.fromstring(
        junit(Report((log._replace(warnings=("x",)),), Header("s 1", None, "p", 0, 1500)))
    )
    assert [element.tag for element in root.iter()] == [element.tag for element in plain.iter()]
    for element in root.iter():
        values = [*element.attrib.values(), *(element.text or "").splitlines()]
        assert not any(is_hidden(character) for value in values for character in value)
    assert root.get("time") == "1.500"


def test_what_the_assurance_does_not_reach_is_in_the_properties() -> None:
    log = LogReport(
        "log.cbor",
        "cardchain/1",
        Verdict.VERIFIED,
        last_seq=8,
        assurance=("pinned", "signed"),
        signed_to=5,
        pinned_to=6,
        withheld_total=2,
    )
    (suite,) = JUnitXml.fromstring(junit(Report((log,))).encode())
    found = {item.name: item.value for item in suite.properties()}
    assert (found["signed up to seq"], found["pinned up to seq"]) == ("5", "6")
    assert found["withheld openings"] == "2"
    assert found["not checked"] == "the log may go on beyond seq 8; give --expect-head HEX"
