"""The histories of the cards of a Bernstein log, from a second reading of files that were verified.

A record with a finding is left out. Of a log that is not VERIFIED other records may be unsound too,
as neighbouring faults are one finding, so then every card has a doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from verifier.histories import NOT_ISSUED, Histories, Standing
from verifier.readers.bernstein.cards import PREFIX
from verifier.readers.bernstein.envelope import HEX64, is_number
from verifier.readers.bernstein.files import (
    BadArchive,
    Bomb,
    LineTooLong,
    Segment,
    audit_folder,
    lines,
    segments,
    survey,
)
from verifier.readers.bernstein.text import NotALine, card_bytes, parse, seconds
from verifier.report import Event, History, LogReport, Verdict

_CHANGED: Final = "the log changed while it was read"
_KNOWN: Final = frozenset({"issued", "resolved", "refused", "released"})


def read_histories(log: LogReport, wanted: Callable[[str], bool]) -> Iterable[History]:
    """Read the log of a report again, and give the histories of the cards that are `wanted`."""
    reading = _Reading(log, wanted)
    try:
        for segment in _segments(log):
            reading.read(segment)
    except (OSError, BadArchive, Bomb, LineTooLong):
        reading.doubt = reading.doubt or _CHANGED
    reading.close()
    return reading.histories


def _segments(log: LogReport) -> Iterator[Segment]:
    """Give the files that were read; of a day that is there twice the first."""
    folder, known = audit_folder(log.path), set()
    file = Path(log.path)
    single = [Segment(file, file.name.removesuffix(".gz"))] if file.is_file() else []
    for segment in segments(folder) if folder else single:
        if segment.name not in known:
            known.add(segment.name)
            yield segment


class _Reading:
    """Takes in the events about cards, and how each card stands."""

    def __init__(self, log: LogReport, wanted: Callable[[str], bool]) -> None:
        self.histories = Histories(wanted)
        self.doubt = "" if log.verdict is Verdict.VERIFIED else f"the log is {log.verdict.value}"
        self._log = log
        self._digests = {part.file: part.sha256 for part in log.inputs}
        self._bad = {(finding.file, finding.offset) for finding in log.findings}
        self._states: dict[str, str] = {}
        self._refused: Counter[tuple[str, str]] = Counter()
        self._seq = -1

    def read(self, segment: Segment) -> None:
        """Read one file; raises what reading it raises."""
        file = str(segment.path)
        found = survey(segment, ())
        if self._digests.get(file) != found.stored_sha256:
            self.doubt = _CHANGED
        offset = 0
        for raw, _ in lines(segment, found.size):
            self._seq += 1
            if PREFIX.encode() in raw:
                self._line(raw, file, offset)
            offset += len(raw) + 1

    def close(self) -> None:
        """Say how each card stands."""
        states, why = self._states, self.doubt
        self.histories.close(
            self._log.findings, lambda card, _: Standing(states.get(card, NOT_ISSUED), why)
        )

    def _line(self, raw: bytes, file: str, offset: int) -> None:
        try:
            record = parse(raw)
        except NotALine:
            return
        kind, details = record.get("event_type"), record.get("details")
        if type(kind) is not str or not kind.startswith(PREFIX) or type(details) is not dict:
            return
        card = details.get("card_hash")
        if type(card) is not str or not HEX64.fullmatch(card):
            return
        kind = kind.removeprefix(PREFIX)
        # one that is not known may have no finding of its own, beside a fault or after very many
        if kind not in _KNOWN or (file, offset) in self._bad:
            self.histories.touch(card, file, offset)
            return
        at = seconds(_text(record.get("timestamp"))) or 0.0
        body, envelope = self._body(kind, card, record, details)
        event = Event(self._seq, kind, round(at * 1000), body, {}, file, offset)
        self.histories.add(card, event, envelope)

    def _body(
        self, kind: str, card: str, record: dict[str, Any], details: dict[str, Any]
    ) -> tuple[dict[str, Any], bytes | None]:
        """Give the body in the words of spec §3.5, and the envelope; note the state."""
        if kind == "issued":
            self._states[card] = "OPEN"
            return _issued(details.get("envelope"))
        if kind == "resolved":
            decision = _text(details.get("decision"))
            self._states[card] = {"approve": "APPROVED", "reject": "REJECTED"}.get(decision, "")
            approver = _text(details.get("approver")) or _text(record.get("actor"))
            return {"decision": decision, "approver": {"id": approver}}, None
        if kind == "refused":
            reason = _text(details.get("reason"))
            self._refused[card, reason] += 1
            if reason == "expired":
                self._states[card] = "EXPIRED"
            count = self._refused[card, reason]
            return {"gate": "resolve", "reason": reason, "count": count}, None
        if kind == "released":
            self._states[card] = "RELEASED"
        return {}, None


def _issued(envelope: Any) -> tuple[dict[str, Any], bytes | None]:
    """Give the end of the window in unix seconds, and the bytes that the card hash covers."""
    if type(envelope) is not dict:
        return {}, None
    not_after = envelope.get("not_after")
    body = {"not_after": not_after} if is_number(not_after) else {}
    try:
        return body, card_bytes(envelope)
    except (ValueError, RecursionError):
        return body, None


def _text(value: Any) -> str:
    return value if type(value) is str else ""
