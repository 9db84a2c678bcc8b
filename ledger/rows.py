"""Rows of a table as one transaction has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Rows(Generic[K, V]):
    """Rows by key: each is read once, and what changes waits until it is taken."""

    def __init__(self, read: Callable[[K], V | None]) -> None:
        """Take how a row is read, None where there is none."""
        self._read = read
        self._rows: dict[K, V | None] = {}
        self._changed: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Give a row as it is now."""
        if key not in self._rows:
            self._rows[key] = self._read(key)
        return self._rows[key]

    def put(self, key: K, value: V) -> None:
        """Change a row."""
        self._rows[key] = self._changed[key] = value

    def take(self) -> dict[K, V]:
        """Give the rows that changed, and forget everything."""
        changed, self._changed, self._rows = self._changed, {}, {}
        return changed
