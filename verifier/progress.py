"""How far a verification is, for a person who watches: one line that is erased at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TextIO

INTERVAL = 0.3  # seconds between two lines
_ERASE = "\r\x1b[K"


def watcher(stream: TextIO | None) -> Progress | None:
    """Give what writes to a terminal; None where nobody watches."""
    return Progress(stream) if stream is not None and stream.isatty() else None


class Progress:
    """Writes how much was read, a few times a second at most, to a terminal and nowhere else."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `stream`, but not before a first interval has passed."""
        self._stream = stream
        self._clock = clock
        self._next = clock() + INTERVAL
        self._bytes = 0
        self._is_shown = False

    def watch(self, chunks: Iterator[bytes], records: Callable[[], int]) -> Iterator[bytes]:
        """Give the chunks of a file on and count them; `records` says how many were verified."""
        for chunk in chunks:
            self._bytes += len(chunk)
            if self._clock() >= self._next:
                self._next = self._clock() + INTERVAL
                self._is_shown = True
                size = f"{self._bytes / 1e6:,.0f} MB"
                self._stream.write(f"{_ERASE}verifying: {records():,} records, {size} read")
                self._stream.flush()
            yield chunk

    def end(self) -> None:
        """Erase the line."""
        if self._is_shown:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._is_shown = False
