"""Torn writes: bytes that a crash left, sealed by the writer's next record.

A `chain.torn_record` names the file, the bytes and their SHA-256. Bytes that it names truly are
no records. The seal itself is a record like any other, so it is only as good as its HMAC.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from verifier.readers.bernstein.files import LineTooLong, Segment, Survey, lines, read_range
from verifier.readers.bernstein.text import NotALine, parse


@dataclass(frozen=True, slots=True)
class Tear:
    """Torn bytes from `start` on and before `end`."""

    segment: str
    start: int
    end: int


def find_tears(segment: Segment, survey: Survey) -> tuple[Tear, ...]:
    """Give the torn bytes of a file that a seal right behind them names truly."""
    if not survey.has_tear:
        return ()
    tears: list[Tear] = []
    offset = 0
    try:
        for raw, _ in lines(segment, survey.size):
            if b'"chain.torn_record"' in raw:
                tear = _tear(segment, raw, offset)
                if tear is not None:
                    tears.append(tear)
            offset += len(raw) + 1
    except LineTooLong:
        return tuple(tears)
    return tuple(tears)


def _tear(segment: Segment, raw: bytes, offset: int) -> Tear | None:
    try:
        record = parse(raw)
    except NotALine:
        return None
    details = record.get("details")
    if record.get("event_type") != "chain.torn_record" or not isinstance(details, dict):
        return None
    start, end = details.get("verified_prefix_offset"), details.get("byte_offset")
    if type(start) is not int or type(end) is not int or details.get("segment") != segment.name:
        return None
    if not 0 <= start < end <= offset <= end + 1:
        return None
    torn = read_range(segment, start, end)
    if hashlib.sha256(torn).hexdigest() != details.get("torn_bytes_sha256"):
        return None
    return Tear(segment.name, start, end)
