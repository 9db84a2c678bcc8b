"""The envelope of a card v2: its members, their ranges, and its hash.

The hash is taken over the envelope as it is stored. Bernstein's own check reads the envelope
first (missing members get defaults, unknown ones are dropped, types are converted) and hashes
what is left, so it overlooks an envelope that was changed within these limits.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Any, Final

from verifier.readers.bernstein.findings import Problem
from verifier.readers.bernstein.text import card_bytes, shown

HEX64: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
MAX_REASONING: Final = 600
FAR: Final = 1e15
_MEMBERS: Final = (
    "action",
    "approval_id",
    "card_version",
    "created_at",
    "impact",
    "not_after",
    "reasoning",
    "rollback",
)
_ACTION: Final = ("args_digest", "tool_name")
_IMPACT: Final = ("fired_detectors", "hard_one_way", "rationale", "score")
_ROLLBACK: Final = ("irreversible", "procedure")
_NORMALISED: Final = (
    "the stored envelope was changed; Bernstein's own check overlooks it, because it hashes the "
    "envelope after converting types, filling in defaults and dropping unknown members"
)


def envelope_problem(envelope: Any, card_hash: str, scheme: int) -> Problem | None:
    """Say what is wrong with the envelope of an issued card, or None."""
    version = envelope.get("card_version", "v2")
    if isinstance(version, str) and re.fullmatch(r"v\d{1,4}", version) and version != "v2":
        return Problem("bernstein.version", "a card of version v2", f"version {shown(version)}")
    try:
        actual = hashlib.sha256(card_bytes(envelope)).hexdigest()
    except (ValueError, RecursionError):
        return Problem(
            "bernstein.card_hash",
            "an envelope that can be hashed",
            "a number that is not finite, or text that is not Unicode",
        )
    if actual != card_hash:
        return Problem(
            "bernstein.card_hash",
            f"an envelope with the hash {card_hash}",
            f"an envelope with the hash {actual}",
            _NORMALISED if _normalised_hash(envelope) == card_hash else "",
        )
    rule = None if _lawful(envelope) else _broken_rule(envelope, scheme)
    return Problem("bernstein.envelope", *rule) if rule else None


def _lawful(envelope: dict[str, Any]) -> bool:
    """Accept an envelope as every release since 3.8.0 makes it; anything else is examined."""
    if tuple(envelope) != _MEMBERS:
        return False
    action, impact, rollback = envelope["action"], envelope["impact"], envelope["rollback"]
    if not (
        type(action) is type(impact) is type(rollback) is dict
        and tuple(action) == _ACTION
        and tuple(impact) == _IMPACT
        and tuple(rollback) == _ROLLBACK
    ):
        return False
    reasoning, score = envelope["reasoning"], impact["score"]
    created_at, not_after = envelope["created_at"], envelope["not_after"]
    return (
        type(envelope["approval_id"]) is type(action["tool_name"]) is type(reasoning) is str
        and type(impact["rationale"]) is type(rollback["procedure"]) is str
        and type(impact["hard_one_way"]) is bool
        and rollback["irreversible"] is impact["hard_one_way"]
        and type(score) is type(created_at) is type(not_after) is float
        and 0.0 <= score <= 1.0
        and -FAR < created_at <= not_after < FAR
        and len(reasoning) <= MAX_REASONING
        and impact["fired_detectors"] == []
        and envelope["card_version"] == "v2"
        and type(action["args_digest"]) is str
        and HEX64.fullmatch(action["args_digest"]) is not None
    )


def _broken_rule(envelope: dict[str, Any], scheme: int) -> tuple[str, str] | None:
    """Give expected and found of the first rule of the schema that does not hold."""
    rule = _members("the envelope", envelope, _MEMBERS)
    rule = rule or _members("action", envelope["action"], _ACTION)
    rule = rule or _members("impact", envelope["impact"], _IMPACT)
    rule = rule or _members("rollback", envelope["rollback"], _ROLLBACK)
    if rule:
        return rule
    action, impact, rollback = envelope["action"], envelope["impact"], envelope["rollback"]
    texts = {
        "approval_id": envelope["approval_id"],
        "action.tool_name": action["tool_name"],
        "reasoning": envelope["reasoning"],
        "impact.rationale": impact["rationale"],
        "rollback.procedure": rollback["procedure"],
    }
    for name, value in texts.items():
        if not isinstance(value, str):
            return f"text as {name}", shown(value)
    return _ranges(envelope, impact, rollback, scheme)


def _ranges(
    envelope: dict[str, Any], impact: dict[str, Any], rollback: dict[str, Any], scheme: int
) -> tuple[str, str] | None:
    digest, detectors = envelope["action"]["args_digest"], impact["fired_detectors"]
    if envelope["card_version"] != "v2":
        return 'card_version "v2"', shown(envelope["card_version"])
    if not isinstance(digest, str) or not HEX64.fullmatch(digest):
        return "64 hex digits as action.args_digest", shown(digest)
    if len(envelope["reasoning"]) > MAX_REASONING:
        return "a reasoning of at most 600 characters", f"{len(envelope['reasoning'])} characters"
    if not isinstance(detectors, list) or not all(isinstance(item, str) for item in detectors):
        return "texts as impact.fired_detectors", shown(detectors)
    if type(impact["hard_one_way"]) is not bool or type(rollback["irreversible"]) is not bool:
        return "true or false as hard_one_way and irreversible", shown([impact, rollback])
    if impact["hard_one_way"] != rollback["irreversible"]:
        return (
            f"irreversible {shown(impact['hard_one_way'])}, as hard_one_way",
            shown(rollback["irreversible"]),
        )
    for name, value in (
        ("impact.score", impact["score"]),
        ("created_at", envelope["created_at"]),
        ("not_after", envelope["not_after"]),
    ):
        if not is_number(value, integers=scheme == 1):
            return f"a finite number with a decimal point as {name}", shown(value)
    if not 0 <= impact["score"] <= 1:
        return "impact.score from 0 to 1", shown(impact["score"])
    if envelope["not_after"] < envelope["created_at"]:
        return (
            f"not_after from created_at {shown(envelope['created_at'])} on",
            shown(envelope["not_after"]),
        )
    return None


def is_number(value: object, *, integers: bool = True) -> bool:
    """Say whether a value is a finite number; releases before 3.8.0 also stored whole ones."""
    if type(value) is float:
        return math.isfinite(value)
    return integers and type(value) is int and abs(value) < 10**15


def _members(what: str, value: Any, names: tuple[str, ...]) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return f"an object as {what}", shown(value)
    if tuple(value) == names:
        return None
    missing = [name for name in names if name not in value]
    unknown = [name for name in value if name not in names]
    if missing:
        return f"{missing[0]} in {what}", "no such member"
    return f"no member {shown(unknown[0])} in {what}", shown(value[unknown[0]])


def _normalised_hash(envelope: dict[str, Any]) -> str:
    """Give the hash that Bernstein's own check would take, or nothing where it would fail."""
    try:
        action, impact = dict(envelope.get("action", {})), dict(envelope.get("impact", {}))
        rollback = dict(envelope.get("rollback", {}))
        value = {
            "approval_id": str(envelope.get("approval_id", "")),
            "action": {name: str(action.get(name, "")) for name in _ACTION},
            "reasoning": str(envelope.get("reasoning", "")),
            "impact": {
                "score": float(impact.get("score", 0.0)),
                "hard_one_way": bool(impact.get("hard_one_way", False)),
                "rationale": str(impact.get("rationale", "")),
                "fired_detectors": [str(item) for item in impact.get("fired_detectors", [])],
            },
            "rollback": {
                "procedure": str(rollback.get("procedure", "")),
                "irreversible": bool(rollback.get("irreversible", False)),
            },
            "created_at": float(envelope.get("created_at", 0.0)),
            "not_after": float(envelope.get("not_after", 0.0)),
            "card_version": str(envelope.get("card_version", "v2")),
        }
        return hashlib.sha256(card_bytes(value)).hexdigest()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return ""
