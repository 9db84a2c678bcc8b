"""Where the store, the keys, the index and the memory of this host meet: the one way to append.

`Log.run` takes the lock, reads and checks what others appended, lets its caller decide and append,
lets go of the lock, and returns only when everything that the answer rests on is durable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from ledger.chain import Key, seal
from ledger.codec import ZERO, Event, Record, decode, next_length
from ledger.errors import (
    BrokenLedger,
    ClockWentBack,
    Copied,
    Malformed,
    RolledBack,
    StoreFailed,
)
from ledger.head import Head, HeadFile
from ledger.index import Covered, Index, IndexContradicts
from ledger.keys import KeyRing
from ledger.profile import Profile
from ledger.profile import parse as parse_profile
from ledger.projection import STATES_AFTER, Card
from ledger.replay import Replay, Unsound
from ledger.store.contract import ORIGIN, Position, Store, Tail

T = TypeVar("T")
Adoption: TypeAlias = Literal["copy", "rolled back"]

HELD_MS: Final = 5_000
"""How far the clock may go back before the ledger refuses, in milliseconds (spec §5)."""

_PROGRESS_EVERY: Final = 1_000


class Log:
    """The records of one chain, checked as they are read."""

    def __init__(
        self,
        path: Path,
        chain: bytes,
        store: Store,
        state: Path,
        find_keys: Callable[[], KeyRing],
        clock: Callable[[], int],
        *,
        profiles: Mapping[bytes, Profile] | None = None,
        progress: Callable[[int], None] | None = None,
        adopt: Adoption | None = None,
    ) -> None:
        """Take the parts; nothing is read before the first `run`.

        `find_keys` gathers the keys again, since another process may have made one. `profiles` are
        those that cards may name and the chain does not hold, by digest. With `adopt` the directory
        may be another one than this host wrote to, or lack records that it has answered for.
        """
        self.path = path
        self.chain = chain
        self.store = store
        self.clock = clock
        self.profiles = profiles or {}
        self.warnings: list[str] = []
        self._state = state
        self.replay = Replay(chain, store, find_keys)
        self._head = HeadFile(state / "head", path)
        self._progress = progress
        self._adopt = adopt
        self._index: Index | None = None
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._seen = False
        self.since = 0

    @property
    def index(self) -> Index:
        """The views; to be used inside `run` only."""
        assert self._index is not None  # opened when the tail is first held
        return self._index

    def close(self) -> None:
        """Let go of all files."""
        self.store.close()
        if self._index is not None:
            self._index.close()

    def run(self, body: Callable[[Turn], T]) -> T:
        """Give what `body` gives, alone in the ledger, when all that it rests on is durable.

        An index that contradicts the chain is made anew, and `body` runs again if it has not
        appended anything.
        """
        if os.getpid() != self._pid:
            self._begin()
        turn = Turn(self)
        try:
            return self._once(turn, body)
        except IndexContradicts as error:
            if turn.appended:
                raise StoreFailed(f"index, after an append: {error}") from error
        with self.store.exclusive():
            self.index.renew()
        return self._once(Turn(self), body)

    def _once(self, turn: Turn, body: Callable[[Turn], T]) -> T:
        with self._held() as tail:
            turn.begin(tail)
            result = body(turn)
            covered = turn.covered
        self._answer_for(covered)
        return result

    @contextmanager
    def _held(self) -> Iterator[Tail]:
        with self.store.exclusive() as tail:
            if self._index is None:
                self._index = Index(self._state / "index.sqlite")
            with self.index.transaction():
                yield tail

    def _answer_for(self, covered: Covered) -> None:
        self.store.sync(covered.position.seq + 1)
        self._head.advance(self._head_at(covered))

    def _head_at(self, covered: Covered) -> Head:
        position = covered.position
        return Head(
            chain=self.chain,
            seq=position.seq,
            digest=covered.digest,
            segment=position.segment,
            offset=position.offset,
            inode=self.store.identity(),
            since=self.since,
        )

    def found(self, body: Mapping[str, Any], openings: Mapping[str, bytes], key: Key) -> Record:
        """Append the `opened` record to an empty store, under a key made for this chain."""
        event = Event(self.chain, 0, ZERO, self.clock(), "opened", None, body, openings)
        record = seal(event, key)
        with self._held() as tail:
            covered = self.replay.cover(
                self.index, tail.append(ORIGIN, record.raw), record, key.kid
            )
        self._answer_for(covered)
        self._seen = True
        return record

    # Catching up

    def catch_up(self, tail: Tail) -> Covered:
        """Read, check and fold every record that the index does not cover yet.

        Bytes that a crash left behind the last good record are moved aside and accounted for;
        anything else that is wrong there is a broken ledger (spec §7.4).
        """
        first = not self._seen
        head = self._head.read() if first else None
        if first:
            self._require_index_of(head)
        covered, why = self._read_on(tail)
        if rest := self._rest(tail, covered, why):
            self._require_torn(rest, covered, why)
        if first:
            self._remember(head, covered)
        if first or rest:
            covered = self._account_for_torn(tail, covered)
        self._seen = True
        return covered

    def _require_index_of(self, head: Head | None) -> None:
        """Have the index made anew if it is not of this store, or if this host lost its memory."""
        if head is not None and head.inode != self.store.identity() and not self._adopt:
            raise Copied(self.path)
        covered = self.index.covered()
        if covered is None:
            return
        raw = self.store.at(covered.position) if head is not None else None
        if raw is None or _digest(raw) != covered.digest:
            raise IndexContradicts("index: it is not of this ledger, or its memory is lost")

    def _read_on(self, tail: Tail) -> tuple[Covered, str]:
        """Take in the records that follow; gives why it stopped at one, empty at the end."""
        covered = self.index.covered()
        replay = covered is None and self._progress is not None
        with closing(tail.read(covered.end if covered else ORIGIN)) as following:
            for stored in following:
                try:
                    covered = self.replay.take(self.index, stored, covered)
                except Unsound as error:
                    if covered is None:
                        raise BrokenLedger(self.store.place(0), 0, 0, str(error)) from error
                    return covered, str(error)
                if replay and self._progress and stored.end.seq % _PROGRESS_EVERY == 0:
                    self._progress(stored.end.seq)
        if covered is None:
            raise BrokenLedger(self.store.place(0), 0, 0, "no whole record")
        return covered, ""

    def _rest(self, tail: Tail, covered: Covered, why: str) -> bytes:
        try:
            return tail.rest(covered.end)
        except BrokenLedger as error:
            if why:
                raise self.replay.broken(covered.end, why) from error
            raise

    def _require_torn(self, rest: bytes, covered: Covered, why: str) -> None:
        """Refuse bytes that no crash can have left (spec §7.4)."""
        head = self._head.read()
        if head is None and (why or not _is_prefix(rest)):
            raise self.replay.broken(covered.end, why or "bytes that are no record")
        if head is not None and covered.position.seq < head.seq:
            raise self.replay.broken(covered.end, why or "bytes that are no record")

    def _remember(self, head: Head | None, covered: Covered) -> None:
        """Hold the ledger against what this host remembers of it."""
        if head is None:
            self.since = covered.position.seq
            self.warnings.append(
                f"this host had no memory of the ledger: rollback is noticed from "
                f"seq {self.since} on",
            )
        else:
            self.since = head.since
            try:
                self._require_head(head, covered)
            except RolledBack as error:
                if self._adopt != "rolled back":
                    raise
                self.since = covered.position.seq
                self.warnings.append(
                    f"given up: this host had answered for records up to seq {head.seq}, "
                    f"chain digest {head.digest.hex()}; {error.reason}"
                )
        if self._adopt:
            self._head.adopt(self._head_at(covered), lower=self._adopt == "rolled back")

    def _require_head(self, head: Head, covered: Covered) -> None:
        if head.seq > covered.position.seq:
            raise RolledBack(self.path, head.seq)
        raw = self.store.at(Position(head.seq, head.segment, head.offset))
        if raw is None or _digest(raw) != head.digest:
            raise RolledBack(self.path, head.seq, "another record stands there")

    def _account_for_torn(self, tail: Tail, covered: Covered) -> Covered:
        """Move torn bytes aside, and append a `recovered` event for each piece."""
        for torn in tail.set_aside(covered.end):
            body = {
                "after_seq": covered.position.seq,
                "length": torn.length,
                "sha256": torn.sha256,
            }
            at = max(self.clock(), covered.at)
            _, covered = self.append(tail, covered, at, "recovered", None, body, {})
        return covered

    # Appending

    def append(
        self,
        tail: Tail,
        covered: Covered,
        at: int,
        kind: str,
        card: bytes | None,
        body: Mapping[str, Any],
        openings: Mapping[str, bytes],
    ) -> tuple[Record, Covered]:
        """Seal an event, write it, and fold it: every record but the first goes this way."""
        end = covered.end
        event = Event(self.chain, end.seq, covered.digest, at, kind, card, body, openings)
        record = seal(event, self.replay.key(covered.kid))
        stored = tail.append(end, record.raw)
        kid = body["kid"] if kind == "rekeyed" else covered.kid
        return record, self.replay.cover(self.index, stored, record, kid)


class Turn:
    """One hold of the tail: what the chain says, the clock, and the right to append."""

    def __init__(self, log: Log) -> None:
        """Take the log; `begin` makes the turn usable."""
        self._log = log
        self.appended = False

    def begin(self, tail: Tail) -> None:
        """Catch up with what others appended."""
        self._tail = tail
        self.covered = self._log.catch_up(tail)
        self._at: int | None = None

    @property
    def views(self) -> Index:
        """What the chain says now."""
        return self._log.index

    @property
    def at(self) -> int:
        """The clock, read once, and held for up to 5 seconds where it went back (spec §5)."""
        if self._at is None:
            now, last = self._log.clock(), self.covered.at
            if now < last - HELD_MS:
                raise ClockWentBack(self._log.path, last, now)
            self._at = max(now, last)
        return self._at

    def time(self, now: int | None) -> int:
        """Give the time to read at, in milliseconds: `now`, or the clock, or the last record's."""
        return max(self._log.clock(), self.covered.at) if now is None else now

    def append(
        self,
        kind: str,
        card: bytes | None,
        body: Mapping[str, Any],
        openings: Mapping[str, bytes] | None = None,
        *,
        at: int | None = None,
    ) -> Record:
        """Append one event at the time of this turn, or at `at` for a `clock_reset`."""
        at = self.at if at is None else at
        self.appended = True
        record, self.covered = self._log.append(
            self._tail, self.covered, at, kind, card, body, openings or {}
        )
        return record

    def record(self, card: bytes, seq: int) -> Record:
        """Give an event of a card, held against the record that the index points to."""
        position = self.views.event(card, seq)
        record = self._log.replay.read(position) if position else None
        if record is None or record.card != card:
            raise IndexContradicts(f"index: no event of card {card.hex()} at seq {seq}")
        return record

    def profile(self, digest: bytes) -> Profile | None:
        """Give a profile that this host was given or that the chain holds (spec §8.5)."""
        if digest in self._log.profiles:
            return self._log.profiles[digest]
        text = self.views.profile_bytes(digest)
        found = None if text is None else parse_profile(text)
        if found is not None and found.digest != digest:
            raise IndexContradicts(f"index: another profile than {digest.hex()}")
        return found

    def first(self) -> Record:
        """Give the `opened` record."""
        return self._log.replay.read(ORIGIN)

    def envelope(self, card: Card) -> bytes:
        """Give the envelope of a card, from its last event or the one that issued it."""
        text = self._envelope(card)
        if text is not None:
            return text
        raise StoreFailed(f"the envelope of card {card.hash.hex()} was removed from the log")

    def envelope_of(self, card_hash: bytes | None) -> bytes | None:
        """Give the envelope of an issued card, None if there is none or it was removed."""
        card = None if card_hash is None else self.views.card(card_hash)
        return None if card is None else self._envelope(card)

    def _envelope(self, card: Card) -> bytes | None:
        for record in (self.last_event(card), self.record(card.hash, card.seq)):
            if "envelope" in record.openings:
                return record.openings["envelope"]
        return None

    def last_event(self, card: Card) -> Record:
        """Give the last event of a card other than `refused`; the card must agree with it."""
        record = self.record(card.hash, card.last)
        if card.state not in STATES_AFTER[record.kind]:
            raise IndexContradicts(f"index: card {card.hash.hex()} is not {card.state}")
        return record


def _digest(raw: bytes) -> bytes | None:
    try:
        return decode(raw).digest
    except Malformed:
        return None


def _is_prefix(rest: bytes) -> bool:
    """Tell whether bytes are the beginning of one record."""
    try:
        return next_length(rest) is None
    except Malformed:
        return False
