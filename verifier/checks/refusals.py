"""Checks that a refusal is true (spec §6.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verifier import policy
from verifier.cards import (
    APPROVED,
    DISPATCHED,
    NOT_LATEST,
    REJECTED,
    RESOLVED,
    SETTLED,
    WITHDRAWN,
)
from verifier.checks.lifecycle import names_attempt
from verifier.checks.policy import rules_of
from verifier.drift import rebuilt_problem
from verifier.evidence import Evidence
from verifier.profile import Profile
from verifier.shape import Problem
from verifier.spec import ASSERTED, GATES, REASONS
from verifier.state import State

Derive = Callable[[Evidence, State], "bool | None"]
"""Says whether a reason holds; None where nothing in the log shows it."""


def check_refusal_reason(record: Evidence, state: State) -> Problem | None:
    """The reason of a refusal holds, and no earlier one did (spec §6.4)."""
    if record.kind != "refused" or not _judges(record, state):
        return None
    gate, reason = record.body["gate"], record.body["reason"]
    asked = _asked_problem(record, state)
    if asked is not None:
        return asked
    for earlier in REASONS[gate]:
        holds = _holds(gate, earlier, record, state)
        if earlier == reason:
            if holds is False:
                return f"{reason} to hold at the gate {gate}", "it does not"
            return _rebuilt_problem(record) if reason == "mismatch" else None
        if holds:
            return f"the first reason that holds, {earlier}", reason
    return None


def _judges(record: Evidence, state: State) -> bool:
    """Say whether no unsound record could explain what is wrong with a refusal (rule 7)."""
    if record.body["gate"] == "issue":
        return state.judges_step(record.body["task"])
    if record.card is None:
        return not state.is_partial
    card = state.cards.numbers.get(record.card)
    return card is not None and state.judges_card(card)


def _asked_problem(record: Evidence, state: State) -> Problem | None:
    """Hold the card of a refusal against the card asked about (spec §6.4)."""
    numbers, body = state.cards.numbers, record.body
    if body["gate"] == "issue":
        return None
    if "echo" in body:
        asked = [body.get("target"), body["echo"]]
    else:
        asked = [body.get("target", record.card)]
    expected = next((card for card in asked if card in numbers), None)
    if record.card == expected:
        return None
    return f"card {_hex(expected)}", f"card {_hex(record.card)}"


def _hex(card: bytes | None) -> str:
    return "null" if card is None else card.hex()


def shows_reason(record: Evidence, state: State) -> bool:
    """Say whether the log shows the reason of a refusal, which is asserted where it does not."""
    gate, reason = record.body["gate"], record.body["reason"]
    return reason not in ASSERTED and _DERIVE[gate, reason](record, state) is not None


def _holds(gate: str, reason: str, record: Evidence, state: State) -> bool | None:
    return None if reason in ASSERTED else _DERIVE[gate, reason](record, state)


def _flag(bits: int) -> Derive:
    def derive(record: Evidence, state: State) -> bool | None:
        card = _card(record, state)
        return False if card is None else bool(state.cards.flags[card] & bits)

    return derive


def _card(record: Evidence, state: State) -> int | None:
    return None if record.card is None else state.cards.numbers.get(record.card)


def _open_exists(record: Evidence, state: State) -> bool | None:
    document = record.known_document()
    if document is None:
        return None
    latest = _latest(record, state)
    if latest is None or "supersedes" in document:
        return False
    return state.cards.is_open(latest) and not state.cards.over(latest, record.at or 0)


def _supersedes_wrong(record: Evidence, state: State) -> bool | None:
    document = record.known_document()
    if document is None:
        return None
    named = document.get("supersedes")
    number = None if named is None else state.cards.numbers.get(bytes.fromhex(named), -1)
    return number != _latest(record, state) and not _open_exists(record, state)


def _attempt_unnamed(record: Evidence, state: State) -> bool | None:
    document = record.known_document()
    if document is None:
        return None
    return not names_attempt(document.get("prior_attempt"), record.body["task"], state)


def _latest(record: Evidence, state: State) -> int | None:
    step = state.cards.step(record.body["task"])
    return None if step is None else state.cards.latest(step)


def _hash_mismatch(record: Evidence, state: State) -> bool | None:
    echo, target = record.body["echo"], record.body.get("target")
    return echo not in state.cards.numbers or (target is not None and target != echo)


def _missing_approver(record: Evidence, _state: State) -> bool | None:
    return "approver" not in record.body


def _late(record: Evidence, state: State) -> bool | None:
    card = _card(record, state)
    return card is not None and state.cards.over(card, record.at or 0)


def _unknown_card(record: Evidence, _state: State) -> bool | None:
    return record.card is None


def _not(bits: int) -> Derive:
    def derive(record: Evidence, state: State) -> bool | None:
        return not _flag(bits)(record, state)

    return derive


def _mismatch(record: Evidence, _state: State) -> bool | None:
    rebuilt = record.body.get("rebuilt")
    return None if rebuilt is None else rebuilt != record.card


def _claimed_above_derived(record: Evidence, _state: State) -> bool | None:
    document = record.known_document()
    return None if document is None else policy.claim_problem(document) is not None


def _at_issue(problem: Callable[[dict[str, Any], Profile], Problem | None]) -> Derive:
    """Make a reason of what breaks the rules: what the known ones allow, a lost one may not."""

    def derive(record: Evidence, state: State) -> bool | None:
        document = record.known_document()
        if document is None:
            return None
        rules = state.governance.at_issue(document)
        if problem(document, rules.profile) is not None:
            return True
        return False if rules.complete else None

    return derive


def _manifest_mismatch(record: Evidence, state: State) -> bool | None:
    """A refusal binds no text presented, so it does not show whether a view was another."""
    holds = _at_issue(policy.manifest_problem)(record, state)
    manifest = (record.known_document() or {}).get("review_manifest", {})
    return None if holds is False and "view_digest" in manifest else holds


def _self_approval(record: Evidence, state: State) -> bool | None:
    approver = record.body.get("approver")
    rules = rules_of(record, state)
    if record.card is None or approver is None:
        return False
    if rules.complete and not rules.profile.denies_self_approval:
        return False
    document = record.known_document()
    if document is None:
        return None
    if not policy.is_own_card(document, approver["id"]):
        return False
    return True if rules.profile.denies_self_approval else None


def _dispatch_below_floor(record: Evidence, state: State) -> bool | None:
    """The refused basis is not in the log; but without an exception it was never held up."""
    return False if rules_of(record, state).allows_drift is False else None


# where a reason stands in a list, every derivable one before it did not hold:
# so `expired` is asked only of a card that is open or, at withdraw and dispatch, a grant
_DERIVE: dict[tuple[str, str], Derive] = {
    ("issue", "claimed_above_derived"): _claimed_above_derived,
    ("issue", "evidence_below_floor"): _at_issue(policy.floor_problem),
    ("issue", "manifest_mismatch"): _manifest_mismatch,
    ("issue", "fixed_parameter_supplied"): _at_issue(policy.fixed_parameter_problem),
    ("issue", "open_exists"): _open_exists,
    ("issue", "supersedes_wrong"): _supersedes_wrong,
    ("issue", "attempt_unnamed"): _attempt_unnamed,
    ("resolve", "hash_mismatch"): _hash_mismatch,
    ("resolve", "missing_approver"): _missing_approver,
    ("resolve", "already_resolved"): _flag(RESOLVED),
    ("resolve", "expired"): _late,
    ("resolve", "withdrawn"): _flag(WITHDRAWN),
    ("resolve", "not_latest"): _flag(NOT_LATEST),
    ("resolve", "self_approval"): _self_approval,
    ("withdraw", "hash_mismatch"): _hash_mismatch,
    ("withdraw", "missing_approver"): _missing_approver,
    ("withdraw", "already_dispatched"): _flag(DISPATCHED),
    ("withdraw", "already_resolved"): _flag(REJECTED),
    ("withdraw", "withdrawn"): _flag(WITHDRAWN),
    ("withdraw", "not_latest"): _flag(NOT_LATEST),
    ("withdraw", "expired"): _late,
    ("dispatch", "unknown_card"): _unknown_card,
    ("dispatch", "not_approved"): _not(APPROVED),
    ("dispatch", "already_dispatched"): _flag(DISPATCHED),
    ("dispatch", "withdrawn"): _flag(WITHDRAWN),
    ("dispatch", "not_latest"): _flag(NOT_LATEST),
    ("dispatch", "grant_expired"): _late,
    ("dispatch", "mismatch"): _mismatch,
    ("dispatch", "evidence_below_floor"): _dispatch_below_floor,
    ("settle", "unknown_card"): _unknown_card,
    ("settle", "not_dispatched"): _not(DISPATCHED),
    ("settle", "already_settled"): _flag(SETTLED),
}


def _rebuilt_problem(record: Evidence) -> Problem | None:
    """Hold the rebuilt envelope of a mismatch against the card, where both are there."""
    data = record.openings.get("rebuilt")
    return None if data is None else rebuilt_problem(data, record.known_document())


def check_refusal_count(record: Evidence, state: State) -> Problem | None:
    """The counts of a refusal run 1 to 8, 16, 32, … (spec §6.4)."""
    if record.kind != "refused":
        return None
    found: int = record.body["count"]
    last = state.refusals.last(count_key(record))
    if last is None:
        expected = 1 if _judges(record, state) and not _counted_before(record, state) else found
    else:
        expected = next_count(last)
    if expected == found and (found <= 8 or found & found - 1 == 0) and found:
        return None
    return f"count {expected}", f"count {found}"


def _counted_before(record: Evidence, state: State) -> bool:
    """Say whether an earlier count may be lost: one of a task may be older than its first card."""
    return state.is_partial and record.body["gate"] == "issue"


def next_count(last: int) -> int:
    """Give the count that is recorded after `last` (spec §6.4)."""
    return last + 1 if last < 8 else last * 2


def count_key(record: Evidence) -> bytes:
    """Give what refusals are counted by: gate, reason and subject (spec §6.4)."""
    body = record.body
    subject = body["task"] if body["gate"] == "issue" else record.card or b""
    return count_name(body["gate"], body["reason"]) + subject


def count_name(gate: str, reason: str) -> bytes:
    """Give a name of gate and reason in one byte."""
    return bytes((GATES.index(gate) << 4 | REASONS[gate].index(reason),))
