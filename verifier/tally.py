"""What a replay counts, for the report (spec §10.4), and what the fused loop hands over."""

from __future__ import annotations

from collections import Counter

from verifier.shape import CARD_KINDS


class Tally:
    """What a replay counts, for the report (spec §10.4)."""

    __slots__ = (
        "asserted",
        "bad_dispatches",
        "contained",
        "decisions",
        "decisions_ok",
        "end_at",
        "envelopes",
        "envelopes_ok",
        "first_seq",
        "kinds",
        "last_seq",
        "records",
        "start_at",
        "unproven",
    )

    def __init__(self) -> None:
        """Start at nothing."""
        self.records = 0
        self.kinds: Counter[str] = Counter()
        self.envelopes = self.envelopes_ok = 0
        self.decisions = self.decisions_ok = 0
        self.contained = self.asserted = self.bad_dispatches = 0
        self.unproven: set[str] = set()  # sentences about what no check could judge
        self.first_seq: int | None = None
        self.last_seq: int | None = None
        self.start_at: int | None = None
        self.end_at: int | None = None


class Run:
    """Sound records in a row, each with an envelope and all its openings.

    `at` is the time of the last one, `prev` the chain digest of the record before the first.
    """

    __slots__ = ("at", "bound", "contained", "digests", "first_seq", "kinds", "prev")

    def __init__(self, first_seq: int, prev: bytes, at: int) -> None:
        """Start with none."""
        self.first_seq = first_seq
        self.prev = prev
        self.at = at
        self.digests: list[bytes] = []
        self.bound = bytearray()  # the openings that each binds, as bits
        self.contained = 0
        self.kinds = dict.fromkeys((*CARD_KINDS, "refused"), 0)
