"""What was rebuilt at dispatch against what was approved (spec §2.4, §6.4, §8.6)."""

from __future__ import annotations

from itertools import islice
from typing import Any

from verifier import jcs
from verifier.envelope import args_digest, effect_key, schema_problem, terms
from verifier.governance import Rules
from verifier.pointer import differences
from verifier.policy import claim_problem, floor_problem
from verifier.report import Drift
from verifier.shape import Problem

MAX_POINTERS = 64
MAX_POINTER = 256  # code points of one that are shown

BASIS = "/approval_basis"
_CLASSES = (
    ("/action/capability", "policy and capability"),
    (BASIS, "policy and capability"),
    ("/action", "request"),
    ("/effect_key", "request"),
    ("/subject", "subject and authority"),
    ("/preconditions", "business object"),
    ("/review_manifest", "presentation"),
)


def drift_class(pointer: str) -> str:
    """Give the class of a pointer at which a rebuilt envelope differs (spec §8.6)."""
    for beginning, name in _CLASSES:
        if pointer == beginning or pointer.startswith(f"{beginning}/"):
            return name
    return "terms"


def read_rebuilt(data: bytes) -> dict[str, Any] | None:
    """Give the value of a rebuilt envelope, or None where it is not a well-formed one."""
    return None if _form_problem(data) is not None else jcs.judged(data)


def rebuilt_problem(data: bytes, card: dict[str, Any] | None) -> Problem | None:
    """A rebuilt envelope is well-formed and has the terms of the card (spec §6.4)."""
    problem = _form_problem(data)
    if problem is not None or card is None:
        return problem
    old, new = terms(card), terms(jcs.judged(data))
    if old == new:
        return None
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return "a rebuilt envelope with the terms of the card", f"another {', '.join(names)}"


def _form_problem(data: bytes) -> Problem | None:
    try:
        rebuilt: Any = jcs.judged(data)
    except jcs.JsonRefused as error:
        return "a rebuilt envelope in canonical form", error.problem
    problem = schema_problem(rebuilt)
    if problem is not None:
        return "a rebuilt envelope of the schema", f"not {problem}"
    if args_digest(rebuilt) != rebuilt["action"]["args_digest"]:
        return "a rebuilt envelope with its args_digest", "another"
    if effect_key(rebuilt) != rebuilt["effect_key"]:
        return "a rebuilt envelope with its effect_key", "another"
    return None


def exception_problem(data: bytes, card: dict[str, Any] | None, rules: Rules) -> Problem | None:
    """A rebuilt envelope differs as the exception basis_drift allows (spec §8.6)."""
    problem = rebuilt_problem(data, card)
    if problem is not None:
        return problem
    rebuilt: dict[str, Any] = jcs.judged(data)
    if card is not None:
        outside = next((p for p in differences(card, rebuilt) if not _is_basis(p)), None)
        if outside is not None:
            return f"a rebuilt envelope that differs under {BASIS} only", f"one at {outside}"
        profile = _profile(card)
        if profile is None or profile != _profile(rebuilt):
            return f"a basis under the profile of the card, {profile}", str(_profile(rebuilt))
    verdict = rebuilt.get("approval_basis", {}).get("verdict")
    if verdict != "allow":
        return "a rebuilt approval_basis with the verdict allow", str(verdict)
    return claim_problem(rebuilt) or floor_problem(rebuilt, rules.profile)


def _profile(envelope: dict[str, Any]) -> str | None:
    profile: str | None = envelope.get("approval_basis", {}).get("profile")
    return profile


def _is_basis(pointer: str) -> bool:
    return pointer == BASIS or pointer.startswith(f"{BASIS}/")


def drift(seq: int, card: bytes, event: str, old: dict[str, Any], new: dict[str, Any]) -> Drift:
    """Compare a card with what was rebuilt for it."""
    found = list(islice(differences(old, new), MAX_POINTERS + 1))
    pairs = tuple((_short(pointer), drift_class(pointer)) for pointer in found[:MAX_POINTERS])
    return Drift(seq, card.hex(), event, pairs, len(found) > MAX_POINTERS)


def _short(pointer: str) -> str:
    return pointer if len(pointer) <= MAX_POINTER else f"{pointer[:MAX_POINTER]}…"
