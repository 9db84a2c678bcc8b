"""The predicates of policy evidence, each with a case that only it catches (spec §8)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ledger import policy
from ledger.profile import Rules

NONE = Rules()
HASH = "00" * 32
OTHER = "01" * 32
RULE: dict[str, Any] = {"id": "r1", "sha256": HASH}
SELECTION = {"mode": "target", "digest": HASH, "count": 2}


def basis(evidence_class: str = "none", **members: Any) -> dict[str, Any]:
    return {
        "verdict": "require_approval",
        "engine": "engine",
        "evidence_class": evidence_class,
        "profile": HASH,
        "rules": [],
        **members,
    }


def card(**members: Any) -> dict[str, Any]:
    return {
        "action": {"tool_name": "pay", "arguments": {"amount": "1", "items": ["a", {"b": None}]}},
        "subject": {"id": "user:requester-1", "source": "idp"},
        **members,
    }


def with_basis(*args: Any, **members: Any) -> dict[str, Any]:
    return card(approval_basis=basis(*args, **members))


# The evidence class


@pytest.mark.parametrize(
    ("expected", "document"),
    [
        ("none", card()),
        ("none", with_basis()),
        ("none", with_basis(selection=SELECTION, combining="deny", default="deny")),
        ("fired_rules", with_basis(rules=[RULE])),
        ("fired_rules", with_basis(rules=[RULE], selection=SELECTION)),
        ("fired_rules", with_basis(rules=[RULE], selection=SELECTION, combining="deny")),
        ("fired_rules", with_basis(rules=[RULE], selection=SELECTION, default="deny")),
        ("fired_rules", with_basis(rules=[RULE], combining="deny", default="deny")),
        (
            "fired_rules",
            with_basis(rules=[RULE] * 3, selection=SELECTION, combining="deny", default="deny"),
        ),
        (
            "selection",
            with_basis(rules=[RULE] * 2, selection=SELECTION, combining="deny", default="deny"),
        ),
        ("whole_policy", with_basis(policy_sha256=HASH)),
        ("whole_policy", with_basis(rules=[RULE], policy_sha256=HASH)),
    ],
)
def test_the_class_is_the_highest_that_the_envelope_witnesses(
    expected: str, document: dict[str, Any]
) -> None:
    assert policy.derived_class(document) == expected


@pytest.mark.parametrize(
    ("claim", "members", "above"),
    [
        ("none", {}, False),
        ("fired_rules", {}, True),
        ("fired_rules", {"rules": [RULE]}, False),
        ("selection", {"rules": [RULE]}, True),
        ("whole_policy", {"rules": [RULE], "selection": SELECTION}, True),
        ("whole_policy", {"policy_sha256": HASH}, False),
        ("fired_rules", {"policy_sha256": HASH}, False),
    ],
)
def test_a_claim_above_what_is_derived_fails_closed(
    claim: str, members: dict[str, Any], above: bool
) -> None:
    document = with_basis(claim, **members)
    assert policy.claimed_above_derived(document) is above
    assert policy.issue(document, NONE) == ("claimed_above_derived" if above else None)


def test_a_card_without_a_basis_claims_nothing() -> None:
    assert policy.claimed_class(card()) == "none"
    assert not policy.claimed_above_derived(card())


# The floor


@pytest.mark.parametrize(
    ("minimum", "claim", "members", "below"),
    [
        ("none", "none", {}, False),
        ("fired_rules", "none", {}, True),
        ("fired_rules", "none", {"rules": [RULE]}, True),
        ("fired_rules", "fired_rules", {"rules": [RULE]}, False),
        ("selection", "fired_rules", {"rules": [RULE]}, True),
        ("selection", "whole_policy", {"policy_sha256": HASH}, False),
        ("whole_policy", "whole_policy", {"policy_sha256": HASH}, False),
    ],
)
def test_the_claim_is_held_against_the_minimum(
    minimum: str, claim: str, members: dict[str, Any], below: bool
) -> None:
    rules = Rules(minimum=minimum)
    assert policy.evidence_below_floor(with_basis(claim, **members), rules) is below


def test_a_card_without_a_basis_is_below_any_minimum() -> None:
    assert policy.evidence_below_floor(card(), Rules(minimum="fired_rules"))
    assert policy.issue(card(), Rules(minimum="fired_rules")) == "evidence_below_floor"


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("", True),
        ("/subject", True),
        ("/subject/id", True),
        ("/subject/tenant", False),
        ("/subject/id/0", False),
        ("/purpose", False),
        ("/action/arguments/items/1", True),
        ("/action/arguments/items/1/b", True),
        ("/action/arguments/items/2", False),
        ("/action/arguments/items/-", False),
        ("/action/arguments/items/01", False),
        ("/action/arguments/items/+1", False),
        ("/action/arguments/items/\u0661", False),
        ("/action/arguments/items/99999999999999999999", False),
        ("/action/arguments/a~1b", False),
    ],
)
def test_a_required_member_must_be_there(path: str, there: bool) -> None:
    rules = Rules(required=frozenset({path}))
    assert policy.evidence_below_floor(card(), rules) is not there


@pytest.mark.parametrize("name", ["a/b", "a~b", "~1", "", "0"])
def test_names_are_found_as_rfc_6901_spells_them(name: str) -> None:
    document = card(action={"tool_name": "t", "arguments": {name: None}})
    spelled = name.replace("~", "~0").replace("/", "~1")
    rules = Rules(required=frozenset({f"/action/arguments/{spelled}"}))
    assert not policy.evidence_below_floor(document, rules)


def test_a_grant_ttl_that_is_required_must_be_there() -> None:
    rules = Rules(grant_ttl_required=True)
    assert policy.evidence_below_floor(card(), rules)
    assert not policy.evidence_below_floor(card(grant_ttl=1), rules)


# The manifest


def manifest(*fields: tuple[str, str, Any]) -> dict[str, Any]:
    listed = [{"id": name, "path": path, "value": value} for name, path, value in fields]
    return card(review_manifest={"schema": "s", "selector": HASH, "fields": listed})


AMOUNT = ("amount", "/action/arguments/amount", "1")


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ([AMOUNT], False),
        ([("n", "/action/arguments/items/1/b", None)], False),
        ([("n", "/action/arguments/items", ["a", {"b": None}])], False),
        ([("amount", "/action/arguments/amount", 1)], True),
        ([("amount", "/action/arguments/amount", "1.00")], True),
        ([("amount", "/action/arguments/total", "1")], True),
        ([("nothing", "/action/arguments/total", None)], True),
        ([AMOUNT, ("other", "/action/arguments/amount", "1")], False),
        ([AMOUNT, ("amount", "/action/tool_name", "pay")], True),
        ([("self", "/review_manifest/schema", "s")], True),
    ],
)
def test_a_manifest_says_what_the_envelope_says(
    fields: list[tuple[str, str, Any]], wrong: bool
) -> None:
    document = manifest(*fields)
    assert policy.manifest_mismatch(document, NONE) is wrong
    assert policy.issue(document, NONE) == ("manifest_mismatch" if wrong else None)


def test_a_manifest_cannot_hold_itself() -> None:
    document = manifest(AMOUNT)
    whole = copy.deepcopy(document["review_manifest"])
    document["review_manifest"]["fields"][0] = {
        "id": "m",
        "path": "/review_manifest",
        "value": whole,
    }
    assert policy.manifest_mismatch(document, NONE)


def test_values_are_compared_in_canonical_form() -> None:
    document = manifest(("n", "/action/arguments/n", 10.0))
    document["action"]["arguments"]["n"] = 10
    assert not policy.manifest_mismatch(document, NONE)
    document["action"]["arguments"]["n"] = True
    assert policy.manifest_mismatch(document, NONE)


@pytest.mark.parametrize(
    ("critical", "wrong"),
    [
        ("/action/arguments/amount", False),
        ("/action/tool_name", True),
        ("/action/arguments/absent", False),
    ],
)
def test_a_critical_member_that_a_card_has_stands_in_its_manifest(
    critical: str, wrong: bool
) -> None:
    rules = Rules(critical=frozenset({critical}))
    assert policy.manifest_mismatch(manifest(AMOUNT), rules) is wrong


def test_a_card_without_a_manifest_leaves_nothing_out() -> None:
    assert not policy.manifest_mismatch(card(), Rules(critical=frozenset({"/action/tool_name"})))


# Fixed parameters


@pytest.mark.parametrize(
    ("tool", "path", "supplied"),
    [
        ("pay", "/amount", True),
        ("pay", "/items/1/b", True),
        ("pay", "/currency", False),
        ("refund", "/amount", False),
        ("pay", "", True),
    ],
)
def test_a_call_carries_no_value_for_what_the_operator_fixed(
    tool: str, path: str, supplied: bool
) -> None:
    rules = Rules(fixed=frozenset({(tool, path)}))
    assert policy.fixed_parameter_supplied(card(), rules) is supplied
    assert policy.issue(card(), rules) == ("fixed_parameter_supplied" if supplied else None)


def test_the_reasons_of_issue_stand_in_the_order_of_the_spec() -> None:
    document = manifest(("amount", "/action/arguments/amount", "2"))
    document["approval_basis"] = basis("selection", rules=[RULE])
    rules = Rules(minimum="whole_policy", fixed=frozenset({("pay", "/amount")}))
    found = []
    for repair in (
        lambda: document["approval_basis"].update(evidence_class="fired_rules"),
        lambda: document["approval_basis"].update(
            evidence_class="whole_policy", policy_sha256=HASH
        ),
        lambda: document["action"]["arguments"].update(amount="2"),
        lambda: document["action"].update(tool_name="refund"),
    ):
        found.append(policy.issue(document, rules))
        repair()
    assert [*found, policy.issue(document, rules)] == [
        "claimed_above_derived",
        "evidence_below_floor",
        "manifest_mismatch",
        "fixed_parameter_supplied",
        None,
    ]


# Who decides


@pytest.mark.parametrize(
    ("denied", "approver", "own"),
    [
        (True, "user:requester-1", True),
        (True, "user:approver-1", False),
        (True, "User:requester-1", False),
        (False, "user:requester-1", False),
    ],
)
def test_nobody_decides_about_a_card_of_their_own_where_it_is_denied(
    denied: bool, approver: str, own: bool
) -> None:
    rules = Rules(self_approval_denied=denied)
    assert policy.self_approval(card(), rules, approver) is own
    expected = "self_approval" if own else None
    assert policy.resolve(card(), rules, approver, "label") == expected


def test_a_card_without_a_subject_is_nobodys_own() -> None:
    document = card()
    del document["subject"]
    assert not policy.self_approval(document, Rules(self_approval_denied=True), "user:requester-1")


@pytest.mark.parametrize(
    ("required", "given", "low"),
    [
        ("label", "label", False),
        ("label", "authenticated", False),
        ("authenticated", "label", True),
        ("authenticated", "authenticated", False),
    ],
)
def test_an_approver_is_established_as_firmly_as_the_rules_require(
    required: str, given: str, low: bool
) -> None:
    rules = Rules(assurance=required)
    assert policy.assurance_too_low(rules, given) is low
    expected = "approver_unverified" if low else None
    assert policy.resolve(card(), rules, "user:approver-1", given) == expected


def test_self_approval_is_told_before_a_weak_assurance() -> None:
    rules = Rules(self_approval_denied=True, assurance="authenticated")
    assert policy.resolve(card(), rules, "user:requester-1", "label") == "self_approval"


# Drift

BEFORE = card(approval_basis=basis("fired_rules", rules=[RULE], verdict="require_approval"))
NOW = card(approval_basis=basis("fired_rules", rules=[{**RULE, "sha256": OTHER}], verdict="allow"))


def test_a_basis_may_drift_where_all_conditions_hold() -> None:
    assert policy.drift_of_basis(BEFORE, NOW, "allow")


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, None),
        ({}, "require_approval"),
        ({"verdict": "require_approval"}, "allow"),
        ({"verdict": "deny"}, "allow"),
        ({"profile": OTHER}, "allow"),
    ],
)
def test_a_basis_may_not_drift_where_one_condition_fails(
    change: dict[str, Any], outcome: str | None
) -> None:
    now = {**NOW, "approval_basis": {**NOW["approval_basis"], **change}}
    assert not policy.drift_of_basis(BEFORE, now, outcome)


@pytest.mark.parametrize("member", ["subject", "approval_basis"])
def test_nothing_but_the_basis_may_drift(member: str) -> None:
    now = {name: value for name, value in NOW.items() if name != member}
    assert not policy.drift_of_basis(BEFORE, now, "allow")


def test_a_basis_that_appears_is_no_drift_of_one() -> None:
    before = {name: value for name, value in BEFORE.items() if name != "approval_basis"}
    assert not policy.drift_of_basis(before, NOW, "allow")


@pytest.mark.parametrize(
    ("now", "minimum", "below"),
    [
        (basis("fired_rules", rules=[RULE]), "fired_rules", False),
        (basis("none", rules=[RULE]), "fired_rules", True),
        (basis("selection", rules=[RULE]), "none", True),
    ],
)
def test_a_basis_that_drifted_still_reaches_the_floor(
    now: dict[str, Any], minimum: str, below: bool
) -> None:
    rules = Rules(minimum=minimum)
    assert policy.drift_below_floor(card(approval_basis=now), rules) is below


@pytest.mark.parametrize(
    ("pointers", "classes"),
    [
        ([], ()),
        (["/action/arguments/amount", "/action/args_digest", "/effect_key"], ("request",)),
        (["/action/tool_name"], ("request",)),
        (["/action/spec_digest"], ("request",)),
        (["/action/capability/scope", "/effect_key"], ("policy and capability",)),
        (["/action/capability"], ("policy and capability",)),
        (["/action/capabilities"], ("request",)),
        (["/subject/id"], ("subject and authority",)),
        (["/subject"], ("subject and authority",)),
        (["/approval_basis/rules/0/sha256"], ("policy and capability",)),
        (["/preconditions/0/version"], ("business object",)),
        (["/review_manifest/selector"], ("presentation",)),
        (
            ["/preconditions", "/subject/id", "/action/arguments/x"],
            ("request", "subject and authority", "business object"),
        ),
    ],
)
def test_drift_is_classed_by_the_first_member(
    pointers: list[str], classes: tuple[str, ...]
) -> None:
    assert policy.drift_classes(pointers) == classes


def test_the_rules_that_a_basis_cites_are_given_by_hash() -> None:
    cited = with_basis(rules=[RULE, {"id": "r2", "sha256": OTHER}, RULE])
    assert policy.rule_hashes(cited) == {HASH, OTHER}
    assert policy.rule_hashes(card()) == frozenset()
