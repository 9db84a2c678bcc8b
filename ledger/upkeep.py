"""What is done to a ledger as a whole, and to no card of it (spec §4.2, §5)."""

from __future__ import annotations

from ledger import keys, request
from ledger.access import Access
from ledger.chain import rekey_proof
from ledger.codec import Record
from ledger.errors import ProposalInvalid
from ledger.turn import Turn


class Upkeep(Access):
    """The acts of an operator. Each is durable when it returns."""

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
        """Make a new key, and put it in force from the next record on (spec §4.2).

        A key that was put in force nowhere is removed again; one that may have been stays.
        """
        new = keys.make(self.chain)
        reached = False

        def rekey(turn: Turn) -> Record:
            nonlocal reached
            old, end, at = turn.covered, turn.covered.end, turn.at
            proof = rekey_proof(new.key, seq=end.seq, prev=old.digest, old_kid=old.kid)
            reached = True
            return turn.append("rekeyed", None, {"kid": new.key.kid, "proof": proof}, at=at)

        try:
            record = self._log.run(rekey)
        except BaseException:
            if not reached:
                keys.remove(new)
            raise
        keys.pin(new, record.seq, record.digest)
        return record
