"""Hostile text made visible (spec §9.2)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.hidden import blank, shown

SPEC = Path(__file__).parents[2] / "docs" / "spec.md"
ANY_TEXT = st.text(st.characters(codec=None, categories=None))


def hidden_by_the_spec() -> set[int]:
    """The code points in the first column of the table of spec §9.2."""
    section = SPEC.read_text("utf-8").split("### 9.2")[1].split("\n## ")[0]
    hidden: set[int] = set()
    for cell in re.findall(r"^\| ([0-9A-F][^|]*) \|", section, re.M):
        for item in re.findall(r"[0-9A-F]{4,6}(?:–[0-9A-F]{4,6})?", cell.replace("xxFFF", "xx")):
            first, _, last = item.partition("–")
            hidden |= set(range(int(first, 16), int(last or first, 16) + 1))
    assert "xxFFFE, xxFFFF of every plane" in section
    return hidden | {plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF)}


def test_exactly_the_code_points_of_the_spec_are_escaped() -> None:
    escaped = {n for n in range(0x110000) if shown(chr(n)) != chr(n)}
    assert escaped == hidden_by_the_spec() | {ord("\\"), ord('"')}


SHOWN = {
    "plain": "plain",
    "a b": "a b",
    "\\": "\\\\",
    '"': '\\"',
    "\n\r\t": "\\n\\r\\t",
    "\x1b[31m": "\\u{1b}[31m",
    "\x00": "\\u{0}",
    "\x85": "\\u{85}",
    "\u202e": "\\u{202e}",
    "\u200b": "\\u{200b}",
    "a\u0301": "a\\u{301}",
    "\ud800": "\\u{d800}",
    "\U000e0041": "\\u{e0041}",
    "\U0010ffff": "\\u{10ffff}",
    "\\u{202e}": "\\\\u{202e}",
    "日本 é 😀": "日本 é 😀",
}


@pytest.mark.parametrize("text", SHOWN)
def test_text_is_shown(text: str) -> None:
    assert shown(text) == SHOWN[text]


def unescaped(text: str) -> str:
    """Read the escapes of spec §9.2 back, one after the other."""
    short = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}
    return re.sub(
        r"\\(?:u\{([0-9a-f]+)\}|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else short[m[2]],
        text,
    )


@given(ANY_TEXT)
def test_nothing_is_lost(text: str) -> None:
    """What can be read back is injective."""
    assert unescaped(shown(text)) == text


@given(ANY_TEXT)
def test_no_hidden_character_comes_through_raw(text: str) -> None:
    assert hidden_code_points.isdisjoint(map(ord, shown(text)))


hidden_code_points = hidden_by_the_spec()


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u200b \u3164", "\u2800", "\ud800"])
def test_text_of_spaces_and_hidden_code_points_is_blank(text: str) -> None:
    assert blank(text)


@pytest.mark.parametrize("text", ["a", " a ", ".", "\u200b0", "😀", "\\", '"', "a\n"])
def test_text_that_can_be_seen_is_not_blank(text: str) -> None:
    assert not blank(text)
