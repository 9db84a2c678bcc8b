"""The state of every card, as a fold over the chain (spec §6.1), in columns.

A card is a number, its place in the columns; a step is the number of its first card.
Nothing here checks anything: an event is folded in as it stands (spec §10.3, rule 8).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any

NEVER = 2**63 - 1

APPROVED = 1
REJECTED = 2
RESOLVED = APPROVED | REJECTED
WITHDRAWN = 4
NOT_LATEST = 8
DISPATCHED = 16
UNKNOWN = 32
SUCCEEDED = 64
FAILED = 128
JUDGED = 256  # its envelope was checked
GOVERNED = 512  # profiles or a floor may ask something of its decision
SETTLED = UNKNOWN | SUCCEEDED | FAILED
OUTCOMES = {"unknown": UNKNOWN, "succeeded": SUCCEEDED, "failed": FAILED}

_NONE = 2**32 - 1
# Of a task digest 15 bytes are kept, which take half the memory of 32. Two tasks that share them
# would be taken for one step; to find two takes 2^60 tries.
_TASK_KEY = 15


class Cards:
    """The cards and steps seen so far."""

    __slots__ = (
        "_dispatched",
        "_hashes",
        "_later",
        "_steps",
        "_steps_of",
        "deadline",
        "flags",
        "forgotten",
        "grant_ttl",
        "issued",
        "last",
        "numbers",
        "reset_seq",
    )

    def __init__(self) -> None:
        """Start with no card."""
        self.numbers: dict[bytes, int] = {}  # card hash -> card
        self._hashes: list[bytes] = []  # by card
        self._steps: dict[bytes, int] = {}  # beginning of a task digest -> first card of the step
        self.flags = array("H")
        self.forgotten = 0  # the cards below it are as if never issued
        self.issued = array("Q")  # seq of the card's issued record
        self.last = array("Q")  # seq of the card's last event other than refused
        self.deadline = array("Q")  # ms; of the decision, once approved of the grant
        self.grant_ttl = array("Q")  # s; NEVER is no limit
        self._steps_of: dict[int, int] = {}  # of the cards that are not the first of their step
        self._later: dict[int, int] = {}  # by step: its latest card, where that is not the first
        self._dispatched = array("I")  # by step: the last dispatched card
        self.reset_seq = -1  # seq of the last clock_reset

    def latest(self, step: int) -> int:
        """Give the card issued last for a step."""
        return self._later.get(step, step)

    def step(self, task: bytes) -> int | None:
        """Give the step of a task, if a card of it was issued and is not forgotten."""
        step = self._steps.get(task[:_TASK_KEY])
        return None if step is None or self.latest(step) < self.forgotten else step

    def last_dispatched(self, step: int) -> int | None:
        """Give the card of a step that was dispatched last."""
        card = self._dispatched[step]
        return None if card == _NONE or card < self.forgotten else card

    def step_of(self, card: int) -> int:
        """Give the step of a card."""
        return self._steps_of.get(card, card)

    def hash_of(self, card: int) -> bytes:
        """Give the hash of a card."""
        return self._hashes[card]

    def outcome(self, card: int) -> str:
        """Give the outcome of a dispatched card as the chain has it (spec §6.4)."""
        flags = self.flags[card]
        return "succeeded" if flags & SUCCEEDED else "failed" if flags & FAILED else "unknown"

    def over(self, card: int, at: int) -> bool:
        """Say whether a card is late, or once approved lapsed, at `at` (spec §6.2).

        Its last event stands for the one that opened the window: any later event of the card
        ends the windows that it could be asked about.
        """
        return at >= self.deadline[card] or self.reset_seq > self.last[card]

    def is_judged(self, card: bytes | None) -> bool:
        """Say whether the envelope of a card was checked before, so that its hash is enough."""
        number = None if card is None else self.numbers.get(card)
        return number is not None and bool(self.flags[number] & JUDGED)

    def is_open(self, card: int) -> bool:
        """Say whether a card is OPEN, late or not."""
        return not self.flags[card] & (RESOLVED | WITHDRAWN | NOT_LATEST | DISPATCHED)

    def issue(
        self, card: bytes, seq: int, task: bytes, not_after: int, grant_ttl: int | None
    ) -> None:
        """Fold in an `issued`; of a card that is there already only the seq."""
        number = self.numbers.get(card)
        if number is not None:
            self.last[number] = seq
            return
        number = len(self.flags)
        self.numbers[card] = number
        self._hashes.append(card)
        self.flags.append(0)
        self.issued.append(seq)
        self.last.append(seq)
        self.deadline.append(min(not_after * 1000, NEVER))
        self.grant_ttl.append(NEVER if grant_ttl is None else grant_ttl)
        step = self._steps.setdefault(task[:_TASK_KEY], number)
        if step < self.forgotten and self.latest(step) < self.forgotten:
            step = self._steps[task[:_TASK_KEY]] = number
        self._dispatched.append(_NONE)
        if step != number:
            self.flags[self.latest(step)] |= NOT_LATEST
            self._later[step] = number
            self._steps_of[number] = step

    def forget(self, before: int) -> list[bytes]:
        """Forget the cards issued below a seq (spec §15.2); give their hashes."""
        end = bisect_left(self.issued, before, self.forgotten)
        gone = self._hashes[self.forgotten : end]
        for number, card in enumerate(gone, self.forgotten):
            if self.numbers.get(card) == number:
                del self.numbers[card]
        self.forgotten = max(self.forgotten, end)
        return gone

    def unended(self, before: int, at: int, first: int) -> int | None:
        """Give a card from `first` on, issued below a seq, that is not ended at `at` (§15.1)."""
        end = bisect_left(self.issued, before, self.forgotten)
        return next(
            (
                card
                for card in range(max(first, self.forgotten), end)
                if not self._is_ended(card, at)
            ),
            None,
        )

    def _is_ended(self, card: int, at: int) -> bool:
        flags = self.flags[card]
        if flags & DISPATCHED:
            return bool(flags & (SUCCEEDED | FAILED))
        return bool(flags & (REJECTED | WITHDRAWN | NOT_LATEST)) or self.over(card, at)

    def resolve(self, card: int, seq: int, at: int, decision: str) -> None:
        """Fold in a `resolved`."""
        self.last[card] = seq
        if decision == "approve":
            self.flags[card] |= APPROVED
            ttl = self.grant_ttl[card]
            self.deadline[card] = min(at + ttl * 1000, NEVER)
        else:
            self.flags[card] |= REJECTED

    def withdraw(self, card: int, seq: int) -> None:
        """Fold in a `withdrawn`."""
        self.last[card] = seq
        self.flags[card] |= WITHDRAWN

    def dispatch(self, card: int, seq: int) -> None:
        """Fold in a `dispatched`."""
        self.last[card] = seq
        self.flags[card] |= DISPATCHED
        self._dispatched[self.step_of(card)] = card

    def settle(self, card: int, seq: int, outcome: str) -> None:
        """Fold in a `settled`."""
        self.last[card] = seq
        self.flags[card] |= OUTCOMES[outcome]

    def fold(self, kind: str, card: bytes | None, seq: int, at: int, body: dict[str, Any]) -> None:
        """Fold in any event (spec §6.1)."""
        if kind == "clock_reset":
            self.reset_seq = seq
        elif card is None or kind == "refused":
            return
        elif kind == "issued":
            self.issue(card, seq, body["task"], body["not_after"], body.get("grant_ttl"))
        else:
            number = self.numbers.get(card)
            if number is None:
                return
            if kind == "resolved":
                self.resolve(number, seq, at, body["decision"])
            elif kind == "withdrawn":
                self.withdraw(number, seq)
            elif kind == "dispatched":
                self.dispatch(number, seq)
            else:
                self.settle(number, seq, body["outcome"])
