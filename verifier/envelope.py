"""The closed schema of an envelope, and the digests inside it (spec §2.3 to §2.5)."""

from __future__ import annotations

import hashlib
from typing import Any

from verifier import jcs
from verifier.schema import (
    array_rule,
    boolean_rule,
    hex32_rule,
    integer_rule,
    name_rule,
    object_rule,
    pointer_rule,
    text_rule,
    word_rule,
)
from verifier.spec import CARD_FORMAT, EVIDENCE_CLASSES, MAX_TIME

FACTS = ("action", "subject", "preconditions", "approval_basis", "review_manifest")


def _reasoning(value: Any) -> str | None:
    if type(value) is str and len(value) <= 2000:
        return None
    return ": a text of at most 2000 code points"


def _json(value: Any) -> str | None:
    return ": any value but null" if value is None else None


def _any(_value: Any) -> str | None:
    return None


def _arguments(value: Any) -> str | None:
    return None if type(value) is dict else ": an object"


def _source(value: Any) -> str | None:
    return ': a source that is not "model"' if value == "model" else name_rule(value)


_ENVELOPE = object_rule(
    {
        "format": word_rule(CARD_FORMAT),
        "kind": name_rule,
        "task": object_rule({"id": name_rule, "step": name_rule}),
        "action": object_rule(
            {"tool_name": name_rule, "arguments": _arguments, "args_digest": hex32_rule},
            {"capability": _json, "spec_digest": hex32_rule, "artifact_digest": hex32_rule},
        ),
        "reasoning": _reasoning,
        "issued_at": integer_rule(0, MAX_TIME),
        "not_after": integer_rule(0, MAX_TIME),
        "effect_key": hex32_rule,
    },
    {
        "subject": object_rule(
            {"id": name_rule, "source": _source}, {"tenant": name_rule, "delegation": _json}
        ),
        "preconditions": array_rule(
            object_rule({"ref": name_rule, "version": name_rule}), 1, 256, "ref"
        ),
        "approval_basis": object_rule(
            {
                "verdict": name_rule,
                "engine": name_rule,
                "evidence_class": word_rule(*EVIDENCE_CLASSES),
                "profile": hex32_rule,
                "rules": array_rule(object_rule({"id": name_rule, "sha256": hex32_rule}), 0, 1024),
            },
            {
                "profile_id": name_rule,
                "profile_version": name_rule,
                "selection": object_rule(
                    {"mode": name_rule, "digest": hex32_rule, "count": integer_rule(0, 2**53 - 1)}
                ),
                "combining": name_rule,
                "default": name_rule,
                "policy_sha256": hex32_rule,
            },
        ),
        "policy_version": name_rule,
        "review_manifest": object_rule(
            {
                "schema": name_rule,
                "selector": hex32_rule,
                "fields": array_rule(
                    object_rule({"id": name_rule, "path": pointer_rule, "value": _any}), 1, 256
                ),
            },
            {"selector_id": name_rule, "selector_version": name_rule, "view_digest": hex32_rule},
        ),
        "purpose": text_rule,
        "impact": object_rule(
            {
                "score": integer_rule(0, 100),
                "hard_one_way": boolean_rule,
                "rationale": text_rule,
                "fired_detectors": array_rule(name_rule, 0, 256, ""),
                "detector_set": object_rule({"id": name_rule, "digest": hex32_rule}),
            }
        ),
        "rollback": object_rule({"procedure": text_rule, "irreversible": boolean_rule}),
        "grant_ttl": integer_rule(1, MAX_TIME),
        "supersedes": hex32_rule,
        "prior_attempt": object_rule(
            {"card_hash": hex32_rule, "outcome": word_rule("succeeded", "failed", "unknown")}
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
