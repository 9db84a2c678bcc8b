"""How logs are read: from which record on, in how many processes, and watched by whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from verifier.framing import Frames
from verifier.keys import Ring
from verifier.progress import Progress
from verifier.source import Segment
from verifier.state import Edge

if TYPE_CHECKING:
    from verifier.jobs import Pool


class Manner(NamedTuple):
    """The left edge that the auditor kept, processes that prove records, and who is told."""

    since: Edge | None = None
    pool: Pool | None = None
    progress: Progress | None = None

    def frames(self, segment: Segment, records: Callable[[], int]) -> Frames:
        """Give the pieces of a file; `records` says how many were verified so far."""
        chunks = segment.chunks()
        if self.progress is not None:
            chunks = self.progress.watch(chunks, records)
        return Frames(segment.path, chunks, segment.seq)

    def share(self, frames: Frames) -> None:
        """Let the records that come be proven in other processes, if there are some."""
        if self.pool is not None:
            frames.read_from(self.pool.pieces)

    def close(self) -> None:
        """Let the processes end, and erase what a watcher saw."""
        if self.pool is not None:
            self.pool.close()
        if self.progress is not None:
            self.progress.end()


ALONE = Manner()


def pool(jobs: int, ring: Ring) -> Pool | None:
    """Give processes that hold the keys of `ring`; none for one job."""
    if jobs == 1:
        return None
    from verifier.jobs import Pool  # starting takes longer with it

    return Pool(jobs, ring)
