"""The ledger: issue, resolve, withdraw, dispatch, settle (spec §5, §6).

Each request is decided alone in the ledger, by `gate`, over everything appended before; it becomes
one event, or a refusal with its reason, and the caller is answered when that is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ledger import lifecycle, request
from ledger.answers import Evidence, IssuedCard, Opening, Ticket
from ledger.codec import Record
from ledger.errors import ProposalInvalid, Refused
from ledger.guard import Guard
from ledger.proposal import Facts, Proposal
from ledger.request import Hash
from ledger.retention import Retention
from ledger.turn import Turn

T = TypeVar("T")


class Ledger(Retention):
    """One ledger directory, opened for append. Safe across threads, processes and forks.

    Every method returns, and every refusal is raised, only when all that it rests on is durable.
    A request that breaks a rule of the caller raises `ProposalInvalid`, and nothing is recorded.
    After `StoreFailed` what was asked may stand there or not, and the object may be unusable; open
    the ledger again, and look.
    """

    # The life of a card

    def issue(
        self,
        proposal: Proposal,
        *,
        presented: Opening | None = None,
        runtime: Mapping[str, str] | None = None,
    ) -> IssuedCard:
        """Issue a card, or give the one that stands for the same ask already (spec §2.6).

        `presented` is the exact text that a channel puts before the approver, if it is not
        `IssuedCard.text`.

        Raises:
            Refused: The step has another card that this one does not supersede rightly.

        """
        if not isinstance(proposal, Proposal):
            raise ProposalInvalid("proposal", "expected a Proposal")
        shown = request.openings(presented=presented)
        request.view(proposal, shown)
        told = request.runtime(runtime)
        return self._answer(lambda turn: lifecycle.issue(turn, proposal, shown, told))

    def issue_many(
        self, proposals: Iterable[Proposal], *, runtime: Mapping[str, str] | None = None
    ) -> list[IssuedCard | Refused]:
        """Issue up to 1,024 cards in one turn, with one write and one sync.

        The answers stand in the order of the proposals, and a refusal stands among them, as
        recorded as one that `issue` raises; each proposal is decided over those before it. All are
        issued at one time. Whoever shows another text than `IssuedCard.text` issues one by one.

        Raises:
            ProposalInvalid: One of them breaks a rule of the caller. None was issued, and the
                pointer begins with its number.

        """
        asked = request.proposals(proposals)
        told = request.runtime(runtime)
        return self._log.run(lambda turn: lifecycle.issue_many(turn, asked, told))

    def resolve(
        self,
        echo: Hash,
        decision: str,
        *,
        approver: str | None,
        target: Hash | None = None,
        channel: str = "api",
        assurance: str = "label",
        evidence: Evidence | None = None,
        note: str | None = None,
        presented: Opening | None = None,
        response: Opening | None = None,
    ) -> Record:
        """Take the decision of an approver, `"approve"` or `"reject"`, about what they echoed.

        `echo` is the hash that stood before the approver, `target` the card that the request was
        about, by its path, button or thread. The same decision again gives the first record.

        Raises:
            Refused: The decision does not count; the card stays as it was.
            ProfileMissing: The card names a profile that is not at hand; nothing is recorded.

        """
        who = request.approver(request.person("approver", approver), assurance, evidence)
        asked = {
            "echo": request.card_hash("echo", echo),
            "decision": request.one_of("decision", decision, request.DECISIONS),
            "channel": request.line("channel", channel),
            **request.given(
                target=None if target is None else request.card_hash("target", target),
                approver=who,
            ),
        }
        kept = request.openings(
            note=request.text("note", note), presented=presented, response=response
        )
        return self._answer(lambda turn: lifecycle.resolve(turn, asked, kept))

    def answer(
        self,
        echo: Hash,
        action: str,
        content: Any = None,
        *,
        approver: str | None,
        target: Hash | None = None,
        channel: str = "elicitation",
        assurance: str = "label",
        evidence: Evidence | None = None,
    ) -> Record:
        """Take the answer to an elicitation or to an `input-required` task.

        `"accept"` approves and keeps `content`, a JSON value, as the response; `"decline"`
        rejects; `"cancel"` withdraws the card, in the name of the approver. The echo is the card
        hash that stood beside the question.

        Raises:
            Refused: The answer does not count; the card stays as it was.

        """
        if request.one_of("action", action, request.ACTIONS) == "cancel":
            if content is not None:
                raise ProposalInvalid("content", "a cancelled question has no answer")
            return self.withdraw(
                echo, by=approver, reason="cancelled", target=target, channel=channel
            )
        return self.resolve(
            echo,
            "approve" if action == "accept" else "reject",
            approver=approver,
            target=target,
            channel=channel,
            assurance=assurance,
            evidence=evidence,
            response=None if content is None else request.response(content),
        )

    def withdraw(
        self,
        echo: Hash,
        *,
        by: str | None,
        reason: str,
        target: Hash | None = None,
        channel: str | None = None,
        note: str | None = None,
    ) -> Record:
        """Withdraw an open card or a grant that is not spent: `"revoked"` or `"cancelled"`.

        Raises:
            Refused: It cannot be withdrawn any more, or the echo is not of this card.

        """
        who = request.person("by", by)
        asked = {
            "echo": request.card_hash("echo", echo),
            **request.given(
                target=None if target is None else request.card_hash("target", target),
                approver=request.approver(who),
                channel=None if channel is None else request.line("channel", channel),
            ),
        }
        why = request.one_of("reason", reason, request.WITHDRAWALS)
        kept = request.openings(note=request.text("note", note))
        return self._answer(lambda turn: lifecycle.withdraw(turn, asked, why, kept))

    def dispatch(
        self,
        card: Hash,
        facts: Facts,
        *,
        policy_outcome: str | None = None,
        approver_check: str | None = None,
        approver_authorised: bool = True,
    ) -> Ticket:
        """Spend the grant of a card, immediately before the effect, if the facts still agree.

        `facts` are built from the call that is about to run, never from the card. Policy asked
        again answers with `policy_outcome`, of which `"deny"` refuses; `approver_check` tells how
        it was looked up that the approver still may, and `approver_authorised` what came of it.

        Raises:
            Refused: Nothing may run. At a `mismatch` its `pointers` say where the facts differ,
                and its `drift` which classes of spec §8.6 these are of.

        """
        target = request.card_hash("card", card)
        now = request.now(facts, policy_outcome, approver_check, approver_authorised)
        return self._answer(lambda turn: lifecycle.dispatch(turn, target, now))

    def guard(self, card: Hash, facts: Facts, **asked: Any) -> Guard:
        """Dispatch a card around the block that runs its effect, and settle it after.

            with ledger.guard(card, facts) as effect:
                pay(**effect.arguments, idempotency_key=effect.effect_key)

        `asked` are those of `dispatch`. A block that ends settles `succeeded`, `EffectFailed`
        settles `failed`, any other error `unknown`; errors go on to the caller.
        """
        return Guard(lambda: self.dispatch(card, facts, **asked), self.settle)

    def settle(
        self,
        card: Hash,
        outcome: str,
        *,
        by: str | None = None,
        receipt_digest: bytes | None = None,
    ) -> Record:
        """Record how a dispatched call ended: `"succeeded"`, `"failed"` or `"unknown"`.

        Raises:
            Refused: Nothing was dispatched, or the outcome is known already.

        """
        target = request.card_hash("card", card)
        said = {
            "outcome": request.one_of("outcome", outcome, request.OUTCOMES),
            **request.given(
                by=None if by is None else request.named("by", by),
                receipt_digest=None
                if receipt_digest is None
                else request.digest("receipt_digest", receipt_digest),
            ),
        }
        return self._answer(lambda turn: lifecycle.settle(turn, target, said))

    def _answer(self, body: Callable[[Turn], T | Refused]) -> T:
        """Give the answer of a gate, or raise its refusal, when it is durable."""
        answer = self._log.run(body)
        if isinstance(answer, Refused):
            raise answer
        return answer
