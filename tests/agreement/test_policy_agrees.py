"""What the gates take or refuse under any profiles, the verifier finds right (spec §8).

The two sides share no code: a reason that holds for one only would be a finding.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import verifier
from ledger import Facts, IssuedCard, Ledger, Proposal, Refused
from ledger.errors import ProfileMissing

CLASSES = ["none", "fired_rules", "selection", "whole_policy"]
PEOPLE = ["user:approver-1", "user:requester-1"]
POINTERS = [
    "/subject",
    "/subject/tenant",
    "/purpose",
    "/action/arguments/amount",
    "/action/arguments/items/1",
    "/action/arguments/items/01",
    "/action/arguments/a~1b",
    "/approval_basis/rules/0",
    "",
]
HASHES = [f"{n:02x}" * 32 for n in range(4)]


def mostly(usual: Any, seldom: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One value three times out of four, so that many rules together still let something pass."""
    return st.integers(0, 3).flatmap(lambda n: st.just(usual) if n else seldom)


def profiles() -> st.SearchStrategy[bytes]:
    some = st.lists(st.sampled_from(POINTERS), max_size=2, unique=True)
    fixed = st.fixed_dictionaries(
        {
            "tool_name": st.sampled_from(["pay", "other"]),
            "path": st.sampled_from(["/amount", "/currency", "/items/0", ""]),
        }
    )
    rules = st.fixed_dictionaries(
        {
            "format": st.just("cardchain-profile/1"),
            "minimum": mostly("none", st.sampled_from(CLASSES)),
            "required": mostly([], some),
            "grant_ttl": mostly("optional", st.just("required")),
            "self_approval": mostly("allow", st.just("deny")),
            "assurance": mostly("label", st.just("authenticated")),
            "fixed_parameters": mostly([], st.lists(fixed, max_size=2)),
            "critical": mostly([], some),
            "basis_drift": mostly("allow_if_allowed", st.just("review")),
        },
        optional={"id": st.just("p")},
    )
    return rules.map(canonical)


def canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def bases(named: list[bytes]) -> st.SearchStrategy[dict[str, Any]]:
    rule = st.sampled_from([{"id": f"r{n}", "sha256": each} for n, each in enumerate(HASHES)])
    return st.fixed_dictionaries(
        {
            "verdict": st.sampled_from(["allow", "require_approval"]),
            "engine": st.just("engine/1"),
            "evidence_class": mostly("none", st.sampled_from(CLASSES)),
            "profile": st.sampled_from([hashlib.sha256(each).hexdigest() for each in named]),
            "rules": st.lists(rule, max_size=2),
        },
        optional={
            "selection": st.fixed_dictionaries(
                {
                    "mode": st.just("target"),
                    "digest": st.just(HASHES[0]),
                    "count": st.integers(0, 3),
                }
            ),
            "combining": st.just("deny-overrides"),
            "default": st.just("deny"),
            "policy_sha256": st.just(HASHES[1]),
        },
    )


ARGUMENTS: dict[str, Any] = {"amount": 5, "items": ["a", None], "a/b": {}}
MANIFESTS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["x", "y", "z"]),
            "path": mostly("/action/arguments/amount", st.sampled_from([*POINTERS, "/x"])),
            "value": mostly(5.0, st.sampled_from([5, "5", None, {}, "s"])),
        }
    ),
    min_size=1,
    max_size=3,
).map(lambda fields: {"schema": "s", "selector": HASHES[2], "fields": fields})


@st.composite
def facts(draw: st.DrawFn, named: list[bytes]) -> dict[str, Any]:
    found: dict[str, Any] = {"action": {"tool_name": "pay", "arguments": ARGUMENTS}}
    if draw(st.booleans()):
        found["subject"] = {"id": draw(st.sampled_from(PEOPLE)), "source": "idp"}
        if draw(st.booleans()):
            found["subject"]["tenant"] = "t"
    if draw(st.integers(0, 3)):
        found["approval_basis"] = draw(bases(named))
    if not draw(st.integers(0, 2)):
        found["review_manifest"] = draw(MANIFESTS)
    return found


@contextmanager
def host() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", f"{name}/state")
        patch.delenv("CARDCHAIN_KEY", raising=False)
        yield Path(name)


def no_sync(descriptor: int) -> None:
    """A sync that does nothing: what is tested here is not the disk."""


SEEN: Counter[str] = Counter()


@settings(
    max_examples=60,
    derandomize=True,  # so that it sees the same every time
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def check_some_log(data: st.DataObject) -> None:
    """Write a log under drawn profiles, and have it verified."""
    draw = data.draw
    chain, cards = draw(st.lists(profiles(), max_size=2)), draw(st.lists(profiles(), min_size=1))
    unknown = canonical({"not": "given"})
    named = [*cards, *chain, unknown]
    with host() as folder:
        path = folder / "ledger"
        first = draw(st.sampled_from([None, *chain]))
        Ledger.init(path, name="test", profile=first, sync=no_sync).close()
        with Ledger.open(path, profiles=cards, sync=no_sync) as ledger:
            for number in range(draw(st.integers(4, 8))):
                if chain and not draw(st.integers(0, 3)):
                    ledger.configure(profile=draw(st.sampled_from(chain)), by="user:operator-1")
                live(ledger, str(number), draw, named)
            records = list(ledger.records())
        files = [folder / f"{number}.json" for number in range(len(cards))]
        for file, text in zip(files, cards, strict=True):
            file.write_bytes(text)
        (keys,) = (folder / "state").glob("cardchain/*/keys")
        report = verifier.verify(
            [str(path)], [str(keys)], profile_files=map(str, files), environ={}
        )
    SEEN.update(record.body["reason"] for record in records if record.kind == "refused")
    SEEN.update(record.kind for record in records)
    SEEN.update(name for record in records for name in record.body.get("exceptions", ()))
    assert report.verdict.value == "VERIFIED", verifier.render_text(report)


def live(ledger: Ledger, step: str, draw: Any, named: list[bytes]) -> None:
    """Let a card live: issued or refused, decided or refused, dispatched or refused."""
    asked = draw(facts(named))
    terms: dict[str, Any] = {
        "kind": "tool_call",
        "task": {"id": "run", "step": step},
        "reasoning": "",
        "ttl": 600,
    }
    if draw(st.booleans()):
        terms["grant_ttl"] = 60
    if draw(st.booleans()):
        terms["purpose"] = "p"
    try:
        card = ledger.issue(Proposal.from_json(json.dumps({**asked, **terms}).encode()))
    except Refused:
        return
    decide(ledger, card, draw)
    for _ in range(2):
        now = dict(asked)
        if draw(st.booleans()) and "approval_basis" in now:
            other = draw(bases([b""]))
            kept = {"profile": now["approval_basis"]["profile"], "verdict": "allow"}
            now["approval_basis"] = {**other, **kept}
        elif not draw(st.integers(0, 4)):
            now = draw(facts(named))
        with suppress(Refused):
            ledger.dispatch(
                card,
                Facts.from_json(json.dumps(now).encode()),
                policy_outcome=draw(st.sampled_from(["allow", "allow", None, "deny"])),
                approver_authorised=bool(draw(st.integers(0, 4))),
            )


def decide(ledger: Ledger, card: IssuedCard, draw: Any) -> None:
    for _ in range(3):
        try:
            ledger.resolve(
                card.hash,
                "approve",
                approver=draw(st.sampled_from(PEOPLE)),
                assurance=draw(st.sampled_from(["label", "authenticated"])),
                target=card,
            )
        except (Refused, ProfileMissing):
            continue
        return


def test_what_the_gates_say_of_evidence_the_verifier_finds_right() -> None:
    """All logs verify, and together they hold every reason of policy and the exception."""
    check_some_log()
    reasons = {
        "profile_unknown",
        "claimed_above_derived",
        "evidence_below_floor",
        "manifest_mismatch",
        "fixed_parameter_supplied",
        "self_approval",
        "approver_unverified",
        "mismatch",
        "policy_denied",
        "approver_not_authorised",
        "basis_drift",
    }
    assert reasons - set(SEEN) == set()
    assert SEEN["dispatched"] > SEEN["basis_drift"]
