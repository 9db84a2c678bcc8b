"""Group commit: callers that wait for the lock at one time share its turn, write and sync.

The first caller into a batch leads it, in its own thread; a caller alone leads a batch of one.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock
from collections.abc import Callable
from copy import copy
from typing import Any

from ledger.errors import LedgerError, StoreFailed
from ledger.index import Covered


class Ask:
    """What one caller wants decided, and the answer or the error that came of it."""

    __slots__ = ("_over", "answer", "batch", "body", "error")

    def __init__(self, body: Callable[[Any], Any]) -> None:
        """Take what decides, given a turn; it may be run again if nothing came of it."""
        self.body = body
        self.answer: Any = None
        self.error: Exception | None = None
        self.batch: Batch | None = None
        self._over = allocate_lock()
        self._over.acquire()

    def wait(self) -> None:
        """Return when the batch is over."""
        self._over.acquire()

    def wake(self) -> None:
        """Let `wait` return."""
        if self._over.locked():
            self._over.release()


class Batch:
    """The asks that share one turn, and how far their leader came with them.

    `begun` says that their records may have been written, `covered` that they were, up to there,
    and `durable` that they can be answered for; `failure` is what keeps all of them from that.
    """

    __slots__ = ("asks", "begun", "covered", "durable", "failure")

    def __init__(self, leader: Ask) -> None:
        """Begin with the ask of the leader."""
        self.asks = [leader]
        self.begun = False
        self.covered: Covered | None = None
        self.durable = False
        self.failure: Exception | None = None

    def require(self, ask: Ask) -> None:
        """Raise what kept the whole batch, or this ask of it, from an answer."""
        if self.failure is not None:
            if ask is self.asks[0]:
                raise self.failure
            raise _for_another(self.failure) from self.failure
        if ask.error is not None:
            raise ask.error

    def wake(self) -> None:
        """Let all who wait go on."""
        for ask in self.asks:
            ask.wake()


class Gathering:
    """Where the next batch gathers, while the one before has the lock."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._mutex = threading.Lock()
        self._open: Batch | None = None

    def share(self, ask: Ask, lead: Callable[[Batch], None]) -> Batch:
        """Give the batch of an ask when it is over; the first of a batch leads it.

        `lead` calls `close` when it is about to decide. However it ends, nobody is left waiting.
        """
        try:
            batch = self._join(ask)
            if batch.asks[0] is ask:
                lead(batch)
            else:
                ask.wait()
            return batch
        except BaseException:
            self._leave(ask)
            raise
        finally:
            try:
                self._end(ask)
            finally:
                self._end(ask)  # an interrupt of the first keeps nobody waiting

    def close(self, batch: Batch) -> None:
        """Let nobody join this batch from now on."""
        with self._mutex:
            if self._open is batch:
                self._open = None

    def _join(self, ask: Ask) -> Batch:
        with self._mutex:
            if self._open is None:
                ask.batch = Batch(ask)
                self._open = ask.batch
            else:
                ask.batch = self._open
                self._open.asks.append(ask)
            return ask.batch

    def _leave(self, ask: Ask) -> None:
        """Take out the ask of a caller that was interrupted, if it is not being decided."""
        with self._mutex:
            batch = self._open
            if batch is not None and ask in batch.asks[1:]:
                batch.asks.remove(ask)

    def _end(self, ask: Ask) -> None:
        batch = ask.batch
        if batch is not None and batch.asks[0] is ask:
            self.close(batch)
            batch.wake()


def _for_another(error: Exception) -> LedgerError:
    """Give the error of a leader for another thread, which must not share its traceback."""
    if isinstance(error, LedgerError):
        return copy(error)
    return StoreFailed(f"{type(error).__name__}: {error}")
