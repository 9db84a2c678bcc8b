"""What a set of detectors says about a program, found by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ledger.assess.commands import one_of
from ledger.assess.rules import Carrier, CommandRule, Detector, Detectors, ToolClass, Words


@dataclass(frozen=True, slots=True)
class Known:
    """The carriers, rules and classes whose first word is a program."""

    carriers: list[Carrier] = field(default_factory=list)
    rules: list[tuple[Detector, CommandRule]] = field(default_factory=list)
    classes: list[tuple[ToolClass, Words]] = field(default_factory=list)

    def extend(self, other: Known) -> None:
        """Take in what another says."""
        self.carriers.extend(other.carriers)
        self.rules.extend(other.rules)
        self.classes.extend(other.classes)


class Programs:
    """An index of a set, so that a text of many commands is not held against every rule."""

    def __init__(self, detectors: Detectors) -> None:
        """Index a set; patterns that are no plain names are compared one by one."""
        self._named: dict[str, Known] = {}
        self._patterns: dict[str, Known] = {}
        for pattern, known in _entries(detectors):
            index = self._named if pattern.isalnum() else self._patterns
            index.setdefault(pattern, Known()).extend(known)

    def about(self, program: str) -> Known:
        """Give what the set says about a program."""
        found = Known()
        found.extend(self._named.get(program, Known()))
        for pattern, known in self._patterns.items():
            if one_of(program, (pattern,)):
                found.extend(known)
        return found


@lru_cache(maxsize=8)
def programs(detectors: Detectors) -> Programs:
    """Give the index of a set, made once."""
    return Programs(detectors)


def _entries(detectors: Detectors) -> Iterator[tuple[str, Known]]:
    for carrier in detectors.carriers:
        for pattern in carrier.words[0]:
            yield pattern, Known(carriers=[carrier])
    for detector in detectors.detectors:
        for rule in detector.commands:
            for pattern in rule.words[0]:
                yield pattern, Known(rules=[(detector, rule)])
    for tool_class in detectors.classes:
        for words in tool_class.commands:
            for pattern in words[0]:
                yield pattern, Known(classes=[(tool_class, words)])
