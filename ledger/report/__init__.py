"""A report of one page for people: one HTML file, no script, no network (spec §9, §10).

The verdict is the verifier's, computed from the bytes; the page adds what the approver saw.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from ledger.report import cards, evidence, timeline
from ledger.report.markup import text, value
from verifier import LogReport, Report

__all__ = ["render_page"]

_STYLE: Final = (files("ledger.report") / "style.css").read_text("utf-8")
_POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    + "'"
)


def render_page(report: Report, *, only: str = "") -> Iterator[str]:
    """Give the page in pieces; the logs of `report` hold the histories of the cards to show.

    `only` says in words which cards were asked for, where not all were.
    """
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n'
    yield f"<title>{text(report.verdict.value)}: approvals in {_named(report)}</title>\n"
    yield f"<style>{_STYLE}</style>\n</head>\n<body>\n"
    yield '<a class="skip" href="#cards">to the cards</a>\n<main>\n'
    yield from evidence.banner(report)
    for number, log in enumerate(report.logs):
        yield from _log(report, log, "cards" if number == 0 else f"cards-{number + 1}", only)
    yield "</main>\n</body>\n</html>\n"


def _named(report: Report) -> str:
    return ", ".join(value(log.path) for log in report.logs)


def _log(report: Report, log: LogReport, anchor: str, only: str) -> Iterator[str]:
    histories = list(log.histories)
    found = timeline.moments(histories)
    sight = cards.Sight(
        {history.card: history for history in histories},
        {drift.seq: drift for drift in log.drifts},
        evidence.CAUTION[log.verdict],
    )
    yield f"<h2>{value(log.path)}</h2>\n"
    if only:
        yield f'<p class="caution">This page shows {text(only)}, and no other card.</p>\n'
    yield from evidence.of_log(report, log)
    yield "<h3>How to check this yourself</h3>\n"
    yield from evidence.check_yourself(log)
    yield f'<h2 id="{anchor}">Cards: {len(histories):,}</h2>\n'
    yield from timeline.summary(found)
    yield f"<details><summary>List of the cards</summary>\n{''.join(timeline.index(histories))}"
    yield "</details>\n<details><summary>Timeline of the chain</summary>\n"
    yield from timeline.rows(found, sight)
    yield "</details>\n"
    for history in histories:
        yield from cards.section(history, sight)
