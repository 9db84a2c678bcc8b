"""How far a Bernstein log is walked: what the next record is held against, and what was counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class At:
    """Where the walk stands: file, its day, offsets of start and end of a line, its number from 1.

    `day` is the `YYYY-MM-DD` that the name of the file says, or None.
    """

    file: str = ""
    day: str | None = None
    offset: int = 0
    end: int = 0
    line: int = 0

    def advance(self, lines: int, size: int, last: bytes) -> None:
        """Go on by lines of `size` bytes with their LFs, to the start of the last of them."""
        self.line += lines
        self.end += size
        self.offset = self.end - len(last) - 1


@dataclass(slots=True)
class Chain:
    """The records so far.

    `seq` is the number of the last line from 0, `head` the hmac that the next record must follow,
    `alternative` another one that it may. `excused` says that what stands before it explains a bad
    link. `high` is the latest time of the sound records in unix seconds, `high_seq` the record that
    has it. `seen_new` says that a record of scheme 2 was among them.
    """

    seq: int = -1
    records: int = 0
    authentic: int = 0
    head: str | None = None
    alternative: str | None = None
    excused: bool = False
    seen_new: bool = False
    start: str = ""
    end: str = ""
    high: float = 0.0
    high_seq: int = -1
    kinds: Counter[str] = field(default_factory=Counter)
