"""A second implementation of the gates, in the plainest Python, written from docs/spec.md alone.

It keeps a list of JSON lines and reads all of it again for every question. It has no key, no
chain digest and no disk: only what a scenario can observe is the same as in the product.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import corpus
from driver import Answer, Call, Denied, NoAnswer
from naive_card import (
    CLASSES,
    WORDS,
    Invalid,
    at,
    canonical,
    check_proposal,
    completed,
    differing,
    drift,
    overclaims,
    sha,
)


class Refusal(Exception):
    """The first reason that holds (spec §6.4), and what a mismatch tells beside it."""

    def __init__(self, reason, differs=(), rebuilt=None):  # type: ignore[no-untyped-def]
        super().__init__(reason)
        self.reason, self.differs, self.rebuilt = reason, list(differs), rebuilt


class Stopped(Exception):
    """The host cannot go on; nothing may run."""


class Naive:
    """A driver that is its own implementation."""

    def __init__(self, clock: Callable[[], int], given: Any) -> None:
        self.clock, self.lock = clock, threading.RLock()
        self.lines: list[str] = []
        self.labels: dict[str, str] = {}
        self.works = True
        self.floods: dict[tuple[str, str, str | None], int] = {}
        self.profiles = corpus.profile_documents(given)
        self.gone = given.get("not_at_hand", [])
        self.at_hand = self.profiles_but(self.gone)
        if "profile" in given:
            self.append("configured", profile=self.profile(given["profile"]))

    def profiles_but(self, gone: list[str]) -> dict[str, Any]:
        kept = {label: profile for label, profile in self.profiles.items() if label not in gone}
        return {sha(canonical(profile)): profile for profile in kept.values()}

    # The log

    def log(self) -> list[Any]:
        return [{"seq": seq, **json.loads(line)} for seq, line in enumerate(self.lines)]

    def append(self, kind: str, **said: Any) -> int:
        if not self.works:
            raise Stopped
        self.lines.append(canonical({"kind": kind, "at": self.clock(), **said}))
        return len(self.lines) - 1

    def of(self, card: str, kind: str) -> list[Any]:
        return [event for event in self.log() if (event.get("card"), event["kind"]) == (card, kind)]

    def issued(self, card: str) -> Any:
        events = self.of(card, "issued")
        return events[0] if events else None

    def envelope(self, card: str) -> Any:
        text = self.issued(card)["envelope"]
        if sha(text) != card:
            raise Stopped
        return json.loads(text)

    def answered(self, act: Callable[[], Answer]) -> Answer:
        """Run a gate alone; record its refusal."""
        with self.lock:
            try:
                if self.log() and self.clock() < self.log()[-1]["at"]:
                    raise Stopped
                return act()
            except Invalid:
                return Answer("invalid")
            except Stopped:
                return Answer("stopped")

    def refused(self, gate: str, card: str | None, refusal: Refusal) -> Answer:
        more = {} if refusal.rebuilt is None else {"rebuilt": refusal.rebuilt}
        flood = (gate, refusal.reason, card)
        count = self.floods[flood] = self.floods.get(flood, 0) + 1
        if count <= 8 or count in (2**power for power in range(4, 54)):
            self.append("refused", gate=gate, card=card, reason=refusal.reason, **more)
        follow = ("/action/args_digest", "/effect_key")
        differs = [place for place in refusal.differs if place not in follow]
        return Answer("refused", refusal.reason, differs=differs, drift=drift(differs))

    # Predicates (spec §6.2)

    def reset_after(self, seq: int) -> bool:
        return any(event["kind"] == "clock_reset" for event in self.log()[seq + 1 :])

    def late(self, card: str) -> bool:
        over = self.clock() >= self.envelope(card)["not_after"] * 1000
        return over or self.reset_after(self.issued(card)["seq"])

    def decision(self, card: str) -> Any:
        events = self.of(card, "resolved")
        return events[0] if events else None

    def approved(self, card: str) -> bool:
        event = self.decision(card)
        return event is not None and event["decision"] == "approve"

    def lapsed(self, card: str) -> bool:
        if not self.approved(card):
            return False
        event, ttl = self.decision(card), self.envelope(card).get("grant_ttl")
        over = ttl is not None and self.clock() >= event["at"] + ttl * 1000
        return over or self.reset_after(event["seq"])

    def steps_cards(self, task: Any) -> list[str]:
        issued = [event for event in self.log() if event["kind"] == "issued"]
        return [e["card"] for e in issued if json.loads(e["envelope"])["task"] == task]

    def latest(self, card: str) -> bool:
        return self.steps_cards(self.envelope(card)["task"])[-1] == card

    def outcome(self, card: str) -> str:
        events = self.of(card, "settled")
        return events[-1]["outcome"] if events else "unknown"

    def state_of(self, card: str) -> str:
        settled = self.of(card, "settled")
        if settled:
            return "UNKNOWN" if self.outcome(card) == "unknown" else "SETTLED"
        if self.of(card, "dispatched"):
            return "DISPATCHED"
        if self.of(card, "withdrawn"):
            return "WITHDRAWN"
        if self.decision(card) and not self.approved(card):
            return "REJECTED"
        if not self.latest(card):
            return "SUPERSEDED"
        if self.approved(card):
            return "LAPSED" if self.lapsed(card) else "APPROVED"
        return "EXPIRED" if self.late(card) else "OPEN"

    # Rules of profiles (spec §8.5)

    def rules(self, chain: str | None, envelope: Any) -> list[Any]:
        own = envelope.get("approval_basis", {}).get("profile")
        return [self.at_hand[digest] for digest in (chain, own) if digest is not None]

    def chain_profile(self, before: int | None = None) -> str | None:
        events = [event for event in self.log()[:before] if event["kind"] == "configured"]
        return events[-1]["profile"] if events else None

    def rules_of(self, card: str) -> list[Any]:
        try:
            return self.rules(self.chain_profile(self.issued(card)["seq"]), self.envelope(card))
        except KeyError as error:
            raise Stopped from error

    def below_floor(self, rules: list[Any], envelope: Any) -> bool:
        claim = envelope.get("approval_basis", {}).get("evidence_class", "none")
        return any(
            CLASSES.index(claim) < CLASSES.index(profile["minimum"])
            or any(at(envelope, place) is None for place in profile["required"])
            or (profile["grant_ttl"] == "required" and "grant_ttl" not in envelope)
            for profile in rules
        )

    def policy_of_issue(self, envelope: Any) -> None:
        try:
            rules = self.rules(self.chain_profile(), envelope)
        except KeyError as error:
            raise Refusal("profile_unknown") from error
        basis = envelope.get("approval_basis")
        if overclaims(basis):
            raise Refusal("claimed_above_derived")
        if self.below_floor(rules, envelope):
            raise Refusal("evidence_below_floor")
        manifest = envelope.get("review_manifest")
        if manifest is not None:
            fields = manifest["fields"]
            critical = {place for profile in rules for place in profile["critical"]}
            left_out = critical - {field["path"] for field in fields}
            if (
                len({field["id"] for field in fields}) < len(fields)
                or any(at(envelope, field["path"]) != field["value"] for field in fields)
                or any(field["path"].startswith("/review_manifest") for field in fields)
                or any(at(envelope, place) is not None for place in left_out)
            ):
                raise Refusal("manifest_mismatch")
        for profile in rules:
            for fixed in profile["fixed_parameters"]:
                same = fixed["tool_name"] == envelope["action"]["tool_name"]
                if same and at(envelope["action"]["arguments"], fixed["path"]) is not None:
                    raise Refusal("fixed_parameter_supplied")

    # The gates (spec §6.4)

    def issue(self, label: str, proposal: Any) -> Answer:
        return self.answered(lambda: self.issue_now(label, proposal))

    def issue_now(self, label: str, proposal: Any) -> Answer:
        check_proposal(proposal)
        ask = json.loads(canonical(proposal))
        ttl = ask.pop("ttl")
        issued_at = self.clock() // 1000
        times = {"issued_at": issued_at, "not_after": issued_at + ttl}
        envelope = completed({**ask, **times, "format": "cardchain-card/1"})
        text = canonical(envelope)
        cards = self.steps_cards(envelope["task"])
        latest = cards[-1] if cards else None
        if latest and self.state_of(latest) in ("OPEN", "APPROVED"):
            held = self.envelope(latest)
            own = ("reasoning", "issued_at", "not_after")
            if not [p for p in differing(held, envelope) if p.split("/")[1] not in own]:
                self.labels[label] = latest
                return Answer("accepted", record=self.issued(latest)["seq"])
        try:
            self.policy_of_issue(envelope)
            supersedes = envelope.get("supersedes")
            if latest and self.state_of(latest) == "OPEN" and supersedes is None:
                raise Refusal("open_exists")
            if supersedes != latest:
                raise Refusal("supersedes_wrong")
            ran = [card for card in cards if self.of(card, "dispatched")]
            due = {"card_hash": ran[-1], "outcome": self.outcome(ran[-1])} if ran else None
            if envelope.get("prior_attempt") != due:
                raise Refusal("attempt_unnamed")
        except Refusal as refusal:
            return self.refused("issue", sha(text), refusal)
        seq = self.append("issued", card=sha(text), envelope=text)
        self.labels[label] = sha(text)
        return Answer("accepted", record=seq)

    def about(self, label: str, echo: str | None, by: str | None) -> tuple[str, str | None]:
        """Check what a decision or withdrawal names; give its card and who acts."""
        if echo is None:
            raise Invalid("echo")
        card = self.identity(label)
        if self.issued(self.identity(echo)) is None or self.identity(echo) != card:
            raise Refusal("hash_mismatch")
        if by is None or not by.strip():
            raise Refusal("missing_approver")
        return card, by

    def resolve(
        self,
        label: str,
        echo: str | None,
        decision: str,
        by: str | None,
        assurance: str,
        response: Any,
    ) -> Answer:
        def act() -> Answer:
            if decision not in ("approve", "reject"):
                raise Invalid("decision")
            said = {"decision": decision, "by": by, "response": response}
            try:
                card, _ = self.about(label, echo, by)
                taken = self.decision(card)
                if taken is not None:
                    same = all(taken[name] == value for name, value in said.items())
                    over = ("WITHDRAWN", "SUPERSEDED", "LAPSED")
                    if same and self.state_of(card) not in over:
                        return Answer("accepted", record=taken["seq"])
                    raise Refusal("already_resolved")
                if self.late(card):
                    raise Refusal("expired")
                if self.of(card, "withdrawn"):
                    raise Refusal("withdrawn")
                if not self.latest(card):
                    raise Refusal("not_latest")
                rules, subject = self.rules_of(card), self.envelope(card).get("subject", {})
                if any(p["self_approval"] == "deny" for p in rules) and subject.get("id") == by:
                    raise Refusal("self_approval")
                if assurance == "label" and any(p["assurance"] != "label" for p in rules):
                    raise Refusal("approver_unverified")
            except Refusal as refusal:
                return self.refused("resolve", self.labels.get(label), refusal)
            echoed = self.identity(echo or "")
            return Answer(
                "accepted", record=self.append("resolved", card=card, echo=echoed, **said)
            )

        return self.answered(act)

    def withdraw(self, label: str, echo: str | None, by: str | None, reason: str) -> Answer:
        def act() -> Answer:
            try:
                card, _ = self.about(label, echo, by)
                if self.of(card, "dispatched"):
                    raise Refusal("already_dispatched")
                if self.decision(card) and not self.approved(card):
                    raise Refusal("already_resolved")
                if self.of(card, "withdrawn"):
                    raise Refusal("withdrawn")
                if not self.latest(card):
                    raise Refusal("not_latest")
                if self.lapsed(card) if self.decision(card) else self.late(card):
                    raise Refusal("expired")
            except Refusal as refusal:
                return self.refused("withdraw", self.labels.get(label), refusal)
            return Answer("accepted", record=self.append("withdrawn", card=card, reason=reason))

        return self.answered(act)

    def dispatch(
        self, label: str, facts: Any, policy_outcome: str | None, approver_authorised: bool
    ) -> Answer:
        def act() -> Answer:
            card = self.identity(label)
            try:
                exceptions, rebuilt = self.dispatch_now(
                    card, json.loads(canonical(facts)), policy_outcome, approver_authorised
                )
            except Refusal as refusal:
                return self.refused("dispatch", self.labels.get(label), refusal)
            seq = self.append("dispatched", card=card, rebuilt=rebuilt, exceptions=exceptions)
            envelope = self.envelope(card)
            return Answer(
                "accepted",
                record=seq,
                exceptions=exceptions,
                arguments=envelope["action"]["arguments"],
                effect_key=envelope["effect_key"],
            )

        return self.answered(act)

    def dispatch_now(
        self, card: str, facts: Any, outcome: str | None, authorised: bool
    ) -> tuple[list[str], str]:
        if self.issued(card) is None:
            raise Refusal("unknown_card")
        if not self.approved(card):
            raise Refusal("not_approved")
        if self.of(card, "dispatched"):
            raise Refusal("already_dispatched")
        if self.of(card, "withdrawn"):
            raise Refusal("withdrawn")
        if not self.latest(card):
            raise Refusal("not_latest")
        if self.lapsed(card):
            raise Refusal("grant_expired")
        envelope = self.envelope(card)
        terms = {name: v for name, v in envelope.items() if name not in corpus.FACTS}
        rebuilt = completed({**terms, **facts})
        differs = differing(envelope, rebuilt)
        rules = self.rules_of(card) if differs else []
        was, now = envelope.get("approval_basis", {}), rebuilt.get("approval_basis", {})
        may_drift = (
            all(place.startswith("/approval_basis") for place in differs)
            and bool(rules)
            and all(profile["basis_drift"] == "allow_if_allowed" for profile in rules)
            and now.get("verdict") == outcome == "allow"
            and was.get("profile") == now.get("profile")
        )
        if differs and not may_drift:
            raise Refusal("mismatch", differs, sha(canonical(rebuilt)))
        if outcome == "deny":
            raise Refusal("policy_denied")
        if not authorised:
            raise Refusal("approver_not_authorised")
        if differs and (overclaims(now) or self.below_floor(rules, rebuilt)):
            raise Refusal("evidence_below_floor")
        return ["basis_drift"] if differs else [], sha(canonical(rebuilt))

    def guard(self, label: str, facts: Any, call: Call) -> Answer:
        answer, outcome = self.dispatch(label, facts, None, True), "succeeded"
        if answer.outcome == "accepted":
            try:
                call(answer.effect_key or "", answer.arguments or {})
            except Denied:
                outcome = "failed"
            except NoAnswer:
                outcome = "unknown"
            self.settle(label, outcome)
        return answer

    def settle(self, label: str, outcome: str) -> Answer:
        def act() -> Answer:
            card = self.identity(label)
            try:
                if self.issued(card) is None:
                    raise Refusal("unknown_card")
                if not self.of(card, "dispatched"):
                    raise Refusal("not_dispatched")
                state = self.state_of(card)
                if state == "SETTLED" or (state == "UNKNOWN" and outcome == "unknown"):
                    raise Refusal("already_settled")
            except Refusal as refusal:
                return self.refused("settle", self.labels.get(label), refusal)
            return Answer("accepted", record=self.append("settled", card=card, outcome=outcome))

        return self.answered(act)

    def configure(self, profile: Any) -> Answer:
        def act() -> Answer:
            for name, words in WORDS.items():
                if profile[name] not in words:
                    raise Invalid(name)
            digest = sha(canonical(profile))
            self.at_hand[digest] = profile
            return Answer("accepted", record=self.append("configured", profile=digest))

        return self.answered(act)

    def clock_reset(self) -> Answer:
        return Answer("accepted", record=self.append("clock_reset"))

    def affected(self, rules: list[str]) -> Answer:
        found = []
        for label, card in self.labels.items():
            cited = self.envelope(card).get("approval_basis", {}).get("rules", [])
            if self.state_of(card) in ("OPEN", "APPROVED"):
                found += [label] if {rule["sha256"] for rule in cited} & set(rules) else []
        return Answer("accepted", labels=found)

    # The host

    def restart(self, without: list[str]) -> None:
        """Nothing survives but the lines and who is called what."""
        self.lines = list(self.lines)
        self.at_hand = self.profiles_but([*self.gone, *without])

    def storage(self, works: bool) -> None:
        self.works = works

    def tamper(self, find: str, replace: str) -> None:
        self.lines = [line.replace(find, replace) for line in self.lines]

    # What can be seen

    def digest(self, text: str) -> str:
        return sha(text)

    def profile(self, label: str) -> str:
        return sha(canonical(self.profiles[label]))

    def identity(self, label: str) -> str:
        return self.labels.get(label) or sha("never issued: " + label)

    def state(self, label: str) -> str:
        return self.state_of(self.identity(label))

    def step_state(self, label: str) -> str:
        cards = self.steps_cards(self.envelope(self.identity(label))["task"])
        return {
            "OPEN": "awaiting_approval",
            "APPROVED": "approved",
            "REJECTED": "rejected_pre_dispatch",
            "DISPATCHED": "dispatched",
            "SETTLED": "settled",
            "UNKNOWN": "outcome_unknown",
        }.get(self.state_of(cards[-1]), "awaiting_reapproval")

    def effect_key(self, label: str) -> str:
        return str(self.envelope(self.identity(label))["effect_key"])

    def approver(self, label: str) -> str | None:
        taken = self.decision(self.identity(label))
        return taken["by"] if taken else None

    def text(self, label: str) -> str:
        """Everything in the card, after what changed since the one it supersedes; all escaped."""
        new = self.envelope(self.identity(label))
        shown = {"card": new}
        if "supersedes" in new:
            old = self.envelope(new["supersedes"])
            shown["changes"] = {p: [at(old, p), at(new, p)] for p in differing(old, new)}
        return json.dumps(shown, indent=1, ensure_ascii=True)

    def events(self) -> list[Any]:
        names = {card: label for label, card in self.labels.items()}
        found = []
        for event in self.log():
            told = {"kind": event["kind"], "proposed": event.get("card")}
            if event.get("card") in names:
                told["card"] = names[event["card"]]
            if "echo" in event:
                told["approved"] = event["echo"]
            if "rebuilt" in event:
                told["execution_time"] = event["rebuilt"]
            if "reason" in event:
                told["reason"] = event["reason"]
            found.append(told)
        return found

    def verdict(self, floor: str | None) -> str:
        for event in self.log():
            if event["kind"] == "issued" and sha(event["envelope"]) != event["card"]:
                return "BROKEN"
        for card in set(self.labels.values()):
            claim = self.envelope(card).get("approval_basis", {}).get("evidence_class", "none")
            if floor and self.approved(card) and CLASSES.index(claim) < CLASSES.index(floor):
                return "CANNOT VERIFY"
        return "VERIFIED"
