"""What the independent verifier says of a log, before anything else on the page (spec §10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ledger.hidden import shown, word
from ledger.report.markup import code, instant, pairs, sentences, table, text, value
from verifier import Finding, LogReport, Outcome, Report, Verdict

MEANING: Final = {
    Verdict.VERIFIED: "Every check that could be made passed, and every record is authentic.",
    Verdict.CANNOT_VERIFY: (
        "Something is missing, so nobody is accused and nothing is vouched for. "
        "What follows is what the log says, not what is shown to be true."
    ),
    Verdict.BROKEN: (
        "A check failed: this log is not what was written. "
        "What follows is what its sound records say; it is no evidence before the findings are "
        "explained."
    ),
}
CAUTION: Final = {
    Verdict.VERIFIED: "",
    Verdict.CANNOT_VERIFY: "From a log that could not be verified.",
    Verdict.BROKEN: "From a log that is BROKEN: compare it with another copy.",
}
_WITHHELD: Final = 100  # records of which the withheld openings are listed
_MARK: Final = {Verdict.VERIFIED: "✓", Verdict.CANNOT_VERIFY: "?", Verdict.BROKEN: "✗"}
_CLASS: Final = {
    Verdict.VERIFIED: "verified",
    Verdict.CANNOT_VERIFY: "cannot",
    Verdict.BROKEN: "broken",
}


def banner(report: Report) -> Iterator[str]:
    """Give the verdict over all inputs."""
    verdict = report.verdict
    yield f'<section class="banner {_CLASS[verdict]}" aria-labelledby="verdict">\n'
    yield f'<h1 id="verdict"><span aria-hidden="true">{_MARK[verdict]}</span> '
    yield f"{text(verdict.value)}</h1>\n<p>{text(MEANING[verdict])}</p>\n"
    for log in report.logs:
        yield f"<p>{value(log.path)}: {text(log.verdict.value)}{_span(log)}</p>\n"
    yield "</section>\n"


def _span(log: LogReport) -> str:
    if log.first_seq is None or log.last_seq is None:
        return ""
    records = f"{log.counts.records:,} records, seq {log.first_seq} to {log.last_seq}"
    rests = f", assurance: {text(' and '.join(log.assurance))}" if log.assurance else ""
    return f", {records}, {log.counts.cards:,} cards{rests}"


def of_log(report: Report, log: LogReport) -> Iterator[str]:
    """Give what was found and checked in one input."""
    if log.findings:
        yield from _findings(log)
    if log.warnings:
        yield "<h3>Warnings</h3>\n"
        yield from sentences(map(shown, log.warnings))
    yield "<h3>What was counted</h3>\n"
    yield from sentences(_counted(log))
    yield "<h3>What was read</h3>\n"
    yield from pairs(_facts(report, log))
    yield from table(
        "Inputs, to be compared with sha256sum",
        ("file", "bytes", "SHA-256"),
        ((value(part.file), f"{part.bytes:,}", code(part.sha256)) for part in log.inputs),
    )
    yield "<h3>What is not proven</h3>\n"
    yield from sentences(map(shown, (*log.not_checked, *_open_end(log))))
    yield from _withheld(log)
    yield from _checks(log)


def _open_end(log: LogReport) -> Iterator[str]:
    """Say that the log may go on, unless an expected head or count says otherwise (spec §10.4)."""
    if log.last_seq is not None and not log.complete and not log.scope:
        yield f"that the log ends at seq {log.last_seq}: it may go on; give --expect-head HEX"


def _withheld(log: LogReport) -> Iterator[str]:
    """Give the openings that are absent with the leave of the auditor (spec §15.4)."""
    if not log.withheld_total:
        return
    yield f"<h3>Withheld openings: {log.withheld_total:,}</h3>\n"
    yield from sentences(
        f"seq {one.seq}: {', '.join(one.openings)}" for one in log.withheld[:_WITHHELD]
    )
    if len(log.withheld) > _WITHHELD:
        yield "<p>and more, which cardchain-verify --format json lists</p>\n"


def _findings(log: LogReport) -> Iterator[str]:
    more = log.findings_total - len(log.findings)
    yield f"<h3>Findings: {log.findings_total}</h3>\n"
    for finding in log.findings:
        yield '<section class="finding">\n'
        yield f"<h4>{text(finding.check)}: {text(finding.verdict.value)}</h4>\n"
        yield from pairs(_of_finding(finding))
        yield "</section>\n"
    if more > 0:
        yield f"<p>and {more} more</p>\n"


def _of_finding(finding: Finding) -> Iterator[tuple[str, str]]:
    places = (("offset", finding.offset), ("line", finding.line), ("seq", finding.seq))
    where = "".join(f", {name} {place}" for name, place in places if place is not None)
    yield "where", f"{value(finding.file)}{where}"
    yield "expected", text(shown(finding.expected))
    yield "found", text(shown(finding.found))
    yield "likely cause", text(shown(finding.cause))
    yield "next", code(shown(finding.next_command))


def _counted(log: LogReport) -> Iterator[str]:
    counts = log.counts
    dispatched = counts.contained_dispatched
    yield (
        f"{counts.envelopes_ok} of {counts.envelopes_total} envelopes still hash to their card hash"
    )
    yield (
        f"{counts.decisions_ok} of {counts.decisions_total} decisions echoed an issued, "
        "unexpired envelope"
    )
    yield (
        f"{counts.contained} late or wrong decisions were contained, "
        f"{dispatched or 'none'} of them dispatched"
    )
    yield from (f"{number} {shown(kind)}" for kind, number in counts.kinds)


def _facts(report: Report, log: LogReport) -> Iterator[tuple[str, str]]:
    yield "format", text(shown(log.format))
    if log.scope:
        yield "scope", text(shown(log.scope))
    if log.chain:
        yield "chain", code(log.chain)
    if log.kids:
        yield "key ids", ", ".join(map(code, log.kids))
    if log.head:
        yield "chain digest of the last record", code(log.head)
    if log.start_at is not None and log.end_at is not None:
        yield "first and last record", f"{instant(log.start_at)} to {instant(log.end_at)}"
    yield "assurance", text(" and ".join(log.assurance) or "none")
    for name, last in (("signed", log.signed_to), ("pinned", log.pinned_to)):
        if last is not None:
            yield f"{name} up to", f"seq {last}"
    if report.header is not None:
        header = report.header
        yield "checked by", f"{text(header.software)} on Python {text(header.python)}"
        yield "digest of the verifier", code(header.source_sha256 or "not readable")
        yield "checked at", f"{instant(header.started_at)}, by the clock of the host that did"


def _checks(log: LogReport) -> Iterator[str]:
    yield f"<details><summary>Every check: {text(_outcomes(log))}</summary>\n"
    yield '<div class="wide" tabindex="0" role="region" aria-label="Checks">\n'
    yield from table(
        "Checks of the specification",
        ("check", "section", "claim", "outcome", "why"),
        (
            (
                code(row.check),
                text(row.section),
                text(row.claim),
                text(row.outcome.value),
                text(shown(row.detail)),
            )
            for row in log.rows
        ),
    )
    yield "</div></details>\n"


def _outcomes(log: LogReport) -> str:
    numbers = ((outcome, sum(row.outcome is outcome for row in log.rows)) for outcome in Outcome)
    return ", ".join(f"{number} {outcome.value}" for outcome, number in numbers)


def check_yourself(log: LogReport) -> Iterator[str]:
    """Give the commands that need nothing of this page."""
    path = word(log.path)
    yield "<ol>\n"
    for said, command in (
        ("The digest of each input.", f"sha256sum {path}"),
        ("The verdict, with the verifier alone.", f"cardchain-verify {path} --key KEYFILE"),
        ("One card, by its hash alone.", f"cardchain show {path} HASH --raw | sha256sum"),
    ):
        yield f"<li>{text(said)} {code(command)}</li>\n"
    yield "</ol>\n"
