"""Bodies and openings, kind by kind (spec §3.4, §3.5, §6.4)."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ledger.errors import Malformed
from ledger.kinds import KINDS, bound_openings, check_event

CARD = bytes(range(32))
H = bytes(32)
APPROVER = {"id": "user:approver-1", "assurance": "label"}
OPENING = {"digest": H, "media_type": "text/plain", "renderer": "r/1", "truncated": False}
RUNTIME = {"name": "n", "version": "1", "run": "r", "thread": "t", "call": "c", "trace": "x"}

# Per kind: whether the card is a hash, the required members, the other members.
BODIES: dict[str, tuple[bool, dict[str, Any], dict[str, Any]]] = {
    "opened": (False, {"name": "a", "software": "b"}, {"profile": H, "vkey": "v"}),
    "configured": (False, {"by": "b"}, {"profile": H, "vkey": "v"}),
    "issued": (
        True,
        {"task": H, "not_after": 2},
        {"grant_ttl": 1, "supersedes": H, "presented": OPENING, "runtime": RUNTIME},
    ),
    "resolved": (
        True,
        {"of": 0, "echo": CARD, "decision": "approve", "approver": APPROVER, "channel": "cli"},
        {"target": CARD, "note": OPENING, "presented": OPENING, "response": OPENING},
    ),
    "refused": (True, {"gate": "issue", "reason": "open_exists", "count": 1, "task": H}, {}),
    "withdrawn": (
        True,
        {"of": 1, "echo": CARD, "reason": "revoked", "by": "b"},
        {"note": OPENING},
    ),
    "dispatched": (
        True,
        {"of": 1, "rebuilt": CARD},
        {"policy_outcome": "p", "exceptions": ["e"], "approver_check": "a"},
    ),
    "settled": (
        True,
        {"of": 1, "outcome": "unknown"},
        {"by": "b", "receipt_digest": H},
    ),
    "rekeyed": (False, {"kid": bytes(8), "proof": H}, {}),
    "clock_reset": (False, {"was": 1, "by": "b", "reason": "restored"}, {}),
    "recovered": (False, {"after_seq": 1, "length": 3, "sha256": H}, {}),
    "redacted": (
        False,
        {"seq": 1, "target": H, "openings": ["note"], "by": "b", "reason": "secret"},
        {},
    ),
    "pruned": (False, {"before": 1, "digest": H, "by": "b"}, {}),
    "anchored": (False, {"size": 1, "root": H, "note": H}, {"token": H}),
}
CASES = [(kind, name) for kind in BODIES for name in BODIES[kind][1]]
OPTIONAL = [(kind, name) for kind in BODIES for name in BODIES[kind][2]]


def event(kind: str, *, full: bool = True) -> tuple[bytes | None, dict[str, Any]]:
    has_card, required, optional = BODIES[kind]
    return CARD if has_card else None, required | optional if full else dict(required)


def refuse(kind: str, card: bytes | None, body: Any, **openings: Any) -> Malformed:
    with pytest.raises(Malformed) as caught:
        check_event(kind, card, body, openings)
    return caught.value


def test_every_kind_of_the_spec_is_known() -> None:
    assert set(KINDS) == set(BODIES)


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("full", [True, False])
def test_body_of_its_kind_is_accepted(kind: str, full: bool) -> None:
    card, body = event(kind, full=full or kind == "configured")
    check_event(kind, card, body, {})


def test_unknown_kind_is_malformed() -> None:
    assert refuse("approved", None, {}).reason == "unknown kind"


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_missing_member_is_malformed(kind: str, name: str) -> None:
    card, body = event(kind)
    del body[name]
    assert refuse(kind, card, body).pointer == f"/{name}"


@pytest.mark.parametrize("kind", BODIES)
def test_unknown_member_is_malformed(kind: str) -> None:
    card, body = event(kind)
    assert refuse(kind, card, body | {"other": 1}).pointer == "/other"


@pytest.mark.parametrize(("kind", "name"), CASES + OPTIONAL)
@pytest.mark.parametrize("value", [None, -1, 2**53, 1.5, True, "", "a" * 257, bytes(31), [], {}])
def test_member_of_another_type_is_malformed(kind: str, name: str, value: Any) -> None:
    card, body = event(kind)
    error = refuse(kind, card, body | {name: value})
    assert error.pointer.startswith(f"/{name}")


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("body", [None, [], b"", 1])
def test_body_that_is_not_a_map_is_malformed(kind: str, body: Any) -> None:
    refuse(kind, event(kind)[0], body)


@pytest.mark.parametrize("kind", BODIES)
def test_card_is_null_exactly_where_the_kind_has_none(kind: str) -> None:
    card, body = event(kind)
    refuse(kind, None if card else CARD, body)


INSIDE = [
    ("issued", "presented", {"digest": H, "other": 1}, "/presented/other"),
    ("issued", "presented", {"media_type": "a"}, "/presented/digest"),
    ("issued", "presented", OPENING | {"truncated": 0}, "/presented/truncated"),
    ("issued", "runtime", {}, "/runtime/name"),
    ("issued", "runtime", {"name": "n", "id": "1"}, "/runtime/id"),
    ("resolved", "decision", "maybe", "/decision"),
    ("resolved", "approver", {"id": "a"}, "/approver/assurance"),
    ("resolved", "approver", {"id": "a", "assurance": "trusted"}, "/approver/assurance"),
    ("resolved", "approver", APPROVER | {"evidence": {"type": "t"}}, "/approver/evidence/digest"),
    ("withdrawn", "reason", "expired", "/reason"),
    ("settled", "outcome", "done", "/outcome"),
    ("clock_reset", "reason", "secret", "/reason"),
    ("redacted", "reason", "restored", "/reason"),
    ("refused", "gate", "approve", "/gate"),
    ("rekeyed", "kid", bytes(9), "/kid"),
    ("dispatched", "exceptions", ["e"] * 17, "/exceptions"),
    ("dispatched", "exceptions", ["e", 1], "/exceptions/1"),
    ("opened", "name", "é" * 129, "/name"),
]


@pytest.mark.parametrize(("kind", "name", "value", "pointer"), INSIDE)
def test_rule_inside_a_member_names_its_place(
    kind: str, name: str, value: Any, pointer: str
) -> None:
    card, body = event(kind)
    assert refuse(kind, card, body | {name: value}).pointer == pointer


def test_line_of_256_bytes_is_accepted() -> None:
    check_event("opened", None, {"name": "é" * 128, "software": "s"}, {})


def refusal(gate: str, reason: str, **members: Any) -> dict[str, Any]:
    return {"gate": gate, "reason": reason, "count": 1, **members}


ASKED = {"echo": H, "decision": "approve", "channel": "cli"}
GOOD_REFUSALS = [
    (CARD, refusal("issue", "open_exists", task=H)),
    (None, refusal("resolve", "hash_mismatch", **ASKED)),
    (None, refusal("resolve", "hash_mismatch", **ASKED, target=H, approver=APPROVER)),
    (CARD, refusal("resolve", "hash_mismatch", **ASKED, of=0, target=CARD)),
    (CARD, refusal("resolve", "missing_approver", **ASKED, of=0)),
    (CARD, refusal("resolve", "expired", **ASKED, of=0, approver=APPROVER)),
    (None, refusal("withdraw", "hash_mismatch", echo=H)),
    (CARD, refusal("withdraw", "missing_approver", echo=H, of=0)),
    (CARD, refusal("withdraw", "expired", echo=H, of=0, approver=APPROVER, channel="c")),
    (None, refusal("dispatch", "unknown_card", target=H)),
    (CARD, refusal("dispatch", "not_approved", of=0)),
    (CARD, refusal("dispatch", "mismatch", of=0, rebuilt=H, target=CARD)),
    (None, refusal("settle", "unknown_card", target=H)),
    (CARD, refusal("settle", "already_settled", of=0, target=CARD)),
]


@pytest.mark.parametrize(("card", "body"), GOOD_REFUSALS)
def test_refusal_with_the_members_of_its_gate_is_accepted(card: Any, body: Any) -> None:
    check_event("refused", card, body, {})


UNSEEN = {"id": " \u200b", "assurance": "label"}
BAD_REFUSALS = [
    (None, refusal("issue", "open_exists", task=H), ""),
    (CARD, refusal("issue", "open_exists"), "/task"),
    (CARD, refusal("issue", "open_exists", task=H, of=0), "/of"),
    (CARD, refusal("issue", "open_exists", task=H, approver=APPROVER), "/approver"),
    (None, refusal("resolve", "hash_mismatch", **ASKED, of=0), "/of"),
    (CARD, refusal("resolve", "hash_mismatch", **ASKED), "/of"),
    (None, refusal("resolve", "hash_mismatch", echo=H, decision="reject"), "/channel"),
    (None, refusal("resolve", "hash_mismatch", echo=H, channel="c"), "/decision"),
    (None, refusal("resolve", "hash_mismatch", decision="reject", channel="c"), "/echo"),
    (CARD, refusal("resolve", "hash_mismatch", **ASKED, of=0, task=H), "/task"),
    (CARD, refusal("resolve", "hash_mismatch", **ASKED, of=0, rebuilt=H), "/rebuilt"),
    (CARD, refusal("resolve", "missing_approver", **ASKED, of=0, approver=APPROVER), "/approver"),
    (CARD, refusal("resolve", "expired", **ASKED, of=0, approver=UNSEEN), "/approver/id"),
    (CARD, refusal("withdraw", "hash_mismatch", echo=H, of=0, decision="reject"), "/decision"),
    (CARD, refusal("withdraw", "missing_approver", echo=H, of=0, approver=APPROVER), "/approver"),
    (None, refusal("dispatch", "unknown_card"), "/target"),
    (CARD, refusal("dispatch", "not_approved"), "/of"),
    (CARD, refusal("dispatch", "not_approved", of=0, rebuilt=H), "/rebuilt"),
    (CARD, refusal("dispatch", "mismatch", of=0), "/rebuilt"),
    (CARD, refusal("dispatch", "not_approved", of=0, echo=H), "/echo"),
    (None, refusal("settle", "unknown_card"), "/target"),
    (CARD, refusal("settle", "not_dispatched", of=0, channel="c"), "/channel"),
    (CARD, refusal("settle", "not_dispatched", of=0, rebuilt=H), "/rebuilt"),
    (CARD, refusal("settle", "mismatch", of=0), "/reason"),
    (CARD, refusal("settle", "not_dispatched", of=0) | {"count": 0}, "/count"),
]


@pytest.mark.parametrize(("card", "body", "pointer"), BAD_REFUSALS)
def test_refusal_with_members_of_another_gate_is_malformed(
    card: Any, body: Any, pointer: str
) -> None:
    assert refuse("refused", card, body).pointer == pointer


NAMED = [
    ("resolve", "already_resolved"),
    ("resolve", "expired"),
    ("resolve", "withdrawn"),
    ("resolve", "not_latest"),
    ("resolve", "self_approval"),
    ("resolve", "approver_unverified"),
    ("withdraw", "already_dispatched"),
    ("withdraw", "already_resolved"),
    ("withdraw", "withdrawn"),
    ("withdraw", "not_latest"),
    ("withdraw", "expired"),
]


@pytest.mark.parametrize(("gate", "reason"), NAMED)
def test_refusal_that_came_after_the_approver_was_checked_names_one(gate: str, reason: str) -> None:
    asked = ASKED if gate == "resolve" else {"echo": H}
    body = refusal(gate, reason, of=0, **asked)
    assert refuse("refused", CARD, body).pointer == "/approver"
    check_event("refused", CARD, body | {"approver": APPROVER}, {})


TEXT = b"what was said"
DIGEST = hashlib.sha256(TEXT).digest()
SAID = {"digest": DIGEST}
SIGNED = {"id": "a", "assurance": "signed", "evidence": {"type": "ssh", "digest": DIGEST}}
BINDING: list[tuple[str, str, bytes | None, dict[str, Any]]] = [
    ("profile", "opened", None, {"profile": DIGEST}),
    ("profile", "configured", None, {"profile": DIGEST}),
    ("envelope", "issued", DIGEST, {}),
    ("presented", "issued", CARD, {"presented": SAID}),
    ("envelope", "resolved", DIGEST, {}),
    ("presented", "resolved", CARD, {"presented": SAID}),
    ("note", "resolved", CARD, {"note": SAID}),
    ("response", "resolved", CARD, {"response": SAID}),
    ("signature", "resolved", CARD, {"approver": SIGNED}),
    ("envelope", "refused", DIGEST, {}),
    ("rebuilt", "refused", CARD, refusal("dispatch", "mismatch", of=0, rebuilt=DIGEST)),
    ("envelope", "withdrawn", DIGEST, {}),
    ("note", "withdrawn", CARD, {"note": SAID}),
    ("envelope", "dispatched", DIGEST, {}),
    ("rebuilt", "dispatched", CARD, {"rebuilt": DIGEST}),
    ("envelope", "settled", DIGEST, {}),
]


def body_of(kind: str, changes: dict[str, Any]) -> dict[str, Any]:
    return changes if "gate" in changes else event(kind, full=False)[1] | changes


@pytest.mark.parametrize(("name", "kind", "card", "changes"), BINDING)
def test_opening_is_bound_by_its_digest(
    name: str, kind: str, card: bytes | None, changes: dict[str, Any]
) -> None:
    body = body_of(kind, changes)
    check_event(kind, card, body, {name: TEXT})
    assert bound_openings(kind, card, body)[name] == DIGEST
    assert "does not hash" in refuse(kind, card, body, **{name: TEXT + b"!"}).reason


def test_record_of_a_kind_without_openings_binds_none() -> None:
    assert bound_openings("opened", None, event("opened", full=False)[1]) == {}


NOT_BOUND: list[tuple[str, str, dict[str, Any]]] = [
    ("envelope", "opened", {}),
    ("profile", "opened", {}),
    ("presented", "issued", {}),
    ("note", "issued", {}),
    ("response", "withdrawn", {}),
    ("note", "settled", {}),
    ("note", "anchored", {"note": DIGEST}),
    ("rebuilt", "dispatched", {"rebuilt": CARD}),
    ("rebuilt", "refused", {}),
    ("signature", "resolved", {"approver": SIGNED | {"assurance": "label"}}),
    ("other", "issued", {}),
]


@pytest.mark.parametrize(("name", "kind", "changes"), NOT_BOUND)
def test_opening_that_is_not_bound_is_malformed(
    name: str, kind: str, changes: dict[str, Any]
) -> None:
    card, _ = event(kind)
    error = refuse(kind, card, body_of(kind, changes), **{name: TEXT})
    assert "not bound" in error.reason


@pytest.mark.parametrize("value", ["text", None, 1, bytes(1_048_577)])
def test_opening_that_is_not_bytes_within_the_limit_is_malformed(value: Any) -> None:
    assert "1048576" in refuse("issued", CARD, event("issued")[1], envelope=value).reason


def test_configured_sets_something() -> None:
    assert refuse("configured", None, {"by": "b"}).reason == (
        "expected at least one of profile and vkey"
    )


def test_signed_decision_names_its_evidence() -> None:
    body = body_of("resolved", {"approver": {"id": "a", "assurance": "signed"}})
    assert refuse("resolved", CARD, body).pointer == "/approver/evidence"


def test_refused_signed_decision_names_its_evidence_too() -> None:
    signed = {"approver": {"id": "a", "assurance": "signed"}}
    body = refusal("resolve", "expired", **ASKED, of=0) | signed
    assert refuse("refused", CARD, body).pointer == "/approver/evidence"
