"""What a replay knows between two records: the chain, the keys, the cards (spec §10.3)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from verifier.cards import Cards
from verifier.evidence import Evidence
from verifier.governance import Governance, Library
from verifier.keys import Pin, Ring
from verifier.refusals import Refusals
from verifier.shape import OPENINGS
from verifier.spec import NO_PREVIOUS
from verifier.witness import Witness


class Digests:
    """A short hash of every chain digest, and the openings bound, for the check of `redacted`.

    Nine bytes a record keep a replay of a large log small. Eight are the interpreter's keyed hash
    of the whole digest, so nobody can aim at two digests that share them.
    """

    __slots__ = ("_bound", "_firsts", "_hashes", "_places")

    def __init__(self) -> None:
        """Start with no record."""
        self._hashes = array("q")
        self._bound = bytearray()  # a bit for each of OPENINGS
        self._firsts: list[int] = []  # seq of the first record of each run without a gap
        self._places: list[int] = []  # its place in _hashes

    def add(self, seq: int, digest: bytes, bound: int = 0) -> None:
        """Keep the digest of the record at `seq`; a seq below the last one is left out."""
        if not self._firsts or seq != self._next():
            if self._firsts and seq < self._next():
                return
            self._firsts.append(seq)
            self._places.append(len(self._hashes))
        self._hashes.append(hash(digest))
        self._bound.append(bound)

    def _next(self) -> int:
        return self._firsts[-1] + len(self._hashes) - self._places[-1]

    def extend(self, first_seq: int, digests: list[bytes], bound: bytes) -> None:
        """Keep the digests of records in a row."""
        self.add(first_seq, digests[0], bound[0])
        self._hashes.extend(map(hash, digests[1:]))
        self._bound += bound[1:]

    def matches(self, seq: int, digest: bytes) -> bool | None:
        """Say whether the record at `seq` has this digest; None where it was not read."""
        place = self._place(seq)
        return None if place is None else self._hashes[place] == hash(digest)

    def bound(self, seq: int) -> list[str] | None:
        """Give the openings that the record at `seq` binds; None where it was not read."""
        place = self._place(seq)
        if place is None:
            return None
        return [name for bit, name in enumerate(OPENINGS) if self._bound[place] >> bit & 1]

    def _place(self, seq: int) -> int | None:
        run = bisect_right(self._firsts, seq) - 1
        if run < 0:
            return None
        place = self._places[run] + seq - self._firsts[run]
        end = self._places[run + 1] if run + 1 < len(self._places) else len(self._hashes)
        return place if place < end else None


def bound_bits(bound: Iterable[str]) -> int:
    """Give a bit for each opening that is bound."""
    return sum(1 << OPENINGS.index(name) for name in bound)


class Edge(NamedTuple):
    """The seq of the first record at hand, and the chain digest of the one before it."""

    seq: int
    prev: bytes


class State:
    """The replay of one log up to a record. The checks read it, `replay` moves it on."""

    __slots__ = (
        "absent",
        "at",
        "cards",
        "carried",
        "chain",
        "claims",
        "covered",
        "digests",
        "disturbed",
        "edge",
        "excepted",
        "expected_seq",
        "floor",
        "gap_explained",
        "gaps",
        "governance",
        "keyless",
        "kid",
        "kids",
        "left_edge",
        "link_explained",
        "names",
        "pins",
        "prev",
        "proofs",
        "pruned",
        "refusals",
        "ring",
        "sure_from",
        "surplus",
        "touched",
        "unsure_steps",
        "witnesses",
    )

    def __init__(self, ring: Ring, profiles: Library | None = None, floor: int = 0) -> None:
        """Start before the first record, with the keys and profiles at hand.

        `floor` is the evidence class that the auditor asks for, as its place in EVIDENCE_CLASSES.
        """
        self.ring = ring
        self.chain: bytes | None = None
        self.expected_seq: int | None = None  # None before the first record
        self.prev = NO_PREVIOUS
        self.kid: bytes | None = None  # None: go on from the kid that is found
        self.kids: dict[bytes, None] = {}  # every kid that was in force, in order
        self.keyless: set[bytes] = set()  # kids of which it is said that their secret is missing
        self.at: int | None = None  # None: go on from the time that is found
        # by seq; a record is looked at by itself where there is none in the list too
        self.pins: dict[int, list[Pin]] = {}
        self.cards = Cards()
        self.governance = Governance(profiles)
        self.floor = floor
        self.witnesses: dict[int, Witness] = {}  # of the cards with policy evidence
        self.excepted: dict[int, bool] = {}  # dispatched under an exception; all at hand to judge
        self.refusals = Refusals()
        self.digests = Digests()
        self.absent: dict[int, Absent] = {}  # records with openings that are not there, by seq
        # at and body of issued records without their envelope, by card, until it is seen
        self.claims: dict[bytes, tuple[int, dict[str, Any]]] = {}
        self.names: set[int] = set()  # hashes of versions and kids already reported
        # of an excerpt: the seqs that a checkpoint covers; hashes, size and root of each proof
        self.covered: Container[int] = ()
        self.proofs: Mapping[int, tuple[Sequence[bytes], int, bytes]] = {}
        self.touched: set[bytes] = set()
        self.gaps: list[tuple[int, int]] = []  # missing seqs, as [first, end), in order
        self.surplus: int | None = None  # seq of the record before, where it came too late
        self.gap_explained = False  # a missing seq at the next record belongs to a finding
        self.link_explained = False  # so does a bad link
        self.disturbed = False  # there was an unsound record
        self.left_edge: Edge | None = None  # None where the log starts at seq 0
        self.edge = 0  # its seq, as long as what stands before it may matter (spec §15.2)
        self.carried: set[bytes] = set()  # cards from before it that events were about
        self.pruned = 0  # the seq that the last pruned event names
        self.sure_from = 0  # the first card that was issued after the last unsound record
        self.unsure_steps: set[int] = set()  # steps whose beginning was not seen

    @property
    def is_partial(self) -> bool:
        """Whether records that could matter are missing: unsound, or before the left edge."""
        return self.disturbed or self.edge > 0

    def may_be_carried(self, card: bytes, of: int | None) -> bool:
        """Say whether a card that was not issued here may be from before the left edge (§15.2)."""
        return self.edge > 0 and (of is None or of < self.edge or card in self.carried)

    def begin_at(self, edge: Edge) -> None:
        """Start at a left edge above 0, before which nothing is known (spec §15.2)."""
        self.left_edge, self.edge = edge, edge.seq
        self.governance.lose(0)

    def forget(self, before: int) -> None:
        """Forget what a pruned event says may be gone; at the left edge all is known then."""
        for card in self.cards.forget(before):
            self.claims.pop(card, None)
        self.refusals.forget(before)
        self.pruned = max(self.pruned, before)
        if 0 < self.edge <= before:
            self.edge = 0
            self.carried.clear()
            if not self.disturbed:
                self.unsure_steps.clear()

    def belongs(self, seq: int | None) -> bool:
        """Say whether a record that comes too late belongs to a finding (spec §10.3, rule 3).

        It fills a gap reported before, or goes on a stretch of repeated records.
        """
        if seq is None or self.expected_seq is None or seq >= self.expected_seq:
            return False
        if self.surplus is not None and seq == self.surplus + 1:
            return True
        return self._gap(seq) is not None

    def close_gap(self, seq: int) -> None:
        """Take `seq` out of those reported missing."""
        place = self._gap(seq)
        if place is not None:
            first, end = self.gaps[place]
            rest = [(first, seq), (seq + 1, end)]
            self.gaps[place : place + 1] = [gap for gap in rest if gap[0] < gap[1]]

    def _gap(self, seq: int) -> int | None:
        """Give the place of the gap that a seq lies in."""
        place = bisect_right(self.gaps, seq, key=itemgetter(0)) - 1
        return place if place >= 0 and seq < self.gaps[place][1] else None

    def judges_card(self, card: int) -> bool:
        """Say whether no unsound record could explain what is wrong with a card (rule 7)."""
        return card >= self.sure_from

    def judges_step(self, task: bytes) -> bool:
        """Say whether no unsound record could explain what is wrong with a step (rule 7)."""
        step = self.cards.step(task)
        if step is None:
            return not self.is_partial
        return step >= self.sure_from and step not in self.unsure_steps


class Absent:
    """The openings that a record binds and that are not there, until a `redacted` names them."""

    __slots__ = ("card", "digest", "file", "names", "offset", "seq")

    def __init__(self, record: Evidence, names: set[str]) -> None:
        """Keep of the record what a finding needs."""
        self.seq = record.seq
        self.names = names
        self.digest = record.digest
        self.card = record.card
        self.file = record.file
        self.offset = record.offset
