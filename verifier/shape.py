"""The members of a payload, a body and the openings of each kind (spec §3.2 to §3.5, §6.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from verifier.escape import is_blank
from verifier.spec import (
    CHAIN_SIZE,
    DIGEST_SIZE,
    GATES,
    KID_SIZE,
    MAX_INTEGER,
    REASONS,
)

Problem = tuple[str, str]
"""What the spec asks for, and what is there."""

Type = Callable[[Any], bool]
Members = Mapping[str, tuple[Type, bool]]
"""Each allowed member, with its type and whether it is required."""


def _is_uint(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INTEGER


def _is_h32(value: Any) -> bool:
    return type(value) is bytes and len(value) == DIGEST_SIZE


def _is_kid(value: Any) -> bool:
    return type(value) is bytes and len(value) == KID_SIZE


def _is_line(value: Any) -> bool:
    return type(value) is str and 1 <= len(value) <= 256 and len(value.encode()) <= 256


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _one_of(*words: str) -> Type:
    return lambda value: type(value) is str and value in words


def _list_of_lines(most: int) -> Type:
    return lambda value: (
        type(value) is list and 1 <= len(value) <= most and all(map(_is_line, value))
    )


def _map_of(members: Members) -> Type:
    return lambda value: type(value) is dict and not _members_problem(value, members)


_OPENING = _map_of(
    {
        "digest": (_is_h32, True),
        "media_type": (_is_line, False),
        "renderer": (_is_line, False),
        "truncated": (_is_bool, False),
    }
)
is_runtime = _map_of(
    {
        "name": (_is_line, True),
        "version": (_is_line, False),
        "run": (_is_line, False),
        "thread": (_is_line, False),
        "call": (_is_line, False),
        "trace": (_is_line, False),
    }
)
_EVIDENCE = _map_of({"type": (_is_line, True), "digest": (_is_h32, True)})
_APPROVER_MEMBERS = {
    "id": (_is_line, True),
    "assurance": (_one_of("label", "authenticated", "signed"), True),
    "evidence": (_EVIDENCE, False),
}


def _is_approver(value: Any) -> bool:
    """Check an approver; assurance `signed` requires evidence (spec §8.3)."""
    if type(value) is not dict or _members_problem(value, _APPROVER_MEMBERS):
        return False
    return value["assurance"] != "signed" or "evidence" in value


_DECISION = _one_of("approve", "reject")

BODIES: Mapping[str, Members] = {
    "opened": {
        "name": (_is_line, True),
        "software": (_is_line, True),
        "profile": (_is_h32, False),
        "vkey": (_is_line, False),
    },
    "configured": {
        "profile": (_is_h32, False),
        "vkey": (_is_line, False),
        "by": (_is_line, True),
    },
    "issued": {
        "task": (_is_h32, True),
        "not_after": (_is_uint, True),
        "grant_ttl": (_is_uint, False),
        "supersedes": (_is_h32, False),
        "presented": (_OPENING, False),
        "runtime": (is_runtime, False),
    },
    "resolved": {
        "of": (_is_uint, True),
        "echo": (_is_h32, True),
        "target": (_is_h32, False),
        "decision": (_DECISION, True),
        "approver": (_is_approver, True),
        "channel": (_is_line, True),
        "note": (_OPENING, False),
        "presented": (_OPENING, False),
        "response": (_OPENING, False),
    },
    "refused": {
        "of": (_is_uint, False),
        "task": (_is_h32, False),
        "gate": (_one_of(*GATES), True),
        "reason": (_is_line, True),
        "count": (_is_uint, True),
        "echo": (_is_h32, False),
        "target": (_is_h32, False),
        "decision": (_DECISION, False),
        "approver": (_is_approver, False),
        "channel": (_is_line, False),
        "rebuilt": (_is_h32, False),
    },
    "withdrawn": {
        "of": (_is_uint, True),
        "echo": (_is_h32, True),
        "reason": (_one_of("revoked", "cancelled"), True),
        "by": (_is_line, True),
        "note": (_OPENING, False),
    },
    "dispatched": {
        "of": (_is_uint, True),
        "rebuilt": (_is_h32, True),
        "policy_outcome": (_is_line, False),
        "exceptions": (_list_of_lines(16), False),
        "approver_check": (_is_line, False),
    },
    "settled": {
        "of": (_is_uint, True),
        "outcome": (_one_of("succeeded", "failed", "unknown"), True),
        "by": (_is_line, False),
        "receipt_digest": (_is_h32, False),
    },
    "rekeyed": {"kid": (_is_kid, True), "proof": (_is_h32, True)},
    "clock_reset": {
        "was": (_is_uint, True),
        "by": (_is_line, True),
        "reason": (_one_of("clock_fixed", "restored", "other"), True),
    },
    "recovered": {
        "after_seq": (_is_uint, True),
        "length": (_is_uint, True),
        "sha256": (_is_h32, True),
    },
    "redacted": {
        "seq": (_is_uint, True),
        "target": (_is_h32, True),
        "openings": (_list_of_lines(MAX_INTEGER), True),
        "by": (_is_line, True),
        "reason": (_one_of("erasure_request", "retention", "secret", "other"), True),
    },
    "pruned": {"before": (_is_uint, True), "digest": (_is_h32, True), "by": (_is_line, True)},
    "anchored": {
        "size": (_is_uint, True),
        "root": (_is_h32, True),
        "note": (_is_h32, True),
        "token": (_is_h32, False),
    },
}

CARD_KINDS = frozenset({"issued", "resolved", "withdrawn", "dispatched", "settled"})

# spec §6.4: besides gate, reason and count; `of` and `target` follow from the card
_REFUSAL_REQUIRED = {
    "issue": ("task",),
    "resolve": ("echo", "decision", "channel"),
    "withdraw": ("echo",),
    "dispatch": (),
    "settle": (),
}
_REFUSAL_ALLOWED = {
    "issue": frozenset({"task"}),
    "resolve": frozenset({"of", "echo", "decision", "channel", "target", "approver"}),
    "withdraw": frozenset({"of", "echo", "target", "approver", "channel"}),
    "dispatch": frozenset({"of", "target", "rebuilt"}),
    "settle": frozenset({"of", "target"}),
}
_REFUSAL_OWN = frozenset({"gate", "reason", "count"})


def payload_problem(fields: list[Any]) -> Problem | None:
    """Say what keeps the items of a payload of this version from being its eight members."""
    if len(fields) != 8:
        return "an array of 8", f"an array of {len(fields)}"
    _, chain, seq, prev, at, kind, card, body = fields
    if type(chain) is not bytes or len(chain) != CHAIN_SIZE:
        return "chain: 16 bytes", _describe(chain)
    if not _is_uint(seq):
        return "seq: an integer up to 2^53 - 1", _describe(seq)
    if not _is_h32(prev):
        return "prev: 32 bytes", _describe(prev)
    if not _is_uint(at):
        return "at: an integer up to 2^53 - 1", _describe(at)
    if type(kind) is not str or kind not in BODIES:
        return "a kind of event", _describe(kind)
    if type(body) is not dict:
        return "body: a map", _describe(body)
    return body_problem(kind, card, body)


def body_problem(kind: str, card: Any, body: dict[Any, Any]) -> Problem | None:
    """Say what keeps card and body from being those of their kind (spec §3.5, §6.4)."""
    problem = _members_problem(body, BODIES[kind]) or _card_problem(kind, card, body)
    if problem is not None:
        return problem
    if kind == "refused":
        return _refusal_problem(card, body)
    if kind == "configured" and "profile" not in body and "vkey" not in body:
        return "profile or vkey", "neither"
    return None


def _members_problem(value: dict[Any, Any], members: Members) -> Problem | None:
    for name in value:
        if type(name) is not str:
            return "text keys only", _describe(name)
        if name not in members:
            return "no other member", name
    for name, (is_type, required) in members.items():
        if name not in value:
            if required:
                return f"a member {name}", "none"
        elif not is_type(value[name]):
            return f"{name} of its type", _describe(value[name])
    return None


def _card_problem(kind: str, card: Any, body: dict[str, Any]) -> Problem | None:
    if kind in CARD_KINDS or (kind == "refused" and body["gate"] == "issue"):
        return None if _is_h32(card) else ("card: 32 bytes", _describe(card))
    if kind == "refused":
        return (
            None if card is None or _is_h32(card) else ("card: 32 bytes or null", _describe(card))
        )
    return None if card is None else ("card: null", _describe(card))


def _refusal_problem(card: bytes | None, body: dict[str, Any]) -> Problem | None:
    """Hold the members of a refusal against the table of spec §6.4."""
    gate, reason = body["gate"], body["reason"]
    if reason not in REASONS[gate]:
        return f"a reason of the gate {gate}", reason
    if body["count"] == 0:
        return "count: at least 1", "0"
    for name in _REFUSAL_REQUIRED[gate]:
        if name not in body:
            return f"a member {name} at the gate {gate}", "none"
    for name in body:
        if name not in _REFUSAL_ALLOWED[gate] and name not in _REFUSAL_OWN:
            return f"no member {name} at the gate {gate}", name
    if gate != "issue" and ("of" in body) != (card is not None):
        return "of where the card is known, and only there", "of" if "of" in body else "none"
    if gate in ("dispatch", "settle") and card is None and "target" not in body:
        return "target where the card is null", "none"
    if ("rebuilt" in body) != (reason == "mismatch") and gate == "dispatch":
        return "rebuilt with the reason mismatch, and only there", _describe(body.get("rebuilt"))
    if gate in ("resolve", "withdraw"):
        return _refused_approver_problem(body)
    return None


def _refused_approver_problem(body: dict[str, Any]) -> Problem | None:
    reasons = REASONS[body["gate"]]
    reason = body["reason"]
    approver = body.get("approver")
    if approver is None:
        if reason in reasons[2:]:
            return f"an approver with the reason {reason}", "none"
    elif reason == "missing_approver":
        return "no approver with the reason missing_approver", "one"
    elif is_blank(approver["id"]):
        return "no approver where a blank one was given", "one"
    return None


OPENINGS = ("envelope", "presented", "note", "response", "rebuilt", "profile", "signature")
_DESCRIBED = {
    "issued": ("presented",),
    "resolved": ("note", "presented", "response"),
    "withdrawn": ("note",),
}


def bindings(kind: str, card: bytes | None, body: dict[str, Any]) -> dict[str, bytes]:
    """Give the openings that a record binds, each with its digest (spec §3.4)."""
    bound: dict[str, bytes] = {}
    if card is not None:
        bound["envelope"] = card
    for name in _DESCRIBED.get(kind, ()):
        if name in body:
            bound[name] = body[name]["digest"]
    if (kind == "refused" and "rebuilt" in body) or (
        kind == "dispatched" and body["rebuilt"] != card
    ):
        bound["rebuilt"] = body["rebuilt"]
    if kind in ("opened", "configured") and "profile" in body:
        bound["profile"] = body["profile"]
    if kind == "resolved" and body["approver"]["assurance"] == "signed":
        bound["signature"] = body["approver"]["evidence"]["digest"]
    return bound


def openings_problem(openings: Any, bound: Mapping[str, bytes]) -> Problem | None:
    """Say which opening is no byte string, or is not bound by the record (spec §3.4)."""
    if type(openings) is not dict:
        return "a map of openings", _describe(openings)
    for name, value in openings.items():
        if type(name) is not str or name not in bound:
            return "only openings that the record binds", _describe(name)
        if type(value) is not bytes:
            return f"opening {name}: a byte string", _describe(value)
    return None


def _describe(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, (list, dict)):
        return f"{'an array' if isinstance(value, list) else 'a map'} of {len(value)}"
    if value is None:
        return "null"
    if isinstance(value, str) and len(value) > 64:
        return f"{value[:64]}…"
    return str(value)
