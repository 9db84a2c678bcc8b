from __future__ import annotations

import re
from pathlib import Path

import pytest

from verifier import checks
from verifier.proof import PROVEN
from verifier.report import Verdict
from verifier.shape import BODIES

SPEC = (Path(__file__).resolve().parents[2] / "docs" / "spec.md").read_text("utf-8")
SECTION = SPEC.split("### 10.1")[1].split("### 10.2")[0]
ROWS = re.findall(r"^\| `(\w+)` \| ([\w ]+) \| (§[^|]*) \| (.*) \|$", SECTION, re.M)


def test_rows_are_those_of_the_spec_in_its_order() -> None:
    table = [(check.id, check.group) for check in checks.CHECKS]
    assert len(table) > 50
    assert table == [(name, group) for name, group, _, _ in ROWS]


def test_sections_are_those_of_the_spec() -> None:
    expected = [section.replace("–", "-").strip() for _, _, section, _ in ROWS]
    assert [check.section for check in checks.CHECKS] == expected


def test_what_cannot_verify_is_what_the_spec_says() -> None:
    listed = re.search(r"^- CANNOT VERIFY: (.*?)\. A missing", SPEC, re.M)
    assert listed is not None
    cannot = {check.id for check in checks.CHECKS if check.verdict is Verdict.CANNOT_VERIFY}
    assert cannot == set(re.findall(r"`(\w+)`", listed[1]))


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.id)
def test_every_row_is_one_named_function(check: checks.Check) -> None:
    assert check.function.__name__ == f"check_{check.id}"
    assert check.cause
    assert check.next_command
    assert set(check.kinds) <= BODIES.keys()


def test_the_fused_loop_proves_only_rows_of_records() -> None:
    rows = {check.id: check for check in checks.CHECKS if check.scope == checks.RECORD}
    assert rows.keys() >= PROVEN
    assert not {rows[name].group for name in PROVEN} & {"lifecycle", "refusals true"}
