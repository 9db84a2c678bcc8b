"""Verifies the audit log of Bernstein (`.sdd/audit`): chain, HMACs, and the approval cards in it.

Read for releases 3.6 to 3.23 with both of their MAC schemes.
The seq of a finding is the number of the line in the log, from 0: the format has no numbers.
Only what the reader saw is claimed: RFC 3161 anchors, witness signatures and grants are not read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from verifier.readers.bernstein.checks import BY_ID, CHECKS, SECTION
from verifier.readers.bernstein.files import (
    BadArchive,
    Bomb,
    Segment,
    Survey,
    audit_folder,
    looks_like_log,
    segments,
    survey,
)
from verifier.readers.bernstein.findings import LIMIT, Place, Problem
from verifier.readers.bernstein.keys import Keyring, find_keys
from verifier.readers.bernstein.marks import Marks, disagreement, read_marks
from verifier.readers.bernstein.tears import Tear, find_tears
from verifier.readers.bernstein.text import seconds
from verifier.readers.bernstein.walk import Walk
from verifier.report import Counts, History, Input, LogReport, Outcome, Row, Verdict

FORMAT: Final = "Bernstein audit log"
_WITHOUT_RECORDS: Final = frozenset(
    {"bernstein.readable", "bernstein.empty", "bernstein.key", "bernstein.archive"}
)
_UNREAD: Final = {
    "anchors.jsonl": "RFC 3161 anchors (checkpoints/anchors.jsonl)",
    "cosignatures.jsonl": "witness signatures (checkpoints/cosignatures.jsonl)",
}


def recognises(path: str) -> bool:
    """Say whether a path looks like a Bernstein log, or the place of one."""
    return looks_like_log(path)


def verify_log(
    path: str, key_files: Sequence[str], expect_head: str | None, expect_count: int | None
) -> LogReport:
    """Verify the log at `path`: an audit folder, its parents up to the project, or one day file.

    Without key files the place where Bernstein keeps its key is looked at, and the report says so.
    `expect_head` is the `hmac` of a record.
    """
    ring = find_keys(key_files)
    return _Verification(path, ring, expect_head, expect_count).report()


def histories(log: LogReport, wanted: Callable[[str], bool]) -> Iterable[History]:
    """Give the histories of the cards that are `wanted`, in the words of a cardchain log."""
    from verifier.readers.bernstein.history import read_histories

    return read_histories(log, wanted)


class _Verification:
    """One run: finds the files, walks them, compares the marks, and makes the report."""

    def __init__(
        self, path: str, ring: Keyring, expect_head: str | None, expect_count: int | None
    ) -> None:
        self._path = path
        self._ring = ring
        self._expect_head, self._expect_count = expect_head, expect_count
        self._folder = audit_folder(path)
        self._walk = Walk(ring.keys, expect_head, from_start=self._folder is not None)
        self._warnings = list(ring.warnings)
        self._inputs: list[Input] = []
        self._prefixes: dict[str, dict[int, str]] = {}
        self._contents: dict[str, tuple[str, Path]] = {}
        self._tears: list[Tear] = []
        self._marks: Marks | None = None

    def report(self) -> LogReport:
        """Verify and report."""
        folder = self._folder
        files = self._files()
        self._marks = read_marks(folder, self._ring.keys) if folder else None
        for segment in files:
            self._segment(segment)
        self._key()
        self._walk.finish()
        self._check_tears()
        self._check_marks()
        self._check_end()
        return self._made()

    def _files(self) -> list[Segment]:
        try:
            return segments(self._folder) if self._folder else _single(self._path)
        except OSError as error:
            self._walk.lost(
                "bernstein.readable", "a readable folder", str(error.strerror), str(self._folder)
            )
            return []

    def _segment(self, segment: Segment) -> None:
        file = str(segment.path)
        wanted = self._marks.wanted(segment.name) if self._marks else ()
        try:
            found = survey(segment, wanted)
            self._inputs.append(Input(file, found.stored_bytes, found.stored_sha256))
            if self._is_copy(segment, found):
                return
            self._prefixes[segment.name] = found.prefixes
            tears = find_tears(segment, found)
            self._tears += tears
            self._walk.read(segment, found, tears)
        except BadArchive as error:
            self._walk.lost("bernstein.archive", "a whole gzip file", str(error), file)
        except Bomb:
            self._walk.lost(
                "bernstein.limits", "a file that expands up to 200 times", "one that goes on", file
            )
        except OSError as error:
            found_text = error.strerror or "it cannot be read"
            self._walk.lost("bernstein.readable", "a readable file", found_text, file)

    def _is_copy(self, segment: Segment, found: Survey) -> bool:
        """A day that is there twice is read once if both say the same."""
        digest, path = self._contents.setdefault(segment.name, (found.content_sha256, segment.path))
        if path == segment.path:
            return False
        if digest == found.content_sha256:
            self._warnings.append(f"{segment.path} repeats {path} and was left out")
        else:
            self._walk.lost(
                "bernstein.archive",
                f"the content of {path}",
                "another content for the same day",
                str(segment.path),
            )
        return True

    def _key(self) -> None:
        if not self._ring.keys:
            self._walk.findings.add(
                Problem("bernstein.key", "a key file", self._ring.missing), Place(self._path)
            )

    def _check_tears(self) -> None:
        for tear in self._tears:
            what = f"{tear.end - tear.start} torn bytes in {tear.segment} at {tear.start}"
            if {(tear.segment, tear.start), (tear.segment, tear.end)} & self._walk.acknowledged:
                self._warnings.append(f"{what}, sealed by the writer and acknowledged")
            else:
                self._walk.findings.add(
                    Problem("bernstein.tear", "an acknowledgement", what),
                    Place(tear.segment, tear.start),
                )

    def _check_marks(self) -> None:
        """Compare the marks; a log that is broken already explains why it disagrees with them."""
        if self._marks is None:
            return
        self._warnings += self._marks.warnings
        walk = self._walk
        broken = walk.findings.verdict is Verdict.BROKEN
        if not (walk.unauthentic and not walk.chain.authentic):
            for problem, place in self._marks.problems:
                walk.findings.add(problem, place)
        for mark in self._marks.marks:
            contradiction = disagreement(mark, self._prefixes, walk.chain.records, walk.firsts)
            if contradiction and not broken:
                walk.findings.add(contradiction, mark.place)
                return

    def _check_end(self) -> None:
        walk, place = self._walk, Place(self._path)
        if walk.chain.records == 0 and not walk.findings.failed.keys() - {"bernstein.key"}:
            walk.findings.add(Problem("bernstein.empty", "at least one record", "none"), place)
        count = self._expect_count
        if count is not None and walk.chain.records < count:
            walk.findings.add(
                Problem(
                    "bernstein.expected_count",
                    f"at least {count} records",
                    f"{walk.chain.records} records",
                ),
                place,
            )
        if self._expect_head is None:
            return
        at = walk.expected_at
        if at is None or (count is not None and at != count - 1):
            where = "some record" if count is None else f"record {count - 1}"
            found = "no such record" if at is None else f"it is record {at}"
            walk.findings.add(
                Problem("bernstein.expected_head", f"{where} with hmac {self._expect_head}", found),
                place,
            )

    def _made(self) -> LogReport:
        walk, cards, findings = self._walk, self._walk.cards, self._walk.findings
        records = walk.chain.records
        ends = findings.failed.keys() & {"bernstein.expected_count", "bernstein.expected_head"}
        vouched = walk.expected_at == records - 1 or self._expect_count == records
        return LogReport(
            path=self._path,
            format=FORMAT,
            verdict=findings.verdict,
            rows=tuple(self._row(check.id) for check in CHECKS),
            findings=findings.listed(),
            findings_total=findings.total,
            warnings=(*self._warnings, *_noted(walk)),
            not_checked=self._not_checked(),
            counts=Counts(
                records=records,
                kinds=tuple(sorted(walk.chain.kinds.items())),
                cards=len(cards.cards),
                envelopes_ok=cards.envelopes_ok,
                envelopes_total=cards.envelopes_total,
                decisions_ok=cards.decisions_ok,
                decisions_total=cards.decisions_total,
                contained=cards.contained,
                asserted=cards.asserted,
            ),
            first_seq=0 if records else None,
            last_seq=walk.last if records else None,
            head=walk.chain.head,
            start_at=_millis(walk.chain.start),
            end_at=_millis(walk.chain.end),
            inputs=tuple(self._inputs),
            complete=records > 0 and vouched and not ends,
        )

    def _row(self, check: str) -> Row:
        claim, count = BY_ID[check].claim, self._walk.findings.failed.get(check, 0)
        reason = self._unchecked(check)
        if count:
            outcome = Outcome.FAIL
            if BY_ID[check].verdict is Verdict.CANNOT_VERIFY:
                outcome = Outcome.NOT_CHECKED
            return Row(check, SECTION, claim, outcome, f"findings: {count}")
        if reason:
            return Row(check, SECTION, claim, Outcome.NOT_CHECKED, reason)
        return Row(check, SECTION, claim, Outcome.PASS, "")

    def _unchecked(self, check: str) -> str:
        """Say why a check was not made, or nothing."""
        walk = self._walk
        if walk.chain.records == 0 and check not in _WITHOUT_RECORDS:
            return "there is no record"
        if check == "bernstein.hmac" and not walk.chain.authentic:
            return "there is no key of this log"
        marks = self._marks.marks if self._marks else ()
        if BY_ID[check].group == "mark" and not any(mark.check == check for mark in marks):
            return "there is none"
        if check == "bernstein.expected_count" and self._expect_count is None:
            return "no number was given"
        if check == "bernstein.expected_head" and self._expect_head is None:
            return "no hmac was given"
        return ""

    def _not_checked(self) -> tuple[str, ...]:
        """List what this report does not show."""
        folder = self._folder
        listed = [
            "the state of the systems that the approvals were about, and who pressed the button",
            "the arguments behind args_digest: the log does not hold them",
        ]
        if folder:
            listed += [
                text
                for name, text in _UNREAD.items()
                if os.path.exists(folder / "checkpoints" / name)
            ]
            if os.path.exists(folder / "_archived"):
                listed.append("files that an operator moved to _archived/")
        return tuple(listed)


def _single(path: str) -> list[Segment]:
    """A day file on its own is read as the whole log."""
    file = Path(path)
    if not os.path.isfile(file):
        return []
    return [Segment(file, file.name.removesuffix(".gz"))]


def _noted(walk: Walk) -> list[str]:
    notes = [*walk.notes.items(), *walk.cards.notes.items()]
    texts = [f"{what}: {count}" for what, count in notes]
    if walk.findings.total > LIMIT:
        texts.append(f"only the first {LIMIT} findings are listed")
    return texts


def _millis(timestamp: str) -> int | None:
    at = seconds(timestamp) if timestamp else None
    return None if at is None else round(at * 1000)
