"""Checks of an event against the state of its card (spec §6.3).

Each is made only for a card that no unsound record could explain (spec §10.3, rule 7).
"""

from __future__ import annotations

from typing import Any

from verifier.cards import (
    APPROVED,
    DISPATCHED,
    NOT_LATEST,
    REJECTED,
    RESOLVED,
    SETTLED,
    SUCCEEDED,
    UNKNOWN,
    WITHDRAWN,
)
from verifier.drift import exception_problem
from verifier.escape import is_blank
from verifier.evidence import Evidence
from verifier.shape import Problem
from verifier.spec import BASIS_DRIFT
from verifier.state import State

ENDING = ("resolved", "withdrawn", "dispatched")


def _judged(record: Evidence, state: State, *kinds: str) -> int | None:
    """Give the card of an event of these kinds, where it can be judged."""
    if record.kind not in kinds or record.card is None:
        return None
    card = state.cards.numbers.get(record.card)
    return card if card is not None and state.judges_card(card) else None


def check_opened(record: Evidence, state: State) -> Problem | None:
    """Opened stands at seq 0, and only there (spec §6.3)."""
    if record.seq == 0 and record.kind != "opened":
        return "opened at seq 0", str(record.kind)
    if record.seq != 0 and record.kind == "opened":
        return "opened at seq 0 only", f"opened at seq {record.seq}"
    return None


def check_issued_once(record: Evidence, state: State) -> Problem | None:
    """A card is issued once (spec §6.3)."""
    card = _judged(record, state, "issued")
    return None if card is None else ("a card that was not issued before", _card(record))


def check_supersedes(record: Evidence, state: State) -> Problem | None:
    """An issued card names the latest card of its step, and no other (spec §6.4)."""
    if record.kind != "issued" or not state.judges_step(record.body["task"]):
        return None
    named: bytes | None = record.body.get("supersedes")
    step = state.cards.step(record.body["task"])
    latest = None if step is None else state.cards.latest(step)
    if (None if named is None else state.cards.numbers.get(named, -1)) == latest:
        return None
    expected = "none" if latest is None else state.cards.hash_of(latest).hex()
    found = "none" if named is None else named.hex()
    return f"supersedes {expected}", f"supersedes {found}"


def check_prior_attempt(record: Evidence, state: State) -> Problem | None:
    """An issued card names the last dispatched card of its step and its outcome (spec §6.4)."""
    if record.kind != "issued" or not state.judges_step(record.body["task"]):
        return None
    document = record.known_document()
    if document is None:
        return None
    found = document.get("prior_attempt")
    if names_attempt(found, record.body["task"], state):
        return None
    step = state.cards.step(record.body["task"])
    card = None if step is None else state.cards.last_dispatched(step)
    expected = "none"
    if card is not None:
        expected = f"{state.cards.hash_of(card).hex()} {state.cards.outcome(card)}"
    return f"prior_attempt {expected}", f"prior_attempt {_attempt(found)}"


def names_attempt(attempt: dict[str, str] | None, task: bytes, state: State) -> bool:
    """Say whether a prior_attempt is the last dispatched card of the step and its outcome."""
    step = state.cards.step(task)
    card = None if step is None else state.cards.last_dispatched(step)
    if card is None or attempt is None:
        return card is None and attempt is None
    named = state.cards.numbers.get(bytes.fromhex(attempt["card_hash"]))
    return named == card and attempt["outcome"] == state.cards.outcome(card)


def _attempt(attempt: dict[str, str] | None) -> str:
    return "none" if attempt is None else f"{attempt['card_hash']} {attempt['outcome']}"


def check_not_issued(record: Evidence, state: State) -> Problem | None:
    """An event of a card follows its issued record (spec §6.3)."""
    if record.card is None or record.kind == "issued" or state.disturbed:
        return None
    if record.card in state.cards.numbers:
        return None
    if state.may_be_carried(record.card, record.body.get("of")):
        return None
    if record.kind == "refused" and record.body["gate"] == "issue":
        return None
    return "an issued record of the card before it", _card(record)


def check_of(record: Evidence, state: State) -> Problem | None:
    """Of is the seq of the last event of the card (spec §3.5)."""
    card = _judged(record, state, "resolved", "refused", "withdrawn", "dispatched", "settled")
    found = record.body.get("of")
    if card is None or found is None or found == state.cards.last[card]:
        return None
    return f"of {state.cards.last[card]}", f"of {found}"


def check_echo(record: Evidence, state: State) -> Problem | None:
    """A decision or withdrawal echoes its card, and was asked about it (spec §6.3)."""
    if _judged(record, state, "resolved", "withdrawn") is None:
        return None
    for name in ("echo", "target"):
        found: Any = record.body.get(name, record.card)
        if found != record.card:
            return f"{name} {_card(record)}", f"{name} {found.hex()}"
    return None


def check_approver(record: Evidence, state: State) -> Problem | None:
    """Who decides or withdraws is named (spec §6.3)."""
    if _judged(record, state, "resolved", "withdrawn") is None:
        return None
    name = record.body["by"] if record.kind == "withdrawn" else record.body["approver"]["id"]
    return ("an id that is not blank", f'"{name}"') if is_blank(name) else None


def check_decided_once(record: Evidence, state: State) -> Problem | None:
    """A card is decided once (spec §6.3)."""
    card = _judged(record, state, "resolved")
    if card is None or not state.cards.flags[card] & RESOLVED:
        return None
    decided = "approved" if state.cards.flags[card] & APPROVED else "rejected"
    return "a card that is not decided", f"a card that was {decided} before"


def check_in_time(record: Evidence, state: State) -> Problem | None:
    """A decision, withdrawal or dispatch falls in its window (spec §5, §6.3)."""
    card = _judged(record, state, *ENDING)
    if card is None or record.at is None or not state.cards.over(card, record.at):
        return None
    flags = state.cards.flags[card]
    asks_grant = record.kind == "dispatched" or flags & RESOLVED
    if asks_grant and not flags & APPROVED:
        return None
    if state.cards.reset_seq > state.cards.last[card]:
        return "a window that no clock_reset ended", f"clock_reset at {state.cards.reset_seq}"
    return f"at before {state.cards.deadline[card]}", f"at {record.at}"


def check_withdrawn(record: Evidence, state: State) -> Problem | None:
    """Nothing is decided, withdrawn or dispatched after a withdrawal (spec §6.3)."""
    card = _judged(record, state, *ENDING)
    if card is None or not state.cards.flags[card] & WITHDRAWN:
        return None
    return "a card that is not withdrawn", f"{record.kind} after withdrawn"


def check_latest(record: Evidence, state: State) -> Problem | None:
    """Only the latest card of a step is decided, withdrawn or dispatched (spec §6.3)."""
    card = _judged(record, state, *ENDING)
    if card is None or not state.cards.flags[card] & NOT_LATEST:
        return None
    latest = state.cards.latest(state.cards.step_of(card))
    return f"the latest card {state.cards.hash_of(latest).hex()}", _card(record)


def check_withdraw_state(record: Evidence, state: State) -> Problem | None:
    """What is withdrawn is open or an undispatched grant (spec §6.3)."""
    card = _judged(record, state, "withdrawn")
    if card is None or not state.cards.flags[card] & (REJECTED | DISPATCHED):
        return None
    ended = "dispatched" if state.cards.flags[card] & DISPATCHED else "rejected"
    return "an open card or an undispatched grant", f"a card that was {ended}"


def check_approved(record: Evidence, state: State) -> Problem | None:
    """What is dispatched was approved (spec §6.3)."""
    card = _judged(record, state, "dispatched")
    if card is None or state.cards.flags[card] & APPROVED:
        return None
    return "a card that was approved", "a card that was not"


def check_dispatched_once(record: Evidence, state: State) -> Problem | None:
    """A card is dispatched once (spec §6.3)."""
    card = _judged(record, state, "dispatched")
    if card is None or not state.cards.flags[card] & DISPATCHED:
        return None
    return "a grant that is not spent", "a card that was dispatched before"


def check_rebuilt(record: Evidence, state: State) -> Problem | None:
    """What was rebuilt is what was approved, or differs as an exception allows (spec §8.6)."""
    card = _judged(record, state, "dispatched")
    if card is None:
        return None
    body = record.body
    found, exceptions = body["rebuilt"], body.get("exceptions")
    if body.get("policy_outcome") == "deny":
        return "a policy_outcome that lets the call run", "deny"
    if found == record.card:
        return (
            None if exceptions is None else ("no exceptions, as nothing differs", _list(exceptions))
        )
    if exceptions is None:
        return f"rebuilt {_card(record)}", f"rebuilt {found.hex()}"
    if exceptions != [BASIS_DRIFT]:
        return f"exceptions of {BASIS_DRIFT} alone", _list(exceptions)
    if body.get("policy_outcome") != "allow":
        return "the policy_outcome allow", str(body.get("policy_outcome", "none"))
    rules = state.governance.of_card(card)
    if rules.allows_drift is False:
        return "profiles that allow the basis to drift", "rules that ask for a review"
    data = record.openings.get("rebuilt")
    return None if data is None else exception_problem(data, record.known_document(), rules)


def _list(names: list[str]) -> str:
    return ", ".join(names)


def check_settled(record: Evidence, state: State) -> Problem | None:
    """An outcome follows a dispatch, once; unknown may be followed by a real one (spec §6.3)."""
    card = _judged(record, state, "settled")
    if card is None:
        return None
    flags = state.cards.flags[card]
    if not flags & DISPATCHED:
        return "a card that was dispatched", "a card that was not"
    if not flags & SETTLED or (flags & SETTLED == UNKNOWN and record.body["outcome"] != "unknown"):
        return None
    before = "unknown" if flags & SETTLED == UNKNOWN else "failed"
    before = "succeeded" if flags & SUCCEEDED else before
    return "a card that is not settled", f"{record.body['outcome']} after {before}"


def _card(record: Evidence) -> str:
    return "null" if record.card is None else record.card.hex()
