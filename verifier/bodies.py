"""The common events of cards, accepted by the bytes of their bodies (spec §3.5, §6.3).

What a body must say follows from the state of its card, so it is compared, not read; the rest is
the same for many cards, and is read once. What does not match is not wrong: the table judges it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from verifier import cbor
from verifier.cards import APPROVED, DISPATCHED, GOVERNED, JUDGED, RESOLVED
from verifier.checks.refusals import count_name, next_count
from verifier.escape import is_blank
from verifier.proof import Issued
from verifier.shape import bindings, body_problem
from verifier.spec import ASSURANCES, DIGEST_SIZE
from verifier.state import State

_OF = b"\x62of"
_ECHO = b"\x64echo\x58\x20"
_REBUILT = b"\x67rebuilt\x58\x20"
_TARGET = b"\x66target\x58\x20"
_OUTCOMES = {
    b"\x67outcome" + cbor.text(outcome): outcome for outcome in ("succeeded", "failed", "unknown")
}
_DISPATCHED = APPROVED | DISPATCHED
_MAX_KNOWN = 4096


class Decision(NamedTuple):
    """What a decision says beside the card that it names."""

    decision: str
    approver: str
    assurance: str


class Bodies:
    """Accepts the common events of cards by their bytes, and folds them in.

    Each method gives False where it does not accept; nothing is folded in then.
    """

    __slots__ = (
        "_cards",
        "_counts",
        "_decisions",
        "_governance",
        "_has_floor",
        "_refusals",
        "_sure_from",
        "_witnesses",
    )

    def __init__(self, state: State) -> None:
        """Accept what follows from `state`, up to its next unsound record."""
        self._cards = state.cards
        self._counts = state.refusals
        self._governance = state.governance
        self._has_floor = state.floor > 0
        self._sure_from = state.sure_from
        self._witnesses = state.witnesses
        self._decisions: dict[tuple[int, bool, bytes], Decision | None] = {}
        self._refusals: dict[tuple[int, bytes, bytes | None], tuple[str, int, bytes]] = {}

    def issued(self, card: bytes, seq: int, body: Issued) -> bool:
        """Accept the first card of a step."""
        task, not_after, grant_ttl, _ = body
        if self._cards.step(task) is not None:
            return False
        self._cards.issue(card, seq, task, not_after, grant_ttl)
        self._cards.flags[-1] |= JUDGED
        return True

    def event(self, kind: str, number: int, card: bytes, seq: int, now: int, body: bytes) -> bool:
        """Accept a decision, dispatch or outcome in its time and order."""
        cards = self._cards
        found = cards.flags[number]
        if number < self._sure_from or not found & JUDGED:
            return False
        flags = found & ~(JUDGED | GOVERNED)
        of = _OF + cbor.uint(cards.last[number])
        if kind == "settled":
            outcome = _OUTCOMES.get(body[1 + len(of) :])
            if outcome is None or body[: 1 + len(of)] != b"\xa2" + of or flags != _DISPATCHED:
                return False
            cards.settle(number, seq, outcome)
            return True
        if cards.over(number, now):
            return False
        if kind == "resolved":
            known = None if flags else self._decision(body, of + _ECHO + card, card)
            if known is None or (found & GOVERNED and not self._may_decide(number, known)):
                return False
            cards.resolve(number, seq, now, known.decision)
            return True
        if kind == "dispatched" and flags == APPROVED and body == b"\xa2" + of + _REBUILT + card:
            cards.dispatch(number, seq)
            return True
        return False

    def _may_decide(self, number: int, known: Decision) -> bool:
        """Say whether the profiles of a card surely let somebody decide (spec §8.5)."""
        shown = self._witnesses.get(number)
        if shown is None or not shown.has_envelope or self._has_floor:
            return False
        profile = self._governance.of_card(number).profile
        if ASSURANCES.index(known.assurance) < profile.assurance:
            return False
        return not profile.denies_self_approval or shown.subject != known.approver

    def refused(self, number: int, card: bytes, seq: int, now: int, body: bytes) -> bool:
        """Accept a refused decision on the card asked about, for one of the usual reasons.

        None of them has a reason of policy before it.
        """
        if number < self._sure_from or not self._cards.flags[number] & JUDGED:
            return False
        begin = _OF + cbor.uint(self._cards.last[number]) + _ECHO
        at_echo = 1 + len(begin)
        at_rest = at_echo + DIGEST_SIZE
        if not body.startswith(begin, 1):
            return False
        echo = body[at_echo:at_rest]
        before, target, after = body[at_rest:].partition(_TARGET + card)
        if not target and echo != card:
            return False
        key = body[0], before, after if target else None
        known = self._refusals.get(key)
        if known is None:
            known = _read_refusal(body, card)
            if len(self._refusals) >= _MAX_KNOWN:
                self._refusals.clear()
            self._refusals[key] = known
        reason, count, name = known
        if not self._refusal_holds(reason, number, now, echo, card):
            return False
        if count != next_count(self._counts.last(name + card) or 0):
            return False
        self._counts.note(name + card, count, seq)
        return True

    def _refusal_holds(self, reason: str, number: int, now: int, echo: bytes, card: bytes) -> bool:
        if reason == "hash_mismatch" or echo != card:
            return reason == "hash_mismatch" and echo != card
        decided = bool(self._cards.flags[number] & RESOLVED)
        if reason == "already_resolved" or decided:
            return reason == "already_resolved" and decided
        return reason == "expired" and self._cards.over(number, now)

    def _decision(self, body: bytes, begin: bytes, card: bytes) -> Decision | None:
        """Give the decision of a body that begins as it must, else None.

        What follows is the same for many cards, so it is read once.
        """
        if not body.startswith(begin, 1):
            return None
        targeted = body.startswith(_TARGET + card, 1 + len(begin))
        rest = body[1 + len(begin) + (len(_TARGET) + DIGEST_SIZE if targeted else 0) :]
        key = body[0], targeted, rest
        known = self._decisions.get(key)
        if known is None:
            known = _read_decision(body, card)
            if len(self._decisions) >= _MAX_KNOWN:
                self._decisions.clear()
            self._decisions[key] = known
        return known


def _read_decision(body: bytes, card: bytes) -> Decision | None:
    value = _decoded(body)
    if type(value) is not dict or body_problem("resolved", card, value):
        return None
    approver = value["approver"]
    if approver["assurance"] == "signed" or is_blank(approver["id"]):
        return None
    if value.get("target", card) != card or len(bindings("resolved", card, value)) > 1:
        return None
    return Decision(value["decision"], approver["id"], approver["assurance"])


def _read_refusal(body: bytes, card: bytes) -> tuple[str, int, bytes]:
    """Give reason, count and what refusals are counted by; no reason where it is not usual."""
    value = _decoded(body)
    if type(value) is not dict or body_problem("refused", card, value):
        return "", 0, b""
    if value["gate"] != "resolve":
        return "", 0, b""
    return value["reason"], value["count"], count_name("resolve", value["reason"])


def _decoded(body: bytes) -> Any:
    try:
        return cbor.decode(body)
    except cbor.NotDeterministic:
        return None
