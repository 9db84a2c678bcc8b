"""The ledger: issue, resolve, withdraw, dispatch, settle (spec §5, §6).

Each request is decided alone in the ledger, by `gate`, over everything appended before; it becomes
one event, or a refusal with its reason, and the caller is answered when that is durable.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from ledger import export, keys, lifecycle, request
from ledger.answers import Evidence, Exported, IssuedCard, Opening, Ticket
from ledger.assembly import assembled
from ledger.chain import rekey_proof
from ledger.codec import Record
from ledger.errors import ProposalInvalid, Refused
from ledger.guard import Guard
from ledger.log import Adoption, Turn
from ledger.profile import parse as parse_profile
from ledger.proposal import Facts, Proposal
from ledger.reader import Reader
from ledger.request import Hash
from ledger.store import directory
from ledger.store.contract import ORIGIN

T = TypeVar("T")
Paths = Iterable[str | os.PathLike[str]]

SOFTWARE: Final = "cardchain 0.1.0"


def _now() -> int:
    return time.time_ns() // 1_000_000


class Ledger(Reader):
    """One ledger directory, opened for append. Safe across threads, processes and forks.

    Every method returns, and every refusal is raised, only when all that it rests on is durable.
    A request that breaks a rule of the caller raises `ProposalInvalid`, and nothing is recorded.
    After `StoreFailed` the object is unusable; open the ledger again.
    """

    @classmethod
    def init(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str,
        profile: bytes | None = None,
        clock: Callable[[], int] = _now,
        sync: Callable[[int], None] = os.fsync,
    ) -> Self:
        """Make a ledger at `path`, which must be free or an empty directory, and its key.

        `profile` holds the canonical bytes of what every card is held to (spec §8.5).
        """
        told, kept = request.profile(profile)
        body = {"name": request.line("name", name), "software": SOFTWARE, **told}
        where = Path(path)
        directory.require_free(where)
        key_file = keys.make(secrets.token_bytes(16))
        directory.make(where)
        log = assembled(where, key_file.key.chain, (), clock, sync)
        try:
            record = log.found(body, kept, key_file.key)
            keys.pin(key_file, record.seq, record.digest)
        except BaseException:
            if log.store.at(ORIGIN) is None:  # without a record it would be no ledger, in the way
                directory.unmake(where)
            log.close()
            raise
        return cls(where, log)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        keys: Paths = (),
        profiles: Iterable[bytes] = (),
        clock: Callable[[], int] = _now,
        sync: Callable[[int], None] = os.fsync,
        progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Open a ledger for append, and read what was appended since this host last did.

        `keys` are key files or folders of them, beside `CARDCHAIN_KEY` and the state directory.
        `profiles` are the canonical bytes of those that cards name and the chain does not hold.
        `clock` gives unix milliseconds; `sync` makes a file descriptor durable; `progress` is told
        the count of records while a lost index is made anew.

        Raises:
            NotALedger: There is none at `path`.
            BrokenLedger: Its files are not what this software wrote.
            RolledBack, Copied: It is not the ledger that this host remembers.
            KeyMissing, LooseMode, LockTimeout, NoStateDirectory, StoreFailed: The host.

        """
        return cls._open(Path(path), keys, clock, sync, profiles=profiles, progress=progress)

    @classmethod
    def adopt(
        cls,
        path: str | os.PathLike[str],
        *,
        keys: Paths = (),
        clock: Callable[[], int] = _now,
        rolled_back: bool = False,
    ) -> Self:
        """Open a copy as the ledger to append to; `rolled_back` gives up the records it lacks."""
        how: Adoption = "rolled back" if rolled_back else "copy"
        return cls._open(Path(path), keys, clock, os.fsync, adopt=how)

    @classmethod
    def _open(
        cls,
        path: Path,
        key_paths: Paths,
        clock: Callable[[], int],
        sync: Callable[[int], None],
        *,
        profiles: Iterable[bytes] = (),
        progress: Callable[[int], None] | None = None,
        adopt: Adoption | None = None,
    ) -> Self:
        given = tuple(map(Path, key_paths))
        known = {each.digest: each for each in map(parse_profile, profiles)}
        log = assembled(
            path, None, given, clock, sync, profiles=known, progress=progress, adopt=adopt
        )
        ledger = cls(path, log)
        try:
            log.run(lambda turn: None)
        except BaseException:
            log.close()
            raise
        return ledger

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

    # The ledger itself

    def configure(
        self, *, by: str, profile: bytes | None = None, vkey: str | None = None
    ) -> Record:
        """Put a profile in force for the cards issued from now on, or name a verification key."""
        told, kept = request.profile(profile)
        if profile is None and vkey is None:
            raise ProposalInvalid("configure", "expected a profile or a vkey")
        body = {
            "by": request.named("by", by),
            **told,
            **request.given(vkey=None if vkey is None else request.line("vkey", vkey)),
        }
        return self._log.run(lambda turn: turn.append("configured", None, body, kept))

    def clock_reset(self, *, by: str, reason: str) -> Record:
        """Record that the clock went back; every open card and unspent grant ends (spec §5)."""
        body = {
            "by": request.named("by", by),
            "reason": request.one_of("reason", reason, request.RESETS),
        }

        def reset(turn: Turn) -> Record:
            now, was = self._log.clock(), turn.covered.at
            if now >= was:
                raise ProposalInvalid(
                    "clock", f"it reads {now} ms, not before the last record, {was} ms"
                )
            return turn.append("clock_reset", None, {"was": was, **body}, at=now)

        return self._log.run(reset)

    def rotate(self) -> Record:
        """Make a new key, and put it in force from the next record on (spec §4.2)."""
        new = keys.make(self.chain)

        def rekey(turn: Turn) -> Record:
            old, end = turn.covered, turn.covered.end
            proof = rekey_proof(new.key, seq=end.seq, prev=old.digest, old_kid=old.kid)
            return turn.append("rekeyed", None, {"kid": new.key.kid, "proof": proof})

        record = self._log.run(rekey)
        keys.pin(new, record.seq, record.digest)
        return record

    def export(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Exported:
        """Write the whole ledger to one file, which appears only when it is complete (spec §7.2).

        Raises:
            InsideLedger: `path` is inside the ledger.
            AlreadyThere: Something stands at `path`, and `overwrite` is false.
            BrokenLedger: A record does not hold. No file is left.

        """
        return export.write(Path(path), self.path, self.records(), overwrite=overwrite)

    def _answer(self, body: Callable[[Turn], T | Refused]) -> T:
        """Give the answer of a gate, or raise its refusal, when it is durable."""
        answer = self._log.run(body)
        if isinstance(answer, Refused):
            raise answer
        return answer
