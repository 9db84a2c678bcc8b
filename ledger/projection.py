"""The state of cards and steps: a fold over the chain, and nothing else (spec §6.1, §6.2).

`fold` reads and writes through `Views`, so that the same rules fill a dictionary and an index on
disk. It takes records for what they say; whether they may stand there is for `gate` to say before
they are written, and for a verifier afterwards.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from ledger import profile
from ledger.codec import Record
from ledger.errors import Malformed, ProposalInvalid
from ledger.kinds import bound_openings


class State(StrEnum):
    """The states of a card (spec §6.1); EXPIRED and LAPSED are computed, never stored."""

    OPEN = "OPEN"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    WITHDRAWN = "WITHDRAWN"
    SUPERSEDED = "SUPERSEDED"
    DISPATCHED = "DISPATCHED"
    UNKNOWN = "UNKNOWN"
    SETTLED = "SETTLED"
    EXPIRED = "EXPIRED"
    LAPSED = "LAPSED"


class StepState(StrEnum):
    """The states of a step, which follow from its latest card (spec §6.1)."""

    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    AWAITING_REAPPROVAL = "awaiting_reapproval"
    REJECTED_PRE_DISPATCH = "rejected_pre_dispatch"
    DISPATCHED = "dispatched"
    SETTLED = "settled"
    OUTCOME_UNKNOWN = "outcome_unknown"


_ASK_SIZE = 16

STATES_AFTER = {
    "issued": (State.OPEN, State.SUPERSEDED),
    "resolved": (State.APPROVED, State.REJECTED, State.SUPERSEDED),
    "withdrawn": (State.WITHDRAWN,),
    "dispatched": (State.DISPATCHED,),
    "settled": (State.SETTLED, State.UNKNOWN),
    "refused": (),
}
"""What a card may be after its last event, without the clock (spec §6.1)."""

DISPATCHED = frozenset((State.DISPATCHED, State.UNKNOWN, State.SETTLED))
"""The states in which the grant of a card is spent."""
_OF_ISSUED = frozenset(("resolved", "withdrawn", "dispatched", "settled"))
_GOING_ON = frozenset((State.OPEN, State.APPROVED, State.DISPATCHED, State.UNKNOWN))


@dataclass(frozen=True, slots=True)
class Card:
    """What the chain says of one card.

    `seq` is that of its `issued` record, `last` that of its last event other than `refused`.
    `not_after` and `grant_ttl` are seconds, `resolved_at` milliseconds; `approver` is the id of
    who decided, `response` the digest of what they answered. `state` is without the clock.
    `profile` is the digest of the chain profile at its issue, `named` that of the card profile
    (spec §8.5); cards that ask for the same call have the same `ask`.
    """

    hash: bytes
    seq: int
    task: bytes
    not_after: int
    grant_ttl: int | None
    state: State
    last: int
    resolved_seq: int | None = None
    resolved_at: int | None = None
    decision: str | None = None
    approver: str | None = None
    response: bytes | None = None
    outcome: str | None = None
    profile: bytes | None = None
    named: bytes | None = None
    ask: bytes | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The cards of a step that count: the one issued last, and the one dispatched last."""

    latest: bytes
    dispatched: bytes | None = None


@dataclass(frozen=True, slots=True)
class Flood:
    """What refusals are counted by; `subject` is a task, else a card, else empty (spec §6.4)."""

    gate: str
    reason: str
    subject: bytes


class Views(Protocol):
    """What the gates look at."""

    def card(self, card: bytes) -> Card | None:
        """Give a card by its hash, None if it was not issued."""

    def step(self, task: bytes) -> Step | None:
        """Give a step by its task digest, None if no card was issued for it."""

    def last_reset(self) -> int | None:
        """Give the seq of the last `clock_reset`, None if there is none."""

    def refusals(self, flood: Flood) -> int:
        """Give the running count of refusals."""

    def profile(self) -> bytes | None:
        """Give the digest of the newest chain profile, None if there is none (spec §8.5)."""

    def profile_bytes(self, digest: bytes) -> bytes | None:
        """Give the bytes of a chain profile, None if they are not in the chain."""

    def edge(self) -> bool:
        """Tell whether the log begins above seq 0 and no `pruned` has named that yet (§15.2)."""


class Fold(Views, Protocol):
    """Views that a fold can write."""

    def put_card(self, card: Card) -> None:
        """Keep what the chain says of a card now."""

    def put_step(self, task: bytes, step: Step) -> None:
        """Keep what the chain says of a step now."""

    def put_reset(self, seq: int) -> None:
        """Keep the seq of the last `clock_reset`."""

    def put_refusals(self, flood: Flood, count: int, seq: int | None = None) -> None:
        """Keep the running count of refusals; `seq` is that of the last one, if it is recorded."""

    def put_profile(self, digest: bytes, text: bytes | None, seq: int) -> None:
        """Keep a chain profile, in force from the record after `seq` on."""

    def put_missing(self, seq: int, names: list[str]) -> None:
        """Keep that a record binds openings which are not there."""

    def put_redaction(self, event: int, seq: int, names: list[str]) -> None:
        """Keep that the record `event` names openings of the record `seq` as erased."""

    def forget(self, before: int) -> None:
        """Forget what a `pruned` record says may be gone (spec §15.2)."""


def fold(views: Fold, record: Record) -> None:
    """Bring the views from before a record to after it (spec §6.1).

    Raises:
        Malformed: The record is about a card that was not issued.

    """
    if names := missing(record):
        views.put_missing(record.seq, names)
    if record.kind in _OF_ISSUED and views.edge() and views.card(record.card or b"") is None:
        return  # its card was issued before the left edge
    match record.kind:
        case "issued":
            _issued(views, record)
        case "resolved":
            _resolved(views, record)
        case "withdrawn":
            views.put_card(replace(_card(views, record), state=State.WITHDRAWN, last=record.seq))
        case "dispatched":
            _dispatched(views, record)
        case "settled":
            _settled(views, record)
        case "refused":
            views.put_refusals(flood_of(record), record.body["count"], record.seq)
        case "clock_reset":
            views.put_reset(record.seq)
        case "opened" | "configured":
            _configured(views, record)
        case "redacted":
            views.put_redaction(record.seq, record.body["seq"], record.body["openings"])
        case "pruned":
            views.forget(record.body["before"])


def missing(record: Record) -> list[str]:
    """Give the names of the openings that a record binds and that are not there (spec §3.4)."""
    bound = bound_openings(record.kind, record.card, record.body)
    return [name for name in bound if name not in record.openings]


def flood_of(record: Record) -> Flood:
    """Give what a refusal is counted by (spec §6.4)."""
    body = record.body
    return Flood(body["gate"], body["reason"], body.get("task") or record.card or b"")


def late(card: Card, at: int, last_reset: int | None) -> bool:
    """Tell whether the time to decide is over, at a clock in milliseconds (spec §6.2)."""
    return at >= card.not_after * 1000 or _ended_by(last_reset, card.seq)


def lapsed(card: Card, at: int, last_reset: int | None) -> bool:
    """Tell whether a grant is over, at a clock in milliseconds (spec §6.2)."""
    if card.decision != "approve" or card.resolved_at is None or card.resolved_seq is None:
        return False
    if _ended_by(last_reset, card.resolved_seq):
        return True
    return card.grant_ttl is not None and at >= card.resolved_at + card.grant_ttl * 1000


def state_at(card: Card, at: int, last_reset: int | None) -> State:
    """Give the state with the clock: EXPIRED and LAPSED too (spec §6.1)."""
    if card.state is State.OPEN and late(card, at, last_reset):
        return State.EXPIRED
    if card.state is State.APPROVED and lapsed(card, at, last_reset):
        return State.LAPSED
    return card.state


def ended(card: Card, at: int, last_reset: int | None) -> bool:
    """Tell whether nothing is still to come of a card, at a clock in milliseconds (spec §15.1)."""
    return state_at(card, at, last_reset) not in _GOING_ON


def step_state(latest: State) -> StepState:
    """Give the state of a step from that of its latest card (spec §6.1)."""
    return _STEP_STATES[latest]


_STEP_STATES = {
    State.OPEN: StepState.AWAITING_APPROVAL,
    State.APPROVED: StepState.APPROVED,
    State.EXPIRED: StepState.AWAITING_REAPPROVAL,
    State.LAPSED: StepState.AWAITING_REAPPROVAL,
    State.WITHDRAWN: StepState.AWAITING_REAPPROVAL,
    State.SUPERSEDED: StepState.AWAITING_REAPPROVAL,
    State.REJECTED: StepState.REJECTED_PRE_DISPATCH,
    State.DISPATCHED: StepState.DISPATCHED,
    State.SETTLED: StepState.SETTLED,
    State.UNKNOWN: StepState.OUTCOME_UNKNOWN,
}


def _ended_by(last_reset: int | None, seq: int) -> bool:
    return last_reset is not None and last_reset > seq


def _card(views: Views, record: Record) -> Card:
    card = views.card(record.card) if record.card is not None else None
    if card is None:
        raise Malformed(f"{record.kind} at seq {record.seq}: its card was not issued")
    return card


def _issued(views: Fold, record: Record) -> None:
    body, task = record.body, record.body["task"]
    assert record.card is not None  # the shape of an issued record (spec §3.5)
    named, ask = _asked(record)
    before = views.step(task)
    if before is not None:
        _supersede(views, before.latest)
    views.put_card(
        Card(
            hash=record.card,
            seq=record.seq,
            task=task,
            not_after=body["not_after"],
            grant_ttl=body.get("grant_ttl"),
            state=State.OPEN,
            last=record.seq,
            profile=views.profile(),
            named=named,
            ask=ask,
        ),
    )
    views.put_step(task, Step(record.card, before.dispatched if before else None))


def _supersede(views: Fold, card_hash: bytes) -> None:
    card = views.card(card_hash)
    if card is not None and card.state in (State.OPEN, State.APPROVED):
        views.put_card(replace(card, state=State.SUPERSEDED))


def _resolved(views: Fold, record: Record) -> None:
    body = record.body
    approved = body["decision"] == "approve"
    views.put_card(
        replace(
            _card(views, record),
            state=State.APPROVED if approved else State.REJECTED,
            last=record.seq,
            resolved_seq=record.seq,
            resolved_at=record.at,
            decision=body["decision"],
            approver=body["approver"]["id"],
            response=body["response"]["digest"] if "response" in body else None,
        ),
    )


def _dispatched(views: Fold, record: Record) -> None:
    card = replace(_card(views, record), state=State.DISPATCHED, last=record.seq)
    views.put_card(card)
    step = views.step(card.task)
    views.put_step(card.task, Step(step.latest if step else card.hash, card.hash))


def _settled(views: Fold, record: Record) -> None:
    outcome = record.body["outcome"]
    state = State.UNKNOWN if outcome == "unknown" else State.SETTLED
    views.put_card(
        replace(_card(views, record), state=state, last=record.seq, outcome=outcome),
    )


def _configured(views: Fold, record: Record) -> None:
    digest, text = record.body.get("profile"), record.openings.get("profile")
    if digest is None:
        return
    if text is not None:
        try:
            profile.parse(text)
        except ProposalInvalid as error:
            raise Malformed(f"profile: {error}") from error
    views.put_profile(digest, text, record.seq)


def _asked(record: Record) -> tuple[bytes | None, bytes | None]:
    """Give the profile that an envelope names, and what is the same for all that ask for one call.

    An envelope that is not there, or not well-formed, gives neither.
    """
    try:
        document = json.loads(record.openings["envelope"])
        action, basis = document["action"], document.get("approval_basis")
        named = None if basis is None else bytes.fromhex(basis["profile"])
        call = f"{action['args_digest']}{action['tool_name']}"
        return named, hashlib.sha256(call.encode()).digest()[:_ASK_SIZE]
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None, None
