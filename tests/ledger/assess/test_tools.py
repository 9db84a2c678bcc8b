"""Names of tools in one spelling."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.assess.tools import spellings


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcp__mail__sendEmail", ("mcp.mail.send.email", "mail.send.email", "send.email", "email")),
        ("git.push", ("git.push", "push")),
        ("Write-File", ("write.file", "file")),
        ("ns/tool:run", ("ns.tool.run", "tool.run", "run")),
        ("", ()),
        ("__", ()),
    ],
)
def test_a_name_is_dotted_and_loses_each_prefix(name: str, expected: tuple[str, ...]) -> None:
    assert expected == spellings(name)


@given(st.text())
def test_any_name_has_few_spellings(name: str) -> None:
    assert len(spellings(name)) <= 16


def test_a_name_that_is_no_text_has_a_spelling_too() -> None:
    value: Any = 7
    assert spellings(value) == ("7",)
