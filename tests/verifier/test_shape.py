from __future__ import annotations

from typing import Any

import pytest

from verifier.shape import BODIES, bindings, body_problem, openings_problem, payload_problem

H32, OTHER = bytes(32), b"\x01" * 32
APPROVER = {"id": "user:approver-1", "assurance": "label"}
OPENING = {"digest": H32, "media_type": "text/plain", "truncated": False}
GOOD: dict[str, dict[str, Any]] = {
    "opened": {"name": "n", "software": "s", "profile": H32, "vkey": "v"},
    "configured": {"by": "b", "vkey": "v"},
    "issued": {"task": H32, "not_after": 1, "runtime": {"name": "r"}, "presented": OPENING},
    "resolved": {
        "of": 1,
        "echo": H32,
        "decision": "approve",
        "approver": {**APPROVER, "evidence": {"type": "t", "digest": H32}},
        "channel": "c",
        "note": OPENING,
    },
    "withdrawn": {"of": 1, "echo": H32, "reason": "revoked", "by": "b"},
    "dispatched": {"of": 1, "rebuilt": H32, "exceptions": ["e"] * 16},
    "settled": {"of": 1, "outcome": "unknown", "by": "b"},
    "rekeyed": {"kid": bytes(8), "proof": H32},
    "clock_reset": {"was": 1, "by": "b", "reason": "restored"},
    "recovered": {"after_seq": 1, "length": 1, "sha256": H32},
    "redacted": {"seq": 1, "target": H32, "openings": ["note"], "by": "b", "reason": "secret"},
    "pruned": {"before": 1, "digest": H32, "by": "b"},
    "anchored": {"size": 1, "root": H32, "note": H32},
    "refused": {
        "of": 1,
        "gate": "resolve",
        "reason": "expired",
        "count": 1,
        "echo": H32,
        "decision": "reject",
        "channel": "c",
        "approver": APPROVER,
    },
}
CARD = ("issued", "resolved", "withdrawn", "dispatched", "settled", "refused")


def card_of(kind: str) -> bytes | None:
    return H32 if kind in CARD else None


def test_every_kind_has_a_sample() -> None:
    assert sorted(GOOD) == sorted(BODIES)


@pytest.mark.parametrize("kind", GOOD)
def test_members_of_the_kind_are_accepted(kind: str) -> None:
    assert body_problem(kind, card_of(kind), GOOD[kind]) is None
    fields = ["cardchain/1", bytes(16), 1, H32, 1, kind, card_of(kind), GOOD[kind]]
    assert payload_problem(fields) is None


@pytest.mark.parametrize("kind", GOOD)
def test_one_member_more_is_refused(kind: str) -> None:
    assert body_problem(kind, card_of(kind), {**GOOD[kind], "more": 1})
    assert body_problem(kind, card_of(kind), {**GOOD[kind], 1: 1})


@pytest.mark.parametrize("kind", GOOD)
def test_each_member_has_its_type(kind: str) -> None:
    for name in GOOD[kind]:
        for wrong in (None, -1, 2**53, True, "", "x" * 257, b"", [], {}, [1], {"x": 1}):
            body = {**GOOD[kind], name: wrong}
            if body == GOOD[kind]:
                continue
            assert body_problem(kind, card_of(kind), body), (name, wrong)


@pytest.mark.parametrize("kind", GOOD)
def test_card_is_there_where_it_belongs_only(kind: str) -> None:
    wrong = None if kind in CARD else H32
    assert body_problem(kind, wrong, GOOD[kind])
    assert body_problem(kind, b"", GOOD[kind])


@pytest.mark.parametrize(
    "change",
    [
        {"gate": "issue"},
        {"gate": "dispatch"},
        {"gate": "settle"},
        {"rebuilt": H32},
        {"task": H32},
        {"reason": "missing_approver"},
        {"approver": {"id": " \u200b", "assurance": "label"}},
        {"of": ...},
        {"echo": ...},
        {"decision": ...},
        {"channel": ...},
        {"approver": ...},
        {"count": ...},
    ],
)
def test_members_of_a_refusal_are_those_of_its_gate(change: dict[str, Any]) -> None:
    body = {**GOOD["refused"], **change}
    body = {name: value for name, value in body.items() if value is not ...}
    assert body_problem("refused", H32, body)


@pytest.mark.parametrize(
    ("card", "body"),
    [
        (H32, {"gate": "issue", "reason": "open_exists", "count": 1, "task": H32}),
        (None, {"gate": "dispatch", "reason": "unknown_card", "count": 1, "target": H32}),
        (
            H32,
            {"gate": "dispatch", "reason": "mismatch", "count": 1, "of": 1, "rebuilt": OTHER},
        ),
        (None, {"gate": "settle", "reason": "unknown_card", "count": 1, "target": H32}),
        (None, {"gate": "withdraw", "reason": "hash_mismatch", "count": 1, "echo": H32}),
    ],
)
def test_a_refusal_of_each_gate_is_accepted(card: bytes | None, body: dict[str, Any]) -> None:
    assert body_problem("refused", card, body) is None


def test_a_card_that_is_not_known_has_no_of_and_names_its_target() -> None:
    body = {"gate": "dispatch", "reason": "unknown_card", "count": 1}
    assert body_problem("refused", None, body)
    assert body_problem("refused", None, {**body, "target": H32, "of": 1})


@pytest.mark.parametrize("place", range(8))
def test_each_field_of_a_payload_has_its_type(place: int) -> None:
    fields: list[Any] = ["cardchain/1", bytes(16), 1, H32, 1, "opened", None, GOOD["opened"]]
    assert payload_problem(fields) is None
    if place:
        fields[place] = 1.5
        assert payload_problem(fields)
    assert payload_problem(fields[:7])


def test_openings_are_bound_by_their_kind() -> None:
    assert bindings("issued", H32, GOOD["issued"]) == {"envelope": H32, "presented": H32}
    assert bindings("resolved", H32, GOOD["resolved"]) == {"envelope": H32, "note": H32}
    assert bindings("opened", None, GOOD["opened"]) == {"profile": H32}
    assert bindings("anchored", None, GOOD["anchored"]) == {}
    assert bindings("dispatched", H32, {"of": 1, "rebuilt": H32}) == {"envelope": H32}
    other = {"of": 1, "rebuilt": OTHER}
    assert bindings("dispatched", H32, other) == {"envelope": H32, "rebuilt": OTHER}
    signed = {**APPROVER, "assurance": "signed", "evidence": {"type": "t", "digest": OTHER}}
    body = {**GOOD["resolved"], "approver": signed}
    assert bindings("resolved", H32, body)["signature"] == OTHER


def test_an_opening_that_is_not_bound_is_refused() -> None:
    assert openings_problem({"envelope": b""}, {"envelope": H32}) is None
    assert openings_problem({"note": b""}, {"envelope": H32})
    assert openings_problem({"envelope": ""}, {"envelope": H32})
    assert openings_problem([], {})
