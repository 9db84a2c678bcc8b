from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from verifier import Finding, LogReport, Report, Verdict, render_json, verify
from verifier.escape import is_hidden

MEMBERS = {
    "path",
    "format",
    "verdict",
    "inputs",
    "chain",
    "kids",
    "first_seq",
    "last_seq",
    "head",
    "start_at",
    "end_at",
    "complete",
    "counts",
    "rows",
    "findings",
    "findings_total",
    "warnings",
    "not_checked",
}


def test_one_document_with_stable_members(log: Any, key: str, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data + b"\n")
    document = json.loads(render_json(verify([str(path)], [key], environ={})))
    assert document.keys() >= {"schema", "software", "verdict", "exit_code", "logs"}
    assert (document["verdict"], document["exit_code"]) == ("BROKEN", 3)
    (one,) = document["logs"]
    assert one.keys() >= MEMBERS
    assert one["head"] == log.digests[-1].hex()
    assert one["counts"]["kinds"] == {"issued": 1, "opened": 1, "resolved": 1}
    (finding,) = one["findings"]
    assert (finding["check"], finding["offset"], finding["seq"]) == (
        "framing",
        len(log.data),
        None,
    )
    assert {row["check"]: row["outcome"] for row in one["rows"]}["framing"] == "FAIL"


@given(st.text(max_size=30))
def test_texts_of_a_log_are_escaped(text: str) -> None:
    finding = Finding("tag", Verdict.BROKEN, text, None, None, None, text, text, text, text)
    log = LogReport(text, text, Verdict.BROKEN, findings=(finding,), warnings=(text,))
    shown = render_json(Report((log,)))
    assert shown.isascii()
    for value in json.loads(shown)["logs"][0]["findings"][0].values():
        assert not any(map(is_hidden, str(value)))
