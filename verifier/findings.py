"""The finding of a check that failed, and the limits of what one says (spec §10.3)."""

from __future__ import annotations

from verifier.checks import Check
from verifier.evidence import Evidence
from verifier.report import Finding
from verifier.shape import Problem
from verifier.state import Absent

MAX_TEXT = 1000  # code points of what a finding quotes


def finding(
    check: Check, problem: Problem, record: Evidence | Absent | None, file: str = ""
) -> Finding:
    """Make the finding of a check about a record, about a file beside a log, or a whole log."""
    kid = record.kid.hex() if isinstance(record, Evidence) else ""
    return Finding(
        check=check.id,
        verdict=check.verdict,
        file=file if record is None else record.file,
        offset=None if record is None or record.offset < 0 else record.offset,
        line=None,
        seq=None if record is None else record.seq,
        expected=_cut(problem[0]),
        found=_cut(problem[1]),
        cause=check.cause,
        next_command=check.next_command.replace("{kid}", kid or "KID"),
    )


def _cut(text: str) -> str:
    """Give a text, or its beginning where it is so long that a report could exhaust memory."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text)} characters)"
