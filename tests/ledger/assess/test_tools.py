"""Names of tools in one spelling."""

from __future__ import annotations

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
