"""One row of the table of checks (spec §10.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from verifier.checks.causes import CAUSES
from verifier.report import Verdict
from verifier.shape import Problem

RECORD = "record"
OPENINGS = "openings"
LOG = "log"
LOGS = "logs"
ANCHOR = "anchor"
EXCERPT = "excerpt"
REPORT = "report"

UNSOUND_GROUPS = frozenset(
    {
        "framing",
        "canonical form",
        "sequence",
        "link",
        "tag",
        "key lifecycle",
        "time",
        "card hash",
        "envelope schema",
        "effect key",
    }
)


class Check(NamedTuple):
    """One row: what is claimed and the function that tests it.

    `kinds` are the only kinds of events that the row can concern; none means all. With
    `first_shown` it also concerns the first record that has the envelope of a card which was
    issued without it.
    """

    id: str
    group: str
    section: str
    claim: str
    function: Callable[..., Problem | None]
    verdict: Verdict = Verdict.BROKEN
    scope: str = RECORD
    kinds: tuple[str, ...] = ()
    first_shown: bool = False

    @property
    def cause(self) -> str:
        """The likely cause of a failure, in words."""
        return CAUSES[self.id][0]

    @property
    def next_command(self) -> str:
        """The command to run next."""
        return CAUSES[self.id][1]

    def concerns(self, kind: str | None, first_shown: bool = False) -> bool:
        """Say whether the row can concern a record of this kind."""
        return not self.kinds or kind in self.kinds or (first_shown and self.first_shown)

    @property
    def unsound(self) -> bool:
        """Whether a record that fails it is not folded into the state (spec §10.3, rule 2)."""
        return self.group in UNSOUND_GROUPS or self.id in ("inclusion", "opening_digest")
