from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.escape import escaped, is_blank, is_hidden, quoted

SPEC = Path(__file__).resolve().parents[2] / "docs" / "spec.md"


def spec_ranges() -> set[int]:
    """The code points of the table of spec §9.2."""
    section = SPEC.read_text("utf-8").split("### 9.2")[1].split("\n## ")[0]
    hidden: set[int] = set()
    for row in re.findall(r"^\| ([0-9A-F][^|]*) \|", section, re.M):
        for first, last in re.findall(r"([0-9A-F]{4,6})(?:–([0-9A-F]{4,6}))?", row):
            hidden |= set(range(int(first, 16), int(last or first, 16) + 1))
    return hidden | {plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF)}


def test_hidden_is_the_list_of_the_spec() -> None:
    expected = spec_ranges()
    assert len(expected) > 100_000
    assert {code for code in range(0x110000) if is_hidden(chr(code))} == expected


@given(st.text())
def test_nothing_hidden_is_left(text: str) -> None:
    assert not any(map(is_hidden, escaped(text)))


@given(st.text(), st.text())
def test_different_texts_stay_different(one: str, other: str) -> None:
    assert (escaped(one) == escaped(other)) is (one == other)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a"b\\c', 'a\\"b\\\\c'),
        ("a\nb\r\t", "a\\nb\\r\\t"),
        ("\x1b[31m", "\\u{1b}[31m"),
        ("\u202etxt", "\\u{202e}txt"),
        ("\udcff", "\\u{dcff}"),
        ("é日本", "é日本"),
        ("\U000e0041", "\\u{e0041}"),
    ],
)
def test_escapes_are_those_of_the_spec(text: str, shown: str) -> None:
    assert escaped(text) == shown
    assert quoted(text) == f'"{shown}"'


def test_blank_is_what_shows_nothing() -> None:
    assert is_blank(" \u00a0\u200b\u3164")
    assert not is_blank(" x")
