"""The kinds of events: their closed bodies and the openings these bind (spec §3.4, §3.5, §6.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ledger.errors import Malformed
from ledger.hidden import blank

MAX_INTEGER: Final = 2**53 - 1
MAX_OPENING: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class _Scalar:
    says: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class _Lines:
    most: int | None = None


@dataclass(frozen=True, slots=True)
class _Map:
    required: Mapping[str, _Type]
    optional: Mapping[str, _Type] = field(default_factory=dict)


_Type: TypeAlias = _Scalar | _Lines | _Map


def _is_line(value: Any) -> bool:
    if type(value) is not str or not 0 < len(value) <= 256:
        return False
    try:
        return value.isascii() or len(value.encode()) <= 256
    except UnicodeEncodeError:
        return False


def _is_uint(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INTEGER


def _one_of(*words: str) -> _Scalar:
    return _Scalar(
        f"one of {', '.join(words)}", lambda value: type(value) is str and value in words
    )


_H32: Final = _Scalar("32 bytes", lambda value: type(value) is bytes and len(value) == 32)
_KID: Final = _Scalar("8 bytes", lambda value: type(value) is bytes and len(value) == 8)
_UINT: Final = _Scalar("an integer from 0 to 2^53 - 1", _is_uint)
_LINE: Final = _Scalar("a text of 1 to 256 bytes of UTF-8", _is_line)
_BOOL: Final = _Scalar("true or false", lambda value: type(value) is bool)
_DECISION: Final = _one_of("approve", "reject")
_OPENING: Final = _Map(
    {"digest": _H32}, {"media_type": _LINE, "renderer": _LINE, "truncated": _BOOL}
)
_RUNTIME: Final = _Map(
    {"name": _LINE},
    {"version": _LINE, "run": _LINE, "thread": _LINE, "call": _LINE, "trace": _LINE},
)
_APPROVER: Final = _Map(
    {"id": _LINE, "assurance": _one_of("label", "authenticated", "signed")},
    {"evidence": _Map({"type": _LINE, "digest": _H32})},
)

OPENINGS: Final = (
    "envelope",
    "presented",
    "note",
    "response",
    "rebuilt",
    "profile",
    "signature",
)

_SIGNED: Final = _Map({**_APPROVER.required, **_APPROVER.optional})

GATES: Final = ("issue", "resolve", "withdraw", "dispatch", "settle")

_BODIES: Final[Mapping[str, _Map]] = {
    "opened": _Map({"name": _LINE, "software": _LINE}, {"profile": _H32, "vkey": _LINE}),
    "configured": _Map({"by": _LINE}, {"profile": _H32, "vkey": _LINE}),
    "issued": _Map(
        {"task": _H32, "not_after": _UINT},
        {"grant_ttl": _UINT, "supersedes": _H32, "presented": _OPENING, "runtime": _RUNTIME},
    ),
    "resolved": _Map(
        {"of": _UINT, "echo": _H32, "decision": _DECISION, "approver": _APPROVER, "channel": _LINE},
        {"target": _H32, "note": _OPENING, "presented": _OPENING, "response": _OPENING},
    ),
    "refused": _Map(
        {"gate": _one_of(*GATES), "reason": _LINE, "count": _UINT},
        {
            "of": _UINT,
            "task": _H32,
            "echo": _H32,
            "target": _H32,
            "decision": _DECISION,
            "approver": _APPROVER,
            "channel": _LINE,
            "rebuilt": _H32,
        },
    ),
    "withdrawn": _Map(
        {"of": _UINT, "echo": _H32, "reason": _one_of("revoked", "cancelled"), "by": _LINE},
        {"note": _OPENING},
    ),
    "dispatched": _Map(
        {"of": _UINT, "rebuilt": _H32},
        {"policy_outcome": _LINE, "exceptions": _Lines(16), "approver_check": _LINE},
    ),
    "settled": _Map(
        {"of": _UINT, "outcome": _one_of("succeeded", "failed", "unknown")},
        {"by": _LINE, "receipt_digest": _H32},
    ),
    "rekeyed": _Map({"kid": _KID, "proof": _H32}),
    "clock_reset": _Map(
        {"was": _UINT, "by": _LINE, "reason": _one_of("clock_fixed", "restored", "other")}
    ),
    "recovered": _Map({"after_seq": _UINT, "length": _UINT, "sha256": _H32}),
    "redacted": _Map(
        {
            "seq": _UINT,
            "target": _H32,
            "openings": _Lines(),
            "by": _LINE,
            "reason": _one_of("erasure_request", "retention", "secret", "other"),
        }
    ),
    "pruned": _Map({"before": _UINT, "digest": _H32, "by": _LINE}),
    "anchored": _Map({"size": _UINT, "root": _H32, "note": _H32}, {"token": _H32}),
}
KINDS: Final = tuple(_BODIES)
_OF_CARDS: Final = frozenset({"issued", "resolved", "withdrawn", "dispatched", "settled"})

# Members of a refused body besides gate, reason and count: required, also allowed (spec §6.4).
_REFUSALS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "issue": (frozenset({"task"}), frozenset()),
    "resolve": (frozenset({"echo", "decision", "channel"}), frozenset({"target", "approver"})),
    "withdraw": (frozenset({"echo"}), frozenset({"target", "approver", "channel"})),
    "dispatch": (frozenset(), frozenset({"target"})),
    "settle": (frozenset(), frozenset({"target"})),
}
# The reasons of each gate, in order (spec §6.4).
REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "issue": (
        "profile_unknown",
        "claimed_above_derived",
        "evidence_below_floor",
        "manifest_mismatch",
        "fixed_parameter_supplied",
        "open_exists",
        "supersedes_wrong",
        "attempt_unnamed",
    ),
    "resolve": (
        "hash_mismatch",
        "missing_approver",
        "already_resolved",
        "expired",
        "withdrawn",
        "not_latest",
        "self_approval",
        "approver_unverified",
    ),
    "withdraw": (
        "hash_mismatch",
        "missing_approver",
        "already_dispatched",
        "already_resolved",
        "withdrawn",
        "not_latest",
        "expired",
    ),
    "dispatch": (
        "unknown_card",
        "not_approved",
        "already_dispatched",
        "withdrawn",
        "not_latest",
        "grant_expired",
        "mismatch",
        "policy_denied",
        "approver_not_authorised",
        "evidence_below_floor",
    ),
    "settle": ("unknown_card", "not_dispatched", "already_settled"),
}
_BEFORE_A_NAME: Final = ("hash_mismatch", "missing_approver")


def check_event(kind: str, card: bytes | None, body: Any, openings: Mapping[str, bytes]) -> None:
    """Refuse an event whose card, body or openings break the rules of its kind.

    Raises `Malformed`, with the place in the body as its pointer (spec §3.4, §3.5, §6.4).
    """
    schema = _BODIES.get(kind)
    if schema is None:
        raise Malformed("unknown kind")
    _check(body, schema, "")
    if kind == "configured" and len(body) == 1:
        raise Malformed("expected at least one of profile and vkey")
    if "approver" in body and body["approver"]["assurance"] == "signed":
        _check_map(body["approver"], _SIGNED, "/approver")
    if kind == "refused":
        _check_refusal(card, body)
    elif (card is not None) != (kind in _OF_CARDS):
        expected = "null" if card else "a card hash"
        raise Malformed(f"card of kind {kind}: expected {expected}")
    _check_openings(openings, bound_openings(kind, card, body))


def bound_openings(kind: str, card: bytes | None, body: Mapping[str, Any]) -> dict[str, bytes]:
    """Give the openings that the record of a well-formed event binds, with the digest of each.

    One that is bound and absent must be accounted for by a `redacted` event (spec §3.4).
    """
    bound: dict[str, bytes] = {}
    if card is not None:
        bound["envelope"] = card
    for name in ("presented", "note", "response"):
        if name in body and type(body[name]) is dict:
            bound[name] = body[name]["digest"]
    if "rebuilt" in body and (kind == "refused" or body["rebuilt"] != card):
        bound["rebuilt"] = body["rebuilt"]
    if "profile" in body:
        bound["profile"] = body["profile"]
    if kind == "resolved" and body["approver"]["assurance"] == "signed":
        bound["signature"] = body["approver"]["evidence"]["digest"]
    return bound


def _check(value: Any, schema: _Type, place: str) -> None:
    if type(schema) is _Scalar:
        if not schema.holds(value):
            raise Malformed(f"expected {schema.says}", pointer=place)
    elif type(schema) is _Map:
        _check_map(value, schema, place)
    elif type(schema) is _Lines:
        _check_lines(value, schema, place)


def _check_map(value: Any, schema: _Map, place: str) -> None:
    if type(value) is not dict:
        raise Malformed("expected a map", pointer=place)
    required, optional = schema.required, schema.optional
    missing = len(required)
    for name, member in value.items():
        if name in required:
            missing -= 1
            _check(member, required[name], f"{place}/{name}")
        elif name in optional:
            _check(member, optional[name], f"{place}/{name}")
        else:
            raise Malformed("unknown member", pointer=f"{place}/{name}")
    if missing:
        name = next(name for name in required if name not in value)
        raise Malformed("missing member", pointer=f"{place}/{name}")


def _check_lines(value: Any, schema: _Lines, place: str) -> None:
    if type(value) is not list or not value:
        raise Malformed("expected an array of at least 1", pointer=place)
    if schema.most is not None and len(value) > schema.most:
        raise Malformed(f"array of {len(value)}, expected at most {schema.most}", pointer=place)
    for index, line in enumerate(value):
        _check(line, _LINE, f"{place}/{index}")


def _check_refusal(card: bytes | None, body: Mapping[str, Any]) -> None:
    gate, reason = body["gate"], body["reason"]
    if reason not in REASONS[gate]:
        raise Malformed(f"not a reason of the gate {gate}", pointer="/reason")
    if body["count"] == 0:
        raise Malformed("expected a count of at least 1", pointer="/count")
    required, allowed = _REFUSALS[gate]
    if gate == "issue":
        if card is None:
            raise Malformed("card of a refusal of the gate issue: expected a card hash")
    elif card is not None:
        required |= {"of"}
    elif gate in ("dispatch", "settle"):
        required |= {"target"}
    if gate == "dispatch" and reason == "mismatch":
        required |= {"rebuilt"}
    if gate in ("resolve", "withdraw") and reason not in _BEFORE_A_NAME:
        required |= {"approver"}
    elif reason == "missing_approver":
        allowed -= {"approver"}
    members = body.keys() - {"gate", "reason", "count"}
    for name in sorted(required - members):
        raise Malformed(f"missing in this refusal of the gate {gate}", pointer=f"/{name}")
    for name in sorted(members - required - allowed):
        raise Malformed(f"not a member of this refusal of the gate {gate}", pointer=f"/{name}")
    if "approver" in body and blank(body["approver"]["id"]):
        raise Malformed("blank, expected no approver", pointer="/approver/id")


def _check_openings(openings: Mapping[str, bytes], bound: Mapping[str, bytes]) -> None:
    for name, value in openings.items():
        digest = bound.get(name)
        if digest is None:
            raise Malformed(f"opening {name!a} is not bound by the payload")
        if type(value) is not bytes or len(value) > MAX_OPENING:
            raise Malformed(f"opening {name}: expected at most {MAX_OPENING} bytes")
        if hashlib.sha256(value).digest() != digest:
            raise Malformed(f"opening {name} does not hash to the digest that binds it")
