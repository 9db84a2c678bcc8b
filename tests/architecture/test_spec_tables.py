"""The tables of the spec that code repeats: hidden code points, reasons, states (spec §6, §9.2)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ledger import hidden
from verifier import escape, spec

SPEC = (Path(__file__).parents[2] / "docs" / "spec.md").read_text("utf-8")


def section(number: str) -> str:
    """The text from one heading to the next."""
    return re.split(rf"^#+ {re.escape(number)} ", SPEC, flags=re.M)[1].split("\n#")[0]


def hidden_code_points() -> set[int]:
    """The first column of the table of spec §9.2, spelled out."""
    found = set()
    for row in re.findall(r"^\| ([0-9A-Fx][^|]*) \|", section("9.2"), re.M):
        for first, last in re.findall(r"\b([0-9A-F]{4,6})(?:–([0-9A-F]{4,6}))?\b", row):
            found |= set(range(int(first, 16), int(last or first, 16) + 1))
    planes = range(17)
    return found | {plane << 16 | low for plane in planes for low in (0xFFFE, 0xFFFF)}


def reasons() -> dict[str, list[str]]:
    """Gate to reasons in their order, from the first table of spec §6.4."""
    found: dict[str, list[str]] = {}
    gate = ""
    for line in section("6.4").split("\n\n")[2].splitlines()[2:]:
        cells = [cell.strip() for cell in line.split("|")]
        gate = cells[1] or gate
        found.setdefault(gate, []).extend(re.findall(r"`(\w+)`", cells[2]))
    return found


def asserted() -> set[str]:
    """The reasons that the table marks with a star."""
    return set(re.findall(r"`(\w+)` \*", section("6.4")))


def test_table_of_hidden_code_points_is_read() -> None:
    assert {0x0, 0x202E, 0x2800, 0x1FFFF, 0x10FFFF, 0xE0020} <= hidden_code_points()
    assert not {ord(" "), ord("a"), ord("é"), 0x4E00, 0x1F600} & hidden_code_points()


def test_verifier_hides_the_code_points_of_the_spec() -> None:
    written = {code for code in range(0x110000) if escape.is_hidden(chr(code))}
    assert written == hidden_code_points()


def test_ledger_hides_the_code_points_of_the_spec() -> None:
    syntax = {ord("\\"), ord('"')}
    written = {code for code in range(0x110000) if hidden.shown(chr(code)) != chr(code)}
    assert written - syntax == hidden_code_points()


@pytest.mark.parametrize("shown", [hidden.shown, escape.escaped])
def test_escapes_are_those_of_the_spec(shown: object) -> None:
    assert callable(shown)
    text = 'a\\b"\n\r\t\u202e\x00\U000e0020é'
    assert shown(text) == 'a\\\\b\\"\\n\\r\\t\\u{202e}\\u{0}\\u{e0020}é'


def test_reasons_of_the_verifier_are_those_of_the_spec_in_order() -> None:
    assert {gate: list(names) for gate, names in spec.REASONS.items()} == reasons()


def test_asserted_reasons_of_the_verifier_are_those_of_the_spec() -> None:
    assert asserted() == spec.ASSERTED


def test_gates_are_those_of_the_spec() -> None:
    assert list(spec.GATES) == list(reasons())
