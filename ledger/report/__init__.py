"""A report of one page for people: one HTML file that asks the network for nothing (spec §9, §10).

The verdict is the verifier's, computed from the bytes; the page adds what the approver saw.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from ledger.hidden import shown
from ledger.report import cards, evidence, timeline
from ledger.report.markup import text, value
from verifier import LogReport, Report

__all__ = ["render_page"]

_STYLE: Final = (files("ledger.report") / "style.css").read_text("utf-8")
_BATCH: Final = 50  # cards that a browser lays out together, so that none of its steps is long
_IDLE: Final = "0"  # a script that does nothing: a browser that meets it lets the page be used
_PAUSE: Final = f"<script>{_IDLE}</script>\n"


def render_page(report: Report, *, only: str = "") -> Iterator[str]:
    """Give the page in pieces; the logs of `report` hold the histories of the cards to show.

    `only` says in words which cards were asked for, where not all were.
    """
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n'
    yield f"<title>{text(report.verdict.value)}: approvals in {text(_named(report))}</title>\n"
    yield f"<style>{_STYLE}</style>\n</head>\n<body>\n"
    yield '<a class="skip" href="#cards">to the cards</a>\n<main>\n'
    yield from evidence.banner(report)
    for number, log in enumerate(report.logs, 1):
        yield from _log(report, log, "" if number == 1 else f"-{number}", only)
    yield "</main>\n</body>\n</html>\n"


def _policy() -> str:
    """Give what the page may do: show its one style, run the one script that does nothing."""
    style, script = (
        base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        for body in (_STYLE, _IDLE)
    )
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    )


def _named(report: Report) -> str:
    return ", ".join(f'"{shown(log.path)}"' for log in report.logs)


def _log(report: Report, log: LogReport, suffix: str, only: str) -> Iterator[str]:
    """Give one log; `suffix` makes its anchors others than those of the logs before it."""
    histories = list(log.histories)
    found = timeline.moments(histories, log.chain_events)
    sight = cards.Sight(
        {history.card: history for history in histories},
        {drift.seq: drift for drift in log.drifts},
        evidence.CAUTION[log.verdict],
        f"card{suffix}-",
        [event for event in log.chain_events if event.kind == "redacted"],
    )
    yield f"<h2>{value(log.path)}</h2>\n"
    if only:
        yield f'<p class="caution">This page shows {text(only)}, and no other card.</p>\n'
    yield from evidence.of_log(report, log)
    yield "<h3>How to check this yourself</h3>\n"
    yield from evidence.check_yourself(log)
    yield f'<h2 id="cards{suffix}">Cards: {len(histories):,}</h2>\n'
    yield from timeline.summary(found)
    yield "<details><summary>List of the cards</summary>\n"
    yield from _paused(timeline.index(histories, sight))
    yield "</details>\n<details><summary>Timeline of the chain</summary>\n"
    yield from _paused(timeline.rows(found, sight))
    yield "</details>\n"
    for start in range(0, len(histories), _BATCH):
        yield f'{_PAUSE}<div class="batch">\n'
        for history in histories[start : start + _BATCH]:
            yield from cards.section(history, sight)
        yield "</div>\n"


def _paused(lists: Iterator[str]) -> Iterator[str]:
    """Put a pause before each list of a long row of lists."""
    for piece in lists:
        yield _PAUSE + piece
