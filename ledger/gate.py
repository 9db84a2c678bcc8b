"""The gates: for each request the first reason to refuse it, or None (spec §6.4).

Pure predicates over the earlier records, as `Views` has them, and the clock `at` in milliseconds.
Each gate is a table in the order of the spec, without the reasons of §8, which are in `policy`.
"""

from __future__ import annotations

from ledger.envelope import Envelope, PriorAttempt
from ledger.projection import DISPATCHED, Card, State, Step, Views, lapsed, late, state_at

ALWAYS_RECORDED = 8


def issue(views: Views, at: int, envelope: Envelope) -> str | None:
    """Give the reason not to issue an envelope."""
    step = views.step(envelope.task_digest)
    latest = views.card(step.latest) if step else None
    if latest is not None and envelope.supersedes is None and _open(views, at, latest):
        return "open_exists"
    if envelope.supersedes != (latest.hash if latest else None):
        return "supersedes_wrong"
    if envelope.prior_attempt != _attempt(views, step):
        return "attempt_unnamed"
    return None


def resolve(
    views: Views, at: int, echo: bytes, target: bytes | None, approver: str | None
) -> str | None:
    """Give the reason not to take a decision; a blank approver is None here."""
    card = views.card(echo)
    if card is None or (target is not None and target != echo):
        return "hash_mismatch"
    if approver is None:
        return "missing_approver"
    if card.decision is not None:
        return "already_resolved"
    if late(card, at, views.last_reset()):
        return "expired"
    if card.state is State.WITHDRAWN:
        return "withdrawn"
    if not _latest(views, card):
        return "not_latest"
    return None


def withdraw(
    views: Views, at: int, echo: bytes, target: bytes | None, approver: str | None
) -> str | None:
    """Give the reason not to withdraw a card; a blank approver is None here."""
    card = views.card(echo)
    if card is None or (target is not None and target != echo):
        return "hash_mismatch"
    if approver is None:
        return "missing_approver"
    if card.state in DISPATCHED:
        return "already_dispatched"
    if card.decision == "reject":
        return "already_resolved"
    if card.state is State.WITHDRAWN:
        return "withdrawn"
    if not _latest(views, card):
        return "not_latest"
    over = late if card.decision is None else lapsed
    if over(card, at, views.last_reset()):
        return "expired"
    return None


def dispatch(views: Views, at: int, target: bytes, *, agrees: bool) -> str | None:
    """Give the reason not to run a card; `agrees` says that the envelope of now may run.

    It may if it is the card, or differs from it only as spec §8.6 allows.
    """
    card = views.card(target)
    if card is None:
        return "unknown_card"
    if card.decision != "approve":
        return "not_approved"
    if card.state in DISPATCHED:
        return "already_dispatched"
    if card.state is State.WITHDRAWN:
        return "withdrawn"
    if not _latest(views, card):
        return "not_latest"
    if lapsed(card, at, views.last_reset()):
        return "grant_expired"
    if not agrees:
        return "mismatch"
    return None


def settle(views: Views, target: bytes, outcome: str) -> str | None:
    """Give the reason not to record an outcome: `unknown` may be followed by a real one."""
    card = views.card(target)
    if card is None:
        return "unknown_card"
    if card.state not in DISPATCHED:
        return "not_dispatched"
    if card.state is State.SETTLED or (card.state is State.UNKNOWN and outcome == "unknown"):
        return "already_settled"
    return None


def repeats(
    views: Views, at: int, card: Card, decision: str, approver: str | None, response: bytes | None
) -> bool:
    """Tell whether a decision is the one that was taken, and still holds (spec §6.5)."""
    over = (State.WITHDRAWN, State.SUPERSEDED, State.LAPSED)
    return (card.decision, card.approver, card.response) == (decision, approver, response) and (
        state_at(card, at, views.last_reset()) not in over
    )


def stands(views: Views, at: int, card: Card) -> bool:
    """Tell whether a card is open or approved, and neither expired nor lapsed (spec §2.6)."""
    return state_at(card, at, views.last_reset()) in (State.OPEN, State.APPROVED)


def recorded(count: int) -> bool:
    """Tell whether a refusal with this running count is recorded (spec §6.4)."""
    return count <= ALWAYS_RECORDED or count & (count - 1) == 0


def _open(views: Views, at: int, card: Card) -> bool:
    return card.state is State.OPEN and not late(card, at, views.last_reset())


def _latest(views: Views, card: Card) -> bool:
    step = views.step(card.task)
    return step is not None and step.latest == card.hash


def _attempt(views: Views, step: Step | None) -> PriorAttempt | None:
    card = views.card(step.dispatched) if step and step.dispatched else None
    return PriorAttempt(card.hash, card.outcome or "unknown") if card else None
