"""The cards of a Bernstein log in columns: a card is a number, its place in them.

Nothing here checks anything. A log of a million cards costs about 250 bytes for each.
"""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

OPEN: Final = 0
RESOLVED: Final = 1
EXPIRED: Final = 2
RELEASED: Final = 3
_STATES: Final = ("open", "resolved", "expired", "released")
_SHARED: Final = 4096


class Card(NamedTuple):
    """What is remembered of an issued card, when it was asked for; times are unix seconds."""

    number: int
    seq: int
    created_at: float
    not_after: float
    worktree: str
    thread: str
    state: str


class Register:
    """The cards issued so far. The columns are public for the fast way, which writes none."""

    __slots__ = ("_seqs", "_shared", "created_at", "not_after", "numbers", "origins", "states")

    def __init__(self) -> None:
        """Start without cards."""
        self.numbers: dict[str, int] = {}
        self.created_at = array("d")
        self.not_after = array("d")
        self.origins: list[tuple[str, str]] = []
        self.states = bytearray()
        self._seqs = array("q")
        self._shared: dict[tuple[str, str], tuple[str, str]] = {}

    def __len__(self) -> int:
        """Give the number of cards."""
        return len(self.numbers)

    def get(self, card_hash: str) -> Card | None:
        """Give what is remembered of a card, or None where it was not issued."""
        at = self.numbers.get(card_hash)
        if at is None:
            return None
        times = self.created_at[at], self.not_after[at]
        return Card(at, self._seqs[at], *times, *self.origins[at], _STATES[self.states[at]])

    def issue(
        self,
        card_hash: str,
        seq: int,
        created_at: float,
        not_after: float,
        origin: tuple[str, str],
    ) -> None:
        """Remember a card that was not issued before; `origin` is its worktree and thread."""
        origin = self._shared.setdefault(origin, origin)
        if len(self._shared) > _SHARED:
            self._shared.clear()
        self.numbers[card_hash] = len(self._seqs)
        self._seqs.append(seq)
        self.created_at.append(created_at)
        self.not_after.append(not_after)
        self.states.append(OPEN)
        self.origins.append(origin)

    def end(self, number: int, state: int) -> None:
        """Set the state of a card."""
        self.states[number] = state
