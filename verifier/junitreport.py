"""A report as JUnit XML, for the test views of CI systems: one test case for each check.

A suite is one log. What is broken is a failure, what cannot be verified an error, what was not
checked is skipped with its reason; so a suite has failures or errors exactly if its log is not
VERIFIED. All text is escaped (spec §9.2), so no character is left that XML forbids.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from verifier.escape import escaped
from verifier.report import Finding, LogReport, Outcome, Report, Row, Verdict
from verifier.software import SOFTWARE
from verifier.text import finding_lines, open_end, utc

_ELEMENTS = {Verdict.BROKEN: "failure", Verdict.CANNOT_VERIFY: "error"}


def render_junit(report: Report) -> str:
    """Give one XML document in ASCII, ended by a line feed."""
    root = Element("testsuites", name=SOFTWARE)
    for log in report.logs:
        root.append(_suite(report, log))
    _total(root, "testcase")
    if report.header is not None:
        root.set("time", _seconds(report))
    indent(root)
    text: bytes = tostring(root, "us-ascii", xml_declaration=True)
    return text.decode("ascii") + "\n"


def _suite(report: Report, log: LogReport) -> Element:
    suite = Element("testsuite", name=escaped(log.path), hostname="localhost")
    if report.header is not None:
        suite.set("timestamp", utc(report.header.started_at)[:19])  # readers know no other form
        suite.set("time", _seconds(report))
    properties = SubElement(suite, "properties")
    for name, value in _properties(report, log):
        SubElement(properties, "property", name=name, value=escaped(value))
    listed: dict[str, list[Finding]] = {}
    for finding in log.findings:
        listed.setdefault(finding.check, []).append(finding)
    for row in log.rows:
        suite.append(_case(log, row, listed.pop(row.check, [])))
    for check, findings in listed.items():
        suite.append(_case(log, Row(check, "", "", Outcome.FAIL, ""), findings))
    _total(suite, "testcase")
    return suite


def _seconds(report: Report) -> str:
    header = report.header
    return "0" if header is None else f"{(header.ended_at - header.started_at) / 1000:.3f}"


def _total(element: Element, name: str) -> None:
    """Count the cases below an element, and how they ended."""
    element.set("tests", str(sum(1 for _ in element.iter(name))))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(1 for _ in element.iter(kind))))


def _properties(report: Report, log: LogReport) -> Iterator[tuple[str, str]]:
    """Give the evidence header of a log, its verdict first."""
    yield "verdict", log.verdict.value
    yield "verdict of all logs", report.verdict.value
    yield "assurance", " and ".join(log.assurance) or "none"
    for name, last in (("signed", log.signed_to), ("pinned", log.pinned_to)):
        if last is not None:
            yield f"{name} up to seq", str(last)
    if report.header is not None:
        yield "software", report.header.software
        yield "source sha256", report.header.source_sha256 or "not at hand"
        yield "python", report.header.python
        yield "started", utc(report.header.started_at)
        yield "ended", utc(report.header.ended_at)
    yield "format", log.format
    for part in log.inputs:
        yield "input", f"{part.file}, {part.bytes} bytes, sha256 {part.sha256}"
    for name, value in (("chain", log.chain), ("kids", " ".join(log.kids)), ("head", log.head)):
        if value:
            yield name, value
    if log.first_seq is not None:
        yield "seq", f"{log.first_seq} to {log.last_seq}"
    yield "records", str(log.counts.records)
    yield "cards", str(log.counts.cards)
    for kind, number in log.counts.kinds:
        yield f"events {escaped(kind)}", str(number)
    for warning in log.warnings:
        yield "warning", warning
    if log.withheld_total:
        yield "withheld openings", str(log.withheld_total)
    for sentence in filter(None, (*log.not_checked, open_end(log))):
        yield "not checked", sentence


def _case(log: LogReport, row: Row, findings: list[Finding]) -> Element:
    case = Element("testcase", classname=escaped(log.path), name=row.check, time="0")
    if findings:
        verdict = max(findings, key=lambda finding: finding.verdict.exit_code == 3).verdict
        _bad(case, verdict, row, [*_lines(findings)])
    elif row.outcome is Outcome.FAIL:
        _bad(case, log.verdict, row, [])
    elif row.outcome is Outcome.NOT_CHECKED:
        SubElement(case, "skipped", message=escaped(row.detail))
    if row.claim:
        SubElement(case, "system-out").text = f"{row.claim}, {row.section}"
    return case


def _bad(case: Element, verdict: Verdict, row: Row, lines: list[str]) -> None:
    message = f"{verdict.value}: {row.detail or '1 finding'}"
    bad = SubElement(case, _ELEMENTS[verdict], type=verdict.value, message=escaped(message))
    bad.text = "\n".join(lines)


def _lines(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"finding: {finding.check}"
        yield from finding_lines(finding)
