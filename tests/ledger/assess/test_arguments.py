"""The texts in the arguments of a call, by the role of their members."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.assess import DEFAULT
from ledger.assess.arguments import MAX_CHARACTERS, MAX_CONTENT, MAX_VALUES, Arguments, read


def found(value: Any) -> Arguments:
    return read(value, DEFAULT.members)


def test_a_text_has_the_role_of_its_member_at_any_depth() -> None:
    value = {"a": [{"Command": "c"}, {"sql": "s"}, {"path": "p", "content": "t", "x": "u"}]}
    expected = {("command", "c"), ("sql", "s"), ("path", "p"), ("content", "t"), ("unknown", "u")}
    assert expected == set(found(value).texts)


def test_a_list_of_words_is_one_call() -> None:
    assert [("command", ("rm", "-r", "x"))] == found({"cmd": ["rm", "-r", "x"]}).argvs
    assert [("arguments", ("rm", "x"))] == found({"argv": ("rm", "x")}).argvs


def test_a_list_of_lines_is_many_commands() -> None:
    answer = found({"commands": ["rm -r x", "ls"]})
    assert [] == answer.argvs
    assert {("command", "rm -r x"), ("command", "ls")} == set(answer.texts)


@pytest.mark.parametrize("behind", [["-r", "a b"], ("-r", "a b"), "-r 'a b'"])
def test_a_program_and_its_arguments_are_one_line(behind: Any) -> None:
    assert ("command", "rm -r 'a b'") in found({"command": "rm", "args": behind}).texts


def test_members_that_are_true_are_named() -> None:
    value = {"Force": True, "a": 1, "c": "true", "x": {"b": True}}
    assert {"force", "b"} == found(value).true_members


@pytest.mark.parametrize(
    "value",
    [
        {"command": "x" * (MAX_CHARACTERS + 1)},
        {"content": "x" * (MAX_CONTENT + 1)},
        [0] * (MAX_VALUES + 1),
        {str(n): 0 for n in range(MAX_VALUES + 1)},
        b"bytes",
        [object()],
    ],
    ids=["command", "content", "elements", "members", "bytes", "object"],
)
def test_what_is_not_read_whole_is_told(value: Any) -> None:
    assert not found(value).whole


@pytest.mark.parametrize(
    "value",
    [None, True, 1.5, "", [], {}, {"command": "x" * MAX_CHARACTERS, "content": "x" * MAX_CONTENT}],
    ids=["null", "true", "number", "text", "array", "object", "limits"],
)
def test_what_is_within_the_limits_is_read_whole(value: Any) -> None:
    assert found(value).whole


def test_a_value_that_holds_itself_is_read_in_bounded_time() -> None:
    value: list[Any] = []
    value += [value] * 1000
    assert not found(value).whole
