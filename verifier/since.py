"""What stands before the first record that the auditor asks about (spec §15.2).

The auditor kept the chain digest of the record before it, or a checkpoint of the records before it.
Nothing of them is verified: with a digest they are passed over and the last one is hashed, with a
checkpoint all are.
"""

from __future__ import annotations

from collections.abc import Sequence

from verifier.anchors import Anchor
from verifier.checkpoint import Checkpoint
from verifier.coverage import Coverage
from verifier.framing import Frames
from verifier.prefix import after, chain_digests, chain_there, first, hop, span
from verifier.replay import Replay
from verifier.source import Segment
from verifier.state import Edge

_BATCH = 4096  # digests that are taken into a tree at once


class Passed:
    """Passes over the records before an edge of which the auditor kept the digest.

    `held` is the edge where the record before it stands there as it was kept, and no record after
    it. `other` is the digest of a record there that is another one. Each is None where it is not.
    """

    def __init__(self, replay: Replay, edge: Edge) -> None:
        """Nothing is passed over yet."""
        self._replay = replay
        self._edge = edge
        self._digest: bytes | None = None  # of the record before the edge
        self.held: Edge | None = None
        self.other: bytes | None = None
        self.done = False
        replay.since = edge

    def segments(self, parts: list[Segment]) -> list[Segment]:
        """Leave out the files that end before the edge.

        Where the one that is named after it begins with no record, the one before may be the last.
        """
        seq = self._edge.seq
        left = after(parts, seq)
        if left and left[0].seq == seq and span(left[0].lead(), 0) is None:
            left = after(parts, seq - 1)
        self._replay.passed_over = len(left) < len(parts)
        return left

    def take(self, frames: Frames) -> bool:
        """Go on behind the record that was kept, or to the first one after it.

        Gives False where the file ends before both.
        """
        seq = self._edge.seq
        self.done = hop(frames, seq - 1)
        last = first(frames, seq - 1)
        if last is not None:
            chain, self._digest = last
            self._replay.passed_to = seq
            if self._digest == self._edge.prev:
                self._replay.be_of(chain)
        self._replay.passed_over |= frames.offset > 0
        return self.done

    def end(self) -> None:
        """Where no record follows, take it that those below the edge are in the log."""
        replay, edge = self._replay, self._edge
        if replay.tally.records or not replay.passed_over:
            return
        replay.passed_to = edge.seq
        replay.lookout.see_before(*edge)
        if self._digest != edge.prev:
            self.other = self._digest
            return
        self.held = edge
        replay.lookout.see(edge.seq - 1, (edge.prev,), sound=False)


class Hashed:
    """Takes the records below the size of a signed checkpoint into the tree, and no further.

    They are taken as they stand in the files: if the root is the signed one, they are those that
    were signed. With another root the edge is taken as it is found, for that is a finding. `held`
    is the edge where the root is the signed one.
    """

    other = None

    def __init__(self, replay: Replay, signed: Checkpoint, coverage: Coverage) -> None:
        """Nothing is hashed yet."""
        self._replay = replay
        self._signed = signed
        self._coverage = coverage
        self._first: int | None = None
        self._digests: list[bytes] = []
        self._place = 0  # the seq that the next digest must have
        self._last = b""
        self.held: Edge | None = None
        self.done = False

    def segments(self, parts: list[Segment]) -> list[Segment]:
        """Leave out no file."""
        return parts

    def take(self, frames: Frames) -> bool:
        """Go on to the first record to be verified; False where the file ends before it.

        A log of another chain is verified from its first record on.
        """
        if self._first is None and chain_there(frames) != self._signed.chain:
            self.done = True
            return True
        size = self._signed.size
        for seq, digest in chain_digests(frames, size):
            if self._first is None:
                self._first = self._place = seq
                self._replay.be_of(self._signed.chain)
            self._digests.append(digest)
            self._replay.passed_to = max(self._replay.passed_to, seq + 1)
            if self._place + len(self._digests) == size:
                break
            if len(self._digests) == _BATCH:
                self._flush()
        self._flush()
        if self._place < size and frames.pos == len(frames.buffer):
            return False
        self._close(frames)
        return True

    def end(self) -> None:
        """Say which root the records have where the log ends before the size."""
        if not self.done and self._first is not None:
            self._coverage.close(self._signed.size)

    def _flush(self) -> None:
        digests: Sequence[bytes] = self._digests
        if digests:
            self._coverage.extend(self._place, digests)
            self._replay.lookout.see(self._place, digests, sound=False)
            self._place += len(digests)
            self._last = digests[-1]
            self._digests = []

    def _close(self, frames: Frames) -> None:
        """Make the edge that the records to be verified go on from."""
        self.done = True
        if self._first is None:
            return  # the log begins above the size, as if nothing had been asked
        replay, coverage, size = self._replay, self._coverage, self._signed.size
        coverage.close(size)
        replay.since, replay.passed_over = Edge(size, self._last), True
        replay.since_holds = size in coverage.roots
        self.held = replay.since if coverage.size == size else None
        if replay.since_holds and coverage.size != size:
            hop(frames, size)
            replay.state.gap_explained = replay.state.link_explained = True


Before = Passed | Hashed


def before(replay: Replay, edge: Edge | None, anchor: Anchor | None) -> Before | None:
    """Give what deals with the records before those to be verified; None where there are none.

    A checkpoint that is not signed under a given vkey says nothing: the log is verified whole.
    """
    if edge is not None:
        return Passed(replay, edge)
    if anchor is None or not anchor.signed or anchor.checkpoint is None or replay.coverage is None:
        return None
    return Hashed(replay, anchor.checkpoint, replay.coverage)
