"""One card of a report: what the approver saw, what was decided, and what then ran."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ledger import envelope as envelopes
from ledger.envelope import Envelope
from ledger.errors import LedgerError
from ledger.hidden import shown
from ledger.kinds import KINDS
from ledger.render import VERSION, render_card_text, render_changes
from ledger.report import events
from ledger.report.absent import absent
from ledger.report.foreign import foreign_text
from ledger.report.markup import code, instant, lines, pairs, sentences, table, text, value
from verifier import Drift, Event, History

_NO_ENVELOPE = (
    "The envelope is not in this log: it was redacted, withheld or lost. "
    "What the card said cannot be shown; the events below stand for themselves."
)
_CHANGED_SINCE = "The card that this one supersedes is not in this log, so no change can be shown."


class Sight(NamedTuple):
    """What a card is shown against: the other cards, the drifts, and what the verdict allows.

    `caution` is a sentence put above every card of a log that is not VERIFIED. `anchor` begins the
    anchors of its cards. `redactions` are the events that say what was erased.
    """

    cards: Mapping[str, History]
    drifts: Mapping[int, Drift]
    caution: str
    anchor: str
    redactions: Sequence[Event]


def section(history: History, sight: Sight) -> Iterator[str]:
    """Give one card as a section of the page."""
    envelope = _parsed(history.envelope)
    yield f'<article class="card" id="{sight.anchor}{history.card}">\n'
    yield f"<h3>{_title(history, envelope)} <small>{_state(history)}</small></h3>\n"
    yield f'<p class="hash">{code(history.card)}</p>\n'
    yield from _cautions(history, sight)
    yield "<h4>What the approver saw</h4>\n"
    yield from _seen(history, envelope)
    yield from _presented(history)
    yield from _changes(history, envelope, sight)
    yield "<h4>What happened</h4>\n"
    yield from _happened(history, sight)
    yield "<h4>Digests to check by hand</h4>\n"
    yield from pairs(_digests(history, envelope))
    yield "</article>\n"


def title(history: History) -> str:
    """Give the name of a card in a list: the tool, or the beginning of its hash."""
    return _title(history, None)


def _title(history: History, envelope: Envelope | None) -> str:
    document = envelope.document if envelope else _loaded(history.envelope)
    action = document.get("action") if isinstance(document, dict) else None
    tool = action.get("tool_name") if isinstance(action, dict) else None
    return value(tool) if isinstance(tool, str) else f"card {code(history.card[:12])}"


def _state(history: History) -> str:
    state = history.state or "state unknown"
    doubt = f" (not sure: {text(shown(history.doubt))})" if history.doubt else ""
    return f'<span class="state">{text(state)}</span>{doubt}'


def _cautions(history: History, sight: Sight) -> Iterator[str]:
    if sight.caution:
        yield f'<p class="caution">{text(sight.caution)}</p>\n'
    for finding in history.findings:
        yield (
            f'<p class="caution">finding <strong>{text(finding.check)}</strong> at seq '
            f"{text('-' if finding.seq is None else finding.seq)}: {text(shown(finding.cause))}"
            "</p>\n"
        )


def _seen(history: History, envelope: Envelope | None) -> Iterator[str]:
    if envelope is not None:
        yield f'<p class="how">The envelope, as {VERSION} puts it before a person.</p>\n'
        yield lines(render_card_text(envelope))
    elif history.envelope is not None:
        yield '<p class="how">The envelope as it is stored; its format is another one.</p>\n'
        yield lines(_cut(foreign_text(history.envelope)))
    else:
        yield f'<p class="caution">{text(_NO_ENVELOPE)}</p>\n'


def _presented(history: History) -> Iterator[str]:
    for event in history.events:
        data = event.openings.get("presented")
        if data is None:
            continue
        digest = hashlib.sha256(data).hexdigest()
        yield (
            f'<p class="how">Text that a channel presented, kept with seq {event.seq} '
            f"({len(data)} bytes, SHA-256 {code(digest)}):</p>\n"
        )
        body = data.decode("utf-8", "backslashreplace")
        yield lines(_cut("\n".join(map(shown, body.split("\n")))))


def _cut(body: str) -> str:
    if len(body) <= events.LONGEST:
        return body
    return f"{body[: events.LONGEST]}\n[cut after {events.LONGEST} of {len(body)} characters]"


def _changes(history: History, envelope: Envelope | None, sight: Sight) -> Iterator[str]:
    before = envelope.supersedes if envelope else None
    if envelope is None or before is None:
        return
    yield "<h4>What changed since the card that it supersedes</h4>\n"
    other = sight.cards.get(before.hex())
    old = _parsed(other.envelope) if other else None
    if old is None:
        yield f"<p>{text(_CHANGED_SINCE)}</p>\n"
    else:
        yield f'<p><a href="#{sight.anchor}{before.hex()}">the card before</a></p>\n'
        yield lines(render_changes(old, envelope))


def _happened(history: History, sight: Sight) -> Iterator[str]:
    if not history.events:
        yield "<p>No sound record of this card is in the log.</p>\n"
        return
    issued_at = next((event.at for event in history.events if event.kind == "issued"), None)
    yield from sentences(absent(history, sight.redactions))
    yield from table(
        "Records of this card, in the order of the chain",
        ("seq", "time", "event", "what it says"),
        (_row(event, issued_at, sight.drifts.get(event.seq)) for event in history.events),
    )


def _row(event: Event, issued_at: int | None, drift: Drift | None) -> tuple[str, ...]:
    said = events.detail(event, issued_at, drift)
    return str(event.seq), instant(event.at), kind(event), said


def kind(event: Event) -> str:
    """Give the kind of an event; a foreign log may have any text there."""
    return text(event.kind) if event.kind in KINDS else value(event.kind)


def _digests(history: History, envelope: Envelope | None) -> Iterator[tuple[str, str]]:
    if history.envelope is not None:
        digest = hashlib.sha256(history.envelope).hexdigest()
        same = "equal to the card hash" if digest == history.card else "NOT the card hash"
        size = len(history.envelope)
        yield f"SHA-256 of the {size} bytes of the envelope", f"{code(digest)} ({same})"
    if envelope is not None:
        yield "arguments digest", code(envelope.document["action"]["args_digest"])
        yield "effect key", code(envelope.document["effect_key"])
    for event in history.events:
        if event.kind == "resolved" and "echo" in event.body:
            yield f"echo of the decision at seq {event.seq}", code(event.body["echo"].hex())


def _parsed(stored: bytes | None) -> Envelope | None:
    try:
        return None if stored is None else envelopes.parse(stored)
    except LedgerError:
        return None


def _loaded(stored: bytes | None) -> object:
    try:
        return None if stored is None else json.loads(stored)
    except (ValueError, RecursionError):
        return None
