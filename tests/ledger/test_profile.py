"""Profiles are closed, canonical and named by content; of two rules the stricter holds (§8.5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import profile
from ledger.errors import ProposalInvalid
from ledger.profile import Profile, Rules

WEAK: dict[str, Any] = {
    "format": "cardchain-profile/1",
    "minimum": "none",
    "required": [],
    "grant_ttl": "optional",
    "self_approval": "allow",
    "assurance": "label",
    "fixed_parameters": [],
    "critical": [],
    "basis_drift": "allow_if_allowed",
}
STRICT: dict[str, Any] = {
    **WEAK,
    "id": "strict",
    "version": "1",
    "minimum": "selection",
    "required": ["/subject/tenant"],
    "grant_ttl": "required",
    "self_approval": "deny",
    "assurance": "authenticated",
    "fixed_parameters": [{"tool_name": "pay", "path": "/currency"}],
    "critical": ["/action/arguments/amount"],
    "basis_drift": "review",
}


def canonical(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def read(**changes: Any) -> Profile:
    return profile.parse(canonical({**WEAK, **changes}))


def test_a_profile_is_named_by_the_digest_of_its_bytes() -> None:
    text = canonical(STRICT)
    found = profile.parse(text)
    assert found.canonical == text
    assert found.digest == hashlib.sha256(text).digest()
    assert found.rules == Rules(
        minimum="selection",
        required=frozenset({"/subject/tenant"}),
        grant_ttl_required=True,
        self_approval_denied=True,
        assurance="authenticated",
        fixed=frozenset({("pay", "/currency")}),
        critical=frozenset({"/action/arguments/amount"}),
        drift_allowed=False,
    )


def test_labels_do_not_change_the_rules_but_the_digest() -> None:
    assert read().rules == read(id="one", version="2").rules
    assert read().digest != read(id="one").digest


@pytest.mark.parametrize("name", WEAK)
def test_every_member_but_a_label_must_be_there(name: str) -> None:
    document = {key: value for key, value in WEAK.items() if key != name}
    with pytest.raises(ProposalInvalid) as caught:
        profile.parse(canonical(document))
    assert caught.value.pointer == f"/{name}"


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("format", "cardchain-profile/2", "/format"),
        ("minimum", "everything", "/minimum"),
        ("required", ["subject"], "/required/0"),
        ("required", ["/a", "/a"], "/required/1"),
        ("required", [f"/{n}" for n in range(65)], "/required"),
        ("required", None, "/required"),
        ("grant_ttl", True, "/grant_ttl"),
        ("self_approval", "maybe", "/self_approval"),
        ("assurance", "signed", "/assurance"),
        ("fixed_parameters", [{"tool_name": "t"}], "/fixed_parameters/0/path"),
        ("fixed_parameters", [{"tool_name": "", "path": ""}], "/fixed_parameters/0/tool_name"),
        (
            "fixed_parameters",
            [{"tool_name": "t", "path": "", "value": 1}],
            "/fixed_parameters/0/value",
        ),
        ("fixed_parameters", [{"tool_name": "t", "path": ""}] * 257, "/fixed_parameters"),
        ("critical", ["/~2"], "/critical/0"),
        ("critical", ["/a", "/a"], "/critical/1"),
        ("basis_drift", "allow", "/basis_drift"),
        ("id", "", "/id"),
        ("version", 1, "/version"),
        ("comment", "x", "/comment"),
    ],
)
def test_what_breaks_the_table_is_refused_at_its_place(name: str, value: Any, place: str) -> None:
    with pytest.raises(ProposalInvalid) as caught:
        read(**{name: value})
    assert caught.value.pointer == place


@pytest.mark.parametrize(
    "text",
    [
        b" " + canonical(WEAK),
        canonical(WEAK) + b"\n",
        json.dumps(WEAK).encode(),
        canonical(WEAK)[:-1] + b',"required":[]}',
        b"[]",
        b"",
    ],
)
def test_only_canonical_bytes_are_a_profile(text: bytes) -> None:
    with pytest.raises(ProposalInvalid):
        profile.parse(text)


def test_a_profile_is_at_most_65536_bytes() -> None:
    def of(size: int) -> bytes:
        text = canonical({**WEAK, "required": []})
        fixed = [{"path": "", "tool_name": "t" * 250} for _ in range(230)]
        text = canonical({**WEAK, "fixed_parameters": fixed})
        paths = ["/" + "a" * (size - len(text) - 3)]
        return canonical({**WEAK, "fixed_parameters": fixed, "required": paths})

    assert profile.parse(of(65_536)).canonical == of(65_536)
    with pytest.raises(ProposalInvalid, match="limit 65536"):
        profile.parse(of(65_537))


def test_without_a_profile_there_are_no_rules() -> None:
    assert profile.strictest([]) == Rules()
    assert not profile.strictest([]).drift_allowed


RULES = {
    "minimum": st.sampled_from(["none", "fired_rules", "selection", "whole_policy"]),
    "required": st.lists(st.sampled_from(["/a", "/b", "/c"]), unique=True),
    "grant_ttl": st.sampled_from(["required", "optional"]),
    "self_approval": st.sampled_from(["allow", "deny"]),
    "assurance": st.sampled_from(["label", "authenticated"]),
    "fixed_parameters": st.lists(
        st.fixed_dictionaries({"tool_name": st.sampled_from("xy"), "path": st.just("/p")})
    ),
    "critical": st.lists(st.sampled_from(["/a", "/b", "/c"]), unique=True),
    "basis_drift": st.sampled_from(["review", "allow_if_allowed"]),
}
profiles = st.fixed_dictionaries(RULES).map(lambda members: read(**members))


@given(profiles, profiles)
def test_of_two_rules_the_stricter_holds(a: Profile, b: Profile) -> None:
    """Each rule of the result is that of one of the two, and never the laxer one."""
    order = ["none", "fired_rules", "selection", "whole_policy"]
    left, right, both = a.rules, b.rules, profile.strictest([a, b])
    assert both == profile.strictest([b, a])
    assert order.index(both.minimum) == max(order.index(left.minimum), order.index(right.minimum))
    assert both.required == left.required | right.required
    assert both.critical == left.critical | right.critical
    assert both.fixed == left.fixed | right.fixed
    assert both.grant_ttl_required == (left.grant_ttl_required or right.grant_ttl_required)
    assert both.self_approval_denied == (left.self_approval_denied or right.self_approval_denied)
    assert (both.assurance == "label") == (left.assurance == right.assurance == "label")
    assert both.drift_allowed == (left.drift_allowed and right.drift_allowed)


@given(profiles)
def test_one_profile_alone_holds_as_it_is(one: Profile) -> None:
    assert profile.strictest([one]) == one.rules == profile.strictest([one, one])


@pytest.mark.parametrize("order", [lambda a, b: (a, b), lambda a, b: (b, a)])
def test_naming_a_weak_profile_evades_nothing(order: Callable[..., Any]) -> None:
    strict, weak = profile.parse(canonical(STRICT)), read()
    assert profile.strictest(order(strict, weak)) == strict.rules
