from __future__ import annotations

from json import dumps
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.pointer import ABSENT, differences, resolve

DOCUMENT = {"a": {"b/c": 1, "d~e": None, "": 2}, "list": [10, [11]], "01": 3}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("a/~", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("a/~01", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/a/b~1c", 1),
        ("/a/d~0e", None),
        ("/a/", 2),
        ("/list/0", 10),
        ("/list/1/0", 11),
        ("/01", 3),
    ],
)
def test_a_pointer_leads_to_a_value(pointer: str, value: Any) -> None:
    assert resolve(DOCUMENT, pointer) == value


@pytest.mark.parametrize(
    "pointer",
    [
        "/b",
        "/a/b",
        "/list/2",
        "/list/-",
        "/list/00",
        "/list/01",
        "/list/+1",
        "/list/0/x",
        "/list/٠",
    ],
)
def test_a_pointer_leads_nowhere(pointer: str) -> None:
    assert resolve(DOCUMENT, pointer) is ABSENT


@pytest.mark.parametrize(
    ("old", "new", "pointers"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, ["/a"]),
        ({"a": 1}, {"a": 1.5}, ["/a"]),
        ({"a": {"b": 1}}, {"a": [1]}, ["/a"]),
        ({"a": [1, 2]}, {"a": [1, 3, 4]}, ["/a/1", "/a/2"]),
        ({"a": None}, {}, ["/a"]),
        ({"~": 1, "/": 1}, {"~": 2, "/": 2}, ["/~1", "/~0"]),
    ],
)
def test_differences_are_as_deep_as_the_containers_match(
    old: Any, new: Any, pointers: list[str]
) -> None:
    assert list(differences(old, new)) == pointers


@given(VALUES, VALUES)
def test_what_differs_is_found_from_both_sides(old: Any, new: Any) -> None:
    found = list(differences(old, new))
    assert sorted(found) == sorted(differences(new, old))
    assert (found == []) == (dumps(old, sort_keys=True) == dumps(new, sort_keys=True))
    for pointer in found:
        left, right = resolve(old, pointer), resolve(new, pointer)
        assert left is ABSENT or right is ABSENT or type(left) is not type(right) or left != right
