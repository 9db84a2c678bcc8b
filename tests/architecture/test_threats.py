"""docs/threat-model.md claims nothing that no test or case shows.

The cells of its table are acted out by tests/agreement/test_attackers.py.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
SPEC = (ROOT / "docs" / "spec.md").read_text("utf-8")
ATTACKERS = ROOT / "tests" / "agreement" / "test_attackers.py"
COLUMNS = "the attacker | live | export | pin | delivered | own | nothing | acted out by"
CELL = re.compile(r"U|[Dn]( `\w+`)+")


def table() -> list[list[str]]:
    """The rows of "Who sees what", the header first."""
    section = PAGE.split("## Who sees what")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.M)
    return [line.split(" | ") for line in lines if not line.startswith("---")]


def checks_of_the_spec() -> set[str]:
    """The ids in the tables of spec §10.1 and §16.4."""
    tables = SPEC.split("### 10.1")[1].split("### 10.2")[0] + SPEC.split("### 16.4")[1]
    return set(re.findall(r"^\| `(\w+)` \|", tables, re.M))


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def name_of(row: list[str]) -> str:
    return row[0]


def test_table_has_a_column_for_each_reader() -> None:
    assert " | ".join(table()[0]) == COLUMNS
    assert len(table()) > 20


@pytest.mark.parametrize("row", table()[1:], ids=name_of)
def test_every_cell_is_a_promise_that_a_test_acts_out(row: list[str]) -> None:
    _, *cells, acted = row
    assert [cell for cell in cells if not CELL.fullmatch(cell)] == []
    assert {check for cell in cells for check in re.findall(r"`(\w+)`", cell)} <= (
        checks_of_the_spec()
    )
    assert acted.strip("`") in functions(ATTACKERS)


def test_what_is_not_seen_stands_in_the_table() -> None:
    unseen = [row for row in table()[1:] if "U" in row]
    assert len(unseen) > 10
    assert {cell for row in unseen for cell in row[1:-1]} > {"U"}


def test_every_case_and_test_that_the_page_names_exists() -> None:
    cases = re.findall(r"\bcases? `(\w+)`", PAGE)
    files = re.findall(r"`(tests/[\w/.]+)`", PAGE)
    made = {path.parent.name for path in ROOT.glob("fixtures/cases/*/case.json")}
    assert [name for name in cases if name not in made] == []
    assert [name for name in files if not (ROOT / name).exists()] == []
    assert cases
    assert files
