"""The lock of a writer: one thread of one process of this host at a time (spec §7.1)."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ledger.errors import LockTimeout
from ledger.store import directory


class Lock:
    """`flock` on one file, and a mutex for the threads of this process.

    It belongs to the process that opened it: a child after a fork opens its own.
    """

    def __init__(self, path: Path, timeout_s: float) -> None:
        """Open the lock file; whoever waits gives up after `timeout_s` seconds."""
        self.path = path
        self.descriptor = directory.open_file(path, os.O_RDWR)
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
            self._take(deadline)
            try:
                yield
            finally:
                if self.descriptor >= 0:
                    fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        finally:
            self._mutex.release()

    def close(self) -> None:
        """Let go of the file, once: numbers are used again."""
        with suppress(OSError):
            os.close(self.descriptor)
        self.descriptor = -1

    def _take(self, deadline: float) -> None:
        wait_s = 0.0002
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise LockTimeout(self.path, self._timeout) from error
                time.sleep(wait_s)
                wait_s = min(wait_s * 1.5, 0.005)
            else:
                return
