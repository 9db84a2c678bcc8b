"""The steps in the life of a card: each asks its gate, and appends what follows (spec §6).

Every function here runs while its `Turn` holds the ledger. It gives its answer, or the refusal
that was recorded instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger import gate, policy, request
from ledger.answers import IssuedCard, Now, Opening, Ticket
from ledger.codec import Record
from ledger.envelope import (
    Envelope,
    differing_pointers,
    parse,
    project,
    rebuild,
    same_ask,
)
from ledger.errors import ProfileMissing, ProposalInvalid, Refused
from ledger.profile import Rules, strictest
from ledger.projection import Card, Flood
from ledger.proposal import Proposal
from ledger.turn import Turn

Body = Mapping[str, Any]
Openings = Mapping[str, Opening]


def issue(
    turn: Turn, proposal: Proposal, shown: Openings, runtime: Body | None
) -> IssuedCard | Refused:
    """Issue a card, or give the one that stands for the same ask (spec §2.6)."""
    envelope = project(proposal, turn.at // 1000)
    if standing := _standing(turn, envelope, proposal):
        return standing
    task = {"task": envelope.task_digest}
    openings = {"envelope": envelope.bytes}
    reason = _unfounded(turn, envelope) or gate.issue(turn.views, turn.at, envelope)
    if reason is not None:
        return _refuse(turn, "issue", reason, envelope.card_hash, task, openings)
    body = task | {"not_after": envelope.not_after} | _bound(shown)
    for name in ("grant_ttl", "supersedes"):
        if (value := getattr(envelope, name)) is not None:
            body[name] = value
    if runtime is not None:
        body["runtime"] = runtime
    record = turn.append("issued", envelope.card_hash, body, openings | _data(shown))
    return _issued(turn, envelope, record)


def issue_many(
    turn: Turn, proposals: Sequence[Proposal], runtime: Body | None
) -> list[IssuedCard | Refused]:
    """Issue cards one after another, each over those before it."""
    answers = []
    for number, proposal in enumerate(proposals):
        try:
            answers.append(issue(turn, proposal, {}, runtime))
        except ProposalInvalid as error:
            raise ProposalInvalid(f"/{number}{error.pointer}", error.reason) from error
    return answers


def resolve(turn: Turn, asked: Body, kept: Openings) -> Record | Refused:
    """Take a decision about the card that was echoed (spec §6.3, §6.5)."""
    echo, target, approver = asked["echo"], asked.get("target"), asked.get("approver")
    who = approver["id"] if approver else None
    card = turn.views.card(echo)
    reason = gate.resolve(turn.views, turn.at, echo, target, who)
    if card is not None and reason is None and approver is not None:
        reason = _not_by(turn, card, approver)
    if card is not None and reason is None:
        body = {"of": card.last, **asked, **_bound(kept)}
        return turn.append("resolved", card.hash, body, _with_envelope(turn, card, kept))
    if card is not None and card.resolved_seq is not None and reason == "already_resolved":
        response = kept["response"].digest if "response" in kept else None
        if gate.repeats(turn.views, turn.at, card, asked["decision"], who, response):
            return turn.record(card.hash, card.resolved_seq)
    return _refuse_about(turn, "resolve", reason, target, echo, asked)


def withdraw(turn: Turn, asked: Body, why: str, kept: Openings) -> Record | Refused:
    """Withdraw the card that was echoed (spec §6.3)."""
    echo, target, approver = asked["echo"], asked.get("target"), asked.get("approver")
    who = approver["id"] if approver else None
    card = turn.views.card(echo)
    reason = gate.withdraw(turn.views, turn.at, echo, target, who)
    if card is None or reason is not None:
        return _refuse_about(turn, "withdraw", reason, target, echo, asked)
    body = {"of": card.last, "echo": echo, "reason": why, "by": who, **_bound(kept)}
    return turn.append("withdrawn", card.hash, body, _with_envelope(turn, card, kept))


def dispatch(turn: Turn, target: bytes, now: Now) -> Ticket | Refused:
    """Spend a grant if the envelope rebuilt from the facts of now is the approved one (§2.4).

    It may have another basis where the rules of its profiles allow that (spec §8.6).
    """
    card = turn.views.card(target)
    if card is None:
        reason = gate.dispatch(turn.views, turn.at, target, agrees=False)
        return _refuse_about(turn, "dispatch", reason, None, target, {"target": target})
    if turn.redaction(card) is not None:  # then it is ended, and the gate refuses
        reason = gate.dispatch(turn.views, turn.at, target, agrees=False)
        return _refuse_about(turn, "dispatch", reason, None, target, {})
    envelope = parse(turn.envelope(card))
    rebuilt = rebuild(envelope, now.facts)
    same = rebuilt.card_hash == target
    drifted = None if same else _drift(turn, card, envelope, rebuilt, now)
    reason = gate.dispatch(turn.views, turn.at, target, agrees=same or drifted is not None)
    if reason == "mismatch":
        return _mismatch(turn, card, envelope, rebuilt)
    reason = reason or policy.dispatch(
        denied=now.policy_outcome == policy.DENY,
        authorised=now.approver_authorised,
        below_floor=drifted is not None and policy.drift_below_floor(rebuilt.document, drifted),
    )
    if reason is not None:
        return _refuse_about(turn, "dispatch", reason, None, target, {})
    body = {"of": card.last, "rebuilt": rebuilt.card_hash, **now.said()}
    openings = {"envelope": envelope.bytes}
    if drifted is not None:
        body["exceptions"] = [policy.BASIS_DRIFT]
        openings["rebuilt"] = rebuilt.bytes
    record = turn.append("dispatched", target, body, openings)
    return Ticket(target, envelope.arguments_bytes, envelope.effect_key, record)


def settle(turn: Turn, target: bytes, said: Body) -> Record | Refused:
    """Record how a dispatched call ended (spec §6.3)."""
    card = turn.views.card(target)
    reason = gate.settle(turn.views, target, said["outcome"])
    if card is None:
        return _refuse_about(turn, "settle", reason, None, target, {"target": target})
    if reason is not None:
        return _refuse_about(turn, "settle", reason, None, target, {})
    body = {"of": card.last, **said}
    return turn.append("settled", target, body, _with_envelope(turn, card, {}))


def _standing(turn: Turn, envelope: Envelope, proposal: Proposal) -> IssuedCard | None:
    """Give the latest card of the step if it stands and holds the same ask."""
    step = turn.views.step(envelope.task_digest)
    latest = turn.views.card(step.latest) if step else None
    if latest is None or not gate.stands(turn.views, turn.at, latest):
        return None
    turn.last_event(latest)
    standing = parse(turn.envelope(latest))
    if not same_ask(standing, proposal):
        return None
    record = turn.record(latest.hash, latest.seq)
    return _issued(turn, standing, record)


def _issued(turn: Turn, envelope: Envelope, record: Record) -> IssuedCard:
    return IssuedCard(envelope, record, turn.envelope_of(envelope.supersedes))


def _unfounded(turn: Turn, envelope: Envelope) -> str | None:
    """Give the reason of spec §8.5 not to issue an envelope now."""
    document = envelope.document
    try:
        return policy.issue(document, _rules(turn, turn.views.profile(), document))
    except ProfileMissing:
        return "profile_unknown"


def _not_by(turn: Turn, card: Card, approver: Body) -> str | None:
    """Give the reason of spec §8.5 why this approver may not decide about a card."""
    if card.profile is None and card.named is None:
        return None
    document = parse(turn.envelope(card)).document
    rules = _rules(turn, card.profile, document)
    return policy.resolve(document, rules, approver["id"], approver["assurance"])


def _drift(turn: Turn, card: Card, envelope: Envelope, rebuilt: Envelope, now: Now) -> Rules | None:
    """Give the rules that allow the basis to differ, None if nothing does (spec §8.6)."""
    document = envelope.document
    if not policy.drift_of_basis(document, rebuilt.document, now.policy_outcome):
        return None
    rules = _rules(turn, card.profile, document)
    return rules if rules.drift_allowed else None


def _rules(turn: Turn, chain_profile: bytes | None, document: policy.Document) -> Rules:
    """Give the strictest of the chain profile and the card profile, or raise `ProfileMissing`."""
    profiles = []
    for digest in (chain_profile, policy.card_profile(document)):
        if digest is not None:
            found = turn.profile(digest)
            if found is None:
                raise ProfileMissing(digest)
            profiles.append(found)
    return strictest(profiles)


def _mismatch(turn: Turn, card: Card, envelope: Envelope, rebuilt: Envelope) -> Refused:
    body = {"of": card.last, "rebuilt": rebuilt.card_hash}
    openings = {"envelope": envelope.bytes, "rebuilt": rebuilt.bytes}
    pointers = differing_pointers(envelope, rebuilt)
    drift = policy.drift_classes(pointers)
    return _refuse(turn, "dispatch", "mismatch", card.hash, body, openings, pointers, drift)


def _refuse_about(
    turn: Turn, at_gate: str, reason: str | None, target: bytes | None, echo: bytes, asked: Body
) -> Refused:
    """Refuse a request about the card that was asked about: the target, else the echo."""
    assert reason is not None  # each gate refuses a card that was not issued
    card = (turn.views.card(target) if target else None) or turn.views.card(echo)
    if card is None:
        return _refuse(turn, at_gate, reason, None, asked)
    openings = _with_envelope(turn, card, {})
    return _refuse(turn, at_gate, reason, card.hash, {"of": card.last, **asked}, openings)


def _refuse(
    turn: Turn,
    at_gate: str,
    reason: str,
    card: bytes | None,
    body: Body,
    openings: Mapping[str, bytes] | None = None,
    pointers: tuple[str, ...] = (),
    drift: tuple[str, ...] = (),
) -> Refused:
    """Record a refusal, or only count it where it is one of a flood (spec §6.4)."""
    flood = Flood(at_gate, reason, body.get("task") or card or b"")
    count = turn.views.refusals(flood) + 1
    record = None
    if gate.recorded(count):
        counted = {"gate": at_gate, "reason": reason, "count": count, **body}
        record = turn.append("refused", card, counted, openings)
        _account_for_redacted(turn, record)
    else:
        turn.views.put_refusals(flood, count)
    return Refused(at_gate, reason, count=count, record=record, pointers=pointers, drift=drift)


def _with_envelope(turn: Turn, card: Card, kept: Openings) -> dict[str, bytes]:
    if turn.redaction(card) is not None:
        return _data(kept)
    return {"envelope": turn.envelope(card), **_data(kept)}


def _account_for_redacted(turn: Turn, record: Record) -> None:
    """Say of a refusal about a redacted card why its envelope is not there (spec §15.3)."""
    if record.card is None or "envelope" in record.openings:
        return
    card = turn.views.card(record.card)
    earlier = turn.redaction(card) if card else None
    if earlier is not None:
        turn.append("redacted", None, turn.redacted(record, ["envelope"], earlier.body))


def _data(openings: Openings) -> dict[str, bytes]:
    return {name: opening.data for name, opening in openings.items()}


def _bound(openings: Openings) -> dict[str, Any]:
    return {name: request.bound(opening) for name, opening in openings.items()}
