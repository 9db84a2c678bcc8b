"""One event as the commands show it, whoever read it: the ledger of this host or the verifier."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ledger.cli.output import full, openings_json, quoted, utc
from ledger.codec import Record
from ledger.envelope import differing_pointers, parse
from ledger.errors import LedgerError, places
from ledger.policy import drift_classes
from verifier import Event, History, LogReport


class Entry(NamedTuple):
    """An event: `openings` has the envelope too, `document` is what --json prints of it."""

    seq: int
    at: int
    kind: str
    card: bytes | None
    body: Mapping[str, Any]
    openings: Mapping[str, bytes]
    document: Mapping[str, Any]


class Filter(NamedTuple):
    """What the options of a command ask of an event; None asks nothing.

    `start` and `end` are unix milliseconds, the end excluded.
    """

    kinds: frozenset[str] = frozenset()
    task: str | None = None
    step: str | None = None
    tool: str | None = None
    approver: str | None = None
    outcome: str | None = None
    start: int | None = None
    end: int | None = None

    @property
    def asks(self) -> bool:
        """Say whether anything is asked."""
        return self != Filter()

    def takes(self, entry: Entry) -> bool:
        """Say whether an event is one of those asked for."""
        return (
            (not self.kinds or entry.kind in self.kinds)
            and (self.start is None or entry.at >= self.start)
            and (self.end is None or entry.at < self.end)
            and (self.approver is None or self.approver in _people(entry.body))
            and (self.outcome is None or self.outcome in _outcomes(entry))
            and self._takes_card(entry.openings.get("envelope"))
        )

    def _takes_card(self, envelope: bytes | None) -> bool:
        asked = (self.task, self.step, self.tool)
        if asked == (None, None, None):
            return True
        found = named(envelope)
        return all(want is None or want == have for want, have in zip(asked, found, strict=True))


def named(envelope: bytes | None) -> tuple[str | None, str | None, str | None]:
    """Give the task, its step and the tool of an envelope, None for what it does not say.

    Of a foreign card the approval id stands for the task.
    """
    document = {} if envelope is None else json.loads(envelope)
    task, action = document.get("task"), document.get("action")
    task = task if isinstance(task, dict) else {"id": document.get("approval_id")}
    action = action if isinstance(action, dict) else {}
    return task.get("id"), task.get("step"), action.get("tool_name")


def of_record(record: Record) -> Entry:
    """Take a record of a ledger of this host."""
    openings = record.openings
    at, kind, card, body = record.at, record.kind, record.card, record.body
    return Entry(record.seq, at, kind, card, body, openings, full(record))


def of_log(log: LogReport) -> list[Entry]:
    """Take the sound events of a log that was verified, in the order of its chain."""
    found = [of_event(event) for event in log.chain_events]
    found += [entry for history in log.histories for entry in of_history(history)]
    return sorted(found, key=lambda entry: entry.seq)


def of_history(history: History) -> Iterator[Entry]:
    """Take the events of one card that was verified."""
    card = bytes.fromhex(history.card)
    return (of_event(event, card, history.envelope) for event in history.events)


def of_event(event: Event, card: bytes | None = None, envelope: bytes | None = None) -> Entry:
    """Take an event that was verified, of a card or of none."""
    openings = dict(event.openings)
    document = {
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "card_hash": card,
        "body": dict(event.body),
        "envelope": None if envelope is None else json.loads(envelope),
        "openings": openings_json(openings),
    }
    if envelope is not None:
        openings["envelope"] = envelope
    return Entry(event.seq, event.at, event.kind, card, event.body, openings, document)


def line(entry: Entry) -> str:
    """Give an event in one line."""
    card = "-" * 12 if entry.card is None else entry.card.hex()[:12]
    return f"{entry.seq:>6} {utc(entry.at)} {word(entry.kind):<11} {card} {detail(entry)}".rstrip()


def detail(entry: Entry) -> str:
    """Give what matters of a body in a few words; a foreign log may lack any of it."""
    body = entry.body
    match entry.kind:
        case "issued":
            return asked(entry.openings.get("envelope"))
        case "resolved":
            return f"{word(body.get('decision'))} by {quoted(_people(body)[0])}"
        case "refused":
            gate = f"{body['gate']}: " if "gate" in body else ""
            return f"{gate}{word(body.get('reason'))}{_places(entry)} (count {body.get('count')})"
        case "withdrawn" | "clock_reset":
            return f"{word(body.get('reason'))} by {quoted(_people(body)[0])}"
        case "redacted":
            names = ", ".join(map(quoted, body["openings"]))
            return f"{names} of seq {body['seq']}: {body['reason']} by {quoted(body['by'])}"
        case "settled":
            return word(body.get("outcome"))
        case "opened":
            return quoted(body["name"])
        case "configured" | "pruned":
            return f"by {quoted(body['by'])}"
        case "dispatched":
            return ", ".join(map(quoted, body.get("exceptions", ())))
        case _:
            return ""


def asked(envelope: bytes | None) -> str:
    """Say what a card asks for, in one line."""
    if envelope is None:
        return "envelope absent"
    task, step, tool = named(envelope)
    return f"{quoted(tool)} for {quoted(task)} {'' if step is None else quoted(step)}".rstrip()


def _places(entry: Entry) -> str:
    """Say where the envelope that was rebuilt differs from the card, where it was kept."""
    card, rebuilt = (entry.openings.get(name) for name in ("envelope", "rebuilt"))
    if card is None or rebuilt is None:
        return ""
    try:
        pointers = differing_pointers(parse(card), parse(rebuilt))
    except LedgerError:
        return ""
    return places(pointers, drift_classes(pointers))


def _people(body: Mapping[str, Any]) -> tuple[str, ...]:
    approver = body.get("approver")
    people = [approver.get("id")] if isinstance(approver, Mapping) else []
    return tuple(str(each) for each in [*people, body.get("by")] if each is not None) or ("",)


def _outcomes(entry: Entry) -> Iterable[Any]:
    """Give what an event came to; a refusal came to nothing, whatever it was asked for."""
    body = entry.body
    if entry.kind == "refused":
        return ()
    return body.get("outcome"), body.get("decision"), body.get("reason")


def word(found: object) -> str:
    """Give a word of ours as it is, and any other text in quotes; a foreign log may have any."""
    text = str(found)
    return text if text.isascii() and text.replace("_", "").isalnum() else quoted(text)
