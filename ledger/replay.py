"""Records one after another, checked or sealed, and folded into the index (spec §3.3, §4.2, §5)."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any

from ledger.chain import Tagger, authentic, rekey_proof, seal
from ledger.codec import ZERO, Event, Record, decode
from ledger.database import IndexContradicts
from ledger.errors import BrokenLedger, KeyMissing, Malformed
from ledger.index import Covered, Index
from ledger.keys import KeyRing
from ledger.projection import fold
from ledger.store.contract import Position, Store, Stored, Tail


class Unsound(Exception):
    """A stored record is not the whole, linked and tagged one that must follow."""


class Replay:
    """The checks of one chain under the keys that this host has.

    `find_keys` gathers the keys again, since another process may have made one.
    """

    def __init__(self, chain: bytes, store: Store, find_keys: Callable[[], KeyRing]) -> None:
        """Take the chain, where its records stand, and the way to its keys."""
        self._chain = chain
        self._store = store
        self._find_keys = find_keys
        self._use_keys(find_keys())

    def take(self, index: Index, stored: Stored, covered: Covered | None) -> Covered:
        """Check one record against the one before it, and fold it into the views."""
        record = self._sound(stored, covered)
        position = stored.position
        if covered is not None and (record.at < covered.at) != (record.kind == "clock_reset"):
            raise self.broken(position, f"at is {record.at}, after {covered.at}")
        if (record.kind == "opened") != (position.seq == 0):
            raise self.broken(position, f"{record.kind} at seq {position.seq}")
        if covered is None and position.seq > 0:
            index.begin_at(position.seq, record.prev)
            index.put_kid(record.kid)
        if record.kind == "pruned":
            self._require_edge(index, record, position)
        kid = self._rekeyed(index, record, position) if record.kind == "rekeyed" else record.kid
        return self.cover(index, stored, record, kid)

    def _require_edge(self, index: Index, record: Record, position: Position) -> None:
        """Refuse a `pruned` record that names the left edge by another digest (spec §15.2)."""
        edge, named = index.left_edge(), record.body["before"]
        if edge is not None and edge[0] == named and edge[1] != record.body["digest"]:
            raise self.broken(position, f"another digest than the one before seq {named}")

    def _sound(self, stored: Stored, covered: Covered | None) -> Record:
        seq = stored.position.seq
        try:
            record = decode(stored.data)
        except Malformed as error:
            raise Unsound(error.reason) from error
        if record.chain != self._chain:
            raise Unsound(f"chain {record.chain.hex()}, expected {self._chain.hex()}")
        if record.seq != seq:
            raise Unsound(f"seq {record.seq}, expected {seq}")
        # what stood before a left edge is named by a `pruned` record that follows (spec §15.2)
        before = covered.digest if covered else ZERO
        if record.prev != before and (covered is not None or seq == 0):
            raise Unsound("prev is not the chain digest of the record before")
        if covered is not None and record.kid != covered.kid:
            raise Unsound(f"kid {record.kid.hex()}, expected {covered.kid.hex()}")
        if not authentic(record, self.key(record.kid)):
            raise Unsound("the tag does not hold under the key")
        return record

    def _rekeyed(self, index: Index, record: Record, position: Position) -> bytes:
        """Give the kid that a `rekeyed` record puts in force, if it may (spec §4.2)."""
        kid: bytes = record.body["kid"]
        if index.was_in_force(kid) or kid == record.kid:
            raise self.broken(position, f"kid {kid.hex()} was in force before")
        proof = rekey_proof(self.key(kid), seq=record.seq, prev=record.prev, old_kid=record.kid)
        if not hmac.compare_digest(proof, record.body["proof"]):
            raise self.broken(position, "the proof of the new key does not hold")
        return kid

    def cover(self, index: Index, stored: Stored, record: Record, kid: bytes) -> Covered:
        """Fold a record into the views; `kid` is in force from the next record on."""
        if (pin := self._pins.get(record.seq)) is not None and pin != record.digest:
            raise self.broken(stored.position, "not the record that a key file pins")
        try:
            fold(index, record)
        except Malformed as error:
            raise self.broken(stored.position, error.reason) from error
        if record.seq == 0 or kid != record.kid:
            index.put_kid(kid)
        return index.cover(stored, record, kid)

    def append(
        self,
        tail: Tail,
        index: Index,
        covered: Covered,
        at: int,
        kind: str,
        card: bytes | None,
        body: Mapping[str, Any],
        openings: Mapping[str, bytes],
    ) -> tuple[Record, Covered]:
        """Seal an event, append it, and fold it: every record but the first goes this way."""
        end = covered.end
        event = Event(self._chain, end.seq, covered.digest, at, kind, card, body, openings)
        record = seal(event, self.key(covered.kid))
        stored = tail.append(end, record.raw)
        kid = body["kid"] if kind == "rekeyed" else covered.kid
        return record, self.cover(index, stored, record, kid)

    def key(self, kid: bytes) -> Tagger:
        """Give the key of a kid, looking again for one that another process made."""
        try:
            return self._ring.find(kid)
        except KeyMissing:
            self._use_keys(self._find_keys())
        return self._ring.find(kid)

    def _use_keys(self, ring: KeyRing) -> None:
        """Take the keys of this chain, and the records that they pin."""
        self._ring = ring
        self._pins = {file.pin.seq: file.pin.digest for file in ring.files() if file.pin}

    def holds(self, record: Record) -> bool:
        """Tell whether the tag of a record holds under its key."""
        return authentic(record, self.key(record.kid))

    def origin(self) -> Position:
        """Give where the first record begins."""
        return self._store.origin()

    def broken(self, position: Position, reason: str) -> BrokenLedger:
        """Give the error that names a position."""
        place = self._store.place(position.segment)
        return BrokenLedger(place, position.offset, position.seq, reason)

    def read(self, position: Position) -> Record:
        """Give the record at a position, checked under its key.

        Raises:
            IndexContradicts: There is none, or it does not hold.

        """
        raw = self._store.at(position)
        if raw is None:
            raise IndexContradicts(f"index: no record at seq {position.seq}")
        try:
            return self.checked(Stored(position, position, raw))
        except BrokenLedger as error:
            raise IndexContradicts(f"index: {error.reason}") from error

    def checked(self, stored: Stored) -> Record:
        """Give a stored record if its seq and tag are right, or raise `BrokenLedger`."""
        position = stored.position
        try:
            record = decode(stored.data)
        except Malformed as error:
            raise self.broken(position, error.reason) from error
        if record.chain != self._chain or record.seq != position.seq:
            raise self.broken(position, f"seq {record.seq}, expected {position.seq}")
        if not authentic(record, self.key(record.kid)):
            raise self.broken(position, "the tag does not hold under the key")
        return record
