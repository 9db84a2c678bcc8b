"""Checkpoints every so many records, signed beside the appends and never in their way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class Periodic:
    """Signs in a thread of its own when `every` records were answered for since the last time.

    A checkpoint that fails is told as a warning, until one succeeds; it is tried again after as
    many records.
    """

    def __init__(self, every: int, sign: Callable[[int], int]) -> None:
        """Take the number of records, and what signs and gives the size that is signed then."""
        self.warning: str | None = None
        self._every = every
        self._sign = sign
        self._begin()

    def _begin(self) -> None:
        """Begin anew: at first, and in a child after a fork, which has no thread."""
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._size = 0

    def answered(self, count: int) -> None:
        """Take note that the first `count` records are durable; returns at once."""
        if os.getpid() != self._pid:
            self._begin()
        if count - self._size < self._every or not self._mutex.acquire(blocking=False):
            return
        try:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, args=(count,), daemon=True)
                self._thread.start()
        except RuntimeError as error:  # no thread to be had: the next answer tries again
            self._warn(error)
        finally:
            self._mutex.release()

    def close(self) -> None:
        """Wait for a checkpoint that is being signed."""
        thread = self._thread
        if thread is not None and os.getpid() == self._pid:
            thread.join()

    def _run(self, count: int) -> None:
        try:
            self._size = self._sign(self._every)
            self.warning = None
        except Exception as error:  # there is nobody else to tell
            self._size = count
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        self.warning = f"no checkpoint was signed: {error}"
