"""What becomes of old records: erased, compressed, archived and pruned (spec §15)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ledger import archive, checkpoint, pruning, redaction, request, signing
from ledger.archive import Archived, ArchiveUnfit
from ledger.checkpoint import Progress
from ledger.index import Covered, Index
from ledger.pruning import Pruned
from ledger.publishing import Place, Publishing
from ledger.redaction import ERASABLE, Redaction
from ledger.request import Hash
from ledger.store import rewriting
from ledger.store.contract import Tail
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
        old = redaction.forgotten(self._log, card_hash)
        said = self._log.run(lambda turn: redaction.say(turn, card_hash, old, names, who, why))
        return Redaction(said, self.finish_redactions())

    def finish_redactions(self) -> int:
        """Erase what a crash left to be erased, and give of how many records.

        Opening a ledger does it too.
        """
        return redaction.finish(self._files, self._log)

    def archive(
        self, path: Place, *, before: int | None = None, overwrite: bool = False
    ) -> Archived:
        """Write the oldest records to one file, up to the largest segment boundary that is fit.

        That is the largest at most at `before`, or, without it, the largest below which every card
        is ended. The last segment is closed for that if need be.

        Raises:
            NothingToArchive: There is no such boundary yet.
            InsideLedger, AlreadyThere: `path` cannot be written to.

        """
        target = self.require_free(path, overwrite)
        self.finish_redactions()
        limit = None if before is None else request.count("before", before)
        edge = archive.choose(self.path, self._log, limit)
        return archive.write(self._log, target, edge, overwrite=overwrite)

    def prune(self, path: Place, *, by: str, verified: bytes, progress: Progress = None) -> Pruned:
        """Remove the records that the archive at `path` holds; `verified` is its SHA-256.

        That is the digest of the file as an independent verifier has read it, so that what is
        removed is what was verified. It is compared with the segments byte for byte. Where this
        host has a signer, a checkpoint is signed before anything goes. Called again after a crash,
        it goes on.

        Raises:
            ArchiveUnfit: It is not the archive of the first records of this ledger.
            NotEnded, ProfileLost: A card stands against it. Nothing was changed.

        """
        who, file = request.named("by", by), Path(path)
        if archive.sha256(file) != request.digest("verified", verified):
            raise ArchiveUnfit(file, "it is not the file that was verified")
        self.finish_redactions()
        held = pruning.hold(self._files, self._log, file)
        pruning.require_edge(self._log, file, held)
        record = self._log.run(lambda turn: pruning.say(turn, held, who))
        if signing.exists(self.chain):
            checkpoint.sign(self.path, self._log, progress=progress)
        return Pruned(held.before, pruning.remove(self._files, self._log, held), record)

    def archive_edge(self, path: Place) -> tuple[int, bytes] | None:
        """Give the first seq of an archive and the digest before it, None where that is seq 0.

        It is what a verifier has to know of an archive of a ledger that was pruned before.
        """
        with archive.records(Path(path), self._log) as records:
            first = next(records)
        return (first.seq, first.prev) if first.seq else None

    def restore(self, path: Place) -> int:
        """Put back the records of an archive before the first that is left, and give how many.

        Raises:
            ArchiveUnfit: It does not hold the records that are missing.

        """
        return pruning.restore(self._files, self._log, Path(path))

    def compress(self) -> int:
        """Compress every segment but the last, and give how many were; appending goes on."""
        done = 0
        for number in self._files.numbers()[:-1]:
            with rewriting.packed(self._files, number) as part:
                if part is None:
                    continue

                def put(
                    tail: Tail, index: Index, covered: Covered, part: rewriting.Part = part
                ) -> bool:
                    return rewriting.put_packed(self._files, part)

                done += self._log.alone(put)
        return done

    @property
    def _files(self) -> Segments:
        return Segments(self.path)
