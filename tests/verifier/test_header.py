from __future__ import annotations

import json
import platform
import re
import time
from pathlib import Path
from typing import Any

from verifier import Report, render, render_text, verify
from verifier.report import Header


def test_a_report_says_what_looked_and_when(log: Any, key: str, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    before = int(time.time() * 1000)
    header = verify([str(path)], [key], environ={}).header
    after = int(time.time() * 1000) + 1
    assert header is not None
    assert before <= header.started_at <= header.ended_at <= after
    assert (
        header.python == f"{platform.python_implementation().lower()} {platform.python_version()}"
    )
    assert re.fullmatch("[0-9a-f]{64}", str(header.source_sha256))


def test_the_header_stands_in_text_and_json() -> None:
    report = Report((), Header("cardchain-verify 9.9.9", None, "cpython 3.11.7", 0, 61_001))
    assert render_text(report).splitlines()[1:4] == [
        "source sha256: not at hand",
        "python: cpython 3.11.7",
        "run: 1970-01-01T00:00:00.000Z to 1970-01-01T00:01:01.001Z by the clock of this host",
    ]
    document = json.loads("".join(render(report, "json")))
    assert document["header"] == {
        "source_sha256": None,
        "python": "cpython 3.11.7",
        "started_at": 0,
        "ended_at": 61_001,
    }


def test_a_report_made_by_hand_has_none() -> None:
    assert "python" not in render_text(Report(()))
    assert json.loads("".join(render(Report(()), "json")))["header"] is None
