"""What a ledger hands out to people without its key: exports, checkpoints, proofs, excerpts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ledger import checkpoint, excerpt, export, note, reading, request, signing, wholefile
from ledger.answers import Exported
from ledger.checkpoint import Progress, Signed
from ledger.errors import ProposalInvalid, SignerExists, SignerRefuses
from ledger.excerpt import Selection
from ledger.note import Checkpoint
from ledger.proof import Prover
from ledger.request import Hash
from ledger.signing import Signing
from ledger.store.contract import AlreadyThere
from ledger.upkeep import Upkeep
from ledger.view import NO_CARD, View

Place = str | os.PathLike[str]


class Publishing(Upkeep):
    """The acts by which others come to see a ledger. Each is durable when it returns."""

    # Signing

    def make_signer(self, *, by: str, replace: bool = False) -> str:
        """Make the signing key of this host, announce its vkey in the log, and give that.

        A key that was made and not announced, because of a crash, is announced.

        Raises:
            SignerExists: There is one that is announced, and `replace` is false.

        """
        who = request.named("by", by)
        with signing.held(self.chain) as held:
            if held.exists and not replace:
                vkey = str(held.key().vkey)
                if self._log.look(_announced) == vkey:
                    raise SignerExists(vkey)
            else:
                vkey = str(held.make_key(replace=replace))
            self.configure(by=who, vkey=vkey)
        return vkey

    def checkpoint(self, *, every: int = 1, progress: Progress = None) -> Signed:
        """Sign the tree of all records, or give the last checkpoint where it is of that tree.

        With `every` the last one is given as long as fewer records than that came after it. What
        is given stands in `checkpoints/` of the ledger, durably. `progress` is told the count of
        records while the tree is computed anew.

        Raises:
            SignerMissing: This host has no signing key for this ledger.
            SignerRefuses: The ledger does not extend what was signed; nothing was signed.
            BrokenLedger: A record does not hold.

        """
        return checkpoint.sign(self.path, self._log, every=every, progress=progress)

    def consistency(
        self, since: int | bytes, *, every: int = 1, progress: Progress = None
    ) -> tuple[bytes, Signed]:
        """Give the proof that the newest tree extends an older one, and its checkpoint (§13.6).

        `since` is the size of the older one, or the note that somebody kept of it.

        Raises:
            NoteMalformed: The note is not a checkpoint of this ledger.
            SignerRefuses: The ledger does not extend it, or this host has not signed it.

        """
        with signing.held(self.chain) as held:
            signed = checkpoint.make(self.path, self._log, held, every=every, progress=progress)
            old = self._older(held, since, signed.checkpoint.size)
            prover = Prover(self.path, self._log, held.tiles, signed, progress)
            return prover.consistency(old).encode(), signed

    def _older(self, held: Signing, since: int | bytes, size: int) -> int | Checkpoint:
        """Give the older size or checkpoint, if it can be one of this ledger."""
        if isinstance(since, int):
            if not 1 <= since <= size:
                raise ProposalInvalid("since", f"expected a size from 1 to {size}")
            return since
        old = note.checkpoint(note.parse(since), self.chain)
        if held.signed(since) is None:
            raise SignerRefuses(self.path, old.size, "it is not signed under a key of this host")
        if old.size > size:
            raise SignerRefuses(self.path, old.size, f"the ledger holds only {size}")
        return old

    # Files

    def export(
        self,
        path: Place,
        *,
        overwrite: bool = False,
        withhold: Iterable[str] = (),
        progress: Progress = None,
    ) -> Exported:
        """Write the whole ledger to one file, which appears only when it is complete (spec §7.2).

        Where this host has a signer, the checkpoint at its size is put beside it (spec §13.5).
        Openings named in `withhold` are left out (spec §15.4).

        Raises:
            InsideLedger: `path` is inside the ledger.
            AlreadyThere: Something stands at `path`, and `overwrite` is false.
            BrokenLedger: A record does not hold. No file is left.
            SignerRefuses: The ledger does not extend what was signed. No file is left.

        """
        target, left_out = self.require_free(path, overwrite), request.withheld(withhold)
        if not signing.exists(self.chain):
            return export.write(target, self.records(), overwrite=overwrite, withhold=left_out)
        beside = self.require_free(export.note_beside(target), overwrite)
        signed = self.checkpoint(progress=progress)
        records = reading.records(self._log, 0, signed.checkpoint.size)
        done = export.write(target, records, overwrite=overwrite, withhold=left_out)
        wholefile.write(beside, [signed.note], overwrite=overwrite)
        return replace(done, note=str(beside))

    def receipt(
        self,
        card: Hash,
        path: Place,
        *,
        overwrite: bool = False,
        withhold: Iterable[str] = (),
        progress: Progress = None,
    ) -> Exported:
        """Write every record of a card, with proofs under the newest checkpoint (spec §14).

        A checkpoint is signed where the newest does not cover these records.

        Raises:
            UnknownCard: No such card was issued.
            SignerMissing, SignerRefuses: There is no checkpoint that covers them.
            InsideLedger, AlreadyThere: `path` cannot be written to.

        """
        target, left_out = self.require_free(path, overwrite), request.withheld(withhold)
        card_hash = request.card_hash("card", card)
        selection = self._log.look(lambda view: excerpt.of_card(view, card_hash))
        with signing.held(self.chain) as held:
            proofs = self._proofs(held, selection, progress)
        return self._write(target, selection, proofs, left_out, overwrite=overwrite)

    def export_range(
        self,
        path: Place,
        first: int,
        last: int | None = None,
        *,
        overwrite: bool = False,
        withhold: Iterable[str] = (),
        progress: Progress = None,
    ) -> Exported:
        """Write the records from seq `first` to `last`, and what they rest on (spec §14).

        Without `last` it goes to the last record. Proofs are left out where there is no signer.

        Raises:
            ProposalInvalid: There are no such records.
            InsideLedger, AlreadyThere: `path` cannot be written to.
            ExcerptTooLarge: It would be over the limit of an excerpt.

        """
        target, left_out = self.require_free(path, overwrite), request.withheld(withhold)
        end = self._log.run(lambda turn: turn.covered.position.seq)
        origin = self._log.store.origin().seq
        to = end if last is None else last
        if not origin <= first <= to <= end:
            raise ProposalInvalid("range", f"expected seqs in order, from {origin} to {end}")
        selection = excerpt.of_range(self._log, first, to)
        proofs: list[str] = []
        if signing.exists(self.chain):
            with signing.held(self.chain) as held:
                proofs = self._proofs(held, selection, progress)
        return self._write(target, selection, proofs, left_out, overwrite=overwrite)

    def _proofs(self, held: Signing, selection: Selection, progress: Progress) -> list[str]:
        """Prove each record whose successor is not in the excerpt, under one checkpoint."""
        signed = checkpoint.newest(self.path, held)
        if signed is None or signed.checkpoint.size <= selection.records[-1].seq:
            signed = checkpoint.make(self.path, self._log, held, progress=progress)
        prover = Prover(self.path, self._log, held.tiles, signed, progress)
        return [prover.inclusion(each.seq, each.digest) for each in selection.bare_ends()]

    def _write(
        self,
        path: Path,
        selection: Selection,
        proofs: list[str],
        withhold: frozenset[str],
        *,
        overwrite: bool,
    ) -> Exported:
        data = excerpt.encode(selection, proofs, withhold)
        wholefile.write(path, [data], overwrite=overwrite)
        return Exported(len(selection.records), len(data), selection.records[-1].digest)

    def require_free(self, path: Place, overwrite: bool = False) -> Path:
        """Give a path that a file may be written to, before any work is done for it.

        Raises:
            InsideLedger: `path` is inside the ledger.
            AlreadyThere: Something stands there, and `overwrite` is false.

        """
        target = Path(path)
        export.require_outside(target, self.path)
        if not overwrite and os.path.lexists(target):
            raise AlreadyThere(target)
        return target


def _announced(view: View) -> str | None:
    """Give the newest vkey that the log announces (spec §13.3)."""
    for place in reversed(view.views.events(NO_CARD)):
        record = view.source.replay.read(place)
        if record.kind in ("opened", "configured") and "vkey" in record.body:
            vkey: str = record.body["vkey"]
            return vkey
    return None
