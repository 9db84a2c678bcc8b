from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from verifier import envelope, jcs, plain

Change = Callable[[dict[str, Any]], Any]
HEX = "ab" * 32
IMPACT = {
    "score": 40,
    "hard_one_way": False,
    "rationale": "one order",
    "fired_detectors": [],
    "detector_set": {"id": "default", "digest": HEX},
}
BASIS = {
    "verdict": "review",
    "engine": "engine",
    "evidence_class": "none",
    "profile": HEX,
    "rules": [{"id": "r", "sha256": HEX}],
}


@pytest.fixture
def document(log: Any) -> dict[str, Any]:
    made: dict[str, Any] = log.envelope()
    return made


GOOD: dict[str, Change] = {
    "least": lambda e: None,
    "grant": lambda e: e.update(grant_ttl=1),
    "latest time": lambda e: e.update(not_after=253402300799, grant_ttl=253402300799),
    "impact": lambda e: e.update(impact=IMPACT),
    "one detector": lambda e: e.update(impact={**IMPACT, "score": 100, "fired_detectors": ["a"]}),
    "two detectors": lambda e: e.update(impact={**IMPACT, "fired_detectors": ["a", "b"]}),
    "rollback": lambda e: e.update(rollback={"procedure": "", "irreversible": True}),
    "one way": lambda e: e.update(
        impact={**IMPACT, "hard_one_way": True, "fired_detectors": ["a"]},
        rollback={"procedure": "none", "irreversible": True},
    ),
    "subject": lambda e: e.update(subject={"id": "user:1", "source": "session"}),
    "whole subject": lambda e: e.update(
        subject={"id": "a", "source": "models", "tenant": "t", "delegation": [None]}
    ),
    "purpose": lambda e: e.update(purpose="p\n\x00\x1f", policy_version="v"),
    "long name": lambda e: e.update(kind="k" * 256),
    "long texts": lambda e: e.update(reasoning="é" * 2000, purpose="p" * 4096),
    "preconditions": lambda e: e.update(preconditions=[{"ref": "a", "version": "1"}]),
    "supersedes": lambda e: e.update(supersedes=HEX),
    "attempt": lambda e: e.update(prior_attempt={"card_hash": HEX, "outcome": "failed"}),
    "digests": lambda e: e["action"].update(spec_digest=HEX, artifact_digest=HEX),
    "basis": lambda e: e.update(approval_basis=BASIS),
    "manifest": lambda e: e.update(
        review_manifest={
            "schema": "s",
            "selector": HEX,
            "fields": [{"id": "a", "path": "/a~0/b~1", "value": None}],
        }
    ),
}
BAD: dict[str, Change] = {
    "unknown": lambda e: e.update(note="x"),
    "salt": lambda e: e.update(salt=HEX),
    "null": lambda e: e.update(purpose=None),
    "missing": lambda e: e.pop("reasoning"),
    "format": lambda e: e.update(format="cardchain-card/2"),
    "name empty": lambda e: e.update(kind=""),
    "name long": lambda e: e.update(kind="é" * 129),
    "name not text": lambda e: e.update(kind=1),
    "boolean time": lambda e: e.update(issued_at=True),
    "float time": lambda e: e.update(not_after=e["not_after"] + 0.5),
    "time beyond": lambda e: e.update(not_after=253402300800),
    "window empty": lambda e: e.update(not_after=e["issued_at"]),
    "grant nothing": lambda e: e.update(grant_ttl=0),
    "grant beyond": lambda e: e.update(grant_ttl=253402300800),
    "reasoning long": lambda e: e.update(reasoning="x" * 2001),
    "text long": lambda e: e.update(purpose="x" * 4097),
    "text long in bytes": lambda e: e.update(purpose="é" * 2049),
    "arguments": lambda e: e["action"].update(arguments=[]),
    "capability": lambda e: e["action"].update(capability=None),
    "digest upper": lambda e: e["action"].update(spec_digest="AB" * 32),
    "digest short": lambda e: e.update(supersedes="ab" * 31),
    "model": lambda e: e.update(subject={"id": "a", "source": "model"}),
    "score": lambda e: e.update(impact={**IMPACT, "score": 101}),
    "score true": lambda e: e.update(impact={**IMPACT, "score": True}),
    "detector twice": lambda e: e.update(impact={**IMPACT, "fired_detectors": ["a", "a"]}),
    "one way unmarked": lambda e: e.update(impact={**IMPACT, "hard_one_way": True}),
    "one way reversible": lambda e: e.update(
        impact={**IMPACT, "hard_one_way": True, "fired_detectors": ["a"]},
        rollback={"procedure": "p", "irreversible": False},
    ),
    "one way without rollback": lambda e: e.update(
        impact={**IMPACT, "hard_one_way": True, "fired_detectors": ["a"]}
    ),
    "preconditions empty": lambda e: e.update(preconditions=[]),
    "precondition twice": lambda e: e.update(preconditions=[{"ref": "a", "version": "1"}] * 2),
    "outcome": lambda e: e.update(prior_attempt={"card_hash": HEX, "outcome": "maybe"}),
    "class": lambda e: e.update(approval_basis={**BASIS, "evidence_class": "all"}),
    "pointer": lambda e: e.update(
        review_manifest={
            "schema": "s",
            "selector": HEX,
            "fields": [{"id": "a", "path": "/a~2", "value": 1}],
        }
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_envelope_of_the_schema_is_well_formed(document: dict[str, Any], name: str) -> None:
    GOOD[name](document)
    assert envelope.schema_problem(document) is None
    assert envelope.is_well_formed(document, jcs.encode)


@pytest.mark.parametrize("name", BAD)
def test_any_other_is_named_with_its_place(document: dict[str, Any], name: str) -> None:
    BAD[name](document)
    problem = envelope.schema_problem(document)
    assert problem is not None
    assert problem.startswith("/")


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_plain_reading_never_accepts_what_the_schema_refuses(
    log: Any, document: dict[str, Any], name: str
) -> None:
    {**GOOD, **BAD}[name](document)
    accepted = plain.read(log.jcs(document))
    if name in BAD:
        assert accepted is None
    elif accepted is not None:
        assert accepted == (
            envelope.task_digest(document),
            document["issued_at"],
            document["not_after"],
            document.get("grant_ttl"),
            "approval_basis" in document,
        )


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_what_is_no_object_is_refused(value: object) -> None:
    assert envelope.schema_problem(value) == ": an object"


def test_digests_follow_from_their_parts(document: dict[str, Any]) -> None:
    document["action"]["capability"] = {"k": [1.5, "é"]}
    key = envelope.effect_key(document)
    assert key != document["effect_key"]
    document["effect_key"] = key
    assert envelope.is_well_formed(document, jcs.encode)
    document["action"]["arguments"]["amount"] = "2.00"
    assert not envelope.is_well_formed(document, jcs.encode)


def test_terms_are_what_is_no_fact(document: dict[str, Any]) -> None:
    document.update(subject={"id": "a", "source": "b"}, purpose="p")
    assert sorted(envelope.terms(document)) == [
        "format",
        "issued_at",
        "kind",
        "not_after",
        "purpose",
        "reasoning",
        "task",
    ]
