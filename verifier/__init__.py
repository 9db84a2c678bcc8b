"""Verify approval logs offline, with the standard library only (docs/spec.md §10).

`verify` reads logs and gives a `Report`; `render` gives one in a format, `render_text` and
`render_json` give it as a string. With `wanted=every_card` a report holds the history of each card,
which the format csv needs. `check_place` and `save` are for a report in a file, after which
`keep_head` moves on a pin file that `verify` was told to leave.
"""

from __future__ import annotations

from verifier.assurance import WORDS as ASSURANCE
from verifier.formats import FORMATS, every_card, render, render_json
from verifier.keys import Key, Pin
from verifier.output import PlaceRefused, check_place, save, wants_colour
from verifier.pinfile import PinRefused
from verifier.progress import watcher
from verifier.report import Drift, Event, Finding, History, LogReport, Outcome, Report, Row, Verdict
from verifier.state import Edge
from verifier.text import render_text, verdict_line
from verifier.verify import keep_head, verify

__all__ = [
    "ASSURANCE",
    "FORMATS",
    "Drift",
    "Edge",
    "Event",
    "Finding",
    "History",
    "Key",
    "LogReport",
    "Outcome",
    "Pin",
    "PinRefused",
    "PlaceRefused",
    "Report",
    "Row",
    "Verdict",
    "check_place",
    "every_card",
    "keep_head",
    "render",
    "render_json",
    "render_text",
    "save",
    "verdict_line",
    "verify",
    "wants_colour",
    "watcher",
]
