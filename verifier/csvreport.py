"""The cards of a report as CSV (RFC 4180, UTF-8), one row a card, for spreadsheets and samples.

Text is escaped by spec §9.2, and in the same notation so is what a spreadsheet could take for a
formula or for the end of a cell: a sign for a formula at the beginning, and every semicolon. So
whoever undoes §9.2 has the text again, as far as it was not cut.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterator
from typing import Any

from verifier.escape import escaped
from verifier.report import Event, History, Input, LogReport, Report
from verifier.software import SOFTWARE
from verifier.text import utc

COLUMNS = (
    "verdict",
    "log",
    "log_sha256",
    "head",
    "log_assurance",
    "software",
    "verified_at",
    "card_hash",
    "task_id",
    "step",
    "tool",
    "kind",
    "issued_at",
    "not_after",
    "decision",
    "approver",
    "assurance",
    "decided_at",
    "decision_latency_seconds",
    "dispatched_at",
    "outcome",
    "state",
    "refusals",
    "refusal_reasons",
    "supersedes",
    "seqs",
    "findings",
    "doubt",
)
_PIECE = 1 << 16  # characters
MAX_CELL = 1000  # code points of a text; a spreadsheet takes 32,767 characters
_EXCERPT = "an excerpt cannot show that no later record of the card exists"
_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"  # also full-width and small


def render_csv(report: Report) -> Iterator[str]:
    """Give the header and the rows, in pieces; a log without cards has one row without a card.

    The report holds the histories of all cards.
    """
    piece = io.StringIO()
    write = csv.writer(piece).writerow
    write(COLUMNS)
    for values in _rows(report):
        write(values)
        if piece.tell() > _PIECE:
            yield piece.getvalue()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue()


def _rows(report: Report) -> Iterator[tuple[str | int, ...]]:
    for log in report.logs:
        begin = tuple(_of_log(report, log))
        beyond = _EXCERPT if log.scope else ""
        has_card = False
        for history in log.histories:
            has_card = True
            yield *begin, *_of_card(history), cell(history.doubt or beyond)
        if not has_card:
            yield *begin, *[""] * (len(COLUMNS) - len(begin))


def cell(text: str) -> str:
    """Give a text as the value of a cell that no spreadsheet evaluates."""
    if len(text) > MAX_CELL:
        text = f"{text[:MAX_CELL]}… ({len(text)} characters)"
    text = escaped(text).replace(";", "\\u{3b}")
    rest = text.lstrip(" ")
    if rest[:1] and rest[0] in _FORMULA:
        return f"{text[: len(text) - len(rest)]}\\u{{{ord(rest[0]):x}}}{rest[1:]}"
    return text


def sha256_of(inputs: tuple[Input, ...]) -> str:
    """Give the digest of a file; of several that of the lines that `sha256sum` prints for them."""
    if len(inputs) < 2:
        return inputs[0].sha256 if inputs else ""
    lines = (f"{part.sha256}  {os.path.basename(part.file)}\n" for part in inputs)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _of_log(report: Report, log: LogReport) -> Iterator[str]:
    yield log.verdict.value
    yield cell(log.path)
    yield sha256_of(log.inputs)
    yield log.head or ""
    yield " and ".join(log.assurance) or "none"
    yield SOFTWARE
    yield "" if report.header is None else utc(report.header.started_at)


def _of_card(history: History) -> Iterator[str | int]:
    """Give the values of COLUMNS after those of the log, but for the doubt."""
    first: dict[str, Event] = {}
    for event in history.events:
        first.setdefault(event.kind, event)
    issued, resolved = first.get("issued"), first.get("resolved")
    body = {} if resolved is None else resolved.body
    approver = body.get("approver", {})
    yield history.card
    yield from _of_envelope(history.envelope, issued)
    yield cell(body.get("decision", ""))
    yield cell(approver.get("id", ""))
    yield cell(approver.get("assurance", ""))
    yield "" if resolved is None else utc(resolved.at)
    yield _latency(issued, resolved)
    yield utc(first["dispatched"].at) if "dispatched" in first else ""
    outcomes = [event.body["outcome"] for event in history.events if event.kind == "settled"]
    yield cell(outcomes[-1] if outcomes else "")
    yield history.state
    yield from _refusals(history)
    yield _supersedes(issued)
    yield " ".join(str(event.seq) for event in history.events)
    yield " ".join(finding.check for finding in history.findings)


def _of_envelope(envelope: bytes | None, issued: Event | None) -> Iterator[str]:
    """Give task, step, tool, kind and window; of a foreign card its id stands for the task."""
    document = {} if envelope is None else json.loads(envelope)
    yield cell(_text(document, "task", "id") or _text(document, "approval_id"))
    yield cell(_text(document, "task", "step"))
    yield cell(_text(document, "action", "tool_name"))
    yield cell(_text(document, "kind"))
    yield "" if issued is None else utc(issued.at)
    not_after = None if issued is None else issued.body.get("not_after")
    yield "" if not_after is None else utc(round(not_after * 1000))


def _text(document: Any, *path: str) -> str:
    """Give a text of an envelope; an envelope of a later format may have anything in its place."""
    for name in path:
        document = document.get(name) if type(document) is dict else None
    return document if type(document) is str else ""


def _latency(issued: Event | None, resolved: Event | None) -> str:
    return "" if issued is None or resolved is None else f"{(resolved.at - issued.at) / 1000:.3f}"


def _refusals(history: History) -> Iterator[str | int]:
    """Give how many refusals there were, and for which reasons; each record has a running count.

    At the gate issue it is that of the step, so there the records of the card are counted.
    """
    counts: dict[str, int] = {}
    for event in history.events:
        if event.kind == "refused":
            reason = f"{event.body['gate']}:{event.body['reason']}"
            of_step = event.body["gate"] == "issue"
            counts[reason] = counts.get(reason, 0) + 1 if of_step else event.body["count"]
    yield sum(counts.values())
    yield cell(" ".join(counts))


def _supersedes(issued: Event | None) -> str:
    digest = None if issued is None else issued.body.get("supersedes")
    return "" if digest is None else digest.hex()
