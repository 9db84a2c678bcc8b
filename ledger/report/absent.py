"""Which openings of the records of a card are not in the log, and what the log says of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.hidden import shown
from ledger.kinds import bound_openings
from ledger.report.markup import utc
from verifier import Event, History


def absent(history: History, redactions: Sequence[Event]) -> Iterator[str]:
    """Name those that are erased: when, by whom and why; and those that are just not there.

    `redactions` are the events of the log that say what was erased. The sentences are escaped.
    """
    seqs = {event.seq for event in history.events}
    erased = set()
    for each in redactions:
        body = each.body
        if body["seq"] in seqs:
            erased |= {(body["seq"], name) for name in body["openings"]}
            names = ", ".join(map(shown, body["openings"]))
            who = f'"{shown(body["by"])}"'
            said = f"{names} of seq {body['seq']} redacted: {body['reason']} by {who}"
            yield f"{said} at {utc(each.at)}, seq {each.seq}"
    for event in history.events:
        for name in _missing(history, event):
            if (event.seq, name) not in erased:
                yield f"{name} of seq {event.seq} absent: withheld or lost"


def _missing(history: History, event: Event) -> Iterator[str]:
    """Give the openings that a record binds and lacks; one of a foreign log binds none."""
    try:
        bound = bound_openings(event.kind, bytes.fromhex(history.card), event.body)
    except (KeyError, TypeError):
        return
    for name in bound:
        there = history.envelope is not None if name == "envelope" else name in event.openings
        if not there:
            yield name
