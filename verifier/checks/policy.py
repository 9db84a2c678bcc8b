"""Checks of the policy evidence of a card (spec §8).

A rule is held against a record as far as it is known: where a profile is not at hand, `profile`
says so, and the rules of the other one still hold.
"""

from __future__ import annotations

from verifier import policy
from verifier.evidence import Evidence
from verifier.governance import LOST, Rules, profile_of
from verifier.profile import ProfileRefused, parse_profile
from verifier.shape import Problem
from verifier.spec import ASSURANCES, EVIDENCE_CLASSES
from verifier.state import State

# refusals at the gate issue that say nothing about the profiles
_WITHOUT_RULES = ("profile_unknown", "claimed_above_derived")


def check_profile_form(record: Evidence, _state: State) -> Problem | None:
    """A profile is canonical and has exactly the members of its table (spec §8.5)."""
    data = record.openings.get("profile")
    if data is None:
        return None
    try:
        parse_profile(data)
    except ProfileRefused as error:
        return "a profile in its form", f"not {error}"
    return None


def check_claim(record: Evidence, _state: State) -> Problem | None:
    """The claimed evidence class is not above the derived one (spec §8.4)."""
    document = record.document()
    return None if document is None else policy.claim_problem(document)


def check_floor(record: Evidence, state: State) -> Problem | None:
    """An issued card has the evidence, members and grant_ttl that its profiles require."""
    document = record.document()
    if document is None:
        return None
    return policy.floor_problem(document, state.governance.at_issue(document).profile)


def check_manifest(record: Evidence, state: State) -> Problem | None:
    """The manifest says what the envelope says, covers what is critical, and names the view."""
    document = record.document()
    if document is None or "review_manifest" not in document:
        return None
    profile = state.governance.at_issue(document).profile
    return policy.manifest_problem(document, profile, record.bound.get("presented"))


def check_fixed_parameter(record: Evidence, state: State) -> Problem | None:
    """The arguments carry no value for a fixed parameter (spec §8.5)."""
    document = record.document()
    if document is None:
        return None
    return policy.fixed_parameter_problem(document, state.governance.at_issue(document).profile)


def check_self_approval(record: Evidence, state: State) -> Problem | None:
    """Nobody decides about a card of their own where the profiles deny it (spec §8.5)."""
    if not rules_of(record, state).profile.denies_self_approval:
        return None
    document, approver = record.document(), record.body["approver"]["id"]
    if document is None or not policy.is_own_card(document, approver):
        return None
    return "an approver who is not the subject of the card", approver


def check_assurance(record: Evidence, state: State) -> Problem | None:
    """An approver is established as firmly as the profiles require (spec §8.5)."""
    least = rules_of(record, state).profile.assurance
    found = record.body["approver"]["assurance"]
    if ASSURANCES.index(found) >= least:
        return None
    return f"assurance of at least {ASSURANCES[least]}", found


def rules_of(record: Evidence, state: State) -> Rules:
    """Give the rules that hold for the card of an event."""
    number = state.cards.numbers.get(record.card or b"")
    if number is None:  # its issued record is lost
        return state.governance.rules(LOST, profile_of(record.document()))
    return state.governance.of_card(number)


def check_profile(record: Evidence, state: State) -> Problem | None:
    """Every profile that a record needs is at hand (spec §8.5)."""
    body = record.body
    if record.kind == "refused" and (body["gate"] != "issue" or body["reason"] in _WITHOUT_RULES):
        return None
    missing = state.governance.at_issue(record.document()).missing
    if not missing:
        return None
    return f"profile {', '.join(digest.hex() for digest in missing)}", "none with this digest"


def check_auditor_floor(record: Evidence, state: State) -> Problem | None:
    """Every approved card reaches the floor that the auditor set (spec §8.7)."""
    if not state.floor or record.body["decision"] != "approve":
        return None
    document = record.document()
    found = "no envelope"
    if document is not None:
        if policy.claimed_class(document) >= state.floor:
            return None
        found = f"evidence of {EVIDENCE_CLASSES[policy.claimed_class(document)]}"
    return f"evidence of at least {EVIDENCE_CLASSES[state.floor]}", found
