"""Policy evidence: what an envelope witnesses, and what the rules of its profiles refuse (spec §8).

Pure predicates over the document of an envelope. `issue`, `resolve` and `dispatch` put them in the
order of spec §6.4; the reasons beside them are those of `gate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ledger import jcs
from ledger.jcs import JSON
from ledger.profile import Rules
from ledger.schema import ASSURANCES, EVIDENCE_CLASSES

Document = dict[str, JSON]

ALLOW: Final = "allow"
DENY: Final = "deny"
BASIS_DRIFT: Final = "basis_drift"
"""The one exception under which a rebuilt envelope may differ from its card (spec §8.6)."""

REQUEST: Final = "request"
SUBJECT: Final = "subject and authority"
POLICY: Final = "policy and capability"
BUSINESS: Final = "business object"
PRESENTATION: Final = "presentation"

_ABSENT: Final = object()
_DRIFT: Final = {
    "subject": SUBJECT,
    "approval_basis": POLICY,
    "preconditions": BUSINESS,
    "review_manifest": PRESENTATION,
    "action": REQUEST,
}


# The first reason of spec §8 that holds at a gate, or None


def issue(document: Document, rules: Rules) -> str | None:
    """Give the reason of spec §8.5 not to issue an envelope."""
    for reason, holds in _AT_ISSUE.items():
        if holds(document, rules):
            return reason
    return None


def resolve(document: Document, rules: Rules, approver: str, assurance: str) -> str | None:
    """Give the reason of spec §8.5 not to take a decision by this approver."""
    if self_approval(document, rules, approver):
        return "self_approval"
    return "approver_unverified" if assurance_too_low(rules, assurance) else None


def dispatch(*, denied: bool, authorised: bool, below_floor: bool) -> str | None:
    """Give the reason of spec §8.6 not to run a card, from what the caller and the basis say."""
    if denied:
        return "policy_denied"
    if not authorised:
        return "approver_not_authorised"
    return "evidence_below_floor" if below_floor else None


# Evidence (spec §8.4)


def derived_class(document: Document) -> str:
    """Give the highest evidence class that the envelope witnesses."""
    basis = document.get("approval_basis")
    if basis is None:
        return "none"
    if "policy_sha256" in basis:
        return "whole_policy"
    if not basis["rules"]:
        return "none"
    selection = basis.get("selection")
    if selection is None or selection["count"] < len(basis["rules"]):
        return "fired_rules"
    return "selection" if "combining" in basis and "default" in basis else "fired_rules"


def claimed_class(document: Document) -> str:
    """Give the evidence class that the basis claims; `none` without a basis."""
    claimed: str = document.get("approval_basis", {"evidence_class": "none"})["evidence_class"]
    return claimed


def claimed_above_derived(document: Document) -> bool:
    """Tell whether the claim is above what the envelope witnesses."""
    return _rank(claimed_class(document)) > _rank(derived_class(document))


def evidence_below_floor(document: Document, rules: Rules) -> bool:
    """Tell whether the class, a required member or the grant_ttl falls short of the rules."""
    return (
        _rank(claimed_class(document)) < _rank(rules.minimum)
        or any(_at(document, path) is _ABSENT for path in rules.required)
        or (rules.grant_ttl_required and "grant_ttl" not in document)
    )


# What was put before the approver, and what the operator fixed (spec §8.2, §8.5)


def manifest_mismatch(document: Document, rules: Rules) -> bool:
    """Tell whether the manifest says something else than the envelope, or leaves out a critical."""
    manifest = document.get("review_manifest")
    if manifest is None:
        return False
    fields = manifest["fields"]
    ids, paths = {field["id"] for field in fields}, {field["path"] for field in fields}
    return (
        len(ids) < len(fields)
        or any(not _is_shown(document, field["path"], field["value"]) for field in fields)
        or any(_at(document, path) is not _ABSENT for path in rules.critical - paths)
    )


def fixed_parameter_supplied(document: Document, rules: Rules) -> bool:
    """Tell whether the arguments carry a value for what the operator sets outside the request."""
    action = document["action"]
    return any(
        tool == action["tool_name"] and _at(action["arguments"], path) is not _ABSENT
        for tool, path in rules.fixed
    )


# Who decides (spec §8.5)


def self_approval(document: Document, rules: Rules, approver: str) -> bool:
    """Tell whether the approver is the subject of the card, where the rules deny it."""
    subject = document.get("subject")
    return rules.self_approval_denied and subject is not None and bool(subject["id"] == approver)


def assurance_too_low(rules: Rules, assurance: str) -> bool:
    """Tell whether who decided is established less firmly than the rules require."""
    return ASSURANCES.index(assurance) < ASSURANCES.index(rules.assurance)


# Drift at dispatch (spec §8.6)


def drift_of_basis(document: Document, rebuilt: Document, policy_outcome: str | None) -> bool:
    """Tell whether two envelopes differ only in a basis by which policy now allows the call.

    A basis that names another profile than the card is no such basis: the approver decided under
    the rules of that one. Whether it may differ is for the rules in force to say.
    """
    was, now = document.get("approval_basis"), rebuilt.get("approval_basis")
    return (
        policy_outcome == ALLOW
        and was is not None
        and now is not None
        and now["verdict"] == ALLOW
        and now["profile"] == was["profile"]
        and _without_basis(document) == _without_basis(rebuilt)
    )


def drift_below_floor(rebuilt: Document, rules: Rules) -> bool:
    """Tell whether a basis that drifted no longer reaches what the rules require."""
    return claimed_above_derived(rebuilt) or evidence_below_floor(rebuilt, rules)


def drift_classes(pointers: Iterable[str]) -> tuple[str, ...]:
    """Give the classes of drift that differing pointers belong to, in the order of the spec."""
    found = {_drift_class(pointer.split("/")[1:]) for pointer in pointers}
    return tuple(
        name for name in (REQUEST, SUBJECT, POLICY, BUSINESS, PRESENTATION) if name in found
    )


def card_profile(document: Document) -> bytes | None:
    """Give the digest of the profile that the basis of an envelope names (spec §8.5)."""
    basis = document.get("approval_basis")
    return None if basis is None else bytes.fromhex(basis["profile"])


def rule_hashes(document: Document) -> frozenset[str]:
    """Give the hexadecimal digests of the rules that the basis of an envelope cites."""
    basis = document.get("approval_basis", {"rules": []})
    return frozenset(rule["sha256"] for rule in basis["rules"])


_AT_ISSUE: Final[dict[str, Callable[[Document, Rules], bool]]] = {
    "claimed_above_derived": lambda document, _: claimed_above_derived(document),
    "evidence_below_floor": evidence_below_floor,
    "manifest_mismatch": manifest_mismatch,
    "fixed_parameter_supplied": fixed_parameter_supplied,
}


def _rank(evidence_class: str) -> int:
    return EVIDENCE_CLASSES.index(evidence_class)


def _drift_class(steps: list[str]) -> str | None:
    if steps[:2] == ["action", "capability"]:
        return POLICY
    return _DRIFT.get(steps[0]) if steps else None


def _is_shown(document: Document, path: str, value: JSON) -> bool:
    if path == "/review_manifest" or path.startswith("/review_manifest/"):
        return False
    found = _at(document, path)
    return found is not _ABSENT and jcs.encode(found) == jcs.encode(value)


def _without_basis(document: Document) -> bytes:
    return jcs.encode({k: v for k, v in document.items() if k != "approval_basis"})


def _at(value: JSON, path: str) -> JSON:
    """Give what stands at a JSON pointer, `_ABSENT` if nothing does (RFC 6901)."""
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if type(value) is dict:
            value = value.get(name, _ABSENT)
        elif type(value) is list and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return _ABSENT
    return value


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and len(name) < 8
