from __future__ import annotations

from typing import Any

import pytest

from verifier import policy
from verifier.profile import NO_RULES

RULE = {"id": "rule-1", "sha256": "ab" * 32}
SELECTION = {"mode": "by_target", "digest": "ab" * 32, "count": 1}
BOTH = {"combining": "deny_overrides", "default": "review"}


@pytest.mark.parametrize(
    ("members", "derived"),
    [
        ({"rules": []}, policy.NONE),
        ({"rules": [], "selection": SELECTION, **BOTH}, policy.NONE),
        ({"rules": [RULE]}, policy.FIRED_RULES),
        ({"rules": [RULE], **BOTH}, policy.FIRED_RULES),
        ({"rules": [RULE], "selection": SELECTION}, policy.FIRED_RULES),
        ({"rules": [RULE], "selection": SELECTION, "default": "review"}, policy.FIRED_RULES),
        ({"rules": [RULE], "selection": SELECTION, "combining": "first"}, policy.FIRED_RULES),
        ({"rules": [RULE], "selection": SELECTION, **BOTH}, policy.SELECTION),
        ({"rules": [RULE, RULE], "selection": SELECTION, **BOTH}, policy.FIRED_RULES),
        ({"rules": [], "policy_sha256": "ab" * 32}, policy.WHOLE_POLICY),
    ],
    ids=str,
)
def test_a_class_is_derived_from_what_the_basis_carries(
    members: dict[str, Any], derived: int
) -> None:
    assert policy.derived_class(members) == derived


@pytest.mark.parametrize(("claim", "fails"), [("none", False), ("fired_rules", False)])
@pytest.mark.parametrize("above", ["selection", "whole_policy"])
def test_a_claim_is_at_most_the_derived_class(claim: str, fails: bool, above: str) -> None:
    basis = {"rules": [RULE], "evidence_class": claim}
    assert (policy.claim_problem({"approval_basis": basis}) is not None) == fails
    basis["evidence_class"] = above
    assert policy.claim_problem({"approval_basis": basis}) == (
        "a claim of at most fired_rules, which the envelope witnesses",
        f"a claim of {above}",
    )


def test_the_claim_counts_against_a_floor_and_not_the_derived_class() -> None:
    basis = {"rules": [RULE], "evidence_class": "none"}
    profile = NO_RULES._replace(minimum=policy.FIRED_RULES)
    assert policy.floor_problem({"approval_basis": basis}, profile) is not None
    basis["evidence_class"] = "fired_rules"
    assert policy.floor_problem({"approval_basis": basis}, profile) is None
    assert policy.floor_problem({}, profile) is not None


def test_a_required_member_may_be_null_and_may_not_be_absent() -> None:
    profile = NO_RULES._replace(required=("/action/arguments/note",))
    assert policy.floor_problem({"action": {"arguments": {"note": None}}}, profile) is None
    assert policy.floor_problem({"action": {"arguments": {}}}, profile) == (
        "a member at /action/arguments/note",
        "none",
    )


def with_field(path: str, value: Any, **more: Any) -> dict[str, Any]:
    fields = [{"id": "one", "path": path, "value": value}]
    return {"kind": "tool_call", "n": 1, "review_manifest": {"fields": fields, **more}}


@pytest.mark.parametrize(
    ("path", "value", "right"),
    [
        ("/kind", "tool_call", True),
        ("/kind", "Tool_call", False),
        ("/n", 1, True),
        ("/n", True, False),
        ("/n", "1", False),
        ("/m", None, False),
        ("", {}, False),
        ("/review_manifest", {}, False),
        ("/review_manifest/fields/0/id", "one", False),
    ],
)
def test_a_field_says_what_stands_at_its_path(path: str, value: Any, right: bool) -> None:
    assert (policy.manifest_problem(with_field(path, value), NO_RULES) is None) == right


def test_the_view_is_the_text_presented_where_one_is_bound() -> None:
    envelope = with_field("/n", 1, view_digest="ab" * 32)
    assert policy.manifest_problem(envelope, NO_RULES) is None
    assert policy.manifest_problem(envelope, NO_RULES, bytes.fromhex("ab" * 32)) is None
    assert policy.manifest_problem(envelope, NO_RULES, bytes(32)) is not None


def test_a_critical_member_stands_in_the_manifest_if_card_and_manifest_are_there() -> None:
    profile = NO_RULES._replace(critical=("/kind", "/purpose"))
    assert policy.manifest_problem({"kind": "tool_call"}, profile) is None
    assert policy.manifest_problem(with_field("/kind", "tool_call"), profile) is None
    assert policy.manifest_problem(with_field("/n", 1), profile) == (
        "a field for the critical member at /kind",
        "none",
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "fails"),
    [
        ("pay", {"to": {"id": 1}}, True),
        ("pay", {"to": {"id": None}}, True),
        ("pay", {"to": {}}, False),
        ("mail", {"to": {"id": 1}}, False),
    ],
)
def test_a_fixed_parameter_has_no_value(tool: str, arguments: Any, fails: bool) -> None:
    profile = NO_RULES._replace(fixed_parameters=(("pay", "/to/id"),))
    envelope = {"action": {"tool_name": tool, "arguments": arguments}}
    assert (policy.fixed_parameter_problem(envelope, profile) is not None) == fails


def test_an_own_card_is_one_whose_subject_decides() -> None:
    card = {"subject": {"id": "user:a", "source": "session"}}
    assert policy.is_own_card(card, "user:a")
    assert not policy.is_own_card(card, "user:A")
    assert not policy.is_own_card({}, "user:a")
