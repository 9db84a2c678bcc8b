"""Impact and rollback of a call, as members of a proposal (spec §2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ledger.assess.arguments import JSON
from ledger.assess.loading import load
from ledger.assess.matching import Matched, match
from ledger.assess.rules import Detectors, Undo

DEFAULT: Final = load()

_PER_DETECTOR: Final = 5  # points for each detector beyond the one with the highest score


@dataclass(frozen=True, slots=True)
class Assessment:
    """The members `impact` and `rollback` of a proposal (spec §2.3)."""

    impact: dict[str, Any]
    rollback: dict[str, Any]


def assess(tool_name: str, arguments: JSON, *, detectors: Detectors = DEFAULT) -> Assessment:
    """Give the impact and the rollback of a call by a set of detectors.

    Total and pure: any value is assessed, the same call always alike, and nothing of
    the call stands in the texts. What does not fire is not known to be harmless.
    """
    matched = match(tool_name, arguments, detectors)
    hard = any(d.hard for d in matched.fired)
    known = [detectors.unknown if c is None else c.undo for c in matched.classes]
    impact = {
        "score": _score(matched, known),
        "hard_one_way": hard,
        "rationale": _rationale(matched, detectors),
        "fired_detectors": [d.id for d in matched.fired],
        "detector_set": {"id": detectors.id, "digest": detectors.digest},
    }
    return Assessment(impact, _rollback(matched, known))


def _score(matched: Matched, known: list[Undo]) -> int:
    """Give the highest score of what fired, and more for each further one; else of the classes."""
    if not matched.fired:
        return max((undo.score for undo in known), default=0)
    highest = max(d.undo.score for d in matched.fired)
    return min(100, highest + _PER_DETECTOR * (len(matched.fired) - 1))


def _rationale(matched: Matched, detectors: Detectors) -> str:
    if not matched.fired:
        classes = ", ".join("unknown" if c is None else c.id for c in matched.classes)
        return f"none of {len(detectors.detectors)} detectors fired; class: {classes}"
    fired = ", ".join(f"{d.id} (one way)" if d.hard else d.id for d in matched.fired)
    return f"{len(matched.fired)} of {len(detectors.detectors)} detectors fired: {fired}"


def _rollback(matched: Matched, known: list[Undo]) -> dict[str, Any]:
    """Say how to undo what fired and, where that is impossible, the rest; else the whole call."""
    irreversible = any(u.irreversible for u in [*known, *(d.undo for d in matched.fired)])
    if not matched.fired:
        procedure = "; ".join(dict.fromkeys(u.undo for u in known))
        return {"procedure": procedure, "irreversible": irreversible}
    rest = dict.fromkeys(f"rest of the call: {u.undo}" for u in known if u.irreversible)
    steps = [*(f"{d.id}: {d.undo.undo}" for d in matched.fired), *rest]
    return {"procedure": "; ".join(steps), "irreversible": irreversible}
