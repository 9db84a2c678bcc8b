"""The state of cards and steps: a fold over the chain, and nothing else (spec §6.1, §6.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The states of a card (spec §6.1); EXPIRED and LAPSED are computed, never stored."""

    OPEN = "OPEN"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    WITHDRAWN = "WITHDRAWN"
    SUPERSEDED = "SUPERSEDED"
    DISPATCHED = "DISPATCHED"
    UNKNOWN = "UNKNOWN"
    SETTLED = "SETTLED"
    EXPIRED = "EXPIRED"
    LAPSED = "LAPSED"


@dataclass(frozen=True, slots=True)
class Card:
    """What the chain says of one card.

    `seq` is that of its `issued` record, `last` that of its last event other than `refused`.
    `not_after` and `grant_ttl` are seconds, `resolved_at` milliseconds.
    """

    hash: bytes
    seq: int
    task: bytes
    not_after: int
    grant_ttl: int | None
    state: State
    last: int
    resolved_seq: int | None = None
    resolved_at: int | None = None
    decision: str | None = None
    approver: str | None = None
    response: bytes | None = None
    outcome: str | None = None
