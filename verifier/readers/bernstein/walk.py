"""The walk over the records of a Bernstein log, in order, once.

A record in which everything holds is accepted in one place; every rejection comes from the named
check. The hmac carried to the next record is the stored one, so that one edit is one finding.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from verifier.readers.bernstein.cards import ACKNOWLEDGED, PREFIX, Cards, Event
from verifier.readers.bernstein.chain import At, Chain
from verifier.readers.bernstein.envelope import HEX64
from verifier.readers.bernstein.fast import Fast
from verifier.readers.bernstein.files import LineTooLong, Segment, Survey, lines
from verifier.readers.bernstein.findings import LIMIT, Findings, Place, Problem
from verifier.readers.bernstein.keys import Key
from verifier.readers.bernstein.record import predecessor_problem, scheme_problem, shape_problem
from verifier.readers.bernstein.tears import Tear
from verifier.readers.bernstein.text import NotALine, Scanner, line_form, parse, seconds

GENESIS: Final = "0" * 64
_HMAC: Final = b'"hmac": "'
_HMAC_LENGTH: Final = len(_HMAC) + 64 + len(b'", ')
_KINDS: Final = 1000
_KIND_LENGTH: Final = 256
_DAY: Final = 86_400
_MIDNIGHT: Final = 300.0
_WRITER_DEFECT: Final = (
    "the HMAC covers these bytes, so the writer made them: it was given names that are not text, "
    "and Bernstein cannot read back what it wrote"
)


class Walk:
    """Reads segments in order and collects what is found and counted."""

    def __init__(self, keys: tuple[Key, ...], expect_head: str | None, *, from_start: bool) -> None:
        """Start before the first record; without `from_start` earlier files may be elsewhere."""
        self.findings = Findings()
        self.cards = Cards()
        self.chain = Chain()
        self.notes: Counter[str] = Counter()
        self.unauthentic = 0
        self.firsts: list[str] = []
        self.expected_at: int | None = None
        self.acknowledged: set[tuple[str, int]] = set()
        self._expect = expect_head
        self._from_start = from_start
        self._keys = list(keys)
        self._deferred: list[tuple[Problem, Place]] = []
        self._deferred_links: list[tuple[Problem, Place]] = []
        self._missed: set[str] = set()
        self._misdated = False
        self._at = At()
        self._scanner = Scanner()
        self._fast = Fast(self.chain, self.cards, self._keys, expect_head)

    def read(self, segment: Segment, survey: Survey, tears: tuple[Tear, ...]) -> None:
        """Walk one file. Raises OSError if it can no longer be read."""
        at = self._at = At(str(segment.path), segment.day)
        self._misdated = False
        source = lines(segment, survey.size)
        try:
            while (left := self._fast.left(source, at, ready=not tears)) is not None:
                raw, whole = left
                if any(tear.start <= at.offset < tear.end for tear in tears):
                    self._skip(raw)
                elif whole:
                    self._line(raw)
                else:
                    self._torn(raw)
        except LineTooLong:
            at.line, at.offset = at.line + 1, at.end
            self.lost("bernstein.limits", "a line of at most 64 MiB", "a longer one")

    def lost(self, check: str, expected: str, found: str, file: str = "") -> None:
        """Report bytes that could not be read as records; what follows is excused by them."""
        place = Place(file) if file else self._place()
        self.findings.add(Problem(check, expected, found), place)
        self._damaged()

    def finish(self) -> None:
        """Say that no HMAC held at all, which is not evidence of a change."""
        self.findings.drop_misplaced()
        if self._keys and self.unauthentic and not self.chain.authentic:
            names = ", ".join(key.file for key in self._keys)
            self.findings.add(
                Problem(
                    "bernstein.key",
                    "a key under which the HMACs of the log hold",
                    f"none of {self.unauthentic} HMACs holds under {names}",
                    "this is the key of another log; if it is the right one, every record was "
                    "changed",
                ),
                self._deferred[0][1],
            )
            for problem, place in self._deferred_links:
                self.findings.add(problem, place)

    @property
    def last(self) -> int:
        """The number of the last line, from 0."""
        return self.chain.seq

    def _place(self) -> Place:
        return Place(self._at.file, self._at.offset, self._at.line, max(self.chain.seq, 0))

    def _damaged(self) -> None:
        self.chain.excused = True
        self.cards.damage = max(self.chain.seq, 0)

    def _skip(self, raw: bytes) -> None:
        """Pass over torn bytes; the writer may have chained to a record that only lacked its LF."""
        try:
            hmac = parse(raw).get("hmac")
        except NotALine:
            return
        self.chain.alternative = hmac if isinstance(hmac, str) else None

    def _torn(self, raw: bytes) -> None:
        self.chain.seq += 1
        self.lost(
            "bernstein.torn_tail", "a file that ends with a whole line", f"{len(raw)} bytes more"
        )

    def _line(self, raw: bytes) -> None:
        self.chain.seq += 1
        record = self._canonical(raw)
        if record is not None:
            self.chain.records += 1
            self._examine(record, raw)

    def _examine(self, record: dict[str, Any], raw: bytes) -> None:
        """Make every check of a record by name, and report the first that fails."""
        link = record.get("prev_hmac")
        linked = link == (GENESIS if self.chain.head is None else self.chain.head)
        linked = linked or (link == self.chain.alternative and link is not None)
        self.chain.alternative = None
        self._expected(record)
        problem = shape_problem(record) or scheme_problem(record)
        if problem is None and not linked and not self.chain.excused:
            problem = self._unlinked(record)
        attributed = not linked and problem is None
        self._advance(record)
        if problem is None:
            problem = self._unauthentic(record, raw)
        problem = problem or predecessor_problem(record)
        if problem is not None:
            self.findings.add(problem, self._place())
            self.cards.touch(record)
            self._damaged()
            return
        self.chain.excused = attributed
        self._sound(record, seconds(record["timestamp"]) or 0.0)

    def _unlinked(self, record: dict[str, Any]) -> Problem | None:
        """Say why a record does not follow the one before it.

        A misplaced file explains it, and so does an earlier bad link where this record belongs:
        lines that were moved or swapped are one edit.
        """
        link = record["prev_hmac"]
        if link in self._missed:
            return None
        if self.chain.head is None and not self._from_start:
            self.findings.add(
                Problem("bernstein.left_edge", f"prev_hmac {GENESIS}", f"prev_hmac {link}"),
                self._place(),
            )
            self.cards.damage = 0
            return None
        if self._at.line == 1 and self._of_another_day(record["timestamp"]):
            self._misdated = True
            return Problem(
                "bernstein.day", f"a record of {self._at.day}", f"one of {record['timestamp']}"
            )
        problem = Problem(
            "bernstein.link", f"prev_hmac {self.chain.head or GENESIS}", f"prev_hmac {link}"
        )
        if self.chain.authentic or not self._deferred:
            if len(self._missed) < LIMIT:
                self._missed.add(self.chain.head or GENESIS)
            return problem
        if len(self._deferred_links) < LIMIT:
            self._deferred_links.append((problem, self._place()))
        return None

    def _canonical(self, raw: bytes) -> dict[str, Any] | None:
        """Give the record of a line in canonical form; report any other line."""
        try:
            text = raw.decode("ascii")
            self._scanner.constants = 0
            record, end = self._scanner.scan(text, 0)
            if end == len(text) and type(record) is dict and line_form(record) == text:
                return record
        except (ValueError, StopIteration, RecursionError):
            pass
        try:
            other = parse(raw)
        except NotALine as error:
            self.lost("bernstein.line", "one JSON object", str(error))
            return None
        self._not_canonical(raw, other)
        return None

    def _not_canonical(self, raw: bytes, record: dict[str, Any]) -> None:
        """Report a line whose value is a record but whose bytes are not those of the writer."""
        self.chain.records += 1
        self._expected(record)
        cause = ""
        if raw.endswith(b"\r"):
            cause = "line ends were converted, perhaps by a copy between systems"
        elif shape_problem(record) is None and self._holds(record, raw):
            self.chain.authentic += 1
            cause = _WRITER_DEFECT
        found = "CR before the LF" if raw.endswith(b"\r") else "other white space, order or escapes"
        self.findings.add(
            Problem("bernstein.canonical", "the bytes that the writer makes", found, cause),
            self._place(),
        )
        self._advance(record)
        self.cards.touch(record)
        self._damaged()

    def _advance(self, record: dict[str, Any]) -> None:
        hmac = record.get("hmac")
        if isinstance(hmac, str) and HEX64.fullmatch(hmac):
            self.chain.head = hmac
            if self._at.line == 1:
                self.firsts.append(hmac)

    def _expected(self, record: dict[str, Any]) -> None:
        if self._expect is not None and record.get("hmac") == self._expect:
            self.expected_at = self.chain.records - 1

    def _holds(self, record: dict[str, Any], raw: bytes) -> bool:
        """Say whether the HMAC holds under a key, and prefer that key from here on."""
        start = raw.rfind(_HMAC)
        body = raw[:start] + raw[start + _HMAC_LENGTH :]
        scheme = record.get("scheme", 1)
        for number, key in enumerate(self._keys):
            if key.record_hmac(scheme, record["prev_hmac"], body) == record["hmac"]:
                if number:
                    self._keys.insert(0, self._keys.pop(number))
                return True
        return False

    def _unauthentic(self, record: dict[str, Any], raw: bytes) -> Problem | None:
        """Check the HMAC; while none has held, a failure may only mean the wrong key."""
        if not self._keys:
            return None
        if self._holds(record, raw):
            self.chain.authentic += 1
            if self.chain.authentic == 1 and self._deferred:
                self._report_deferred()
            return None
        self.unauthentic += 1
        problem = Problem(
            "bernstein.hmac", "an HMAC of this record under the key", f"hmac {record['hmac']}"
        )
        if self.chain.authentic:
            return problem
        if len(self._deferred) < LIMIT:
            self._deferred.append((problem, self._place()))
        return None

    def _report_deferred(self) -> None:
        self.findings.drop_cards()
        for problem, place in self._deferred:
            self.findings.add(problem, place)
        self.cards.damage = self.chain.seq

    def _sound(self, record: dict[str, Any], at: float) -> None:
        """Count a record and apply what it says about a card."""
        kind, timestamp = record["event_type"], record["timestamp"]
        kinds = self.chain.kinds
        if kind in kinds or (len(kinds) < _KINDS and len(kind) <= _KIND_LENGTH):
            kinds[kind] += 1
        if self._scanner.constants:
            self.notes["records with NaN or Infinity, which is not JSON"] += 1
        if record.get("scheme") == 2:
            self.chain.seen_new = True
        elif self.chain.seen_new:
            self.notes["records of the old scheme 1 after records of scheme 2"] += 1
        day = self._at.day
        if day is not None and not timestamp.startswith(day):
            self._day(timestamp)
        if kind.startswith(PREFIX):
            self._card(record, at)
        elif kind == ACKNOWLEDGED:
            self._acknowledge(record["details"])
        self._clock(timestamp, at)

    def _card(self, record: dict[str, Any], at: float) -> None:
        scheme = record.get("scheme", 1)
        event = Event(record, self.chain.seq, scheme, at, self.chain.high, self.chain.high_seq)
        problem = self.cards.fold(event)
        if problem is not None:
            self.findings.add(problem, self._place())

    def _acknowledge(self, details: dict[str, Any]) -> None:
        segment, offset = details.get("segment"), details.get("byte_offset")
        if isinstance(segment, str) and len(segment) <= _KIND_LENGTH and type(offset) is int:
            self.acknowledged.add((segment, offset))

    def _clock(self, timestamp: str, at: float) -> None:
        if not self.chain.start:
            self.chain.start = timestamp
        self.chain.end = timestamp
        if at >= self.chain.high:
            self.chain.high, self.chain.high_seq = at, self.chain.seq
        else:
            self.notes["records with an earlier time than one before them"] += 1

    def _day(self, timestamp: str) -> None:
        if not self._misdated and self._of_another_day(timestamp):
            self._misdated = True
            self.findings.add(
                Problem("bernstein.day", f"a record of {self._at.day}", f"one of {timestamp}"),
                self._place(),
            )

    def _of_another_day(self, timestamp: str) -> bool:
        """Compare with the name of the file, give or take two readings of a clock at midnight."""
        day = self._at.day
        if day is None or timestamp.startswith(day):
            return False
        start, now = seconds(f"{day}T00:00:00.000000Z"), seconds(timestamp)
        if start is None or now is None:
            return True
        return not -_MIDNIGHT <= now - start <= _DAY + _MIDNIGHT
