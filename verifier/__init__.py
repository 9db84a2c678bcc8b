"""Verify approval logs offline, with the standard library only (docs/spec.md §10).

`verify` reads logs and gives a `Report`; `render_text` and `render_json` print one.
"""

from __future__ import annotations

from verifier.jsonreport import render_json
from verifier.keys import Key, Pin
from verifier.report import Finding, LogReport, Outcome, Report, Row, Verdict
from verifier.text import render_text
from verifier.verify import verify

__all__ = [
    "Finding",
    "Key",
    "LogReport",
    "Outcome",
    "Pin",
    "Report",
    "Row",
    "Verdict",
    "render_json",
    "render_text",
    "verify",
]
