"""Proofs that a checkpoint covers a record or extends an older one (spec §13.6).

They are made of the cached tiles and held against the signed root before they are handed out; a
cache that does not lead to it is made anew by one pass over the log, and only then is the ledger
to blame.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ledger import edge, tree
from ledger.checkpoint import Progress, Signed, grow
from ledger.errors import SignerRefuses
from ledger.log import Log
from ledger.note import Checkpoint, encode
from ledger.tiles import Tiles, TilesLacking

T = TypeVar("T")

HEADER = "c2sp.org/tlog-proof@v1"


class Prover:
    """Makes proofs that end in one signed checkpoint."""

    def __init__(
        self, path: Path, log: Log, tiles: Tiles, signed: Signed, progress: Progress = None
    ) -> None:
        """Take the ledger, the cache of its tree, and the checkpoint."""
        self.signed = signed
        self._path = path
        self._log = log
        self._tiles = tiles
        self._subtree: tree.Subtree = tiles.subtree
        self._progress = progress

    def inclusion(self, index: int, leaf: bytes) -> str:
        """Give the tlog-proof that the record with seq `index` and digest `leaf` is covered.

        Raises:
            SignerRefuses: It is not in the signed tree.

        """
        size, root = self.signed.checkpoint.size, self.signed.checkpoint.root

        def proved() -> tuple[bytes, ...] | None:
            proof = tree.inclusion(index, size, self._subtree)
            return proof if tree.proves_inclusion(index, size, leaf, proof, root) else None

        proof = self._made(proved, f"record {index} is not in it")
        return _text([HEADER, f"index {index}"], proof, self.signed.note)

    def consistency(self, old: int | Checkpoint) -> str:
        """Give the proof that the checkpoint extends an older one, or the log at an older size.

        Raises:
            SignerRefuses: It does not extend it: the two are of different histories.

        """
        new = self.signed.checkpoint
        size = old if isinstance(old, int) else old.size

        def proved() -> tuple[bytes, ...] | None:
            subtree = self._subtree
            root = tree.frontier(size, subtree).root() if isinstance(old, int) else old.root
            proof = tree.consistency(size, new.size, subtree)
            holds = tree.proves_consistency(size, new.size, proof, root, new.root)
            return proof if holds else None

        proof = self._made(proved, f"it does not extend the checkpoint of {size} records")
        return _text([f"old {size}"], proof, self.signed.note)

    def _made(self, proved: Callable[[], T | None], wrong: str) -> T:
        """Give what the tiles prove, made anew from the records if they prove nothing."""
        for again in (False, True):
            if again:
                self._grow()
            try:
                if (proof := proved()) is not None:
                    return proof
            except TilesLacking:
                continue
        raise SignerRefuses(self._path, self.signed.checkpoint.size, wrong)

    def _grow(self) -> None:
        size = self.signed.checkpoint.size
        grow(self._path, self._log, self._tiles, size, self._progress)
        known = edge.read(self._path, self._log.store.origin().seq)
        if known is not None:
            self._subtree = tree.behind(known, self._tiles.subtree)


def _text(head: list[str], proof: tuple[bytes, ...], note: bytes) -> str:
    return "\n".join([*head, *map(encode, proof), "", note.decode()])
