"""Catching up with what others appended, and with what a crash left behind (spec §7.4)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Final

from ledger.codec import next_length
from ledger.errors import BrokenLedger, Malformed
from ledger.index import Covered, Index
from ledger.recall import Recall
from ledger.replay import Replay, Unsound
from ledger.store.contract import Store, Tail

_PROGRESS_EVERY: Final = 1_000
_KEEP_EVERY: Final = 50_000
"""How many records a replay holds in memory before the index keeps them."""


class CatchUp:
    """Reads, checks and folds every record that an index does not cover yet.

    `clock` gives unix milliseconds; `progress` is told the count of records while many are read.
    """

    def __init__(
        self,
        store: Store,
        replay: Replay,
        recall: Recall,
        clock: Callable[[], int],
        progress: Callable[[int], None] | None,
    ) -> None:
        """Take the parts; nothing is read yet."""
        self._store = store
        self._replay = replay
        self._recall = recall
        self._clock = clock
        self._progress = progress

    def run(self, tail: Tail, index: Index, *, first: bool) -> Covered:
        """Give the last record of the store, which the index covers then.

        Bytes that a crash left behind the last good record are moved aside and accounted for;
        anything else that is wrong there is a broken ledger. The `first` time in a process the
        ledger is held against what this host remembers of it.
        """
        if first:
            tail.tidy()
            self._recall.require_index(index, self._replay)
        covered, why = self._read_on(tail, index)
        if rest := self._rest(tail, covered, why):
            self._require_torn(rest, covered, why)
        if first:
            self._require_edge(index)
            self._recall.require(covered)
        if first or rest:
            covered = self._account_for_torn(tail, index, covered)
        return covered

    def _read_on(self, tail: Tail, index: Index) -> tuple[Covered, str]:
        """Take in the records that follow; gives why it stopped at one, empty at the end."""
        covered = index.covered()
        origin = self._store.origin()
        begin = covered.end if covered else origin
        with closing(tail.read(begin)) as following:
            for stored in following:
                try:
                    covered = self._replay.take(index, stored, covered)
                except Unsound as error:
                    if covered is None:
                        raise self._replay.broken(origin, str(error)) from error
                    return covered, str(error)
                if self._progress and (stored.end.seq - begin.seq) % _PROGRESS_EVERY == 0:
                    self._progress(stored.end.seq)
                if stored.end.seq % _KEEP_EVERY == 0:
                    index.keep()
        if covered is None:
            raise self._replay.broken(origin, "no whole record")
        return covered, ""

    def _require_edge(self, index: Index) -> None:
        """Refuse a ledger without its first records, where no `pruned` record says so (§15.2)."""
        first = self._store.origin()
        if first.seq > index.pruned_below():
            reason = f"the records below seq {first.seq} are gone, and no pruned record says so"
            raise self._replay.broken(first, reason)

    def _rest(self, tail: Tail, covered: Covered, why: str) -> bytes:
        try:
            return tail.rest(covered.end)
        except BrokenLedger as error:
            if why:
                raise self._replay.broken(covered.end, why) from error
            raise

    def _require_torn(self, rest: bytes, covered: Covered, why: str) -> None:
        """Refuse bytes that no crash can have left."""
        head = self._recall.head()
        if head is None and (why or not _is_prefix(rest)):
            raise self._replay.broken(covered.end, why or "bytes that are no record")
        if head is not None and covered.position.seq < head.seq:
            raise self._replay.broken(covered.end, why or "bytes that are no record")

    def _account_for_torn(self, tail: Tail, index: Index, covered: Covered) -> Covered:
        """Move torn bytes aside, and write a `recovered` event for each piece."""
        for torn in tail.set_aside(covered.end):
            body = {
                "after_seq": covered.position.seq,
                "length": torn.length,
                "sha256": torn.sha256,
            }
            at = max(self._clock(), covered.at)
            _, covered = self._replay.append(tail, index, covered, at, "recovered", None, body, {})
        tail.write()
        return covered


def _is_prefix(rest: bytes) -> bool:
    """Tell whether bytes are the beginning of one record."""
    try:
        return next_length(rest) is None
    except Malformed:
        return False
