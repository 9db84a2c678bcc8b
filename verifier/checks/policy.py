"""Checks of the policy evidence of a card (spec §8).

A rule is held against a record as far as it is known: where a profile is not at hand, `profile`
says so, and the rules of the other one still hold.
"""

from __future__ import annotations

from typing import Any

from verifier import policy
from verifier.evidence import Evidence
from verifier.governance import LOST, Rules, profile_of
from verifier.profile import ProfileRefused, parse_profile
from verifier.shape import Problem
from verifier.spec import ASSURANCES, EVIDENCE_CLASSES
from verifier.state import State
from verifier.witness import presented_of

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


def _issued(record: Evidence, state: State) -> tuple[dict[str, Any], Rules, bytes | None] | None:
    """Give envelope, rules and the digest of the text presented where a card is first shown.

    That is its issued record, or without an envelope there the first later one that has it.
    """
    if record.kind == "issued":
        document = record.known_document()
        if document is None:
            return None
        return document, state.governance.at_issue(document), record.bound.get("presented")
    claim = state.claims.get(record.card or b"")
    document = None if claim is None else record.known_document()
    if claim is None or document is None:
        return None
    return document, rules_of(record, state), presented_of(claim[1])


def check_claim(record: Evidence, state: State) -> Problem | None:
    """The claimed evidence class is not above the derived one (spec §8.4)."""
    shown = _issued(record, state)
    return None if shown is None else policy.claim_problem(shown[0])


def check_floor(record: Evidence, state: State) -> Problem | None:
    """An issued card has the evidence, members and grant_ttl that its profiles require."""
    shown = _issued(record, state)
    return None if shown is None else policy.floor_problem(shown[0], shown[1].profile)


def check_manifest(record: Evidence, state: State) -> Problem | None:
    """The manifest says what the envelope says, covers what is critical, and names the view."""
    shown = _issued(record, state)
    return None if shown is None else policy.manifest_problem(shown[0], shown[1].profile, shown[2])


def check_fixed_parameter(record: Evidence, state: State) -> Problem | None:
    """The arguments carry no value for a fixed parameter (spec §8.5)."""
    shown = _issued(record, state)
    return None if shown is None else policy.fixed_parameter_problem(shown[0], shown[1].profile)


def check_self_approval(record: Evidence, state: State) -> Problem | None:
    """Nobody decides about a card of their own where the profiles deny it (spec §8.5)."""
    if not rules_of(record, state).profile.denies_self_approval:
        return None
    document, approver = record.known_document(), record.body["approver"]["id"]
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
        return state.governance.rules(LOST, profile_of(record.known_document()))
    if record.card in state.claims:  # it had no envelope
        return state.governance.shown(number, record.known_document())
    return state.governance.of_card(number)


def check_profile(record: Evidence, state: State) -> Problem | None:
    """Every profile that a record needs is at hand (spec §8.5)."""
    missing = _needed(record, state)
    if not missing:
        return None
    return f"profile {', '.join(digest.hex() for digest in missing)}", "none with this digest"


def _needed(record: Evidence, state: State) -> tuple[bytes, ...]:
    """Give the digests of the profiles that a record needs and that are not at hand."""
    body = record.body
    if record.kind == "issued" or body.get("gate") == "issue":
        if body.get("reason") in _WITHOUT_RULES:
            return ()
        return state.governance.at_issue(record.known_document()).missing
    return rules_of(record, state).missing if record.card in state.claims else ()


def check_auditor_floor(record: Evidence, state: State) -> Problem | None:
    """Every approved card reaches the floor that the auditor set (spec §8.7)."""
    if not state.floor or record.body["decision"] != "approve":
        return None
    document = record.known_document()
    found = "no envelope"
    if document is not None:
        if policy.claimed_class(document) >= state.floor:
            return None
        found = f"evidence of {EVIDENCE_CLASSES[policy.claimed_class(document)]}"
    return f"evidence of at least {EVIDENCE_CLASSES[state.floor]}", found
