"""What becomes of old records: erased, compressed, archived and pruned (spec §15)."""

from __future__ import annotations

from collections.abc import Iterable

from ledger import redaction, request
from ledger.publishing import Publishing
from ledger.redaction import ERASABLE, Redaction
from ledger.request import Hash
from ledger.store.segments import Segments

REASONS = ("erasure_request", "retention", "secret", "other")


class Retention(Publishing):
    """The acts that make a ledger hold less. Each is durable when it returns."""

    def redact(
        self, card: Hash, *, by: str, reason: str, openings: Iterable[str] = ERASABLE
    ) -> Redaction:
        """Erase what was said about an ended card: its envelope, notes, texts and responses.

        Of every record of the card the openings named are said to be redacted, and then taken out
        of the files of this ledger. What it cannot reach stands in docs/retention.md.

        Raises:
            UnknownCard: No record is about this card.
            NotEnded: Something is still to come of it; nothing was changed.

        """
        card_hash = request.card_hash("card", card)
        names = frozenset(request.one_of("openings", each, ERASABLE) for each in openings)
        who = request.named("by", by)
        why = request.one_of("reason", reason, REASONS)
        said = self._log.run(lambda turn: redaction.say(turn, card_hash, names, who, why))
        return Redaction(said, self.finish_redactions())

    def finish_redactions(self) -> int:
        """Erase what a crash left to be erased, and give of how many records.

        Opening a ledger does it too.
        """
        return redaction.finish(Segments(self.path), self._log)
