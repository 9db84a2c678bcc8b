"""Every leaf of a full envelope, changed or dropped, at every gate: refused, and nothing runs."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import Facts, IssuedCard, Ledger, Proposal, Refused
from ledger.errors import ProposalInvalid

PROFILE = json.dumps(
    {
        "assurance": "label",
        "basis_drift": "review",
        "critical": [],
        "fixed_parameters": [],
        "format": "cardchain-profile/1",
        "grant_ttl": "optional",
        "minimum": "none",
        "required": [],
        "self_approval": "allow",
    },
    sort_keys=True,
    separators=(",", ":"),
).encode()
HEX = [f"{n:02x}" * 32 for n in range(8)]
FACTS: dict[str, Any] = {
    "action": {
        "tool_name": "refund.create",
        "arguments": {"order": "SO-1001", "amount": 199, "express": True, "tags": ["a", None]},
        "capability": {"scope": "refunds"},
        "spec_digest": HEX[1],
        "artifact_digest": HEX[2],
    },
    "subject": {
        "id": "user:requester-1",
        "source": "idp",
        "tenant": "t1",
        "delegation": {"from": "user:owner-1"},
    },
    "preconditions": [
        {"ref": "order/SO-1001", "version": "7"},
        {"ref": "budget", "version": "3"},
    ],
    "approval_basis": {
        "verdict": "require_approval",
        "engine": "engine/1",
        "evidence_class": "whole_policy",
        "profile": hashlib.sha256(PROFILE).hexdigest(),
        "profile_id": "refunds",
        "profile_version": "1",
        "rules": [{"id": "r1", "sha256": HEX[3]}, {"id": "r2", "sha256": HEX[4]}],
        "selection": {"mode": "target", "digest": HEX[5], "count": 2},
        "combining": "deny-overrides",
        "default": "deny",
        "policy_sha256": HEX[6],
    },
    "review_manifest": {
        "schema": "refund/1",
        "selector": HEX[7],
        "selector_id": "refund",
        "selector_version": "1",
        "fields": [{"id": "amount", "path": "/action/arguments/amount", "value": 199}],
        "view_digest": HEX[0],
    },
}
TERMS: dict[str, Any] = {
    "kind": "tool_call",
    "task": {"id": "run-7", "step": "refund"},
    "policy_version": "2026-01",
    "purpose": "goodwill",
    "reasoning": "duplicate payment",
    "impact": {
        "score": 40,
        "hard_one_way": True,
        "rationale": "money leaves",
        "fired_detectors": ["refund"],
        "detector_set": {"id": "detectors", "digest": HEX[1]},
    },
    "rollback": {"procedure": "none", "irreversible": True},
    "grant_ttl": 900,
    "ttl": 1800,
}
NOT_OF_THE_ASK = ("/reasoning", "/issued_at", "/not_after")
Path_ = tuple[str | int, ...]


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*path, name))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from leaves(element, (*path, index))
    else:
        yield path


def pointer(path: Path_) -> str:
    return "".join(f"/{step}" for step in path)


def other(value: Any) -> Any:
    """Another value of the same shape."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value is None:
        return 0
    words = {"whole_policy": "none", "failed": "succeeded"}
    if value in words:
        return words[value]
    return ("f" if value[0] != "f" else "0") + value[1:] if len(value) == 64 else value + "x"


def changed(document: dict[str, Any], path: Path_) -> dict[str, Any]:
    document = copy.deepcopy(document)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = other(place[path[-1]])
    return document


def dropped(document: dict[str, Any], path: Path_) -> dict[str, Any]:
    document = copy.deepcopy(document)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return document


def digest(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(text).hexdigest()


class Scene:
    """A ledger with a full card that replaces a dispatched one, and what was run under it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.effects: list[Any] = []
        ledger.configure(profile=PROFILE, by="user:operator-1")
        first = ledger.issue(Proposal.for_tool_call(**SIMPLE))
        self.approve(first)
        now = Facts.for_tool_call(SIMPLE["tool_name"], SIMPLE["arguments"])
        ledger.settle(ledger.dispatch(first, now), "failed")
        attempt = {"card_hash": first.hash, "outcome": "failed"}
        self.proposal = {**FACTS, **TERMS, "supersedes": first.hash, "prior_attempt": attempt}
        self.card = ledger.issue(Proposal.from_json(json.dumps(self.proposal).encode()))
        self.document = self.card.envelope.document

    def approve(self, card: IssuedCard) -> None:
        self.ledger.resolve(card.hash, "approve", approver="user:approver-1", target=card)

    def run(self, target: Any, facts: dict[str, Any]) -> None:
        now = Facts.from_json(json.dumps(facts).encode())
        with self.ledger.guard(target, now) as effect:
            self.effects.append(effect.arguments)


SIMPLE: dict[str, Any] = {
    "task": ("run-7", "refund"),
    "tool_name": "refund.create",
    "arguments": {},
    "reasoning": "",
    "ttl": 60,
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Make one scene for all mutations: refusals change nothing, so they cannot disturb it."""
    folder: Path = tmp_path_factory.mktemp("scene")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", str(folder / "state"))
        patch.delenv("CARDCHAIN_KEY", raising=False)
        with Ledger.init(folder / "ledger", name="test", clock=lambda: 1_700_000_000_000) as ledger:
            yield Scene(ledger)


ENVELOPE_LEAVES = [
    *leaves({**FACTS, **{name: value for name, value in TERMS.items() if name != "ttl"}}),
    ("action", "args_digest"),
    ("effect_key",),
    ("format",),
    ("issued_at",),
    ("not_after",),
    ("supersedes",),
    ("prior_attempt", "card_hash"),
    ("prior_attempt", "outcome"),
]
PROPOSAL_LEAVES = [
    *leaves({**FACTS, **TERMS}),
    ("supersedes",),
    ("prior_attempt", "card_hash"),
    ("prior_attempt", "outcome"),
]
CHANGES: list[Callable[[dict[str, Any], Path_], dict[str, Any]]] = [changed, dropped]


def refused(act: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as caught:
        act()
    return caught.value


def test_the_envelope_is_full(scene: Scene) -> None:
    """Every member that spec §2.3 knows stands in the card, and every leaf is in these tests."""
    members = {
        "format", "kind", "task", "action", "subject", "preconditions", "approval_basis",
        "policy_version", "review_manifest", "purpose", "reasoning", "impact", "rollback",
        "issued_at", "not_after", "grant_ttl", "supersedes", "prior_attempt", "effect_key",
    }  # fmt: skip
    assert set(scene.document) == members
    assert set(leaves(scene.document)) == set(ENVELOPE_LEAVES)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("path", ENVELOPE_LEAVES, ids=pointer)
def test_no_decision_lands_on_another_envelope(scene: Scene, path: Path_, change: Any) -> None:
    echo = digest(change(scene.document, path))
    acts: list[Callable[[], object]] = [
        lambda: scene.ledger.resolve(echo, "approve", approver="user:approver-1"),
        lambda: scene.ledger.resolve(echo, "reject", approver="user:approver-1", target=scene.card),
        lambda: scene.ledger.withdraw(echo, by="user:approver-1", reason="revoked"),
    ]
    assert [refused(act).reason for act in acts] == ["hash_mismatch"] * 3
    assert refused(lambda: scene.run(echo, FACTS)).reason == "unknown_card"
    assert refused(lambda: scene.ledger.settle(echo, "succeeded")).reason == "unknown_card"
    assert scene.ledger.card(scene.card).state in ("OPEN", "APPROVED")
    assert scene.effects == []


@pytest.mark.parametrize("path", PROPOSAL_LEAVES, ids=pointer)
def test_no_other_proposal_passes_for_the_card(scene: Scene, path: Path_) -> None:
    """A proposal with one leaf changed is another ask; only its wording and its times are not."""
    text = json.dumps(changed(scene.proposal, path)).encode()
    if pointer(path) == "/rollback/irreversible":  # what is hard to undo cannot be reversible
        with pytest.raises(ProposalInvalid, match="/rollback/irreversible"):
            Proposal.from_json(text)
        return
    asked = Proposal.from_json(text)
    if pointer(path) in ("/reasoning", "/ttl"):
        assert scene.ledger.issue(asked).hash == scene.card.hash
    else:
        refused(lambda: scene.ledger.issue(asked))
    assert scene.ledger.card(scene.card).state in ("OPEN", "APPROVED")
    assert scene.effects == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("path", list(leaves(FACTS)), ids=pointer)
def test_no_other_fact_dispatches_and_the_place_is_named(
    scene: Scene, path: Path_, change: Any
) -> None:
    if scene.ledger.card(scene.card).state == "OPEN":
        scene.approve(scene.card)
    with pytest.raises((Refused, ProposalInvalid)) as raised:
        scene.run(scene.card, change(FACTS, path))
    caught = raised.value
    assert scene.effects == []
    if isinstance(caught, ProposalInvalid):
        assert (change, caught.pointer) == (dropped, pointer(path))
        return
    assert caught.reason == "mismatch"
    assert len(caught.drift) == 1
    assert caught.pointers != ()
    if change is changed:
        assert pointer(path) in caught.pointers


def test_the_facts_as_they_were_dispatch_at_last(scene: Scene) -> None:
    """None of the refusals before burned the grant. It runs after all others of this file."""
    if scene.ledger.card(scene.card).state == "OPEN":
        scene.approve(scene.card)
    scene.run(scene.card, FACTS)
    assert scene.effects == [FACTS["action"]["arguments"]]
    assert scene.ledger.card(scene.card).state == "SETTLED"
