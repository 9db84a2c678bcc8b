"""What a replay counts, for the report (spec §10.4), and what the fused loop hands over."""

from __future__ import annotations

import hashlib
from collections import Counter

from verifier.evidence import Evidence
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
        "unjudged",
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
        self.unjudged: Counter[str] = Counter()  # by check: events that rest on what is not here
        self.unproven: set[str] = set()  # sentences about what no check could judge
        self.first_seq: int | None = None
        self.last_seq: int | None = None
        self.start_at: int | None = None
        self.end_at: int | None = None

    def take(self, record: Evidence, failed: str | None, echoed: bool, unsound: bool) -> None:
        """Count a record that the table judged; `failed` is the check that it broke, if any."""
        self.records += 1
        if record.seq is not None:
            if self.first_seq is None:
                self.first_seq = record.seq
            self.last_seq = max(record.seq, self.last_seq or 0)
        if record.at is not None:
            self.start_at = record.at if self.start_at is None else self.start_at
            self.end_at = record.at
        kind = record.kind
        if kind is None:
            return
        self.kinds[kind] += 1
        if record.envelope is not None:
            self.envelopes += 1
            self.envelopes_ok += failed is None or _is_card(record.envelope, record.card)
        if kind == "resolved":
            self.decisions += 1
            self.decisions_ok += failed is None and echoed
        elif kind == "dispatched" and failed is not None and not unsound:
            self.bad_dispatches += 1

    def take_run(self, run: Run) -> None:
        """Count records in a row that the fused loop accepted."""
        count = len(run.digests)
        self.records += count
        self.last_seq = run.first_seq + count - 1
        self.end_at = run.at
        self.envelopes += count
        self.envelopes_ok += count
        self.decisions += run.kinds["resolved"]
        self.decisions_ok += run.kinds["resolved"]
        self.contained += run.contained
        self.kinds.update({kind: number for kind, number in run.kinds.items() if number})


def _is_card(envelope: bytes, card: bytes | None) -> bool:
    """Say whether an envelope hashes to a card: a check before that one may have failed."""
    return hashlib.sha256(envelope).digest() == card


class Run:
    """Sound records in a row, each with an envelope and all its openings.

    `at` is the time of the last one, `prev` the chain digest of the record before the first.
    """

    __slots__ = ("at", "bound", "contained", "digests", "first_seq", "kinds", "prev", "steps")

    def __init__(self, first_seq: int, prev: bytes, at: int) -> None:
        """Start with none."""
        self.first_seq = first_seq
        self.prev = prev
        self.at = at
        self.digests: list[bytes] = []
        self.bound = bytearray()  # the openings that each binds, as bits
        self.contained = 0
        self.steps = 0  # the steps that were first seen
        self.kinds = dict.fromkeys((*CARD_KINDS, "refused"), 0)

    def add(self, kind: str, at: int, digest: bytes, bound: int) -> None:
        """Take in the next record."""
        self.digests.append(digest)
        self.bound.append(bound)
        self.kinds[kind] += 1
        self.at = at
