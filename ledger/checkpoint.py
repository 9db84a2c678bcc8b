"""Signing checkpoints: only of a tree that extends every tree signed before (spec §13.4)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from ledger import edge, signing, wholefile
from ledger.codec import ZERO, digest_of
from ledger.errors import Malformed, SignerRefuses, StoreFailed
from ledger.index import Covered
from ledger.log import Log
from ledger.note import MAX_BYTES, Checkpoint
from ledger.signing import Last, Signing
from ledger.store import directory
from ledger.store.contract import ORIGIN, Position, Stored
from ledger.tiles import Tiles
from ledger.tree import HASH_SIZE, Frontier

Progress: TypeAlias = Callable[[int], None] | None

_NOTE: Final = re.compile(r"([0-9]{20})\.note")
_FLUSH: Final = 16_384 * HASH_SIZE
_PROGRESS_EVERY: Final = 1_000


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint that this host has signed, its note, and whether it was signed just now."""

    checkpoint: Checkpoint
    note: bytes
    path: Path
    new: bool


@dataclass(slots=True)
class Growth:
    """A tree that takes in records one after another, and hands their hashes to the tiles."""

    tiles: Tiles
    frontier: Frontier = field(default_factory=Frontier)
    before: Frontier = field(default_factory=Frontier)
    last: Position = ORIGIN
    end: Position = ORIGIN
    digest: bytes = ZERO
    leaves: bytearray = field(default_factory=bytearray)

    def add(self, stored: Stored, digest: bytes) -> None:
        """Take in the next record, by its chain digest."""
        self.before, self.frontier = self.frontier, self.frontier.add(digest)
        self.last, self.end, self.digest = stored.position, stored.end, digest
        self.leaves += digest
        if len(self.leaves) >= _FLUSH:
            self.flush()

    def flush(self) -> None:
        """Hand over the hashes gathered so far."""
        self.tiles.extend(self.frontier.size - len(self.leaves) // HASH_SIZE, bytes(self.leaves))
        self.leaves.clear()


def make(
    path: Path, log: Log, held: Signing, *, every: int = 1, progress: Progress = None
) -> Signed:
    """Sign the tree of all records, or give the last checkpoint where it is of that tree.

    With `every` the last one is given as long as fewer records than that were appended since.
    What is given is durable in `checkpoints/` of the ledger at `path`. `held` is the signer.

    Raises:
        SignerMissing: This host has no signing key for this chain.
        SignerRefuses: The ledger does not extend what was signed.
        BrokenLedger: A record does not hold.

    """
    held.key()
    known = newest(path, held)
    covered = log.run(lambda turn: turn.covered)
    size = covered.position.seq + 1
    if known is not None:
        behind = size - known.checkpoint.size
        if behind < 0:
            reason = f"the ledger holds only {size}"
            raise SignerRefuses(path, known.checkpoint.size, reason)
        if 0 < behind < every:
            return known
    growth = _grown(path, log, held, known, covered, progress)
    growth.flush()
    if known is not None and known.checkpoint.size == size:
        return known
    checkpoint = Checkpoint(log.chain, size, growth.frontier.root())
    note = held.sign(checkpoint)
    held.remember(Last(note, checkpoint, growth.before, growth.last))
    return _kept(path, checkpoint, note, new=True)


def sign(path: Path, log: Log, *, every: int = 1, progress: Progress = None) -> Signed:
    """Do as `make` does, with the signer of this host held for it."""
    with signing.held(log.chain) as held:
        return make(path, log, held, every=every, progress=progress)


def newest(path: Path, held: Signing) -> Signed | None:
    """Give the largest checkpoint that this host has signed, None if there is none.

    It is looked for in the state directory and in `checkpoints/`, where it is put if a crash came
    before that.

    Raises:
        SignerRefuses: There are two of this size with different roots.

    """
    last = held.last()
    found = next(_delivered(path, held), None)
    if last is None:
        return found
    own = last.checkpoint
    if found is None or found.checkpoint.size < own.size:
        return _kept(path, own, last.note, new=False)
    if found.checkpoint.size == own.size and found.checkpoint != own:
        reason = f"{found.path.name} is signed too, with another root"
        raise SignerRefuses(path, own.size, reason)
    return found


def grow(path: Path, log: Log, tiles: Tiles, size: int, progress: Progress = None) -> Growth:
    """Compute the tree of the first `size` records from the first one, and the tiles with it.

    Only frames are read: what comes out is for the caller to hold against a signed root. In a
    pruned ledger it begins with the frontier that was kept (spec §13.5).
    """
    growth = _begun(path, log, tiles, size)
    for stored in log.store.read(growth.end):
        if stored.position.seq == size:
            break
        try:
            growth.add(stored, digest_of(stored.data))
        except Malformed as error:
            raise log.replay.broken(stored.position, error.reason) from error
        _tell(progress, growth.frontier.size)
    growth.flush()
    return growth


def _begun(path: Path, log: Log, tiles: Tiles, size: int) -> Growth:
    """Give the tree before the first record that is there, for one of `size` or more."""
    origin = log.store.origin()
    if origin.seq == 0:
        tiles.clear()
        return Growth(tiles)
    before = edge.read(path, origin.seq)
    if before is None or size < origin.seq:
        reason = f"the records below seq {origin.seq} were pruned, and their frontier is not kept"
        raise SignerRefuses(path, size, reason)
    tiles.begin_at(origin.seq)
    return Growth(tiles, frontier=before, end=origin, digest=log.replay.read(origin).prev)


def _delivered(path: Path, held: Signing) -> Iterator[Signed]:
    """Yield the checkpoints in a ledger that this host has signed, the largest first."""
    try:
        names = sorted(filter(_NOTE.fullmatch, os.listdir(path / "checkpoints")), reverse=True)
    except OSError as error:
        raise StoreFailed(f"read {path / 'checkpoints'}: {error.strerror}") from error
    for name in names:
        file = path / "checkpoints" / name
        data = _read(file)
        checkpoint = held.signed(data)
        if checkpoint is not None and name == _name(checkpoint.size):
            yield Signed(checkpoint, data, file, new=False)


def _read(file: Path) -> bytes:
    with os.fdopen(directory.open_file(file, os.O_RDONLY), "rb") as source:
        return source.read(MAX_BYTES + 1)


def _grown(
    path: Path, log: Log, held: Signing, known: Signed | None, covered: Covered, progress: Progress
) -> Growth:
    """Give the tree up to `covered`, grown from the last checkpoint by checked records."""
    if known is None:
        growth = _begun(path, log, held.tiles, covered.position.seq)
    else:
        growth = _resumed(path, log, held, known, progress)
    for stored in log.store.read(growth.end):
        if growth.frontier.size > covered.position.seq:
            break
        record = log.replay.checked(stored)
        if record.prev != growth.digest:
            reason = "prev is not the chain digest of the record before"
            raise log.replay.broken(stored.position, reason)
        growth.add(stored, record.digest)
        _tell(progress, growth.frontier.size)
    if growth.frontier.size != covered.position.seq + 1 or growth.digest != covered.digest:
        raise log.replay.broken(growth.last, "not the records that this host has read before")
    return growth


def _resumed(path: Path, log: Log, held: Signing, known: Signed, progress: Progress) -> Growth:
    """Give the tree of the last checkpoint; it leads to the signed root.

    It is taken from what is kept beside the checkpoint and from its last record in the ledger,
    together, or else computed again.
    """
    checkpoint, last = known.checkpoint, held.last()
    if last is not None and last.checkpoint == checkpoint:
        stored = next(log.store.read(last.position), None)
        growth = Growth(held.tiles, frontier=last.before)
        if stored is not None and stored.position.seq == last.before.size:
            growth.add(stored, _digest(stored.data))
        if growth.frontier.size and growth.frontier.root() == checkpoint.root:
            return growth
    if last is not None and log.store.origin().seq <= last.checkpoint.size < checkpoint.size:
        _regrown(path, log, held, last.checkpoint, progress)
    return _regrown(path, log, held, checkpoint, progress)


def _regrown(
    path: Path, log: Log, held: Signing, checkpoint: Checkpoint, progress: Progress
) -> Growth:
    """Give the tree of a checkpoint, computed again from the first record that is there."""
    growth = grow(path, log, held.tiles, checkpoint.size, progress)
    if growth.frontier.size != checkpoint.size or growth.frontier.root() != checkpoint.root:
        raise SignerRefuses(path, checkpoint.size, "the records have another root")
    return growth


def _digest(data: bytes) -> bytes:
    try:
        return digest_of(data)
    except Malformed:
        return ZERO


def _kept(path: Path, checkpoint: Checkpoint, note: bytes, *, new: bool) -> Signed:
    """Put a checkpoint in `checkpoints/`, durably, before it is handed out."""
    file = path / "checkpoints" / _name(checkpoint.size)
    wholefile.write(file, [note], overwrite=True)
    return Signed(checkpoint, note, file, new)


def _name(size: int) -> str:
    return f"{size:020}.note"


def _tell(progress: Progress, count: int) -> None:
    if progress is not None and count % _PROGRESS_EVERY == 0:
        progress(count)
