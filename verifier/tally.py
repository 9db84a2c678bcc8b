"""What a replay counts, for the report (spec §10.4), and what the fused loop hands over."""

from __future__ import annotations

from collections import Counter

from verifier.report import Drift
from verifier.shape import CARD_KINDS


class Tally:
    """What a replay counts, for the report (spec §10.4).

    `profiles` are the profiles that came into force, `governed` the cards issued under one.
    """

    __slots__ = (
        "announced",
        "asserted",
        "bad_dispatches",
        "bases",
        "contained",
        "decisions",
        "decisions_ok",
        "drifts",
        "end_at",
        "envelopes",
        "envelopes_ok",
        "exceptions",
        "first_seq",
        "governed",
        "kinds",
        "last_seq",
        "manifests",
        "profiles",
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
        self.profiles = self.governed = self.bases = self.manifests = 0
        self.exceptions: Counter[str] = Counter()
        self.announced: str | None = None  # the newest vkey that the log names
        self.drifts: list[Drift] = []
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

    def add(self, kind: str, at: int, digest: bytes, bound: int) -> None:
        """Take in the next record."""
        self.digests.append(digest)
        self.bound.append(bound)
        self.kinds[kind] += 1
        self.at = at
