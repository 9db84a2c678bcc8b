"""A report as lines of text; the last line is the verdict (spec §10.4).

Total over hostile bytes: whatever comes from a log, a file name or a key file is escaped, and words
of the report never stand inside its quotes (spec §9.2).
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.escape import escaped
from verifier.report import Finding, Header, LogReport, Outcome, Property, Report, Verdict
from verifier.software import SOFTWARE

_RED, _GREEN, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"


def render_text(report: Report, verbose: bool = False, colour: bool = False) -> str:
    """Give the report as text, ended by the line of the verdict.

    `verbose` shows every row of the table of checks; otherwise those that failed or that were not
    checked are named in one line each. `colour` is for a terminal: the verdict alone has one.
    """
    lines = [SOFTWARE, *_header(report.header)]
    for log in report.logs:
        lines += ["", *_log(log, verbose)]
    lines += ["", *_count_lines(report)]
    return "\n".join(lines) + "\n" + verdict_line(report.verdict, colour)


def verdict_line(verdict: Verdict, colour: bool = False) -> str:
    """Give the line of a verdict; in colour it is red exactly if the exit status is not 0."""
    if not colour:
        return f"{verdict.value}\n"
    return f"{_RED if verdict.exit_code else _GREEN}{verdict.value}{_PLAIN}\n"


def _header(header: Header | None) -> Iterator[str]:
    if header is None:
        return
    yield f"source sha256: {header.source_sha256 or 'not at hand'}"
    yield f"python: {header.python}"
    yield f"run: {utc(header.started_at)} to {utc(header.ended_at)} by the clock of this host"


def _log(log: LogReport, verbose: bool) -> Iterator[str]:
    yield f"log: {escaped(log.path)}"
    yield f"format: {escaped(log.format)}"
    yield from _evidence(log)
    yield from _rows(log, verbose)
    for number, finding in enumerate(log.findings, 1):
        yield f"finding {number} of {log.findings_total}: {finding.check}"
        yield from finding_lines(finding)
    yield from _drifts(log)
    yield from _withheld(log)
    if verbose:
        yield from _approvals(log)
    if log.findings_total > len(log.findings):
        yield f"findings not listed: {log.findings_total - len(log.findings)}"
    for warning in log.warnings:
        yield f"warning: {escaped(warning)}"
    for sentence in log.not_checked:
        yield f"not checked: {escaped(sentence)}"
    if open_end(log):
        yield f"not checked: {open_end(log)}"
    yield from _assurance(log)
    yield f"verdict of this log: {log.verdict.value}"


def open_end(log: LogReport) -> str:
    """Say that a log may go on, unless an expected head or count says otherwise (spec §10.4)."""
    if log.last_seq is None or log.complete or log.scope:
        return ""
    return f"the log may go on beyond seq {log.last_seq}; give --expect-head HEX"


def _assurance(log: LogReport) -> Iterator[str]:
    yield f"assurance: {' and '.join(log.assurance) or 'none'}"
    if log.signed_to is not None:
        yield f"signed up to seq: {log.signed_to}"
    if log.pinned_to is not None:
        yield f"pinned up to seq: {log.pinned_to}"


def _withheld(log: LogReport) -> Iterator[str]:
    """Give the openings that are absent with the leave of the auditor (spec §15.4)."""
    for one in log.withheld:
        yield f"withheld at seq {one.seq}: {', '.join(one.openings)}"
    if log.withheld_total:
        yield f"withheld openings: {log.withheld_total}"


def _evidence(log: LogReport) -> Iterator[str]:
    if log.scope:
        yield f"scope: {log.scope}"
    for part in log.inputs:
        yield f"input: {escaped(part.file)}, {part.bytes} bytes, sha256 {part.sha256}"
    if log.chain is not None:
        yield f"chain: {log.chain}"
    if log.kids:
        yield f"kids: {' '.join(log.kids)}"
    if log.first_seq is not None:
        yield f"seq: {log.first_seq} to {log.last_seq}"
    if log.start_at is not None and log.end_at is not None:
        yield f"time: {utc(log.start_at)} to {utc(log.end_at)}"
    if log.head is not None:
        yield f"head: {log.head}"
    yield f"records: {log.counts.records}, cards: {log.counts.cards}"
    if log.counts.kinds:
        kinds = ", ".join(f"{escaped(kind)} {number}" for kind, number in log.counts.kinds)
        yield f"events: {kinds}"
    if log.counts.exceptions:
        names = ", ".join(f"{escaped(name)} {number}" for name, number in log.counts.exceptions)
        yield f"exceptions: {names}"


def _rows(log: LogReport, verbose: bool) -> Iterator[str]:
    if verbose:
        for row in log.rows:
            detail = f" ({escaped(row.detail)})" if row.detail else ""
            yield f"{row.outcome.value:<11} {row.check}: {row.claim}, {row.section}{detail}"
        return
    for outcome in Outcome:
        names = [row.check for row in log.rows if row.outcome is outcome]
        if outcome is Outcome.PASS:
            yield f"checks passed: {len(names)} of {len(log.rows)}"
        elif names:
            label = "failed" if outcome is Outcome.FAIL else "not made"
            yield f"checks {label}: {', '.join(names)}"


def finding_lines(finding: Finding) -> Iterator[str]:
    """Give where, expected, found, cause and next command of a finding, a line each."""
    place = [escaped(finding.file)]
    if finding.line is not None:
        place.append(f"line {finding.line}")
    if finding.offset is not None:
        place.append(f"offset {finding.offset}")
    if finding.seq is not None:
        place.append(f"seq {finding.seq}")
    yield f"  where: {', '.join(place)}"
    yield f"  expected: {escaped(finding.expected)}"
    yield f"  found: {escaped(finding.found)}"
    yield f"  cause: {escaped(finding.cause)}"
    yield f"  next: {escaped(finding.next_command)}"


def _drifts(log: LogReport) -> Iterator[str]:
    """Give where what was rebuilt at a dispatch, or at a refused one, differs (spec §8.6)."""
    for drift in log.drifts:
        what = "mismatch refused" if drift.event == "refused" else "dispatched under an exception"
        yield f"{what} at seq {drift.seq}, card {drift.card}:"
        for pointer, name in drift.pointers:
            yield f'  differs at "{escaped(pointer)}" ({name})'
        if drift.more:
            yield "  differs elsewhere too"


def _approvals(log: LogReport) -> Iterator[str]:
    """Give three lines for each approval, and what is only asserted (spec §8)."""
    for approval in log.approvals:
        yield f"approval of {approval.card}"
        yield f"  execution integrity: {_property(approval.execution)}"
        yield f"  decision provenance: {_property(approval.provenance)}"
        yield f"  presentation integrity: {_property(approval.presentation)}"
        for name, value in approval.asserted:
            yield f'  asserted: {name} "{escaped(value)}"'


def _property(found: Property) -> str:
    return f"{found.outcome.value}: {escaped(found.detail)}"


def _count_lines(report: Report) -> Iterator[str]:
    """Give the three lines before the verdict (spec §10.4)."""
    counts = [log.counts for log in report.logs]
    envelopes = sum(count.envelopes_ok for count in counts)
    decisions = sum(count.decisions_ok for count in counts)
    contained = sum(count.contained for count in counts)
    bad = sum(count.contained_dispatched for count in counts)
    total = sum(count.envelopes_total for count in counts)
    yield f"{envelopes} of {total} envelopes still hash to their card hash"
    total = sum(count.decisions_total for count in counts)
    yield f"{decisions} of {total} decisions echoed an issued, unexpired envelope"
    dispatched = "none of them dispatched" if not bad else f"{bad} dispatches broke a rule"
    yield f"{contained} late or wrong decisions were contained, {dispatched}"


def utc(at: int) -> str:
    """Give unix milliseconds as a UTC time; any integer gives a text.

    Own arithmetic, because `datetime` is slow to import and ends at the year 9999.
    """
    seconds, milliseconds = divmod(at, 1000)
    days, second = divmod(seconds, 86400)
    year, month, day = _civil(days)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{milliseconds:03}"
    return f"{year:04}-{month:02}-{day:02}T{clock}Z"


def _civil(days: int) -> tuple[int, int, int]:
    """Give year, month and day of a day since 1970-01-01, by eras of 400 years from March on."""
    era, day = divmod(days + 719468, 146097)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day + 1


def diagnostic(message: str, hint: str, kind: str = "error") -> str:
    """Give what goes to standard error: the problem and what to do next."""
    return (
        f"cardchain-verify: {kind}: {escaped(message)}\ncardchain-verify: hint: {escaped(hint)}\n"
    )
