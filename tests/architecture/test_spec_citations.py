"""Code, tests and documents cite sections of docs/spec.md that exist; checks are its rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verifier import checks
from verifier.report import Verdict

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "docs" / "spec.md").read_text("utf-8")
OTHER_SPEC = re.compile(r"\b(?:RFC \d+|FIPS \d+-\d+)(?:,? (?:and )?§[\d.]*\d)+")
CITATION = re.compile(r"§\s?(\d+(?:\.\d+)*)")


def sections() -> set[str]:
    return set(re.findall(r"^#{2,4} (\d+(?:\.\d+)*)\.? ", SPEC, re.M))


def citing_files() -> list[Path]:
    code = [
        p
        for top in ("ledger", "verifier", "fixtures", "tests")
        for p in ROOT.glob(f"{top}/**/*.py")
    ]
    return sorted(
        [*code, *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("docs/*.cddl")]
    )


def citations(text: str) -> list[str]:
    """Section numbers cited, without those of other standards."""
    return CITATION.findall(OTHER_SPEC.sub("", text))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def check_rows() -> list[tuple[str, str, str, str]]:
    """The rows of spec §10.1: id, group, section, claim."""
    table = SPEC.split("### 10.1")[1].split("### 10.2")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.M)
    return [(row[0], row[1].strip(), row[2].strip(), row[3].strip()) for row in rows]


def test_citations_are_found() -> None:
    text = "see spec §2.3, §10.1; not RFC 9052 §6.2, §6.3 or RFC 8949 §4.2.1"
    assert citations(text) == ["2.3", "10.1"]


def test_sections_are_found() -> None:
    assert {"1", "2.3", "6.4", "10.3", "11"} <= sections()


@pytest.mark.parametrize("path", citing_files(), ids=name_of)
def test_cited_section_exists(path: Path) -> None:
    missing = [cited for cited in citations(path.read_text("utf-8")) if cited not in sections()]
    assert missing == []


def test_rows_of_the_spec_are_read() -> None:
    rows = check_rows()
    assert rows[0][:3] == ("segment_name", "framing", "§7.1")
    assert rows[-1][0] == "required"
    assert len({row[0] for row in rows}) == len(rows)


ELSE = " (else cannot verify)"


def test_checks_of_the_verifier_are_the_rows_of_the_spec() -> None:
    """Same ids, groups, sections and claims, in the same order."""
    written = [(check.id, check.group, check.section, check.claim) for check in checks.CHECKS]
    assert written == [
        (name, group, cited.replace("–", "-"), claim.replace("`", "").removesuffix(ELSE))
        for name, group, cited, claim in check_rows()
    ]


def test_rows_that_only_keep_from_verifying_are_those_of_the_spec() -> None:
    written = {check.id for check in checks.CHECKS if check.verdict is Verdict.CANNOT_VERIFY}
    assert written == {name for name, *_, claim in check_rows() if claim.endswith(ELSE)}
    listed = re.search(r"^- CANNOT VERIFY: (.*?)\. ", SPEC, re.M)
    assert listed is not None
    assert written == set(re.findall(r"`(\w+)`", listed[1]))


def test_each_row_is_one_function_of_its_name() -> None:
    names = {check.id: check.function.__name__ for check in checks.CHECKS}
    assert names == {name: f"check_{name}" for name in names}


def test_sections_in_the_table_exist() -> None:
    cited = {number for check in checks.CHECKS for number in re.findall(r"[\d.]+", check.section)}
    assert cited - sections() == set()
