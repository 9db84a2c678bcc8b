"""Profiles: what a deployment demands of every card, named by content digest (spec §8.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ledger import jcs, schema
from ledger.errors import ProposalInvalid
from ledger.jcs import JSON

MAX_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for a card: the strictest of its profiles, or nothing where it has none.

    Pointers are those of spec §8.5; `fixed` holds (tool name, pointer into the arguments).
    """

    minimum: str = "none"
    required: frozenset[str] = frozenset()
    grant_ttl_required: bool = False
    self_approval_denied: bool = False
    assurance: str = "label"
    fixed: frozenset[tuple[str, str]] = frozenset()
    critical: frozenset[str] = frozenset()
    drift_allowed: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile that keeps every rule of its table: canonical bytes, SHA-256, rules."""

    canonical: bytes
    digest: bytes
    rules: Rules


@lru_cache(maxsize=64)
def parse(text: bytes) -> Profile:
    """Read the canonical bytes of a profile, or raise `ProposalInvalid` (spec §8.5)."""
    if len(text) > MAX_BYTES:
        raise ProposalInvalid("", f"profile of {len(text)} bytes, limit {MAX_BYTES}")
    document = jcs.parse(text)
    if jcs.encode(document) != text:
        raise ProposalInvalid("", "profile not in canonical form")
    schema.check_profile(document)
    return Profile(text, hashlib.sha256(text).digest(), _rules(document))


def strictest(profiles: Iterable[Profile]) -> Rules:
    """Give the stricter of the rules of all profiles, rule by rule; without any, no rules."""
    given = [profile.rules for profile in profiles]
    if not given:
        return Rules()
    return Rules(
        minimum=max((rules.minimum for rules in given), key=schema.EVIDENCE_CLASSES.index),
        required=frozenset().union(*(rules.required for rules in given)),
        grant_ttl_required=any(rules.grant_ttl_required for rules in given),
        self_approval_denied=any(rules.self_approval_denied for rules in given),
        assurance=max((rules.assurance for rules in given), key=schema.ASSURANCES.index),
        fixed=frozenset().union(*(rules.fixed for rules in given)),
        critical=frozenset().union(*(rules.critical for rules in given)),
        drift_allowed=all(rules.drift_allowed for rules in given),
    )


def _rules(document: dict[str, JSON]) -> Rules:
    return Rules(
        minimum=document["minimum"],
        required=frozenset(document["required"]),
        grant_ttl_required=document["grant_ttl"] == "required",
        self_approval_denied=document["self_approval"] == "deny",
        assurance=document["assurance"],
        fixed=frozenset((each["tool_name"], each["path"]) for each in document["fixed_parameters"]),
        critical=frozenset(document["critical"]),
        drift_allowed=document["basis_drift"] == "allow_if_allowed",
    )
