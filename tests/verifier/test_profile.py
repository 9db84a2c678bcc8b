from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.profile import NO_RULES, Profile, ProfileRefused, parse_profile, stricter

RIGHT: dict[str, Any] = {
    "format": "cardchain-profile/1",
    "minimum": "selection",
    "required": ["/purpose"],
    "grant_ttl": "required",
    "self_approval": "deny",
    "assurance": "authenticated",
    "fixed_parameters": [{"tool_name": "refund.create", "path": "/account"}],
    "critical": ["/action/arguments/amount"],
    "basis_drift": "allow_if_allowed",
}


def encoded(**changed: Any) -> bytes:
    members = {name: value for name, value in {**RIGHT, **changed}.items() if value is not None}
    return json.dumps(members, sort_keys=True, separators=(",", ":")).encode()


def test_a_profile_is_read() -> None:
    assert parse_profile(encoded(id="refunds", version="3")) == Profile(
        minimum=2,
        required=("/purpose",),
        needs_grant_ttl=True,
        denies_self_approval=True,
        assurance=1,
        fixed_parameters=(("refund.create", "/account"),),
        critical=("/action/arguments/amount",),
        allows_drift=True,
    )


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"format": "cardchain-profile/2"}, "/format"),
        ({"id": ""}, "/id"),
        ({"minimum": "some"}, "/minimum"),
        ({"minimum": 1}, "/minimum"),
        ({"required": ["purpose"]}, "/required/0"),
        ({"required": ["/a", "/a"]}, "/required"),
        ({"required": [f"/{number}" for number in range(65)]}, "/required"),
        ({"grant_ttl": True}, "/grant_ttl"),
        ({"self_approval": "forbid"}, "/self_approval"),
        ({"assurance": "signed"}, "/assurance"),
        ({"fixed_parameters": [{"tool_name": "t"}]}, "/fixed_parameters/0/path"),
        ({"critical": ["/a", "/a"]}, "/critical"),
        ({"basis_drift": "allow"}, "/basis_drift"),
        ({"maximum": "none"}, "/maximum"),
        *(({name: None}, f"/{name}") for name in RIGHT),
    ],
    ids=str,
)
def test_a_profile_off_the_table_is_refused_with_the_place(
    changed: dict[str, Any], place: str
) -> None:
    with pytest.raises(ProfileRefused, match=f"^{place}: "):
        parse_profile(encoded(**changed))


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"null", encoded() + b"\n", b" " + encoded()])
def test_other_bytes_are_no_profile(data: bytes) -> None:
    with pytest.raises(ProfileRefused):
        parse_profile(data)


def test_a_profile_has_at_most_64_kib() -> None:
    long = [f"/{'x' * 1022}{number:02}" for number in range(64)]
    size = len(encoded(required=long))
    exact = [*long[:-1], long[-1][: 65_536 - size]]
    assert len(encoded(required=exact)) == 65_536
    assert parse_profile(encoded(required=exact)).required == tuple(exact)
    with pytest.raises(ProfileRefused, match="at most 65536 bytes, not 65537"):
        parse_profile(encoded(required=[*exact[:-1], exact[-1] + "x"]))


PROFILES = st.builds(
    Profile,
    minimum=st.integers(0, 3),
    required=st.lists(st.sampled_from(["/a", "/b", "/c"]), unique=True).map(tuple),
    needs_grant_ttl=st.booleans(),
    denies_self_approval=st.booleans(),
    assurance=st.integers(0, 1),
    fixed_parameters=st.lists(st.tuples(st.just("t"), st.sampled_from(["/a", "/b"]))).map(tuple),
    critical=st.lists(st.sampled_from(["/a", "/b", "/c"]), unique=True).map(tuple),
    allows_drift=st.booleans(),
)


@given(PROFILES, PROFILES)
def test_of_two_rules_the_stricter_holds(one: Profile, two: Profile) -> None:
    both = stricter([one, two])
    assert both.minimum == max(one.minimum, two.minimum)
    assert both.assurance == max(one.assurance, two.assurance)
    assert set(both.required) == {*one.required, *two.required}
    assert set(both.fixed_parameters) == {*one.fixed_parameters, *two.fixed_parameters}
    assert set(both.critical) == {*one.critical, *two.critical}
    assert both.needs_grant_ttl == (one.needs_grant_ttl or two.needs_grant_ttl)
    assert both.denies_self_approval == (one.denies_self_approval or two.denies_self_approval)
    assert both.allows_drift == (one.allows_drift and two.allows_drift)


def test_without_a_profile_there_are_no_rules_and_no_drift() -> None:
    assert stricter([]) == NO_RULES
    assert not NO_RULES.allows_drift
