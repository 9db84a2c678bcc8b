"""Profiles, and the rules that two of them make together (spec §8.5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from verifier import jcs
from verifier.schema import array_rule, name_rule, object_rule, pointer_rule, word_rule
from verifier.spec import ASSURANCES, EVIDENCE_CLASSES, MAX_PROFILE, PROFILE_FORMAT


class Profile(NamedTuple):
    """What a profile, or several of them together, ask of a card (spec §8.5).

    `minimum` and `assurance` are places in EVIDENCE_CLASSES and ASSURANCES. `fixed_parameters` are
    pairs of a tool name and a JSON pointer into its arguments.
    """

    minimum: int
    required: tuple[str, ...]
    needs_grant_ttl: bool
    denies_self_approval: bool
    assurance: int
    fixed_parameters: tuple[tuple[str, str], ...]
    critical: tuple[str, ...]
    allows_drift: bool


NO_RULES = Profile(0, (), False, False, 0, (), (), False)
"""What holds without any profile."""


class ProfileRefused(Exception):
    """Bytes that are no profile; the message says what the format asks for."""


_TABLE = object_rule(
    {
        "format": word_rule(PROFILE_FORMAT),
        "minimum": word_rule(*EVIDENCE_CLASSES),
        "required": array_rule(pointer_rule, 0, 64, ""),
        "grant_ttl": word_rule("required", "optional"),
        "self_approval": word_rule("allow", "deny"),
        "assurance": word_rule("label", "authenticated"),
        "fixed_parameters": array_rule(
            object_rule({"tool_name": name_rule, "path": pointer_rule}), 0, 256
        ),
        "critical": array_rule(pointer_rule, 0, 64, ""),
        "basis_drift": word_rule("review", "allow_if_allowed"),
    },
    {"id": name_rule, "version": name_rule},
)


def parse_profile(data: bytes) -> Profile:
    """Read a profile from its bytes, or raise ProfileRefused."""
    if len(data) > MAX_PROFILE:
        raise ProfileRefused(f"at most {MAX_PROFILE} bytes, not {len(data)}")
    try:
        members: Any = jcs.judged(data)
    except jcs.JsonRefused as error:
        place = f" at {error.pointer}" if error.pointer else ""
        raise ProfileRefused(f"strict JSON in canonical form, not {error.problem}{place}") from None
    problem = _TABLE(members)
    if problem is not None:
        raise ProfileRefused(problem.removeprefix(": "))
    return Profile(
        minimum=EVIDENCE_CLASSES.index(members["minimum"]),
        required=tuple(members["required"]),
        needs_grant_ttl=members["grant_ttl"] == "required",
        denies_self_approval=members["self_approval"] == "deny",
        assurance=ASSURANCES.index(members["assurance"]),
        fixed_parameters=tuple(
            (fixed["tool_name"], fixed["path"]) for fixed in members["fixed_parameters"]
        ),
        critical=tuple(members["critical"]),
        allows_drift=members["basis_drift"] == "allow_if_allowed",
    )


def stricter(profiles: Iterable[Profile]) -> Profile:
    """Give the rules of several profiles together: of two rules the stricter (spec §8.5)."""
    both = tuple(profiles)
    if not both:
        return NO_RULES
    return Profile(
        minimum=max(profile.minimum for profile in both),
        required=_all(profile.required for profile in both),
        needs_grant_ttl=any(profile.needs_grant_ttl for profile in both),
        denies_self_approval=any(profile.denies_self_approval for profile in both),
        assurance=max(profile.assurance for profile in both),
        fixed_parameters=_all(profile.fixed_parameters for profile in both),
        critical=_all(profile.critical for profile in both),
        allows_drift=all(profile.allows_drift for profile in both),
    )


_Item = TypeVar("_Item")


def _all(parts: Iterable[tuple[_Item, ...]]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(item for part in parts for item in part))
