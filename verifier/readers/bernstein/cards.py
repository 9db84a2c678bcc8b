"""The life of cards in a Bernstein log: what each event about a card must say, and may follow.

A card is open until it is resolved, refused as `expired`, or released; each of these ends it.
Expiry is judged twice: by the time that the decision states, and by the clock of the log.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from verifier.readers.bernstein.envelope import HEX64, envelope_problem, is_number
from verifier.readers.bernstein.findings import Problem
from verifier.readers.bernstein.register import EXPIRED, RELEASED, RESOLVED, Card, Register
from verifier.readers.bernstein.text import shown

PREFIX: Final = "chat.approval_card."
ACKNOWLEDGED: Final = "chain.tear_acknowledged"
# The gate reads its clock, waits for locks, reads the log, and only then is the record stamped.
WAIT: Final = 300.0
_WAIT_AT_EXPIRY: Final = 5.0
STEP_BACK: Final = 2.0
_HISTORY: Final = frozenset(
    {
        "bernstein.issued_once",
        "bernstein.not_issued",
        "bernstein.decided_once",
        "bernstein.refusal",
        "bernstein.released",
    }
)
_NOBODY: Final = frozenset({"operator", "unattributed"})
_ASSERTED: Final = frozenset({"invalid_decision", "before_issue"})
_OF_AN_OPEN_CARD: Final = frozenset(
    {"invalid_decision", "before_issue", "expired", "cross_worktree", "cross_conversation"}
)


@dataclass(frozen=True, slots=True)
class Event:
    """A sound record about a card: its number, scheme and time.

    `high` is the latest time of the records before it, `high_seq` the one that has it.
    """

    record: dict[str, Any]
    seq: int
    scheme: int
    at: float
    high: float
    high_seq: int

    @property
    def details(self) -> dict[str, Any]:
        """The details of the record."""
        details: dict[str, Any] = self.record["details"]
        return details


class Cards:
    """Folds events about cards; gives the first thing that is wrong with each."""

    def __init__(self) -> None:
        """Start without cards."""
        self.cards = Register()
        self.touched: set[str] = set()
        self.damage = -1
        self.notes: Counter[str] = Counter()
        self.envelopes_ok = self.envelopes_total = 0
        self.decisions_ok = self.decisions_total = 0
        self.contained = self.asserted = 0
        self._checks = {
            "issued": self._issued,
            "resolved": self._resolved,
            "refused": self._refused,
            "released": self._released,
        }

    def touch(self, record: dict[str, Any]) -> None:
        """Remember the cards that an unsound record names: nothing more is said about them."""
        details = record.get("details")
        names = [record.get("resource_id")]
        if isinstance(details, dict):
            names.append(details.get("card_hash"))
        self.touched.update(name for name in names if isinstance(name, str) and len(name) == 64)

    def fold(self, event: Event) -> Problem | None:
        """Check an event about a card and apply it; give what is to be reported."""
        kind = event.record["event_type"].removeprefix(PREFIX)
        check = self._checks.get(kind)
        if check is None:
            self.notes["events about cards of a kind that is not known here"] += 1
            return Problem("bernstein.version", "a known event about a card", shown(kind))
        problem = _names_one_card(event) or check(event)
        self._count(kind, problem)
        if problem is None:
            return None
        card_hash = event.details.get("card_hash")
        hidden = card_hash in self.touched if isinstance(card_hash, str) else False
        self.touch(event.record)
        if hidden or (problem.check in _HISTORY and self._explained(card_hash)):
            return None
        return problem

    def _explained(self, card_hash: object) -> bool:
        """Say whether a record that is missing or unsound may explain the history of a card."""
        card = self.cards.get(card_hash) if isinstance(card_hash, str) else None
        return self.damage >= 0 and (card is None or card.seq <= self.damage)

    def count_sound(self, issued: int, resolved: int) -> None:
        """Count envelopes and decisions in which all holds."""
        self.envelopes_total += issued
        self.envelopes_ok += issued
        self.decisions_total += resolved
        self.decisions_ok += resolved

    def _count(self, kind: str, problem: Problem | None) -> None:
        if kind == "issued":
            self.envelopes_total += 1
            self.envelopes_ok += problem is None or problem.check in {
                "bernstein.issued_once",
                "bernstein.envelope",
            }
        elif kind == "resolved":
            self.decisions_total += 1
            self.decisions_ok += problem is None
        elif kind == "refused" and problem is None:
            self.contained += 1

    def _issued(self, event: Event) -> Problem | None:
        details, card_hash = event.details, event.details["card_hash"]
        envelope = details.get("envelope")
        if not HEX64.fullmatch(card_hash) or not isinstance(envelope, dict):
            return _shape("a card_hash of 64 hex digits and an envelope", shown(card_hash))
        problem = _texts(details, "worktree_id", "thread_id")
        problem = problem or envelope_problem(envelope, card_hash, event.scheme)
        if problem:
            return problem
        first = self.cards.get(card_hash)
        if first is not None:
            return Problem(
                "bernstein.issued_once",
                f"one issued event for {card_hash}, as in record {first.seq}",
                "another one, for worktree "
                f"{shown(details['worktree_id'])} and conversation {shown(details['thread_id'])}",
            )
        if envelope["created_at"] > event.at + STEP_BACK:
            self.notes["cards created after the time at which they were issued"] += 1
        self.cards.issue(
            card_hash,
            event.seq,
            float(envelope["created_at"]),
            float(envelope["not_after"]),
            (details["worktree_id"], details["thread_id"]),
        )
        return None

    def _resolved(self, event: Event) -> Problem | None:
        details, card_hash = event.details, event.details["card_hash"]
        old = event.scheme == 1 and not {"issued_worktree_id", "issued_thread_id"} & set(details)
        names = ["decision", "approver", "worktree_id"]
        if not old:
            names += ("thread_id", "issued_worktree_id", "issued_thread_id")
        problem = _texts(details, *names)
        if problem:
            return problem
        card = self.cards.get(card_hash)
        if card is None:
            return _unknown(card_hash, "a decision about it")
        if card.state != "open":
            return Problem(
                "bernstein.decided_once", "a decision about an open card", f"it is {card.state}"
            )
        self.cards.end(card.number, RESOLVED)
        return (
            self._decision(details["decision"], old)
            or self._approver(event)
            or _window(event, card, details.get("resolved_at"))
            or _origin(details, card, old)
        )

    def _decision(self, decision: str, old: bool) -> Problem | None:
        if decision in ("approve", "reject"):
            return None
        if old:
            self.notes["decisions of a release before 3.8.0 that are not approve or reject"] += 1
            return None
        return Problem("bernstein.decision", "approve or reject", shown(decision))

    def _approver(self, event: Event) -> Problem | None:
        actor, approver = event.record["actor"], event.details["approver"]
        if not _blank(approver):
            return _same(actor, approver)
        if event.scheme == 1 and actor in (approver, "operator"):
            self.notes["decisions of an old release that name no approver"] += 1
            return None
        return Problem("bernstein.approver", "an approver", shown(approver))

    def _refused(self, event: Event) -> Problem | None:
        details = event.details
        problem = _texts(details, "reason", "approver")
        if problem:
            return problem
        actor, approver, reason = event.record["actor"], details["approver"], details["reason"]
        if not (_blank(approver) and actor in _NOBODY):
            problem = _same(actor, approver)
        problem = problem or self._reason(event, reason)
        if problem is None and reason in _ASSERTED:
            self.asserted += 1
        return problem

    def _reason(self, event: Event, reason: str) -> Problem | None:
        details = event.details
        card = self.cards.get(details["card_hash"])
        if reason == "missing_approver":
            return None if _blank(details["approver"]) else _untrue(reason, "an approver is named")
        if reason == "hash_mismatch":
            return _mismatch(event, card)
        if reason not in _OF_AN_OPEN_CARD and reason != "already_settled":
            self.asserted += 1
            self.notes["refusals for a reason that is not known here"] += 1
            return None
        if card is None:
            return _untrue(reason, "the card was not issued")
        if details.get("expected_card_hash", details["card_hash"]) != details["card_hash"]:
            return _untrue(reason, "expected_card_hash is another card")
        if reason == "already_settled":
            return _untrue(reason, "the card is open") if card.state == "open" else None
        if card.state != "open" and event.scheme != 1:
            return _untrue(reason, f"the card is {card.state} already")
        return self._of_open(event, card, reason)

    def _of_open(self, event: Event, card: Card, reason: str) -> Problem | None:
        details = event.details
        if reason == "expired":
            if event.at < card.not_after - STEP_BACK:
                return _untrue(reason, f"not_after is {card.not_after!r}, the time {event.at!r}")
            if card.state == "open":
                self.cards.end(card.number, EXPIRED)
        if reason == "cross_worktree":
            return _other_origin(reason, details, "worktree_id", card.worktree)
        if reason == "cross_conversation":
            return _other_origin(reason, details, "thread_id", card.thread)
        return None

    def _released(self, event: Event) -> Problem | None:
        details = event.details
        problem = _texts(details, "released_by", "reason")
        if problem:
            return problem
        card = self.cards.get(details["card_hash"])
        if card is None or card.state != "expired":
            return Problem(
                "bernstein.released",
                "the release of a card that was refused as expired",
                f"it is {card.state}" if card else "it was not issued",
            )
        self.cards.end(card.number, RELEASED)
        actor, by = event.record["actor"], details["released_by"]
        if not (_blank(by) and actor in _NOBODY):
            problem = _same(actor, by)
        return problem or _stated_time(event, "released_at", details.get("released_at"))


def _names_one_card(event: Event) -> Problem | None:
    record, details = event.record, event.details
    problem = _texts(details, "card_hash")
    if problem:
        return problem
    if record["resource_type"] != "approval_card":
        return _shape('resource_type "approval_card"', shown(record["resource_type"]))
    if record["resource_id"] != details["card_hash"]:
        return _shape(
            f"resource_id {shown(details['card_hash'])}, as details.card_hash",
            shown(record["resource_id"]),
        )
    if details.get("prev_chain_digest") != record["prev_hmac"]:
        return _shape(
            "details.prev_chain_digest as prev_hmac", shown(details.get("prev_chain_digest"))
        )
    return None


def _texts(details: dict[str, Any], *names: str) -> Problem | None:
    for name in names:
        if name not in details:
            return _shape(f"details.{name}", "no such member")
        if not isinstance(details[name], str):
            return _shape(f"text as details.{name}", shown(details[name]))
    return None


def _window(event: Event, card: Card, resolved_at: Any) -> Problem | None:
    """A decision is in time by the time it states and by the clock of the log."""
    if not is_number(resolved_at) or resolved_at <= 0:
        return Problem("bernstein.in_time", "a finite resolved_at after 0", shown(resolved_at))
    window = f"resolved_at from {card.created_at!r} on and before {card.not_after!r}"
    if not card.created_at <= resolved_at < card.not_after:
        return Problem("bernstein.in_time", window, repr(resolved_at))
    if event.at >= card.not_after and event.at - resolved_at > _WAIT_AT_EXPIRY:
        return Problem(
            "bernstein.in_time",
            f"a record written before {card.not_after!r}",
            f"one written at {event.at!r}, with resolved_at {resolved_at!r}",
        )
    if event.high_seq > card.seq and event.high - _WAIT_AT_EXPIRY > card.not_after:
        return Problem(
            "bernstein.in_time",
            f"a record written before {card.not_after!r}",
            f"record {event.high_seq} before it was written at {event.high!r}",
        )
    return _stated_time(event, "resolved_at", resolved_at)


def _stated_time(event: Event, name: str, value: Any) -> Problem | None:
    if not is_number(value) or value <= 0:
        return Problem("bernstein.clock", f"a finite {name} after 0", shown(value))
    if not -STEP_BACK <= event.at - value <= WAIT:
        return Problem(
            "bernstein.clock",
            f"{name} close to {event.at!r}, when it was written",
            repr(value),
        )
    return None


def _origin(details: dict[str, Any], card: Card, old: bool) -> Problem | None:
    """A pinned card is decided from where it was issued into; old records repeat the worktree."""
    if old:
        if details["worktree_id"] != card.worktree:
            return _elsewhere("worktree_id", card.worktree, details["worktree_id"])
        return None
    for name, pin in (("worktree_id", card.worktree), ("thread_id", card.thread)):
        if details[f"issued_{name}"] != pin:
            return _elsewhere(f"issued_{name}", pin, details[f"issued_{name}"])
        if pin and details[name] != pin:
            return _elsewhere(name, pin, details[name])
    return None


def _elsewhere(name: str, pin: str, found: str) -> Problem:
    return Problem("bernstein.pin", f"{name} {shown(pin)}, as in the issued event", shown(found))


def _other_origin(reason: str, details: dict[str, Any], name: str, pin: str) -> Problem | None:
    if not pin:
        return _untrue(reason, "the card is bound to none")
    if details.get(f"expected_{name}", pin) != pin:
        return _untrue(reason, f"expected_{name} is not that of the issued event")
    if details.get(name) == pin:
        return _untrue(reason, f"{name} is that of the card")
    return None


def _mismatch(event: Event, card: Card | None) -> Problem | None:
    """A live card is not unknown; a past one may be, where old days were archived.

    Old releases knew only the cards of their own process.
    """
    details = event.details
    asked = details.get("expected_card_hash", "")
    if card is None or event.scheme == 1 or asked not in ("", details["card_hash"]):
        return None
    if asked or (card.state == "open" and event.at < card.not_after):
        return _untrue("hash_mismatch", "the echo is that of an open card")
    return None


def _untrue(reason: str, found: str) -> Problem:
    return Problem("bernstein.refusal", f"a card for which {reason} holds", found)


def _unknown(card_hash: str, what: str) -> Problem:
    return Problem(
        "bernstein.not_issued", f"an issued event for {shown(card_hash)} before it", what
    )


def _same(actor: str, name: str) -> Problem | None:
    if actor == name:
        return None
    return Problem("bernstein.approver", f"the actor {shown(name)}, as in details", shown(actor))


def _shape(expected: str, found: str) -> Problem:
    return Problem("bernstein.card_event", expected, found)


def _blank(name: str) -> bool:
    """A name is blank if nothing of it can be seen."""
    return not any(char.isprintable() and not char.isspace() for char in name)
