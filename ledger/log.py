"""Where the store, the keys, the index and the memory of this host meet: the one way to append.

`Log.run` takes the lock, catches up, lets its callers decide and append, writes what they appended,
lets go of the lock, and returns only when everything that the answers rest on is durable.
`Log.look` answers from the index and the records, without the lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from ledger.batch import Ask, Batch, Gathering
from ledger.catchup import CatchUp
from ledger.chain import Key, seal
from ledger.codec import ZERO, Event, Record
from ledger.database import IndexContradicts
from ledger.errors import StoreFailed
from ledger.index import Covered, Index
from ledger.keys import KeyRing
from ledger.profile import Profile
from ledger.recall import Adoption, Recall
from ledger.replay import Replay
from ledger.store.contract import ORIGIN, Store, Tail
from ledger.turn import Turn
from ledger.view import Source, View

T = TypeVar("T")

_LOOKS: Final = 3
"""How often a reader that finds the index behind the records has it brought up to them."""
_TIDY_EVERY: Final = 256
"""After how many records the index is tidied, which syncs it, when no lock is held."""


class _Again(Exception):
    """An ask failed after it appended, so the others are decided again without it."""


class _Behind(Exception):
    """The index does not cover all records that stand there."""


class Log:
    """The records of one chain, checked as they are read."""

    def __init__(
        self,
        path: Path,
        chain: bytes,
        store: Store,
        state: Path,
        find_keys: Callable[[], KeyRing],
        clock: Callable[[], int],
        *,
        profiles: Mapping[bytes, Profile] | None = None,
        progress: Callable[[int], None] | None = None,
        adopt: Adoption | None = None,
    ) -> None:
        """Take the parts; nothing is read before the first `run`.

        `find_keys` gathers the keys again, since another process may have made one. `profiles` are
        those that cards may name and the chain does not hold, by digest. With `adopt` the directory
        may be another one than this host wrote to, or lack records that it has answered for.
        """
        self.chain = chain
        self.store = store
        self.clock = clock
        self.replay = Replay(chain, store, find_keys)
        self.recall = Recall(path, chain, store, state / "head", adopt)
        self._catch_up = CatchUp(store, self.replay, self.recall, clock, progress)
        self._source = Source(path, self.replay, clock, profiles or {})
        self.answered: Callable[[int], None] = _nobody
        """Is told how many records are durable, after it is so; it must not wait or raise."""
        self._file = state / "index.sqlite"
        self._index: Index | None = None
        self._window: Index | None = None
        self._begin()

    def _begin(self) -> None:
        """Begin anew: at first, and in a child after a fork, where nobody else waits."""
        self._pid = os.getpid()
        self._seen = False
        self._tidied: int | None = None
        self._gathering = Gathering()
        self._looking = threading.Lock()

    @property
    def index(self) -> Index:
        """The views; to be used while the tail is held only."""
        if self._index is None:
            self._index = Index(self._file)
        return self._index

    def close(self) -> None:
        """Let go of all files."""
        self.store.close()
        for index in (self._index, self._window):
            if index is not None:
                index.close()

    # Deciding

    def run(self, body: Callable[[Turn], T]) -> T:
        """Give what `body` gives, alone in the ledger, when all that it rests on is durable.

        Callers that wait at one time are decided one after another in one turn, by the thread of
        the first of them. `body` runs again if nothing of it was written, because the index was
        made anew or because another of the batch failed.

        Raises:
            StoreFailed: It may or may not have been written. The ledger must be opened again.

        """
        while True:
            self._notice_fork()
            ask = Ask(body)
            batch = self._gathering.share(ask, self._lead)
            batch.require(ask)
            if not batch.begun:
                continue  # its leader was interrupted, and nothing came of it
            if batch.covered is None:
                raise StoreFailed("the write of these records was interrupted")
            if not batch.durable:
                self._answer_for(batch.covered)
            answer: T = ask.answer
            return answer

    def _lead(self, batch: Batch) -> None:
        """Take the turn of a batch: decide, write, let go of the lock, sync."""
        try:
            with self.store.exclusive() as tail:
                self._gathering.close(batch)
                covered = self._decide(tail, batch)
            self._answer_for(covered)
            batch.durable = True
        except Exception as error:
            batch.failure = error
        else:
            batch.wake()
            self._tidy(covered)

    def _decide(self, tail: Tail, batch: Batch) -> Covered:
        """Decide a batch and write it, with an index made anew if the first contradicts."""
        renewed = False
        while True:
            try:
                return self._attempt(tail, batch, renewed=renewed)
            except _Again:
                tail.take_back()
            except IndexContradicts:
                if batch.covered is not None:
                    return batch.covered  # it is written; the next turn folds it again
                tail.take_back()
                if renewed:
                    raise
                self._renew()
                renewed = True

    def _attempt(self, tail: Tail, batch: Batch, *, renewed: bool) -> Covered:
        with self.index.transaction():
            covered = self._catch_up.run(tail, self.index, first=not self._seen)
            self._seen = True
            for ask in batch.asks:
                if ask.error is None:
                    covered = self._ask(ask, tail, covered, renewed=renewed)
            self.index.flush()  # what is wrong with it shows before anything is written
            batch.begun = True
            tail.write()
            batch.covered = covered
        return covered

    def _ask(self, ask: Ask, tail: Tail, covered: Covered, *, renewed: bool) -> Covered:
        """Decide one ask; its errors are its own, unless the store or the index fails."""
        turn = Turn(self._source, self.index, covered, tail)
        try:
            ask.answer = ask.body(turn)
            return turn.covered
        except Exception as error:
            if isinstance(error, IndexContradicts) and not renewed:
                raise
            if isinstance(error, StoreFailed) and turn.appended:
                raise
            ask.error = error
        if turn.appended:
            raise _Again
        return covered

    def alone(self, body: Callable[[Tail, Index, Covered], T]) -> T:
        """Give what `body` gives, which may replace closed segments: nobody appends meanwhile.

        It may run again, with an index made anew, and so must go on from what it did before.
        """
        self._notice_fork()
        with self.store.exclusive() as tail:
            try:
                return self._alone(tail, body)
            except IndexContradicts:
                self._renew()
                return self._alone(tail, body)

    def _alone(self, tail: Tail, body: Callable[[Tail, Index, Covered], T]) -> T:
        with self.index.transaction():
            covered = self._catch_up.run(tail, self.index, first=not self._seen)
            self._seen = True
            return body(tail, self.index, covered)

    def _renew(self) -> None:
        with self._looking:
            if self._window is not None:
                self._window.close()
                self._window = None
            self.index.renew()

    def _notice_fork(self) -> None:
        if os.getpid() != self._pid:
            self._begin()

    def _answer_for(self, covered: Covered) -> None:
        self.store.sync(covered.end)
        self.recall.answer_for(covered)
        self.answered(covered.end.seq)

    def found(self, body: Mapping[str, Any], openings: Mapping[str, bytes], key: Key) -> Record:
        """Append the `opened` record to an empty store, under a key made for this chain."""
        event = Event(self.chain, 0, ZERO, self.clock(), "opened", None, body, openings)
        record = seal(event, key)
        with self.store.exclusive() as tail, self.index.transaction():
            covered = self.replay.cover(
                self.index, tail.append(ORIGIN, record.raw), record, key.kid
            )
            tail.write()
        self._answer_for(covered)
        self._seen = True
        return record

    # Looking

    def look(self, body: Callable[[View], T]) -> T:
        """Give what `body` gives, which appends nothing, when all that it rests on is durable.

        The lock is taken only to bring the index up to records that it does not cover yet.
        """
        self._notice_fork()
        for _ in range(_LOOKS):
            try:
                return self._glance(body)
            except _Behind:
                self.run(lambda turn: None)
            except IndexContradicts:
                break
        return self.run(body)

    def _tidy(self, covered: Covered) -> None:
        """Tidy the index from time to time, in the call of whoever led the batch."""
        seq = covered.position.seq
        if self._tidied is None or seq < self._tidied + _TIDY_EVERY:
            self._tidied = seq if self._tidied is None else self._tidied
            return
        self._tidied = seq
        with suppress(IndexContradicts), self._looking:
            self._look_in().tidy()

    def _look_in(self) -> Index:
        if self._window is None:
            self._window = Index(self._file, looks=True)
        return self._window

    def _glance(self, body: Callable[[View], T]) -> T:
        if not self._seen:
            raise _Behind
        with self._looking:
            window = self._look_in()
            with window.transaction():
                covered = window.covered()
                if covered is None or not self.store.ends_at(covered.end):
                    raise _Behind
                answer = body(View(self._source, window, covered))
        self._answer_for(covered)
        return answer


def _nobody(count: int) -> None:
    """Tell nobody."""
