"""The closed schemas of envelopes, proposals and facts (spec §2.3, §2.6, §8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ledger.errors import ProposalInvalid
from ledger.schema import check_envelope, check_facts, check_proposal

HASH = "0123456789abcdef" * 4
LAST = 253_402_300_799

Document = dict[str, Any]


def proposal() -> Document:
    """A proposal with every member that this version supports."""
    return {
        "kind": "tool_call",
        "task": {"id": "run-1", "step": "refund"},
        "action": {
            "tool_name": "refund.create",
            "arguments": {"anything": [None, {"": 1.5}]},
            "capability": {"x": None},
            "spec_digest": HASH,
            "artifact_digest": HASH,
        },
        "subject": {"id": "user:1", "source": "sso", "tenant": "t", "delegation": [None]},
        "preconditions": [{"ref": "order/1", "version": "7"}, {"ref": "order/2", "version": "7"}],
        "policy_version": "1",
        "purpose": "",
        "reasoning": "a" * 2_000,
        "impact": {
            "score": 100,
            "hard_one_way": True,
            "rationale": "r",
            "fired_detectors": ["d", "e"],
            "detector_set": {"id": "s", "digest": HASH},
        },
        "rollback": {"procedure": "none", "irreversible": True},
        "ttl": 1,
        "grant_ttl": 1,
        "supersedes": HASH,
        "prior_attempt": {"card_hash": HASH, "outcome": "unknown"},
    }


def envelope() -> Document:
    """An envelope with every member of the spec. Its digests are not this module's business."""
    document = proposal()
    del document["ttl"]
    document["action"]["args_digest"] = HASH
    return document | {
        "format": "cardchain-card/1",
        "issued_at": 0,
        "not_after": 1,
        "effect_key": HASH,
        "approval_basis": {
            "verdict": "ask",
            "engine": "e",
            "evidence_class": "whole_policy",
            "profile": HASH,
            "profile_id": "p",
            "profile_version": "1",
            "rules": [{"id": "r", "sha256": HASH}],
            "selection": {"mode": "first", "digest": HASH, "count": 0},
            "combining": "c",
            "default": "d",
            "policy_sha256": HASH,
        },
        "review_manifest": {
            "schema": "s",
            "selector": HASH,
            "selector_id": "s",
            "selector_version": "1",
            "fields": [{"id": "f", "path": "/action/arguments/a~1b", "value": None}],
            "view_digest": HASH,
        },
    }


def facts() -> Document:
    document = proposal()
    return {name: document[name] for name in ("action", "subject", "preconditions")}


CHECKS: dict[str, tuple[Callable[[Any], None], Callable[[], Document]]] = {
    "envelope": (check_envelope, envelope),
    "proposal": (check_proposal, proposal),
    "facts": (check_facts, facts),
}
REQUIRED = {
    "envelope": "format kind task action reasoning issued_at not_after effect_key",
    "proposal": "kind task action reasoning ttl",
    "facts": "action",
}
REQUIRED_INSIDE = [
    "/task/id",
    "/task/step",
    "/action/tool_name",
    "/action/arguments",
    "/action/args_digest",
    "/subject/id",
    "/subject/source",
    "/preconditions/0/ref",
    "/preconditions/0/version",
    "/impact/score",
    "/impact/hard_one_way",
    "/impact/rationale",
    "/impact/fired_detectors",
    "/impact/detector_set",
    "/impact/detector_set/id",
    "/impact/detector_set/digest",
    "/rollback/procedure",
    "/rollback/irreversible",
    "/prior_attempt/card_hash",
    "/prior_attempt/outcome",
    "/approval_basis/verdict",
    "/approval_basis/engine",
    "/approval_basis/evidence_class",
    "/approval_basis/profile",
    "/approval_basis/rules",
    "/approval_basis/rules/0/id",
    "/approval_basis/rules/0/sha256",
    "/approval_basis/selection/mode",
    "/approval_basis/selection/digest",
    "/approval_basis/selection/count",
    "/review_manifest/schema",
    "/review_manifest/selector",
    "/review_manifest/fields",
    "/review_manifest/fields/0/id",
    "/review_manifest/fields/0/path",
    "/review_manifest/fields/0/value",
]
OPTIONAL_INSIDE = [
    "/action/capability",
    "/action/spec_digest",
    "/action/artifact_digest",
    "/subject/tenant",
    "/subject/delegation",
    "/approval_basis/profile_id",
    "/approval_basis/profile_version",
    "/approval_basis/selection",
    "/approval_basis/combining",
    "/approval_basis/default",
    "/approval_basis/policy_sha256",
    "/review_manifest/selector_id",
    "/review_manifest/selector_version",
    "/review_manifest/view_digest",
]


def at(document: Any, pointer: str) -> tuple[Any, Any]:
    """The object or array that holds the place, and the last step to it."""
    *steps, last = pointer.split("/")[1:]
    for step in steps:
        document = document[int(step) if isinstance(document, list) else step]
    return document, int(last) if isinstance(document, list) else last


def put(document: Document, pointer: str, value: Any) -> Document:
    place, last = at(document, pointer)
    place[last] = value
    return document


def drop(document: Document, pointer: str) -> Document:
    place, last = at(document, pointer)
    del place[last]
    return document


def refused(check: Callable[[Any], None], document: Any) -> str:
    with pytest.raises(ProposalInvalid) as caught:
        check(document)
    return caught.value.pointer


@pytest.mark.parametrize("name", CHECKS)
def test_document_with_every_member_is_accepted(name: str) -> None:
    check, document = CHECKS[name]
    check(document())


@pytest.mark.parametrize("name", CHECKS)
def test_document_with_required_members_alone_is_accepted(name: str) -> None:
    check, document = CHECKS[name]
    whole = document()
    check({member: whole[member] for member in REQUIRED[name].split()})


@pytest.mark.parametrize(
    ("name", "member"), [(n, m) for n in REQUIRED for m in REQUIRED[n].split()]
)
def test_missing_member_is_refused(name: str, member: str) -> None:
    check, document = CHECKS[name]
    assert refused(check, drop(document(), f"/{member}")) == f"/{member}"


@pytest.mark.parametrize("pointer", REQUIRED_INSIDE)
def test_missing_member_inside_is_refused(pointer: str) -> None:
    assert refused(check_envelope, drop(envelope(), pointer)) == pointer


@pytest.mark.parametrize("pointer", OPTIONAL_INSIDE)
def test_optional_member_inside_may_be_absent(pointer: str) -> None:
    check_envelope(drop(envelope(), pointer))


OBJECTS = sorted({pointer.rpartition("/")[0] for pointer in REQUIRED_INSIDE} - {""})


@pytest.mark.parametrize("pointer", ["", *OBJECTS])
def test_unknown_member_is_refused_at_every_level(pointer: str) -> None:
    assert refused(check_envelope, put(envelope(), f"{pointer}/other", 1)) == f"{pointer}/other"


@pytest.mark.parametrize("pointer", [f"/{member}" for member in envelope()])
def test_no_member_is_null(pointer: str) -> None:
    assert refused(check_envelope, put(envelope(), pointer, None)) == pointer


@pytest.mark.parametrize(
    "pointer",
    [p for p in REQUIRED_INSIDE + OPTIONAL_INSIDE if p != "/review_manifest/fields/0/value"],
)
def test_no_member_inside_is_null(pointer: str) -> None:
    assert refused(check_envelope, put(envelope(), pointer, None)) == pointer


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("document", [None, [], "", 1, True])
def test_document_that_is_not_an_object_is_refused(name: str, document: Any) -> None:
    assert refused(CHECKS[name][0], document) == ""


BAD_VALUES: dict[str, list[Any]] = {
    "/format": ["cardchain-card/2", "", 1],
    "/kind": ["", "a" * 257, "é" * 129, 1, ["tool_call"]],
    "/task": [[], "run-1"],
    "/task/id": ["", "a" * 257],
    "/action": [[]],
    "/action/tool_name": ["", 1],
    "/action/arguments": [[], "{}", 1, False],
    "/action/args_digest": [HASH.upper(), HASH[1:], HASH + "\n", HASH + "0", 1],
    "/action/spec_digest": ["", "g" * 64],
    "/subject/source": ["model", "", 1],
    "/subject/tenant": [""],
    "/preconditions": [[], {}, [{"ref": str(n), "version": "1"} for n in range(257)]],
    "/preconditions/1": [{"ref": "order/1", "version": "8"}, "order/2"],
    "/policy_version": ["", 1],
    "/purpose": ["a" * 4_097, "é" * 2_049, 1],
    "/reasoning": ["a" * 2_001, "😀" * 2_001, 1],
    "/impact": [[], True],
    "/impact/score": [-1, 101, 50.5, "50", True],
    "/impact/hard_one_way": [0, 1, "true"],
    "/impact/rationale": ["a" * 4_097],
    "/impact/fired_detectors": [{}, "d", [str(n) for n in range(257)], []],
    "/impact/fired_detectors/1": ["d", "", 1],
    "/impact/detector_set/digest": ["0" * 63],
    "/rollback/procedure": [1, "a" * 4_097],
    "/rollback/irreversible": [1, "true", False],
    "/issued_at": [-1, 1.5, "0", True],
    "/not_after": [0, LAST + 1, "1", True],
    "/grant_ttl": [0, -1, LAST + 1, 1.5, True],
    "/supersedes": ["", HASH.upper()],
    "/prior_attempt/outcome": ["dispatched", "", 1],
    "/effect_key": ["", HASH.upper()],
    "/approval_basis/evidence_class": ["all"],
    "/approval_basis/rules": [{}, [{"id": "r", "sha256": HASH}] * 1_025],
    "/approval_basis/selection/count": [-1, 2**53, 1.5],
    "/review_manifest/fields": [[], [{"id": "f", "path": "", "value": 1}] * 257],
    "/review_manifest/fields/0/path": ["a", "/~", "/~2", "/a~"],
}


@pytest.mark.parametrize(("pointer", "value"), [(p, v) for p in BAD_VALUES for v in BAD_VALUES[p]])
def test_value_that_breaks_its_rule_is_refused(pointer: str, value: Any) -> None:
    assert refused(check_envelope, put(envelope(), pointer, value)) == pointer


GOOD_VALUES: dict[str, list[Any]] = {
    "/kind": ["é" * 128],
    "/purpose": ["é" * 2_048],
    "/reasoning": ["", "😀" * 2_000],
    "/impact/score": [0],
    "/impact/fired_detectors": [[str(n) for n in range(256)]],
    "/preconditions": [[{"ref": str(n), "version": "1"} for n in range(256)]],
    "/not_after": [LAST],
    "/grant_ttl": [LAST],
    "/action/arguments": [{}, {"salt": 1, "format": 2}],
    "/action/capability": [False, 0, "", {}],
    "/subject/source": ["Model"],
    "/approval_basis/rules": [[], [{"id": "r", "sha256": HASH}] * 1_024],
    "/review_manifest/fields/0/path": ["", "/", "/a~0b/~1/\n"],
}


@pytest.mark.parametrize(
    ("pointer", "value"), [(p, v) for p in GOOD_VALUES for v in GOOD_VALUES[p]]
)
def test_value_at_the_edge_of_its_rule_is_accepted(pointer: str, value: Any) -> None:
    check_envelope(put(envelope(), pointer, value))


def test_one_way_door_needs_a_rollback() -> None:
    assert refused(check_envelope, drop(envelope(), "/rollback")) == "/rollback"
    assert refused(check_proposal, drop(proposal(), "/rollback")) == "/rollback"


def test_door_that_is_not_one_way_needs_no_marker() -> None:
    document = put(drop(envelope(), "/rollback"), "/impact/hard_one_way", False)
    check_envelope(put(document, "/impact/fired_detectors", []))


def test_salt_is_reserved() -> None:
    with pytest.raises(ProposalInvalid, match="/salt: reserved"):
        check_envelope(put(envelope(), "/salt", HASH))


@pytest.mark.parametrize("member", ["format", "issued_at", "not_after", "effect_key"])
def test_what_the_ledger_sets_is_refused_in_a_proposal(member: str) -> None:
    with pytest.raises(ProposalInvalid, match=f"/{member}: set by the ledger"):
        check_proposal(put(proposal(), f"/{member}", envelope()[member]))


@pytest.mark.parametrize("name", ["proposal", "facts"])
def test_args_digest_is_refused_from_the_caller(name: str) -> None:
    check, document = CHECKS[name]
    assert refused(check, put(document(), "/action/args_digest", HASH)) == "/action/args_digest"


@pytest.mark.parametrize("name", ["proposal", "facts"])
@pytest.mark.parametrize("member", ["approval_basis", "review_manifest"])
def test_policy_evidence_is_checked_wherever_it_stands(name: str, member: str) -> None:
    check, document = CHECKS[name]
    check(put(document(), f"/{member}", envelope()[member]))
    wrong = put(document(), f"/{member}", {**envelope()[member], "more": 1})
    assert refused(check, wrong) == f"/{member}/more"


@pytest.mark.parametrize("member", ["task", "reasoning", "ttl", "supersedes"])
def test_terms_are_no_facts(member: str) -> None:
    assert refused(check_facts, put(facts(), f"/{member}", proposal()[member])) == f"/{member}"


def test_reasoning_of_a_proposal_may_be_longer_since_it_is_cut() -> None:
    check_proposal(put(proposal(), "/reasoning", "a" * 10_000))


@pytest.mark.parametrize("ttl", [0, -1, 1.5, True, "60", LAST + 1])
def test_ttl_is_at_least_a_second(ttl: Any) -> None:
    assert refused(check_proposal, put(proposal(), "/ttl", ttl)) == "/ttl"


def test_name_with_a_slash_is_escaped_in_the_pointer() -> None:
    assert refused(check_proposal, proposal() | {"a/b~": 1}) == "/a~1b~0"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "null"),
        ("", "a text of 0 bytes"),
        (7, "7"),
        (1.5, "a number that is not an integer"),
        (True, "a boolean"),
        ({}, "an object"),
        ([], "an array"),
    ],
)
def test_error_says_what_was_found_and_what_was_expected(value: Any, found: str) -> None:
    with pytest.raises(ProposalInvalid) as caught:
        check_proposal(put(proposal(), "/supersedes", value))
    expected = f"/supersedes: found {found}, expected 64 lower-case hexadecimal digits"
    assert str(caught.value) == expected


def test_text_in_an_error_is_not_shown() -> None:
    with pytest.raises(ProposalInvalid) as caught:
        check_proposal(put(proposal(), "/kind", "secret" * 100))
    assert "secret" not in str(caught.value)
    assert "600 bytes" in str(caught.value)
