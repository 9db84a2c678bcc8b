"""docs/envelope.schema.json says what the spec and the writer say (spec §2.3)."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import envelope, errors

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "envelope.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
HASH = "00" * 32

Document = dict[str, Any]
Edit = Callable[[Document], object]


def minimal() -> Document:
    """An envelope of required members only."""
    return {
        "format": "cardchain-card/1",
        "kind": "tool_call",
        "task": {"id": "run-1", "step": "refund"},
        "action": {"tool_name": "refund.create", "arguments": {}, "args_digest": HASH},
        "reasoning": "",
        "issued_at": 0,
        "not_after": 1,
        "effect_key": HASH,
    }


def full() -> Document:
    """An envelope with every member that software of version 1 writes."""
    document = minimal()
    document["action"] |= {
        "arguments": {"amount": "199.00", "lines": [1, 2.5, None, True]},
        "capability": ["refund"],
        "spec_digest": HASH,
        "artifact_digest": HASH,
    }
    return document | {
        "subject": {"id": "user:1", "source": "sso", "tenant": "t", "delegation": {"by": None}},
        "preconditions": [{"ref": "order/1", "version": "7"}],
        "policy_version": "2026-01",
        "purpose": "why",
        "impact": {
            "score": 100,
            "hard_one_way": True,
            "rationale": "money leaves",
            "fired_detectors": ["payment"],
            "detector_set": {"id": "set-1", "digest": HASH},
        },
        "rollback": {"procedure": "none", "irreversible": True},
        "grant_ttl": 900,
        "supersedes": HASH,
        "prior_attempt": {"card_hash": HASH, "outcome": "unknown"},
    }


def with_evidence() -> Document:
    """An envelope with policy evidence, whose bytes alone are fixed (spec §8)."""
    return full() | {
        "approval_basis": {
            "verdict": "ask",
            "engine": "engine-1",
            "evidence_class": "selection",
            "profile": HASH,
            "rules": [{"id": "rule-1", "sha256": HASH}],
            "selection": {"mode": "first", "digest": HASH, "count": 0},
        },
        "review_manifest": {
            "schema": "manifest-1",
            "selector": HASH,
            "fields": [{"id": "amount", "path": "/action/arguments/amount", "value": "199.00"}],
        },
    }


def put(*path: str | int, value: object) -> Edit:
    """An edit that sets the member at `path`."""

    def edit(document: Document) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return edit


def drop(*path: str) -> Edit:
    """An edit that removes the member at `path`."""

    def edit(document: Document) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return edit


def not_assessed(document: Document) -> None:
    """Removes impact, so that the rule on one-way doors does not apply."""
    del document["impact"]


def nested(depth: int) -> object:
    """Arrays inside arrays."""
    value: object = []
    for _ in range(depth - 1):
        value = [value]
    return value


GOOD: dict[str, Edit] = {
    "nothing changed": lambda document: None,
    "not assessed": not_assessed,
    "reversible and not one way": lambda document: (
        put("impact", "hard_one_way", value=False)(document),
        put("rollback", "irreversible", value=False)(document),
        put("impact", "fired_detectors", value=[])(document),
    ),
    "null inside arguments": put("action", "arguments", value={"a": None}),
    "unknown name inside arguments": put("action", "arguments", value={"format": 9}),
    "empty purpose": put("purpose", value=""),
    "reasoning of 2000 code points": put("reasoning", value="\U0001f600" * 2000),
    "capability false": put("action", "capability", value=False),
    "256 preconditions": put(
        "preconditions", value=[{"ref": f"r{n}", "version": "1"} for n in range(256)]
    ),
    "depth 64": put("action", "capability", value=nested(62)),
    "score 0": put("impact", "score", value=0),
    "last second of 9999": put("not_after", value=253402300799),
}

BAD: dict[str, Edit] = {
    "unknown member": put("colour", value="red"),
    "reserved salt": put("salt", value=HASH),
    "unknown member of task": put("task", "run", value="x"),
    "unknown member of action": put("action", "timeout", value=1),
    "unknown member of subject": put("subject", "role", value="x"),
    "unknown member of precondition": put("preconditions", 0, "etag", value="x"),
    "unknown member of impact": put("impact", "level", value="x"),
    "unknown member of detector_set": put("impact", "detector_set", "n", value="x"),
    "unknown member of rollback": put("rollback", "owner", value="x"),
    "unknown member of prior_attempt": put("prior_attempt", "n", value="x"),
    "other format": put("format", value="cardchain-card/2"),
    "empty name": put("kind", value=""),
    "name of 257": put("kind", value="a" * 257),
    "null member": put("purpose", value=None),
    "null capability": put("action", "capability", value=None),
    "null delegation": put("subject", "delegation", value=None),
    "arguments not an object": put("action", "arguments", value=[]),
    "subject from the model": put("subject", "source", value="model"),
    "no precondition": put("preconditions", value=[]),
    "257 preconditions": put(
        "preconditions", value=[{"ref": f"r{n}", "version": "1"} for n in range(257)]
    ),
    "upper-case digest": put("effect_key", value="AB" * 32),
    "short digest": put("effect_key", value="00" * 31),
    "digest and line feed": put("effect_key", value=HASH + "\n"),
    "reasoning of 2001 code points": put("reasoning", value="a" * 2001),
    "text of 4097": put("purpose", value="a" * 4097),
    "score 101": put("impact", "score", value=101),
    "score true": put("impact", "score", value=True),
    "score half": put("impact", "score", value=0.5),
    "detector twice": put("impact", "fired_detectors", value=["payment", "payment"]),
    "one way without detector": put("impact", "fired_detectors", value=[]),
    "one way but reversible": put("rollback", "irreversible", value=False),
    "one way without rollback": drop("rollback"),
    "negative time": put("issued_at", value=-1),
    "time after 9999": put("not_after", value=253402300800),
    "time as text": put("issued_at", value="0"),
    "grant_ttl 0": put("grant_ttl", value=0),
    "outcome of no kind": put("prior_attempt", "outcome", value="maybe"),
} | {f"no {name}": drop(name) for name in minimal()}

# What the spec demands and a schema cannot state.
BEYOND_SCHEMA: dict[str, Edit] = {
    "name of 257 bytes in 129 code points": put("kind", value="\u00e9" * 129),
    "text of 4098 bytes in 2049 code points": put("purpose", value="\u00e9" * 2049),
    "not_after equal to issued_at": put("not_after", value=0),
    "ref twice": put(
        "preconditions", value=[{"ref": "r", "version": "1"}, {"ref": "r", "version": "2"}]
    ),
    "integer beyond 2^53 - 1": put("action", "arguments", value={"n": 1e20}),
    "args_digest of other arguments": put("action", "arguments", value={}),
    "effect key of another task": put("task", "id", value="run-2"),
    "depth 65": put("action", "capability", value=nested(63)),
}


def edited(document: Document, edit: Edit) -> Document:
    copied = copy.deepcopy(document)
    edit(copied)
    return copied


def accepted_by_schema(document: object) -> bool:
    return bool(VALIDATOR.is_valid(document))


def canonical(value: Any) -> bytes:
    return bytes(rfc8785.dumps(value))


def hexed(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def digested(document: Document) -> Document:
    """The document with the digests that follow from its other members (spec §2.5)."""
    action = document["action"]
    action["args_digest"] = hexed(action["arguments"])
    document["effect_key"] = hexed(
        {
            "format": "effect-key/1",
            "task": document["task"],
            "tool_name": action["tool_name"],
            "capability": action.get("capability"),
            "args_digest": action["args_digest"],
        }
    )
    return document


def accepted_by_ledger(document: Document) -> bool:
    try:
        envelope.parse(canonical(document))
    except (errors.Malformed, errors.VersionUnknown):
        return False
    return True


def test_schema_is_a_schema_of_its_draft() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("document", [minimal(), full(), with_evidence()])
def test_schema_accepts_envelopes_of_the_spec(document: Document) -> None:
    VALIDATOR.validate(document)


@pytest.mark.parametrize("name", GOOD)
def test_schema_accepts(name: str) -> None:
    VALIDATOR.validate(edited(full(), GOOD[name]))


@pytest.mark.parametrize("name", BAD)
def test_schema_refuses(name: str) -> None:
    assert not accepted_by_schema(edited(full(), BAD[name]))


@pytest.mark.parametrize("name", BEYOND_SCHEMA)
def test_schema_cannot_state(name: str) -> None:
    assert accepted_by_schema(edited(full(), BEYOND_SCHEMA[name]))


@pytest.mark.parametrize(
    "edit",
    [
        put("review_manifest", "fields", value=[]),
        put("review_manifest", "fields", 0, "path", value="action"),
        put("review_manifest", "fields", 0, "path", value="/a~2"),
        put("review_manifest", "view", value=HASH),
        drop("review_manifest", "selector"),
        put("approval_basis", "evidence_class", value="all"),
        put("approval_basis", "selection", "count", value=-1),
        put("approval_basis", "score", value=1),
        drop("approval_basis", "profile"),
    ],
)
def test_schema_refuses_policy_evidence_of_another_shape(edit: Edit) -> None:
    assert not accepted_by_schema(edited(with_evidence(), edit))


def test_every_object_of_the_schema_is_closed() -> None:
    def open_objects(node: object, place: str) -> list[str]:
        if isinstance(node, list):
            return [p for n, item in enumerate(node) for p in open_objects(item, f"{place}/{n}")]
        if not isinstance(node, dict):
            return []
        found = [p for name, item in node.items() for p in open_objects(item, f"{place}/{name}")]
        if node.get("type") == "object" and node.get("additionalProperties") is not False:
            found.append(place)
        return found

    assert open_objects(SCHEMA, "") == ["/properties/action/properties/arguments"]


def spec_members() -> list[str]:
    """The members of the first table of spec §2.3, `?` and all."""
    section = (DOCS / "spec.md").read_text("utf-8").split("### 2.3")[1].split("### 2.4")[0]
    return re.findall(r"^\| (`\w+`\??) \|", section, re.M)


def test_schema_has_the_members_of_the_spec() -> None:
    members = {name.strip("`?") for name in spec_members()} - {"salt"}
    assert members == set(SCHEMA["properties"])


def test_schema_requires_what_the_spec_does_not_mark_optional() -> None:
    required = {name.strip("`") for name in spec_members() if not name.endswith("?")} - {"salt"}
    assert required == set(SCHEMA["required"])


# The writer and the schema, on the same documents.


@pytest.mark.parametrize("document", [minimal(), full(), with_evidence()])
def test_ledger_accepts_envelopes_of_the_spec(document: Document) -> None:
    assert accepted_by_ledger(digested(document))


@pytest.mark.parametrize("name", GOOD)
def test_ledger_accepts_what_the_schema_accepts(name: str) -> None:
    assert accepted_by_ledger(digested(edited(full(), GOOD[name])))


ABOUT_DIGESTS = {
    "upper-case digest",
    "short digest",
    "digest and line feed",
    "no effect_key",
    "args_digest of other arguments",
    "effect key of another task",
}


def wrong_only_in(name: str, edit: Edit) -> Document:
    """The full envelope with one edit; the digests follow it, unless it is about them."""
    if name in ABOUT_DIGESTS or name in {"no task", "no action"}:
        return edited(digested(full()), edit)
    return digested(edited(full(), edit))


@pytest.mark.parametrize("name", BAD)
def test_ledger_refuses_what_the_schema_refuses(name: str) -> None:
    assert not accepted_by_ledger(wrong_only_in(name, BAD[name]))


@pytest.mark.parametrize("name", BEYOND_SCHEMA)
def test_ledger_refuses_what_a_schema_cannot_state(name: str) -> None:
    assert not accepted_by_ledger(wrong_only_in(name, BEYOND_SCHEMA[name]))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 300),
    st.sampled_from(["", "a", HASH, "model", "unknown", "cardchain-card/1"]),
    st.just([]),
    st.just({}),
    st.just([{"ref": "a", "version": "b"}]),
)
# Members that other members determine or bound: beyond a schema.
BOUND = {"task", "action", "issued_at", "not_after", "effect_key"}
PLACES = [
    (name, inner)
    for name, value in full().items()
    if name not in BOUND and isinstance(value, dict)
    for inner in value
] + [(name,) for name in full() if name not in BOUND]


@settings(max_examples=200, deadline=None)
@given(place=st.sampled_from(PLACES), value=JUNK)
def test_schema_and_ledger_agree_when_one_member_is_replaced(
    place: tuple[str, ...], value: object
) -> None:
    document = edited(digested(full()), put(*place, value=value))
    assert accepted_by_ledger(document) == accepted_by_schema(document)
