"""How often each refusal was recorded (spec §6.4, floods)."""

from __future__ import annotations

_RANK_BITS = 6


class Refusals:
    """The last recorded count of each gate, reason and subject, and the seq of its record.

    Both stand in one integer, so that a replay of a large log stays small: the counts that the spec
    allows are few, and the place of a count among them needs six bits.
    """

    __slots__ = ("_begin", "_other", "_records")

    def __init__(self) -> None:
        """Start with none."""
        self._records: dict[bytes, int] = {}
        self._other: dict[bytes, int] = {}  # counts that the spec does not allow
        self._begin = 0

    def last(self, name: bytes) -> int | None:
        """Give the last recorded count of what is counted by `name`; None where there is none."""
        found = self._records.get(name)
        if found is None or found >> _RANK_BITS < self._begin:
            return None
        rank = found & (1 << _RANK_BITS) - 1
        return self._other[name] if rank == 0 else rank if rank <= 8 else 1 << rank - 5

    def note(self, name: bytes, count: int, seq: int) -> None:
        """Take in a record of a refusal."""
        rank = count if count <= 8 else count.bit_length() + 4
        if count > 8 and count & count - 1:
            rank, self._other[name] = 0, count
        self._records[name] = seq << _RANK_BITS | rank

    def forget(self, before: int) -> None:
        """Let the counts whose last record stands below a seq begin again (spec §15.2)."""
        self._begin = max(self._begin, before)

    def clear(self) -> None:
        """Forget all counts."""
        self._records.clear()
        self._other.clear()
