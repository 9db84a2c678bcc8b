"""What an envelope must show of the policy that asked for it (spec §8.2, §8.4, §8.5)."""

from __future__ import annotations

from typing import Any

from verifier import jcs
from verifier.pointer import ABSENT, resolve
from verifier.profile import Profile
from verifier.shape import Problem
from verifier.spec import EVIDENCE_CLASSES

NONE, FIRED_RULES, SELECTION, WHOLE_POLICY = range(len(EVIDENCE_CLASSES))


def claimed_class(envelope: dict[str, Any]) -> int:
    """Give the evidence class that counts against a floor: the claim, none without a basis."""
    basis = envelope.get("approval_basis")
    return NONE if basis is None else EVIDENCE_CLASSES.index(basis["evidence_class"])


def derived_class(basis: dict[str, Any]) -> int:
    """Give the highest evidence class that a basis witnesses (spec §8.4)."""
    if "policy_sha256" in basis:
        return WHOLE_POLICY
    rules, selection = basis["rules"], basis.get("selection")
    if not rules:
        return NONE
    if selection is None or selection["count"] < len(rules):
        return FIRED_RULES
    return SELECTION if "combining" in basis and "default" in basis else FIRED_RULES


def claim_problem(envelope: dict[str, Any]) -> Problem | None:
    """The claimed evidence class is not above the derived one (spec §8.4)."""
    basis = envelope.get("approval_basis")
    if basis is None:
        return None
    derived = derived_class(basis)
    if claimed_class(envelope) <= derived:
        return None
    return (
        f"a claim of at most {EVIDENCE_CLASSES[derived]}, which the envelope witnesses",
        f"a claim of {basis['evidence_class']}",
    )


def floor_problem(envelope: dict[str, Any], profile: Profile) -> Problem | None:
    """The card has the evidence, members and grant_ttl that its profiles require (spec §8.5)."""
    found = claimed_class(envelope)
    if found < profile.minimum:
        return (
            f"evidence of at least {EVIDENCE_CLASSES[profile.minimum]}",
            f"evidence of {EVIDENCE_CLASSES[found]}",
        )
    for pointer in profile.required:
        if resolve(envelope, pointer) is ABSENT:
            return f"a member at {pointer}", "none"
    if profile.needs_grant_ttl and "grant_ttl" not in envelope:
        return "a grant_ttl", "none"
    return None


def manifest_problem(
    envelope: dict[str, Any], profile: Profile, presented: bytes | None = None
) -> Problem | None:
    """The manifest says what the envelope says, and covers what is critical (spec §8.2, §8.5).

    `presented` is the digest of the text that the `issued` record binds, where it binds one.
    """
    manifest = envelope.get("review_manifest")
    if manifest is None:
        return None
    ids: set[str] = set()
    for field in manifest["fields"]:
        problem = _field_problem(field, envelope, ids)
        if problem is not None:
            return problem
        ids.add(field["id"])
    paths = {field["path"] for field in manifest["fields"]}
    for pointer in profile.critical:
        if pointer not in paths and resolve(envelope, pointer) is not ABSENT:
            return f"a field for the critical member at {pointer}", "none"
    view = manifest.get("view_digest")
    if view is not None and presented is not None and view != presented.hex():
        return f"view_digest {presented.hex()}, the text presented", f"view_digest {view}"
    return None


def _field_problem(
    field: dict[str, Any], envelope: dict[str, Any], ids: set[str]
) -> Problem | None:
    path = field["path"]
    if field["id"] in ids:
        return "a field id once", f"{field['id']} twice"
    if path == "/review_manifest" or path.startswith("/review_manifest/"):
        return "a path outside the manifest", path
    there = resolve(envelope, path)
    if there is ABSENT:
        return "a path that leads to a member", path
    if jcs.encode(there) != jcs.encode(field["value"]):
        return f"the value at {path}", "another"
    return None


def fixed_parameter_problem(envelope: dict[str, Any], profile: Profile) -> Problem | None:
    """The arguments carry no value for a fixed parameter of the tool (spec §8.5)."""
    action = envelope["action"]
    for tool_name, pointer in profile.fixed_parameters:
        if tool_name != action["tool_name"]:
            continue
        if resolve(action["arguments"], pointer) is not ABSENT:
            return f"no value at {pointer} of the arguments, which is fixed", "one"
    return None


def is_own_card(envelope: dict[str, Any], approver: str) -> bool:
    """Say whether a card is on behalf of the one who decides (spec §8.5)."""
    subject = envelope.get("subject")
    return subject is not None and subject["id"] == approver
