"""Every format of a report, over every fixture and every sample of the foreign reader."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from player import copied_pin, played

from verifier import Report, every_card, render, verify

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
SAMPLES = ROOT.parent / "shared" / "bernstein-sample"
CASES = {
    path.parent.name: json.loads(path.read_text("utf-8"))
    for path in sorted(FIXTURES.glob("cases/*/case.json"))
}
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text("utf-8"))
FOREIGN = sorted(path.parent for path in SAMPLES.rglob(".sdd")) or ["no samples"]
EXIT_CODES = {"VERIFIED": 0, "BROKEN": 3, "CANNOT VERIFY": 4}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("corpus") / "fixtures"
    shutil.copytree(FIXTURES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy / "cases"


def text_of(report: Report, name: str) -> str:
    return "".join(render(report, name, verbose=True))


def closed(schema: Any) -> Iterator[bool]:
    """Say of each object of a schema that lists its members whether it allows others."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("type") == "object":
            yield schema.get("additionalProperties") is False and (
                set(schema["required"]) == set(schema["properties"])
            )
        for part in schema.values():
            yield from closed(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from closed(part)


def test_the_schema_is_one_and_allows_no_other_member() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert len([*closed(SCHEMA)]) > 10
    assert all(closed(SCHEMA))


def agree(report: Report, verdict: str) -> None:
    """Hold the formats against the verdict, each read by a parser of its own."""
    document = json.loads(text_of(report, "json"))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert (document["verdict"], document["exit_code"]) == (verdict, EXIT_CODES[verdict])

    assert text_of(report, "text").splitlines()[-1] == verdict
    assert text_of(report, "text").splitlines().count(verdict) == 1

    suites = [*JUnitXml.fromstring(text_of(report, "junit").encode())]
    assert len(suites) == len(report.logs)
    for suite, log in zip(suites, report.logs, strict=True):
        properties = {item.name: item.value for item in suite.properties()}
        assert properties["verdict"] == log.verdict.value
        assert properties["verdict of all logs"] == verdict
        assert bool(suite.failures) == (log.verdict.value == "BROKEN")
        assert bool(suite.failures + suite.errors) == (log.verdict.value != "VERIFIED")
        cases = {case.name: case.result for case in suite}
        assert len(cases) == suite.tests == len(log.rows)
        for finding in log.findings:
            results = cases[finding.check]
            kind = Failure if finding.verdict.value == "BROKEN" else Error
            assert [type(result) for result in results] == [kind]
            assert finding.check in results[0].text
        skipped = [name for name, found in cases.items() if found and type(found[0]) is Skipped]
        assert len(skipped) == suite.skipped
        assert all(cases[name][0].message for name in skipped)

    text = text_of(report, "csv")
    rows = [*csv.DictReader(text.splitlines(keepends=True), strict=True)]
    assert {row["log"] for row in rows} == {log.path for log in report.logs}
    for row in rows:
        assert None not in row
        assert None not in row.values()
        assert row["verdict"] == next(
            log.verdict.value for log in report.logs if log.path == row["log"]
        )


@pytest.mark.parametrize("name", CASES)
def test_the_formats_of_a_fixture_agree(corpus: Path, tmp_path: Path, name: str) -> None:
    case, folder = CASES[name], corpus / name
    pin = copied_pin(folder, case, tmp_path)
    agree(played(folder, case, pin, wanted=every_card), case["verdict"])


@pytest.mark.parametrize("folder", FOREIGN, ids=lambda path: getattr(path, "name", path))
def test_the_formats_of_a_foreign_log_agree(folder: Path) -> None:
    if not isinstance(folder, Path):
        pytest.skip("the sample logs are not beside the project")
    keys = [str(path) for path in folder.glob("audit.key")]
    report = verify([str(folder)], keys, environ={}, wanted=every_card)
    assert report.logs[0].format == "Bernstein audit log"
    agree(report, report.verdict.value)
