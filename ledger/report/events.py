"""What an event says of its card, in one line (spec §3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ledger.report.markup import code, duration, text, utc, value
from verifier import Drift, Event

LONGEST: Final = 20_000
"""Code points of a note, or of a foreign or presented text, that a page shows."""


def detail(event: Event, issued_at: int | None, drift: Drift | None = None) -> str:
    """Give the line as HTML; `issued_at` is the time of the card's first event, in milliseconds."""
    body = event.body
    match event.kind:
        case "issued":
            return _issued(body)
        case "resolved":
            return _resolved(event, issued_at)
        case "refused":
            return _refused(body, drift)
        case "withdrawn":
            return f"{text(body['reason'])} by {value(body['by'])}{_note(event)}"
        case "dispatched":
            return _dispatched(body, drift)
        case "settled":
            return text(body["outcome"]) + _by(body)
        case "opened":
            return f"{value(body['name'])} by {value(body['software'])}"
        case "redacted":
            names = ", ".join(map(value, body["openings"]))
            return f"{names} of seq {body['seq']}: {text(body['reason'])} by {value(body['by'])}"
        case "clock_reset":
            return f"{text(body['reason'])}, from {utc(body['was'])}{_by(body)}"
        case "recovered":
            return f"{body['length']} torn bytes after seq {body['after_seq']}"
        case "rekeyed":
            return f"key id {code(body['kid'].hex())}"
        case "pruned":
            return f"what lies below seq {body['before']}{_by(body)}"
        case "configured":
            return _by(body).lstrip()
    return ""


def _issued(body: Mapping[str, Any]) -> str:
    words = [f"decide before {utc(round(body['not_after'] * 1000))}"] if "not_after" in body else []
    if "supersedes" in body:
        words.append(f"supersedes {code(body['supersedes'].hex()[:12])}")
    runtime = body.get("runtime", {})
    words += [f"{text(name)} {value(runtime[name])}" for name in sorted(runtime)]
    return ", ".join(words)


def _resolved(event: Event, issued_at: int | None) -> str:
    body = event.body
    decision = body["decision"]
    word = {"approve": "approved", "reject": "rejected"}.get(decision)
    said = f"<strong>{word or value(decision)}</strong>{_approver(body)}"
    if "channel" in body:
        said += f", on {value(body['channel'])}"
    if issued_at is not None:
        said += f", {duration(event.at - issued_at)} after it was issued"
    return said + _note(event)


def _refused(body: Mapping[str, Any], drift: Drift | None) -> str:
    gate, reason = body.get("gate"), body.get("reason")
    said = f"{text(gate)}: <strong>{value(reason) if gate is None else text(reason)}</strong>"
    if body.get("count", 1) > 1:
        said += f", attempt {body['count']}"
    if "decision" in body:
        said += f", wanted {value(body['decision'])}"
    return said + _approver(body) + _pointers(drift)


def _dispatched(body: Mapping[str, Any], drift: Drift | None) -> str:
    rebuilt = body.get("rebuilt")
    said = "" if rebuilt is None else f"rebuilt {code(rebuilt.hex()[:12])}"
    exceptions = ", ".join(map(value, body.get("exceptions", ())))
    return said + (f", under the exception {exceptions}" if exceptions else "") + _pointers(drift)


def _pointers(drift: Drift | None) -> str:
    if drift is None:
        return ""
    places = ", ".join(f"{value(pointer)} ({text(kind)})" for pointer, kind in drift.pointers)
    return f", differs from the card at {places}{' and more' if drift.more else ''}"


def _approver(body: Mapping[str, Any]) -> str:
    approver = body.get("approver")
    if not isinstance(approver, Mapping):
        return ""
    assurance = approver.get("assurance")
    how = f" (known by: {text(assurance)})" if assurance else ""
    return f" by {value(approver.get('id', ''))}{how}"


def _by(body: Mapping[str, Any]) -> str:
    return f" by {value(body['by'])}" if "by" in body else ""


def _note(event: Event) -> str:
    stored = event.openings.get("note")
    if stored is None:
        return ""
    note = stored.decode("utf-8", "backslashreplace")
    cut = f" [cut after {LONGEST} of {len(note)} characters]" if len(note) > LONGEST else ""
    return f", note {value(note[:LONGEST])}{cut}"
