"""Policy evidence at the gates: what the profiles refuse is recorded, and changes no state (§8)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import Facts, IssuedCard, Ledger, Opening, Proposal, Refused
from ledger.errors import ProfileMissing, ProposalInvalid

Propose = Callable[..., Proposal]
WEAK: dict[str, Any] = {
    "format": "cardchain-profile/1",
    "minimum": "none",
    "required": [],
    "grant_ttl": "optional",
    "self_approval": "allow",
    "assurance": "label",
    "fixed_parameters": [],
    "critical": [],
    "basis_drift": "allow_if_allowed",
}
RULE: dict[str, Any] = {"id": "refunds-over-100", "sha256": "01" * 32}
CALL: dict[str, Any] = {
    "tool_name": "refund.create",
    "arguments": {"order": "SO-1001", "amount": "199.00"},
}


def profile(**rules: Any) -> bytes:
    return json.dumps({**WEAK, **rules}, sort_keys=True, separators=(",", ":")).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def basis(named: bytes, **members: Any) -> dict[str, Any]:
    return {
        "verdict": "require_approval",
        "engine": "engine/1",
        "evidence_class": "fired_rules",
        "profile": digest(named),
        "rules": [RULE],
        **members,
    }


def manifest(path: str = "/action/arguments/amount", value: Any = "199.00") -> dict[str, Any]:
    field = {"id": "amount", "path": path, "value": value}
    return {"schema": "refund/1", "selector": "02" * 32, "fields": [field]}


def refusal(act: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as caught:
        act()
    return caught.value


def approve(ledger: Ledger, card: IssuedCard, **said: Any) -> None:
    ledger.resolve(card.hash, "approve", **{"approver": "user:approver-1", "target": card, **said})


@pytest.fixture
def held(host: Path, tmp_path: Path, clock: Any) -> Callable[..., Ledger]:
    """Make a ledger that holds every card to a profile of these rules."""

    def make(profiles: tuple[bytes, ...] = (), **rules: Any) -> Ledger:
        path = tmp_path / "held"
        Ledger.init(path, name="held", profile=profile(**rules), clock=clock).close()
        return Ledger.open(path, profiles=profiles, clock=clock)

    return make


# Where profiles come from


def test_opened_and_configured_bind_the_profile(ledger: Ledger, held: Any) -> None:
    first = held(minimum="fired_rules").records()
    text = profile(minimum="fired_rules")
    opened = next(iter(first))
    assert opened.body["profile"].hex() == digest(text)
    assert opened.openings == {"profile": text}
    configured = ledger.configure(profile=text, vkey="key/1", by="user:operator-1")
    assert configured.kind == "configured"
    assert configured.openings == {"profile": text}
    assert configured.body == {
        "by": "user:operator-1",
        "profile": bytes.fromhex(digest(text)),
        "vkey": "key/1",
    }


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ({"by": "user:operator-1"}, "configure"),
        ({"by": " ", "vkey": "k"}, "by"),
        ({"by": "user:operator-1", "profile": b"{}"}, "/format"),
        ({"by": "user:operator-1", "profile": "{}"}, "profile"),
        ({"by": "user:operator-1", "vkey": ""}, "vkey"),
    ],
)
def test_what_configures_nothing_sound_is_an_error_of_the_caller(
    ledger: Ledger, said: dict[str, Any], place: str
) -> None:
    with pytest.raises(ProposalInvalid) as caught:
        ledger.configure(**said)
    assert caught.value.pointer == place
    assert ledger.status().count == 1


def test_the_newest_profile_before_its_issue_holds_for_a_card_and_stays(
    ledger: Ledger, proposal: Propose
) -> None:
    before = ledger.issue(proposal("before"))
    ledger.configure(profile=profile(assurance="authenticated"), by="user:operator-1")
    ledger.configure(vkey="key/1", by="user:operator-1")
    after = ledger.issue(proposal("after"))
    ledger.configure(profile=profile(), by="user:operator-1")
    laxer = ledger.issue(proposal("laxer"))
    approve(ledger, before)
    assert refusal(lambda: approve(ledger, after)).reason == "approver_unverified"
    approve(ledger, after, assurance="authenticated")
    approve(ledger, laxer)


def test_a_profile_in_force_survives_the_loss_of_the_index(
    ledger: Ledger, proposal: Propose, host: Path, clock: Any
) -> None:
    before = ledger.issue(proposal("before"))
    ledger.configure(profile=profile(assurance="authenticated"), by="user:operator-1")
    after = ledger.issue(proposal("after"))
    ledger.close()
    for file in host.rglob("index.sqlite*"):
        file.unlink()
    with Ledger.open(ledger.path, clock=clock) as again:
        approve(again, before)
        assert refusal(lambda: approve(again, after)).reason == "approver_unverified"


# Issue


def test_a_card_profile_that_is_not_at_hand_is_refused_as_unknown(
    ledger: Ledger, proposal: Propose
) -> None:
    named = profile(minimum="fired_rules")
    ask = proposal(approval_basis=basis(named, evidence_class="selection"))
    refused = refusal(lambda: ledger.issue(ask))
    assert refused.reason == "profile_unknown"
    ledger.configure(profile=named, by="user:operator-1")
    assert refusal(lambda: ledger.issue(ask)).reason == "claimed_above_derived"


def test_a_card_profile_can_be_given_when_the_ledger_is_opened(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    named = profile(assurance="authenticated")
    with Ledger.open(ledger.path, profiles=[named], clock=clock) as given:
        card = given.issue(proposal(approval_basis=basis(named)))
        assert refusal(lambda: approve(given, card)).reason == "approver_unverified"
    with pytest.raises(ProfileMissing, match=digest(named)):
        approve(ledger, card)
    assert ledger.status().count == 3


@pytest.mark.parametrize(
    ("reason", "rules", "members"),
    [
        ("claimed_above_derived", {}, {"evidence_class": "whole_policy"}),
        ("evidence_below_floor", {"minimum": "selection"}, {}),
        ("evidence_below_floor", {"required": ["/subject/tenant"]}, {}),
        ("evidence_below_floor", {"grant_ttl": "required"}, {}),
        ("manifest_mismatch", {"critical": ["/action/tool_name"]}, {}),
        (
            "fixed_parameter_supplied",
            {"fixed_parameters": [{"tool_name": "refund.create", "path": "/amount"}]},
            {},
        ),
    ],
)
def test_each_rule_of_a_profile_refuses_at_issue(
    held: Callable[..., Ledger],
    proposal: Propose,
    reason: str,
    rules: dict[str, Any],
    members: dict[str, Any],
) -> None:
    weak = profile()
    ask = proposal(approval_basis=basis(weak, **members), review_manifest=manifest())
    with held(profiles=(weak,), **rules) as ledger:
        refused = refusal(lambda: ledger.issue(ask))
        assert (refused.gate, refused.reason) == ("issue", reason)
        assert refused.record.openings["envelope"] is not None
        assert ledger.pending() == ()


def test_a_card_that_keeps_every_rule_is_issued(
    held: Callable[..., Ledger], proposal: Propose
) -> None:
    with held(
        minimum="fired_rules",
        required=["/subject/tenant", "/preconditions"],
        grant_ttl="required",
        critical=["/action/arguments/amount", "/purpose"],
        fixed_parameters=[{"tool_name": "refund.create", "path": "/currency"}],
        self_approval="deny",
        assurance="authenticated",
    ) as ledger:
        weak = profile()
        ledger.configure(profile=weak, by="user:operator-1")
        ledger.configure(
            profile=profile(minimum="fired_rules", required=["/subject/tenant"]),
            by="user:operator-1",
        )
        card = ledger.issue(
            proposal(
                grant_ttl=60,
                approval_basis=basis(weak),
                review_manifest=manifest(),
                subject={"id": "user:requester-1", "source": "idp", "tenant": "t1"},
                preconditions=[{"ref": "order/SO-1001", "version": "7"}],
            )
        )
        assert ledger.card(card).state == "OPEN"


def test_claim_and_manifest_are_checked_without_any_profile(
    ledger: Ledger, proposal: Propose
) -> None:
    wrong = proposal(review_manifest=manifest(value="1.00"))
    assert refusal(lambda: ledger.issue(wrong)).reason == "manifest_mismatch"
    right = proposal(review_manifest=manifest())
    assert ledger.issue(right).record.kind == "issued"


def test_evidence_is_looked_at_before_the_step(ledger: Ledger, proposal: Propose) -> None:
    ledger.issue(proposal())
    wrong = proposal(review_manifest=manifest(value="1.00"))
    assert refusal(lambda: ledger.issue(wrong)).reason == "manifest_mismatch"
    assert refusal(lambda: ledger.issue(proposal(purpose="another"))).reason == "open_exists"


def test_what_was_presented_is_the_view_that_the_manifest_names(
    ledger: Ledger, proposal: Propose
) -> None:
    named = {**manifest(), "view_digest": digest(b"a page")}
    with pytest.raises(ProposalInvalid, match="view_digest"):
        ledger.issue(proposal(review_manifest=named), presented=Opening(b"another page"))
    assert ledger.status().count == 1
    card = ledger.issue(proposal(review_manifest=named), presented=Opening(b"a page"))
    assert card.record.body["presented"]["digest"].hex() == named["view_digest"]


# Resolve


def test_nobody_decides_about_a_card_of_their_own_where_it_is_denied(
    held: Callable[..., Ledger], proposal: Propose
) -> None:
    with held(self_approval="deny") as ledger:
        card = ledger.issue(proposal(subject={"id": "user:approver-1", "source": "idp"}))
        for decision in ("approve", "reject"):
            refused = refusal(
                lambda decision=decision: ledger.resolve(
                    card.hash, decision, approver="user:approver-1"
                )
            )
            assert refused.reason == "self_approval"
            assert refused.record.body["approver"]["id"] == "user:approver-1"
        assert ledger.card(card).state == "OPEN"
        approve(ledger, card, approver="user:approver-2")
        assert ledger.card(card).state == "APPROVED"


def test_a_card_profile_denies_what_the_chain_profile_allows(
    held: Callable[..., Ledger], proposal: Propose
) -> None:
    named = profile(self_approval="deny")
    with held(profiles=(named,)) as ledger:
        subject = {"id": "user:approver-1", "source": "idp"}
        card = ledger.issue(proposal(subject=subject, approval_basis=basis(named)))
        assert refusal(lambda: approve(ledger, card)).reason == "self_approval"


def test_a_decision_that_is_late_is_told_so_before_who_took_it(
    held: Callable[..., Ledger], proposal: Propose, clock: Any
) -> None:
    with held(assurance="authenticated") as ledger:
        card = ledger.issue(proposal())
        clock.forward(1800)
        assert refusal(lambda: approve(ledger, card)).reason == "expired"


# Dispatch


def approved(ledger: Ledger, proposal: Propose, **members: Any) -> IssuedCard:
    card = ledger.issue(proposal(**members))
    approve(ledger, card)
    return card


def test_policy_that_denies_now_is_asked_last_and_burns_nothing(
    ledger: Ledger, proposal: Propose, facts: Callable[..., Facts]
) -> None:
    card = approved(ledger, proposal)
    refused = refusal(lambda: ledger.dispatch(card, facts("1.00"), policy_outcome="deny"))
    assert refused.reason == "mismatch"
    refused = refusal(lambda: ledger.dispatch(card, facts(), policy_outcome="deny"))
    assert (refused.reason, dict(refused.record.body)) == (
        "policy_denied",
        {"gate": "dispatch", "reason": "policy_denied", "count": 1, "of": 2},
    )
    ticket = ledger.dispatch(card, facts(), policy_outcome="allow", approver_check="directory/1")
    assert ticket.record.body == {
        "of": 2,
        "rebuilt": card.hash_bytes,
        "policy_outcome": "allow",
        "approver_check": "directory/1",
    }


def test_an_approver_who_no_longer_may_is_refused(
    ledger: Ledger, proposal: Propose, facts: Callable[..., Facts]
) -> None:
    card = approved(ledger, proposal)
    refused = refusal(lambda: ledger.dispatch(card, facts(), approver_authorised=False))
    assert refused.reason == "approver_not_authorised"
    both = {"approver_authorised": False, "policy_outcome": "deny"}
    assert refusal(lambda: ledger.dispatch(card, facts(), **both)).reason == "policy_denied"
    assert ledger.card(card).state == "APPROVED"


@pytest.mark.parametrize(
    "said", [{"policy_outcome": ""}, {"approver_check": 7}, {"approver_authorised": None}]
)
def test_what_is_said_at_dispatch_is_checked_first(
    ledger: Ledger, proposal: Propose, facts: Callable[..., Facts], said: dict[str, Any]
) -> None:
    card = approved(ledger, proposal)
    with pytest.raises(ProposalInvalid):
        ledger.dispatch(card, facts(), **said)
    assert ledger.status().count == 3


FULL: dict[str, Any] = {
    "capability": {"scope": "refunds"},
    "subject": {"id": "user:requester-1", "source": "idp"},
    "preconditions": [{"ref": "order/SO-1001", "version": "7"}],
    "review_manifest": manifest(),
}


@pytest.mark.parametrize(
    ("change", "classes", "pointer"),
    [
        (
            {"arguments": {"order": "SO-1001", "amount": "1"}},
            ("request",),
            "/action/arguments/amount",
        ),
        ({"spec_digest": "00" * 32}, ("request",), "/action/spec_digest"),
        (
            {"capability": {"scope": "all"}},
            ("policy and capability",),
            "/action/capability/scope",
        ),
        (
            {"subject": {"id": "user:requester-2", "source": "idp"}},
            ("subject and authority",),
            "/subject/id",
        ),
        ({"subject": None}, ("subject and authority",), "/subject/source"),
        (
            {"preconditions": [{"ref": "order/SO-1001", "version": "8"}]},
            ("business object",),
            "/preconditions/0/version",
        ),
        (
            {"review_manifest": {**manifest(), "selector": "03" * 32}},
            ("presentation",),
            "/review_manifest/selector",
        ),
        (
            {"approval_basis": basis(profile())},
            ("policy and capability",),
            "/approval_basis/verdict",
        ),
    ],
)
def test_a_mismatch_names_the_places_and_the_classes_of_drift(
    ledger: Ledger,
    proposal: Propose,
    change: dict[str, Any],
    classes: tuple[str, ...],
    pointer: str,
) -> None:
    card = approved(ledger, proposal, **FULL)
    now = Facts.for_tool_call(**{**CALL, **FULL, **change})
    refused = refusal(lambda: ledger.dispatch(card, now))
    assert refused.reason == "mismatch"
    assert refused.drift == classes
    assert pointer in refused.pointers
    assert f"mismatch ({', '.join(classes)}) at " in str(refused)
    rebuilt = refused.record.openings["rebuilt"]
    assert hashlib.sha256(rebuilt).digest() == refused.record.body["rebuilt"]
    assert ledger.dispatch(card, Facts.for_tool_call(**CALL, **FULL)).record.kind == "dispatched"


# A basis that drifts

OTHER_RULE = {"id": "refunds-over-100", "sha256": "04" * 32}


def drifted(named: bytes, **members: Any) -> Facts:
    now = basis(named, **{"verdict": "allow", "rules": [OTHER_RULE], **members})
    return Facts.for_tool_call(**CALL, approval_basis=now)


def test_a_basis_may_drift_under_a_named_exception(
    held: Callable[..., Ledger], proposal: Propose
) -> None:
    named = profile(minimum="fired_rules")
    with held(profiles=(named,)) as ledger:
        card = approved(ledger, proposal, approval_basis=basis(named))
        ticket = ledger.dispatch(card, drifted(named), policy_outcome="allow")
        body, openings = ticket.record.body, ticket.record.openings
        assert body["exceptions"] == ["basis_drift"]
        assert body["policy_outcome"] == "allow"
        assert body["rebuilt"] == hashlib.sha256(openings["rebuilt"]).digest() != card.hash_bytes
        assert openings["envelope"] == card.envelope.bytes
        assert json.loads(openings["rebuilt"])["approval_basis"]["rules"] == [OTHER_RULE]
        assert ticket.arguments == CALL["arguments"]
        assert ledger.settle(ticket, "succeeded").kind == "settled"


@pytest.mark.parametrize(
    ("rules", "named_rules", "members", "outcome"),
    [
        ({"basis_drift": "review"}, {}, {}, "allow"),
        ({}, {"basis_drift": "review"}, {}, "allow"),
        ({}, {}, {}, None),
        ({}, {}, {}, "require_approval"),
        ({}, {}, {}, "deny"),
        ({}, {}, {"verdict": "require_approval"}, "allow"),
        ({}, {}, {"profile": "05" * 32}, "allow"),
    ],
)
def test_a_basis_that_drifts_otherwise_goes_back_to_review(
    held: Callable[..., Ledger],
    proposal: Propose,
    rules: dict[str, Any],
    named_rules: dict[str, Any],
    members: dict[str, Any],
    outcome: str | None,
) -> None:
    named = profile(**named_rules)
    with held(profiles=(named,), **rules) as ledger:
        card = approved(ledger, proposal, approval_basis=basis(named))
        refused = refusal(
            lambda: ledger.dispatch(card, drifted(named, **members), policy_outcome=outcome)
        )
        assert (refused.reason, refused.drift) == ("mismatch", ("policy and capability",))
        assert ledger.card(card).state == "APPROVED"


def test_the_same_verdict_by_another_rule_is_a_mismatch_without_a_profile_that_allows(
    ledger: Ledger, proposal: Propose
) -> None:
    named = profile(basis_drift="review")
    ledger.configure(profile=named, by="user:operator-1")
    card = approved(ledger, proposal, approval_basis=basis(named, verdict="allow"))
    refused = refusal(lambda: ledger.dispatch(card, drifted(named), policy_outcome="allow"))
    assert refused.pointers == ("/approval_basis/rules/0/sha256",)


@pytest.mark.parametrize("members", [{"evidence_class": "none"}, {"evidence_class": "selection"}])
def test_a_basis_that_drifted_below_the_floor_is_refused(
    held: Callable[..., Ledger], proposal: Propose, members: dict[str, Any]
) -> None:
    named = profile(minimum="fired_rules")
    with held(profiles=(named,)) as ledger:
        card = approved(ledger, proposal, approval_basis=basis(named))
        refused = refusal(
            lambda: ledger.dispatch(card, drifted(named, **members), policy_outcome="allow")
        )
        assert refused.reason == "evidence_below_floor"
        assert "rebuilt" not in refused.record.body
        now = Facts.for_tool_call(**CALL, approval_basis=basis(named))
        assert ledger.dispatch(card, now).record.kind == "dispatched"


def test_without_the_card_profile_nobody_can_say_whether_a_basis_may_drift(
    ledger: Ledger, proposal: Propose, clock: Any
) -> None:
    """Other drift is a mismatch all the same, and where nothing differs no profile is needed."""
    named = profile()
    with Ledger.open(ledger.path, profiles=[named], clock=clock) as given:
        card = approved(given, proposal, approval_basis=basis(named))
    with pytest.raises(ProfileMissing, match=digest(named)):
        ledger.dispatch(card, drifted(named), policy_outcome="allow")
    assert ledger.status().count == 3
    assert refusal(lambda: ledger.dispatch(card, drifted(named))).reason == "mismatch"
    same = Facts.for_tool_call(**CALL, approval_basis=basis(named))
    assert ledger.dispatch(card, same).record.kind == "dispatched"
