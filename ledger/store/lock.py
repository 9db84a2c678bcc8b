"""The lock of a writer: one thread of one process of this host at a time (spec §7.1)."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ledger.errors import Dead, LockTimeout, StoreFailed, failing
from ledger.hidden import word
from ledger.store import directory
from ledger.store.contract import NotALedger


class Lock:
    """`flock` on one file, and a mutex for the threads of this process.

    It belongs to the process that opened it: a child after a fork opens its own.
    """

    def __init__(self, path: Path, timeout_s: float) -> None:
        """Open the lock file; whoever waits gives up after `timeout_s` seconds."""
        self.path = path
        try:
            self.descriptor = directory.open_file(path, os.O_RDWR)
        except FileNotFoundError as error:
            hint = f"stop every program that writes there, then run: touch {word(path)}"
            raise NotALedger(path.parent, "lock does not exist", hint) from error
        with failing(path):
            directory.require_private(path, os.fstat(self.descriptor), 0o600)
        self._timeout = timeout_s
        self._mutex = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock, or raise `LockTimeout`."""
        deadline = time.monotonic() + self._timeout
        if not self._mutex.acquire(timeout=self._timeout):
            raise LockTimeout(self.path, self._timeout)
        try:
            try:
                self._take(deadline)
                yield
            finally:  # an interrupt may come right after the lock was taken
                self._release()
        finally:
            self._mutex.release()

    def close(self) -> None:
        """Let go of the file, once: numbers are used again."""
        with suppress(OSError):
            os.close(self.descriptor)
        self.descriptor = -1

    def _release(self) -> None:
        """Let go of the lock; where that fails or is interrupted, of the file and the lock too."""
        if self.descriptor < 0:
            return
        try:
            with failing(f"unlock {self.path}"):
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        except BaseException:
            self.close()
            raise

    def _take(self, deadline: float) -> None:
        if self.descriptor < 0:
            raise Dead("its lock could not be released")
        wait_s = 0.0002
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise LockTimeout(self.path, self._timeout) from error
                time.sleep(wait_s)
                wait_s = min(wait_s * 1.5, 0.005)
            except OSError as error:
                raise StoreFailed(f"lock {self.path}: {error.strerror}") from error
            else:
                return
