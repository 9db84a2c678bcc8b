"""A report as one JSON document with stable members; new ones are only ever added."""

from __future__ import annotations

import json
from typing import Any

from verifier.escape import escaped
from verifier.report import Approval, Drift, Finding, Header, LogReport, Property, Report
from verifier.software import SOFTWARE

SCHEMA = "cardchain-verification/1"


def render_json(report: Report) -> str:
    """Give one JSON document, ended by a line feed; every text in it is escaped (spec §9.2).

    Its schema is docs/report.schema.json.
    """
    document = {
        "schema": SCHEMA,
        "software": SOFTWARE,
        "header": None if report.header is None else _header(report.header),
        "verdict": report.verdict.value,
        "exit_code": report.verdict.exit_code,
        "logs": [_log(log) for log in report.logs],
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _header(header: Header) -> dict[str, Any]:
    return {
        "source_sha256": header.source_sha256,
        "python": header.python,
        "started_at": header.started_at,
        "ended_at": header.ended_at,
    }


def _log(log: LogReport) -> dict[str, Any]:
    counts = log.counts
    return {
        "path": escaped(log.path),
        "format": escaped(log.format),
        "verdict": log.verdict.value,
        "scope": log.scope,
        "assurance": list(log.assurance),
        "signed_to": log.signed_to,
        "pinned_to": log.pinned_to,
        "inputs": [
            {"file": escaped(part.file), "bytes": part.bytes, "sha256": part.sha256}
            for part in log.inputs
        ],
        "chain": log.chain,
        "kids": list(log.kids),
        "first_seq": log.first_seq,
        "last_seq": log.last_seq,
        "head": log.head,
        "start_at": log.start_at,
        "end_at": log.end_at,
        "complete": log.complete,
        "counts": {
            "records": counts.records,
            "kinds": {escaped(kind): number for kind, number in counts.kinds},
            "cards": counts.cards,
            "envelopes_ok": counts.envelopes_ok,
            "envelopes_total": counts.envelopes_total,
            "decisions_ok": counts.decisions_ok,
            "decisions_total": counts.decisions_total,
            "contained": counts.contained,
            "contained_dispatched": counts.contained_dispatched,
            "asserted": counts.asserted,
            "exceptions": {escaped(name): number for name, number in counts.exceptions},
        },
        "rows": [
            {
                "check": row.check,
                "section": row.section,
                "claim": row.claim,
                "outcome": row.outcome.value,
                "detail": escaped(row.detail),
            }
            for row in log.rows
        ],
        "findings": [_finding(finding) for finding in log.findings],
        "findings_total": log.findings_total,
        "approvals": [_approval(approval) for approval in log.approvals],
        "drifts": [_drift(drift) for drift in log.drifts],
        "withheld": [{"seq": one.seq, "openings": list(one.openings)} for one in log.withheld],
        "withheld_total": log.withheld_total,
        "warnings": [escaped(warning) for warning in log.warnings],
        "not_checked": [escaped(sentence) for sentence in log.not_checked],
    }


def _approval(approval: Approval) -> dict[str, Any]:
    return {
        "card": approval.card,
        "execution_integrity": _property(approval.execution),
        "decision_provenance": _property(approval.provenance),
        "presentation_integrity": _property(approval.presentation),
        "asserted": {name: escaped(value) for name, value in approval.asserted},
    }


def _property(found: Property) -> dict[str, str]:
    return {"outcome": found.outcome.value, "detail": escaped(found.detail)}


def _drift(drift: Drift) -> dict[str, Any]:
    return {
        "seq": drift.seq,
        "card": drift.card,
        "event": drift.event,
        "differs": [
            {"pointer": escaped(pointer), "class": name} for pointer, name in drift.pointers
        ],
        "more": drift.more,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "file": escaped(finding.file),
        "offset": finding.offset,
        "line": finding.line,
        "seq": finding.seq,
        "expected": escaped(finding.expected),
        "found": escaped(finding.found),
        "cause": escaped(finding.cause),
        "next_command": escaped(finding.next_command),
    }
