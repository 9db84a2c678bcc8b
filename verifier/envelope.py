"""The closed schema of an envelope, and the digests inside it (spec §2.3 to §2.5)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from verifier import jcs
from verifier.spec import CARD_FORMAT, MAX_TIME

FACTS = ("action", "subject", "preconditions", "approval_basis", "review_manifest")

Rule = Callable[[Any], "str | None"]
"""Gives None for a value that keeps the rule, else the place below it and what it asks for."""

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*", re.DOTALL)
_HEX = frozenset("0123456789abcdef")


def is_hex32(value: Any) -> bool:
    """Say whether a value is 64 lower-case hexadecimal digits (spec §1)."""
    return type(value) is str and len(value) == 64 and _HEX.issuperset(value)


def _hex32(value: Any) -> str | None:
    return None if is_hex32(value) else ": 64 lower-case hexadecimal digits"


def _name(value: Any) -> str | None:
    if type(value) is str and value:
        size = len(value)
        if size <= 256 and (value.isascii() or len(value.encode()) <= 256):
            return None
    return ": a name of 1 to 256 bytes"


def _text(value: Any) -> str | None:
    if type(value) is str and (
        len(value) <= 1024 or (len(value) <= 4096 and len(value.encode()) <= 4096)
    ):
        return None
    return ": a text of at most 4096 bytes"


def _reasoning(value: Any) -> str | None:
    if type(value) is str and len(value) <= 2000:
        return None
    return ": a text of at most 2000 code points"


def _boolean(value: Any) -> str | None:
    return None if value is True or value is False else ": true or false"


def _integer(least: int, most: int) -> Rule:
    def rule(value: Any) -> str | None:
        if type(value) is int and least <= value <= most:
            return None
        return f": an integer from {least} to {most}"

    return rule


def _word(*words: str) -> Rule:
    def rule(value: Any) -> str | None:
        return None if type(value) is str and value in words else f": {' or '.join(words)}"

    return rule


def _json(value: Any) -> str | None:
    return ": any value but null" if value is None else None


def _any(_value: Any) -> str | None:
    return None


def _arguments(value: Any) -> str | None:
    return None if type(value) is dict else ": an object"


def _pointer(value: Any) -> str | None:
    if type(value) is str and _POINTER.fullmatch(value):
        return None
    return ": a JSON pointer"


def _object(required: dict[str, Rule], optional: dict[str, Rule] | None = None) -> Rule:
    """Make the rule of a closed object."""
    rules = {**required, **(optional or {})}
    needed = required.keys()

    def rule(value: Any) -> str | None:
        if type(value) is not dict:
            return ": an object"
        for name, item in value.items():
            check = rules.get(name)
            if check is None:
                return f"/{_escape(name)}: no such member"
            problem = check(item)
            if problem is not None:
                return f"/{_escape(name)}{problem}"
        if not needed <= value.keys():
            missing = next(name for name in required if name not in value)
            return f"/{missing}: a member that must be there"
        return None

    return rule


def _array(item_rule: Rule, least: int, most: int, unique: str | None = None) -> Rule:
    """Make the rule of an array; `unique` names the member that may not repeat ('' the item)."""

    def rule(value: Any) -> str | None:
        if type(value) is not list or not least <= len(value) <= most:
            return f": an array of {least} to {most}"
        for place, item in enumerate(value):
            problem = item_rule(item)
            if problem is not None:
                return f"/{place}{problem}"
        if unique is not None:
            keys = [item[unique] if unique else item for item in value]
            if len(set(keys)) != len(keys):
                return ": no item twice"
        return None

    return rule


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _source(value: Any) -> str | None:
    return ': a source that is not "model"' if value == "model" else _name(value)


_ENVELOPE = _object(
    {
        "format": _word(CARD_FORMAT),
        "kind": _name,
        "task": _object({"id": _name, "step": _name}),
        "action": _object(
            {"tool_name": _name, "arguments": _arguments, "args_digest": _hex32},
            {"capability": _json, "spec_digest": _hex32, "artifact_digest": _hex32},
        ),
        "reasoning": _reasoning,
        "issued_at": _integer(0, MAX_TIME),
        "not_after": _integer(0, MAX_TIME),
        "effect_key": _hex32,
    },
    {
        "subject": _object(
            {"id": _name, "source": _source}, {"tenant": _name, "delegation": _json}
        ),
        "preconditions": _array(_object({"ref": _name, "version": _name}), 1, 256, "ref"),
        "approval_basis": _object(
            {
                "verdict": _name,
                "engine": _name,
                "evidence_class": _word("none", "fired_rules", "selection", "whole_policy"),
                "profile": _hex32,
                "rules": _array(_object({"id": _name, "sha256": _hex32}), 0, 1024),
            },
            {
                "profile_id": _name,
                "profile_version": _name,
                "selection": _object(
                    {"mode": _name, "digest": _hex32, "count": _integer(0, 2**53 - 1)}
                ),
                "combining": _name,
                "default": _name,
                "policy_sha256": _hex32,
            },
        ),
        "policy_version": _name,
        "review_manifest": _object(
            {
                "schema": _name,
                "selector": _hex32,
                "fields": _array(_object({"id": _name, "path": _pointer, "value": _any}), 1, 256),
            },
            {"selector_id": _name, "selector_version": _name, "view_digest": _hex32},
        ),
        "purpose": _text,
        "impact": _object(
            {
                "score": _integer(0, 100),
                "hard_one_way": _boolean,
                "rationale": _text,
                "fired_detectors": _array(_name, 0, 256, ""),
                "detector_set": _object({"id": _name, "digest": _hex32}),
            }
        ),
        "rollback": _object({"procedure": _text, "irreversible": _boolean}),
        "grant_ttl": _integer(1, MAX_TIME),
        "supersedes": _hex32,
        "prior_attempt": _object(
            {"card_hash": _hex32, "outcome": _word("succeeded", "failed", "unknown")}
        ),
    },
)


def schema_problem(envelope: Any) -> str | None:
    """Say where an envelope breaks the schema, as `pointer: what is asked for`, or give None."""
    problem = _ENVELOPE(envelope)
    if problem is not None:
        return problem
    if envelope["not_after"] <= envelope["issued_at"]:
        return "/not_after: later than issued_at"
    impact = envelope.get("impact")
    if impact is not None and impact["hard_one_way"]:
        if not impact["fired_detectors"]:
            return "/impact/fired_detectors: not empty, as hard_one_way is true"
        if not envelope.get("rollback", {}).get("irreversible"):
            return "/rollback/irreversible: true, as hard_one_way is true"
    return None


def args_digest(envelope: dict[str, Any], encode: jcs.Encode = jcs.encode) -> str:
    """Give the digest of the arguments (spec §2.5)."""
    return hashlib.sha256(encode(envelope["action"]["arguments"])).hexdigest()


def effect_key(envelope: dict[str, Any]) -> str:
    """Give the business idempotency key (spec §2.5) of an envelope that keeps the schema."""
    action = envelope["action"]
    capability = jcs.encode(action.get("capability")).decode()
    text = (
        f'{{"args_digest":{jcs.quote(action["args_digest"])},"capability":{capability},'
        f'"format":"effect-key/1","task":{_task(envelope)},'
        f'"tool_name":{jcs.quote(action["tool_name"])}}}'
    )
    return hashlib.sha256(text.encode()).hexdigest()


def task_digest(envelope: dict[str, Any]) -> bytes:
    """Give the digest that names the step (spec §2.5)."""
    return hashlib.sha256(_task(envelope).encode()).digest()


def _task(envelope: dict[str, Any]) -> str:
    task = envelope["task"]
    return f'{{"id":{jcs.quote(task["id"])},"step":{jcs.quote(task["step"])}}}'


def is_well_formed(envelope: Any, encode: jcs.Encode) -> bool:
    """Say whether a value keeps the schema and its digests follow from it (spec §2.3, §2.5)."""
    return (
        schema_problem(envelope) is None
        and args_digest(envelope, encode) == envelope["action"]["args_digest"]
        and effect_key(envelope) == envelope["effect_key"]
    )


def repeats_problem(
    kind: str, body: dict[str, Any], at: int, envelope: dict[str, Any]
) -> tuple[str, str] | None:
    """Say where a record says something else of a card than its envelope (spec §3.5, §5)."""
    if kind != "issued" and body.get("gate") != "issue":
        return None
    if envelope["issued_at"] != at // 1000:
        return f"issued_at {at // 1000}", f"issued_at {envelope['issued_at']}"
    task = task_digest(envelope)
    if body["task"] != task:
        return f"task {task.hex()}", f"task {body['task'].hex()}"
    if kind != "issued":
        return None
    for name in ("not_after", "grant_ttl", "supersedes"):
        found = body.get(name)
        found = found.hex() if isinstance(found, bytes) else found
        if found != envelope.get(name):
            return f"{name} {envelope.get(name, 'absent')}", f"{name} {found}"
    return None


def terms(envelope: dict[str, Any]) -> dict[str, Any]:
    """Give the members that are frozen at issue, `effect_key` aside (spec §2.4, §6.4)."""
    return {
        name: value
        for name, value in envelope.items()
        if name not in FACTS and name != "effect_key"
    }


def needs_policy(envelope: dict[str, Any]) -> str | None:
    """Name the member of policy evidence (spec §8) that an envelope carries, if any."""
    for name in ("approval_basis", "review_manifest"):
        if name in envelope:
            return name
    return None
