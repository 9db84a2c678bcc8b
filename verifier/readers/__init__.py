"""Readers of foreign logs, tried in order for an input that is not a cardchain log.

A reader is a module with these functions:

- `recognises(path: str) -> bool` looks at names, never at whole files, and says whether the path
  looks like its log;
- `verify_log(path, key_files, expect_head, expect_count) -> LogReport` verifies it. `key_files`
  are the paths given with `--key`, unread; `expect_head` is lower-case hex or None;
  `expect_count` is a number of records or None. It gives a report for every input and never raises
  for what the log holds;
- `histories(log, wanted) -> Iterable[History]` reads the log of a report again, for the histories
  of the cards whose hash in hex is `wanted`.

The modules are imported only when a foreign log is met, so that start-up stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Protocol, cast

from verifier.report import History, LogReport

NAMES = ("bernstein",)


class Reader(Protocol):
    """What a reader's module offers."""

    def recognises(self, path: str) -> bool:
        """Say whether `path` looks like a log of this reader."""

    def verify_log(
        self,
        path: str,
        key_files: Sequence[str],
        expect_head: str | None,
        expect_count: int | None,
    ) -> LogReport:
        """Verify the log at `path`."""

    def histories(self, log: LogReport, wanted: Callable[[str], bool]) -> Iterable[History]:
        """Give the histories of the cards that are `wanted`."""


def reader_for(path: str) -> Reader | None:
    """Give the first reader that recognises `path`, or None."""
    for name in NAMES:
        reader = cast("Reader", import_module(f"verifier.readers.{name}"))
        if reader.recognises(path):
            return reader
    return None
