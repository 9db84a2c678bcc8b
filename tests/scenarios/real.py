"""The driver of this project: the ledger on files, with an injected clock and sync."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
from driver import Answer, Call, Denied, Document, NoAnswer

import verifier
from ledger import (
    Effect,
    EffectFailed,
    Facts,
    Ledger,
    LedgerError,
    Opening,
    Proposal,
    ProposalInvalid,
    Refused,
)

FOLLOW = ("/action/args_digest", "/effect_key")


def canonical(document: Document) -> bytes:
    """Give canonical JSON; the profiles of the scenarios are ASCII without numbers."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


class Real:
    """A ledger directory with its state directory beside it."""

    def __init__(self, folder: Path, clock: Callable[[], int], given: Document) -> None:
        self.folder, self.clock = folder, clock
        self.path = folder / "ledger"
        self.works = True
        self.hashes: dict[str, str] = {}
        self.profiles = {
            label: canonical(profile) for label, profile in corpus.profile_documents(given).items()
        }
        self.gone = given.get("not_at_hand", [])
        self.at_hand = self.profiles_but(self.gone)
        chain_profile = self.profiles.get(given.get("profile"))
        with Ledger.init(self.path, name="scenario", profile=chain_profile, clock=clock):
            pass
        self.ledger = self.opened()

    def profiles_but(self, gone: list[str]) -> list[bytes]:
        return [text for label, text in self.profiles.items() if label not in gone]

    def opened(self) -> Ledger:
        profiles = [text for text in self.at_hand if well_formed(text)]
        return Ledger.open(self.path, profiles=profiles, clock=self.clock, sync=self.sync)

    def sync(self, descriptor: int) -> None:
        if not self.works:
            raise OSError("the disk says no")

    def answered(self, act: Callable[[Ledger], Answer], ledger: Ledger | None = None) -> Answer:
        try:
            return act(ledger or self.ledger)
        except Refused as refused:
            differs = [place for place in refused.pointers if place not in FOLLOW]
            return Answer("refused", refused.reason, differs=differs, drift=list(refused.drift))
        except ProposalInvalid:
            return Answer("invalid")
        except LedgerError:
            return Answer("stopped")

    def apart(self, act: Callable[[Ledger], Answer]) -> Answer:
        """Answer from a ledger opened for this alone, as another worker would have it."""
        try:
            with contextlib.closing(self.opened()) as ledger:
                return self.answered(act, ledger)
        except LedgerError:
            return Answer("stopped")

    # The gates

    def issue(self, card: str, proposal: Document) -> Answer:
        def act(ledger: Ledger) -> Answer:
            issued = ledger.issue(Proposal.from_json(text_of(proposal)))
            self.hashes[card] = issued.hash
            return Answer("accepted", record=issued.seq)

        return self.answered(act)

    def resolve(
        self,
        card: str,
        echo: str | None,
        decision: str,
        by: str | None,
        assurance: str,
        response: Any,
    ) -> Answer:
        def act(ledger: Ledger) -> Answer:
            record = ledger.resolve(
                self.echoed(echo),
                decision,
                approver=by,
                target=self.identity(card),
                assurance=assurance,
                response=None if response is None else Opening(json.dumps(response).encode()),
            )
            return Answer("accepted", record=record.seq)

        return self.answered(act)

    def withdraw(self, card: str, echo: str | None, by: str | None, reason: str) -> Answer:
        def act(ledger: Ledger) -> Answer:
            target = self.identity(card)
            record = ledger.withdraw(self.echoed(echo), by=by, reason=reason, target=target)
            return Answer("accepted", record=record.seq)

        return self.answered(act)

    def dispatch(
        self, card: str, facts: Document, policy_outcome: str | None, approver_authorised: bool
    ) -> Answer:
        def act(ledger: Ledger) -> Answer:
            ticket = ledger.dispatch(
                self.identity(card),
                Facts.from_json(text_of(facts)),
                policy_outcome=policy_outcome,
                approver_authorised=approver_authorised,
            )
            return Answer(
                "accepted",
                record=ticket.record.seq,
                exceptions=list(ticket.record.body.get("exceptions", [])),
                arguments=ticket.arguments,
                effect_key=ticket.effect_key,
            )

        return self.apart(act)

    def guard(self, card: str, facts: Document, call: Call) -> Answer:
        def act(ledger: Ledger) -> Answer:
            guard = ledger.guard(self.identity(card), Facts.from_json(text_of(facts)))
            with contextlib.suppress(EffectFailed, NoAnswer), guard as effect:
                carry_out(effect, call)
            return Answer("accepted", record=effect.ticket.record.seq)

        return self.answered(act)

    def settle(self, card: str, outcome: str) -> Answer:
        return self.answered(
            lambda ledger: Answer(
                "accepted", record=ledger.settle(self.identity(card), outcome).seq
            )
        )

    def configure(self, profile: Document) -> Answer:
        return self.answered(
            lambda ledger: Answer(
                "accepted",
                record=ledger.configure(by="user:operator-1", profile=canonical(profile)).seq,
            )
        )

    def clock_reset(self) -> Answer:
        return self.answered(
            lambda ledger: Answer(
                "accepted",
                record=ledger.clock_reset(by="user:operator-1", reason="clock_fixed").seq,
            )
        )

    def affected(self, rules: list[str]) -> Answer:
        names = {card: label for label, card in self.hashes.items()}
        found = self.ledger.affected(rules)
        return Answer("accepted", labels=[names[status.hash] for status in found])

    # The host

    def restart(self, without: list[str]) -> None:
        self.ledger.close()
        self.at_hand = self.profiles_but([*self.gone, *without])
        self.ledger = self.opened()

    def storage(self, works: bool) -> None:
        self.works = works

    def tamper(self, find: str, replace: str) -> None:
        assert len(find) == len(replace)
        for segment in (self.path / "segments").iterdir():
            segment.write_bytes(segment.read_bytes().replace(find.encode(), replace.encode()))

    # What can be seen

    def digest(self, text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    def profile(self, label: str) -> str:
        return hashlib.sha256(self.profiles[label]).hexdigest()

    def identity(self, card: str) -> str:
        return self.hashes.get(card) or self.digest("never issued: " + card)

    def echoed(self, echo: str | None) -> str:
        return None if echo is None else self.identity(echo)  # type: ignore[return-value]

    def state(self, card: str) -> str:
        return str(self.ledger.card(self.identity(card)).state)

    def step_state(self, card: str) -> str:
        """Give the state of the step, which its latest card tells."""
        task = self.ledger.card(self.identity(card)).card.task
        issued = [record for record in self.ledger.records() if record.kind == "issued"]
        latest = [record.card for record in issued if record.body["task"] == task][-1]
        assert latest is not None
        return str(self.ledger.card(latest).step_state)

    def effect_key(self, card: str) -> str:
        return self.ledger.card(self.identity(card)).envelope.effect_key

    def approver(self, card: str) -> str | None:
        return self.ledger.card(self.identity(card)).card.approver

    def text(self, card: str) -> str:
        return self.ledger.card(self.identity(card)).text

    def events(self) -> list[Document]:
        names = {card: label for label, card in self.hashes.items()}
        found = []
        for record in self.ledger.records():
            told: Document = {"kind": record.kind, "proposed": record.card}
            if record.card is not None and record.card.hex() in names:
                told["card"] = names[record.card.hex()]
            if record.kind == "resolved":
                told["approved"] = record.body["echo"]
            if "rebuilt" in record.body:
                told["execution_time"] = record.body["rebuilt"]
            if record.kind == "refused":
                told["reason"] = record.body["reason"]
            found.append(told)
        return found

    def verdict(self, floor: str | None) -> str:
        """Verify the log that was left, with nothing but its keys and the profiles at hand."""
        keys = [str(path) for path in (self.folder / "state").glob("cardchain/*/keys")]
        files = []
        for number, profile in enumerate(filter(well_formed, self.at_hand)):
            files.append(self.folder / f"profile-{number}.json")
            files[-1].write_bytes(profile)
        report = verifier.verify(
            [str(self.path)],
            keys,
            profile_files=map(str, files),
            floor=floor or "none",
            environ={},
        )
        return report.verdict.value


def carry_out(effect: Effect, call: Call) -> None:
    """Call as the block of a guard does, in the words of the guard."""
    try:
        call(effect.effect_key, effect.arguments)
    except Denied as error:
        raise EffectFailed from error


def text_of(document: Document) -> bytes:
    return json.dumps(document).encode()


def well_formed(profile: bytes) -> bool:
    return json.loads(profile)["minimum"] in ("none", "fired_rules", "selection", "whole_policy")
