from __future__ import annotations

import pytest

from verifier.drift import MAX_POINTERS, drift, drift_class


@pytest.mark.parametrize(
    ("pointer", "name"),
    [
        ("/action/arguments/amount", "request"),
        ("/action/tool_name", "request"),
        ("/action/capability", "policy and capability"),
        ("/action/capability/scope/0", "policy and capability"),
        ("/action/capabilities", "request"),
        ("/effect_key", "request"),
        ("/subject/id", "subject and authority"),
        ("/approval_basis", "policy and capability"),
        ("/approval_basis/rules/0/sha256", "policy and capability"),
        ("/preconditions/0/version", "business object"),
        ("/review_manifest/fields", "presentation"),
        ("/purpose", "terms"),
    ],
)
def test_a_pointer_is_classed_by_its_first_member(pointer: str, name: str) -> None:
    assert drift_class(pointer) == name


def test_a_drift_names_the_pointers_and_their_classes() -> None:
    old = {"action": {"arguments": {"amount": "1"}}, "subject": {"id": "a"}}
    new = {"action": {"arguments": {"amount": "2"}}}
    found = drift(7, bytes(32), "refused", old, new)
    assert (found.seq, found.card, found.event, found.more) == (7, "00" * 32, "refused", False)
    assert found.pointers == (
        ("/action/arguments/amount", "request"),
        ("/subject", "subject and authority"),
    )


@pytest.mark.parametrize("count", [MAX_POINTERS, MAX_POINTERS + 1])
def test_a_drift_lists_so_many_pointers_and_says_that_there_are_more(count: int) -> None:
    new = {"action": {"arguments": {str(number): 1 for number in range(count)}}}
    found = drift(1, bytes(32), "refused", {"action": {"arguments": {}}}, new)
    assert (len(found.pointers), found.more) == (MAX_POINTERS, count > MAX_POINTERS)


def test_a_long_pointer_is_cut() -> None:
    found = drift(1, bytes(32), "refused", {}, {"x" * 10_000: 1})
    assert len(found.pointers[0][0]) == 257
