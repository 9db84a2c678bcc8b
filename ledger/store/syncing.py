"""How far records are durable: one sync at a time serves all who wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Syncing:
    """The count of durable records. Whoever waits does so for two syncs at most.

    A sync that is under way may have begun too early for a caller. The next one has not, whoever
    makes it, and all whom it serves go on at once; so nobody is overtaken again and again.
    """

    def __init__(self) -> None:
        """Begin with no record known to be durable."""
        self.durable = 0
        self._busy = False
        self._changed = threading.Condition()

    def reach(self, count: int, sync: Callable[[], int]) -> None:
        """Return when `count` records are durable; `sync` makes them so, and gives how many are."""
        if not self._begin(count):
            return
        try:
            self.durable = max(self.durable, sync())
        finally:
            self._end()

    @contextmanager
    def kept_away(self) -> Iterator[None]:
        """Let nobody sync during a block."""
        self._begin(None)
        try:
            yield
        finally:
            self._end()

    def _begin(self, count: int | None) -> bool:
        """Become the one who syncs, or give False where `count` records are durable before."""

        def reached() -> bool:
            return count is not None and self.durable >= count

        with self._changed:
            self._changed.wait_for(lambda: reached() or not self._busy)
            if reached():
                return False
            self._busy = True
            return True

    def _end(self) -> None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
