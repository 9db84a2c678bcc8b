"""The closed schemas of envelopes, proposals, facts and profiles (spec §2.3, §2.6, §8).

A schema is a function of a value and its place. Every error names the place as a
JSON pointer. Values come from `ledger.jcs`, so their types are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ledger.errors import ProposalInvalid
from ledger.jcs import JSON, MAX_INTEGER, pointer

FORMAT: Final = "cardchain-card/1"
MAX_TIME: Final = 253_402_300_799
MAX_REASONING: Final = 2_000
PROFILE_FORMAT: Final = "cardchain-profile/1"
EVIDENCE_CLASSES: Final = ("none", "fired_rules", "selection", "whole_policy")
ASSURANCES: Final = ("label", "authenticated")
FACTS: Final = ("action", "subject", "preconditions", "approval_basis", "review_manifest")

_Check: TypeAlias = Callable[[JSON, str], None]

_HEX32 = re.compile("[0-9a-f]{64}")
_POINTER = re.compile("(?:/(?:[^~/]|~[01])*)*", re.DOTALL)
_SET_BY_LEDGER: Final = frozenset({"format", "issued_at", "not_after", "args_digest", "effect_key"})


def check_envelope(document: JSON) -> None:
    """Refuse a document that is not of the schema of an envelope (spec §2.3, §8).

    Its digests are checked by `ledger.envelope`.
    """
    _ENVELOPE(document, "")
    _check_one_way(document)
    if document["not_after"] <= document["issued_at"]:
        raise ProposalInvalid("/not_after", "not after issued_at")


def check_proposal(document: JSON) -> None:
    """Refuse a document that is not a proposal (spec §2.6)."""
    _PROPOSAL(document, "")
    _check_one_way(document)


def check_facts(document: JSON) -> None:
    """Refuse a document that is not a set of facts (spec §2.6)."""
    _FACTS(document, "")


def check_profile(document: JSON) -> None:
    """Refuse a document that is not a profile (spec §8.5)."""
    _PROFILE(document, "")


def _check_one_way(document: dict[str, JSON]) -> None:
    """A one-way door without a marker would read as an ordinary card (spec §2.3)."""
    impact = document.get("impact")
    if impact is None or not impact["hard_one_way"]:
        return
    if not impact["fired_detectors"]:
        raise ProposalInvalid("/impact/fired_detectors", "empty although hard_one_way is true")
    rollback = document.get("rollback")
    if rollback is None:
        raise ProposalInvalid("/rollback", "missing although hard_one_way is true")
    if not rollback["irreversible"]:
        raise ProposalInvalid("/rollback/irreversible", "false although hard_one_way is true")


def _found(value: JSON) -> str:
    """Say what a value is without showing it."""
    if value is None:
        return "null"
    if type(value) is str:
        return f"a text of {len(value.encode())} bytes"
    if type(value) is int:
        return str(value)
    names = {bool: "a boolean", float: "a number that is not an integer"}
    return names.get(type(value)) or ("an object" if type(value) is dict else "an array")


def _value(says: str, holds: Callable[[JSON], bool]) -> _Check:
    def check(value: JSON, place: str) -> None:
        if not holds(value):
            raise ProposalInvalid(place, f"found {_found(value)}, expected {says}")

    return check


def _text(least: int, most: int) -> _Check:
    return _value(
        f"a text of {least} to {most} bytes",
        lambda value: type(value) is str and least <= len(value.encode()) <= most,
    )


def _integer(least: int, most: int) -> _Check:
    return _value(
        f"an integer from {least} to {most}",
        lambda value: type(value) is int and least <= value <= most,
    )


def _word(*words: str) -> _Check:
    return _value(
        " or ".join(f'"{word}"' for word in words),
        lambda value: type(value) is str and value in words,
    )


def _object(required: Mapping[str, _Check], optional: Mapping[str, _Check]) -> _Check:
    members = {**required, **optional}

    def check(value: JSON, place: str) -> None:
        if type(value) is not dict:
            raise ProposalInvalid(place, f"found {_found(value)}, expected an object")
        for name, member in value.items():
            if name not in members:
                raise ProposalInvalid(place + pointer([name]), _unknown(name))
            members[name](member, f"{place}/{name}")
        for name in required:
            if name not in value:
                raise ProposalInvalid(f"{place}/{name}", "missing")

    return check


def _unknown(name: str) -> str:
    if name in _SET_BY_LEDGER:
        return "set by the ledger, never by the caller"
    return "reserved" if name == "salt" else "unknown member"


def _array(element: _Check, least: int, most: int, key: Callable[[JSON], JSON] | None) -> _Check:
    """Make the schema of an array; `key` gives what must not occur twice in it."""

    def check(value: JSON, place: str) -> None:
        if type(value) is not list or not least <= len(value) <= most:
            found = f"an array of {len(value)}" if type(value) is list else _found(value)
            raise ProposalInvalid(place, f"found {found}, expected an array of {least} to {most}")
        seen = set()
        for index, member in enumerate(value):
            element(member, f"{place}/{index}")
            if key is not None and key(member) in seen:
                raise ProposalInvalid(f"{place}/{index}", "repeats an earlier element")
            if key is not None:
                seen.add(key(member))

    return check


_NAME: Final = _text(1, 256)
_TEXT: Final = _text(0, 4_096)
_ANY_TEXT: Final = _value("a text", lambda value: type(value) is str)
_ANY: Final = _value("any value but null", lambda value: value is not None)
_FREE: Final = _value("any value", lambda _: True)
_FREE_OBJECT: Final = _value("an object", lambda value: type(value) is dict)
_BOOLEAN: Final = _value("a boolean", lambda value: type(value) is bool)
_HEX: Final = _value(
    "64 lower-case hexadecimal digits",
    lambda value: type(value) is str and _HEX32.fullmatch(value) is not None,
)
_JSON_POINTER: Final = _value(
    "a JSON pointer", lambda value: type(value) is str and _POINTER.fullmatch(value) is not None
)
_REASONING: Final = _value(
    f"a text of at most {MAX_REASONING} code points",
    lambda value: type(value) is str and len(value) <= MAX_REASONING,
)
_SOURCE: Final = _value(
    'a text of 1 to 256 bytes, not "model"',
    lambda value: type(value) is str and 1 <= len(value.encode()) <= 256 and value != "model",
)
_TIME: Final = _integer(0, MAX_TIME)
_SECONDS: Final = _integer(1, MAX_TIME)

_TASK: Final = _object({"id": _NAME, "step": _NAME}, {})
_SUBJECT: Final = _object({"id": _NAME, "source": _SOURCE}, {"tenant": _NAME, "delegation": _ANY})
_PRECONDITIONS: Final = _array(
    _object({"ref": _NAME, "version": _NAME}, {}), 1, 256, lambda element: element["ref"]
)
_IMPACT: Final = _object(
    {
        "score": _integer(0, 100),
        "hard_one_way": _BOOLEAN,
        "rationale": _TEXT,
        "fired_detectors": _array(_NAME, 0, 256, lambda element: element),
        "detector_set": _object({"id": _NAME, "digest": _HEX}, {}),
    },
    {},
)
_BASIS: Final = _object(
    {
        "verdict": _NAME,
        "engine": _NAME,
        "evidence_class": _word(*EVIDENCE_CLASSES),
        "profile": _HEX,
        "rules": _array(_object({"id": _NAME, "sha256": _HEX}, {}), 0, 1_024, None),
    },
    {
        "profile_id": _NAME,
        "profile_version": _NAME,
        "selection": _object(
            {"mode": _NAME, "digest": _HEX, "count": _integer(0, MAX_INTEGER)}, {}
        ),
        "combining": _NAME,
        "default": _NAME,
        "policy_sha256": _HEX,
    },
)
_MANIFEST: Final = _object(
    {
        "schema": _NAME,
        "selector": _HEX,
        "fields": _array(
            _object({"id": _NAME, "path": _JSON_POINTER, "value": _FREE}, {}), 1, 256, None
        ),
    },
    {"selector_id": _NAME, "selector_version": _NAME, "view_digest": _HEX},
)
_ACTION: Final = {"tool_name": _NAME, "arguments": _FREE_OBJECT}
_ACTION_OPTIONAL: Final = {"capability": _ANY, "spec_digest": _HEX, "artifact_digest": _HEX}
_TERMS: Final = {
    "policy_version": _NAME,
    "purpose": _TEXT,
    "impact": _IMPACT,
    "rollback": _object({"procedure": _TEXT, "irreversible": _BOOLEAN}, {}),
    "grant_ttl": _SECONDS,
    "supersedes": _HEX,
    "prior_attempt": _object(
        {"card_hash": _HEX, "outcome": _word("succeeded", "failed", "unknown")}, {}
    ),
}
_OPTIONAL_FACTS: Final = {
    "subject": _SUBJECT,
    "preconditions": _PRECONDITIONS,
    "approval_basis": _BASIS,
    "review_manifest": _MANIFEST,
}

_ENVELOPE: Final = _object(
    {
        "format": _word(FORMAT),
        "kind": _NAME,
        "task": _TASK,
        "action": _object({**_ACTION, "args_digest": _HEX}, _ACTION_OPTIONAL),
        "reasoning": _REASONING,
        "issued_at": _TIME,
        "not_after": _TIME,
        "effect_key": _HEX,
    },
    {**_TERMS, **_OPTIONAL_FACTS},
)
_PROPOSAL: Final = _object(
    {
        "kind": _NAME,
        "task": _TASK,
        "action": _object(_ACTION, _ACTION_OPTIONAL),
        "reasoning": _ANY_TEXT,
        "ttl": _SECONDS,
    },
    {**_TERMS, **_OPTIONAL_FACTS},
)
_FACTS: Final = _object({"action": _object(_ACTION, _ACTION_OPTIONAL)}, _OPTIONAL_FACTS)

_POINTERS: Final = _array(_JSON_POINTER, 0, 64, lambda element: element)
_FIXED: Final = _object({"tool_name": _NAME, "path": _JSON_POINTER}, {})
_PROFILE: Final = _object(
    {
        "format": _word(PROFILE_FORMAT),
        "minimum": _word(*EVIDENCE_CLASSES),
        "required": _POINTERS,
        "grant_ttl": _word("required", "optional"),
        "self_approval": _word("allow", "deny"),
        "assurance": _word(*ASSURANCES),
        "fixed_parameters": _array(_FIXED, 0, 256, None),
        "critical": _POINTERS,
        "basis_drift": _word("review", "allow_if_allowed"),
    },
    {"id": _NAME, "version": _NAME},
)
