"""Cards in the plainest Python, for `naive.py`: JSON, digests, members, evidence, differences."""

from __future__ import annotations

import hashlib
import json
from typing import Any

CLASSES = ["none", "fired_rules", "selection", "whole_policy"]
WORDS = {
    "minimum": CLASSES,
    "grant_ttl": ["required", "optional"],
    "self_approval": ["allow", "deny"],
    "assurance": ["label", "authenticated"],
    "basis_drift": ["review", "allow_if_allowed"],
}
MEMBERS = {  # the closed objects of spec §2.3, §8: required members, then the others
    "": ("kind task action reasoning ttl", "subject preconditions approval_basis policy_version"
         " review_manifest purpose impact rollback grant_ttl supersedes prior_attempt"),
    "/task": ("id step", ""),
    "/action": ("tool_name arguments", "capability spec_digest artifact_digest"),
    "/subject": ("id source", "tenant delegation"),
    "/preconditions/*": ("ref version", ""),
    "/approval_basis": ("verdict engine evidence_class profile rules",
                        "profile_id profile_version selection combining default policy_sha256"),
    "/approval_basis/rules/*": ("id sha256", ""),
    "/approval_basis/selection": ("mode digest count", ""),
    "/review_manifest": ("schema selector fields", "selector_id selector_version view_digest"),
    "/review_manifest/fields/*": ("id path value", ""),
    "/impact": ("score hard_one_way rationale fired_detectors detector_set", ""),
    "/impact/detector_set": ("id digest", ""),
    "/rollback": ("procedure irreversible", ""),
    "/prior_attempt": ("card_hash outcome", ""),
}  # fmt: skip


class Invalid(Exception):
    """A rule of the caller is broken (spec §2)."""


def canonical(value: Any) -> str:
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
    except ValueError as error:
        raise Invalid from error


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def at(document: Any, pointer: str) -> Any:
    """Give what stands at a JSON pointer, None where nothing does."""
    for name in pointer.split("/")[1:]:
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and name in map(str, range(len(document))):
            document = document[int(name)]
        else:
            return None
    return document


def leaves(value: Any, place: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    if value and isinstance(value, dict):
        for name in value:
            found |= leaves(value[name], f"{place}/{name}")
    elif value and isinstance(value, list):
        for number, each in enumerate(value):
            found |= leaves(each, f"{place}/{number}")
    else:
        found[place] = canonical(value)
    return found


def differing(old: Any, new: Any) -> list[str]:
    a, b = leaves(old), leaves(new)
    return sorted(place for place in {*a, *b} if a.get(place) != b.get(place))


def check_members(document: Any, place: str = "") -> None:
    """Hold a proposal against the closed objects above."""
    if place in MEMBERS:
        required, optional = (words.split() for words in MEMBERS[place])
        if not isinstance(document, dict) or not set(required) <= set(document):
            raise Invalid(place)
        if not set(document) <= {*required, *optional}:
            raise Invalid(place)
    if isinstance(document, dict) and place not in ("/action/arguments", "/action/capability"):
        for name, member in document.items():
            check_members(member, f"{place}/{name}")
    if isinstance(document, list):
        for member in document:
            check_members(member, f"{place}/*")


def check_proposal(proposal: Any) -> None:
    canonical(proposal)
    check_members(proposal)
    if not isinstance(proposal["action"]["arguments"], dict):
        raise Invalid("/action/arguments")
    if proposal["ttl"] < 1 or proposal.get("grant_ttl", 1) < 1:
        raise Invalid("/ttl")
    if proposal.get("subject", {}).get("source") == "model":
        raise Invalid("/subject/source")
    if "approval_basis" in proposal and (
        proposal["approval_basis"]["evidence_class"] not in CLASSES
    ):
        raise Invalid("/approval_basis/evidence_class")
    if proposal.get("impact", {}).get("hard_one_way") and not (
        proposal["impact"]["fired_detectors"] and proposal.get("rollback", {}).get("irreversible")
    ):
        raise Invalid("/rollback")


def completed(document: Any) -> Any:
    """Set the digests that follow from other members (spec §2.5)."""
    action = document["action"]
    action["args_digest"] = sha(canonical(action["arguments"]))
    key = {
        "args_digest": action["args_digest"],
        "capability": action.get("capability"),
        "format": "effect-key/1",
        "task": document["task"],
        "tool_name": action["tool_name"],
    }
    document["effect_key"] = sha(canonical(key))
    return document


def derived_class(basis: Any) -> str:
    if basis is None:
        return "none"
    if "policy_sha256" in basis:
        return "whole_policy"
    if not basis["rules"]:
        return "none"
    enough = "selection" in basis and basis["selection"]["count"] >= len(basis["rules"])
    return "selection" if enough and "combining" in basis and "default" in basis else "fired_rules"


def overclaims(basis: Any) -> bool:
    claim = (basis or {}).get("evidence_class", "none")
    return CLASSES.index(claim) > CLASSES.index(derived_class(basis or None))


def drift(differs: list[str]) -> list[str]:
    """Give the classes of what differs, in the order of spec §8.6."""
    classes = {
        "request": lambda p: p.startswith("/action/") and not p.startswith("/action/capability"),
        "subject and authority": lambda p: p.startswith("/subject"),
        "policy and capability": lambda p: p.startswith(("/approval_basis", "/action/capability")),
        "business object": lambda p: p.startswith("/preconditions"),
        "presentation": lambda p: p.startswith("/review_manifest"),
    }
    return [name for name, holds in classes.items() if any(holds(p) for p in differs)]
