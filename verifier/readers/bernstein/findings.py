"""Findings as they are collected: one per edit, and never more than memory holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from verifier.readers.bernstein.checks import BY_ID
from verifier.report import Finding, Verdict

LIMIT: Final = 1000
_RUNS: Final = frozenset({"bernstein.line", "bernstein.canonical", "bernstein.hmac"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is wrong: file, byte offset, line from 1, number of the record from 0."""

    file: str
    offset: int | None = None
    line: int | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """What a check found, before it has a place; an empty `cause` takes that of the table."""

    check: str
    expected: str
    found: str
    cause: str = ""


class Findings:
    """Collects findings; a run of neighbouring lines with one fault is one finding."""

    def __init__(self) -> None:
        """Start empty."""
        self.total = 0
        self.failed: dict[str, int] = {}
        self._kept: list[tuple[Finding, int]] = []
        self._last: tuple[str, str, int] | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of what was found, however much of it was kept."""
        worst = Verdict.VERIFIED
        for check in self.failed:
            worst = worst.worse(BY_ID[check].verdict)
        return worst

    def add(self, problem: Problem, place: Place, verdict: Verdict | None = None) -> None:
        """Record a problem, or lengthen the run that ends at the line before it."""
        check = BY_ID[problem.check]
        line = -1 if place.line is None else place.line
        run = (check.id, place.file, line)
        if check.id in _RUNS and self._last == (check.id, place.file, line - 1):
            self._last = run
            if self.total <= LIMIT:
                finding, more = self._kept[-1]
                self._kept[-1] = (finding, more + 1)
            return
        self._last = run
        self.total += 1
        self.failed[check.id] = self.failed.get(check.id, 0) + 1
        if self.total <= LIMIT:
            self._kept.append((_finding(problem, place, verdict or check.verdict), 0))

    def drop_cards(self) -> None:
        """Forget what was found about cards: the records it rests on proved to be forged."""
        kept = [item for item in self._kept if BY_ID[item[0].check].group != "card"]
        for check in [check for check in self.failed if BY_ID[check].group == "card"]:
            self.total -= self.failed.pop(check)
        self._kept = kept
        self._last = None

    def drop_misplaced(self) -> None:
        """Forget bad links at the start of files where a file in the wrong place explains them."""
        if "bernstein.day" not in self.failed or "bernstein.link" not in self.failed:
            return
        kept = [
            item for item in self._kept if item[0].check != "bernstein.link" or item[0].line != 1
        ]
        gone = len(self._kept) - len(kept)
        self._kept = kept
        self.total -= gone
        self.failed["bernstein.link"] -= gone
        if not self.failed["bernstein.link"]:
            del self.failed["bernstein.link"]

    def listed(self) -> tuple[Finding, ...]:
        """Give the findings that were kept, in the order in which they were found."""
        return tuple(
            finding._replace(found=f"{finding.found}; so are the {more} lines after it")
            if more
            else finding
            for finding, more in self._kept
        )


def _finding(problem: Problem, place: Place, verdict: Verdict) -> Finding:
    check = BY_ID[problem.check]
    return Finding(
        check=check.id,
        verdict=verdict,
        file=place.file,
        offset=place.offset,
        line=place.line,
        seq=place.seq,
        expected=problem.expected,
        found=problem.found,
        cause=problem.cause or check.cause,
        next_command=check.next_step,
    )
