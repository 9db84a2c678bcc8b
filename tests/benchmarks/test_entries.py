"""The table of docs/performance.md lists what is measured, and a run measures what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from entries import ENTRIES

PAGE = (Path(__file__).parents[2] / "docs" / "performance.md").read_text("utf-8")
ROW = re.compile(
    r"^\| `([\w-]+)` \| [^|]+ \| ([\d,./]+) (x|bytes|s) \| (yes|no) \| [^|]+ \|$", re.M
)
UNITS = {"x": "x", "bytes": "B", "s": "s"}
TINY = ["1000", "100", "2000", "300", "600", "300", "600"]


def limit(text: str) -> float:
    """Read a limit as a person writes it: 7, 8,192 or 1/1.2."""
    above, _, below = text.replace(",", "").partition("/")
    return float(Fraction(above) / Fraction(below or "1"))


def test_the_page_lists_exactly_the_entries_in_their_order() -> None:
    told = [(name, limit(text), UNITS[unit], gate) for name, text, unit, gate in ROW.findall(PAGE)]
    assert told == [
        (each.name, pytest.approx(each.limit), each.unit, "yes" if each.gate else "no")
        for each in ENTRIES
    ]


def test_every_row_of_the_table_is_read_by_these_tests() -> None:
    assert len(ROW.findall(PAGE)) == len(re.findall(r"^\| `", PAGE, re.M))


def test_no_two_entries_have_one_name() -> None:
    names = [each.name for each in ENTRIES]
    assert sorted(set(names)) == sorted(names)


def run(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("run.py")), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_gives_what_was_asked_for_with_its_limit() -> None:
    found = run("--sizes", *TINY, "--only", "receipt-size", "verify-since")["results"]
    by_name = {each["name"]: each for each in found}
    assert sorted(by_name) == ["receipt-size", "verify-since"]
    size = by_name["receipt-size"]
    assert 1_000 < size["value"] < size["limit"] == 8_192
    assert size["what"] == "a receipt at 600 records, less the envelope"
    assert size["passes"] is True
    assert 0 < by_name["verify-since"]["low"] <= by_name["verify-since"]["value"] < 1


def test_an_unknown_entry_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("--only", "warp")
    assert caught.value.returncode == 2
    assert "invalid choice: 'warp'" in caught.value.stderr
