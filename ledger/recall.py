"""What this host remembers of a ledger, held against what stands there (architecture.md)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Literal, TypeAlias

from ledger.codec import decode
from ledger.database import IndexContradicts
from ledger.errors import BrokenLedger, Copied, Malformed, RolledBack
from ledger.head import Head, HeadFile
from ledger.index import Covered, Index
from ledger.replay import Replay
from ledger.store.contract import Position, Store

Adoption: TypeAlias = Literal["copy", "rolled back"]


class Recall:
    """The remembered head of one ledger.

    `since` is the seq from which this host would notice a rollback, `warnings` are sentences for
    people about what it has lost.
    """

    def __init__(
        self, path: Path, chain: bytes, store: Store, head: Path, adopt: Adoption | None
    ) -> None:
        """Take the ledger and the file of the head.

        With `adopt` the directory may be another one than this host wrote to, or lack records that
        it has answered for.
        """
        self.since = 0
        self.warnings: list[str] = []
        self._path = path
        self._chain = chain
        self._store = store
        self._file = HeadFile(head, path)
        self._adopt = adopt

    def head(self) -> Head | None:
        """Give the last record that this host has answered for, None if that is lost."""
        return self._file.read()

    def answered_to(self) -> Position | None:
        """Give the end of the last record that this host has answered for."""
        head = self.head()
        if head is None:
            return None
        place = self._place(head)
        raw = self._store.at(place)
        if raw is None or _digest(raw) != head.digest:
            return None
        return Position(place.seq + 1, place.segment, place.offset + len(raw))

    def answer_for(self, covered: Covered) -> None:
        """Remember a record that is durable."""
        self._file.advance(self._head_at(covered))

    def require_index(self, index: Index, replay: Replay) -> None:
        """Have the index made anew if it is not of this store, or if this host lost its memory.

        What the index covers behind the head was never answered for: a crash or a failed sync may
        have left less of it, so it is read again.

        Raises:
            Copied: The directory is not the one that this host wrote to.
            IndexContradicts: The index does not fit.

        """
        head = self.head()
        if head is not None and head.inode != self._store.identity() and not self._adopt:
            raise Copied(self._path)
        covered = index.covered()
        if covered is None:
            return
        raw = self._store.at(covered.position) if head is not None else None
        if head is None or raw is None or _digest(raw) != covered.digest:
            raise IndexContradicts("index: it is not of this ledger, or its memory is lost")
        if head.seq < covered.position.seq:
            self._require_links(head, covered, replay)

    def _require_links(self, head: Head, covered: Covered, replay: Replay) -> None:
        last = head.digest
        with closing(self._store.read(self._place(head))) as following:
            for stored in following:
                if stored.position.seq > covered.position.seq:
                    break
                try:
                    record = replay.checked(stored)
                except BrokenLedger as error:
                    raise IndexContradicts(f"index: {error.reason}") from error
                if stored.position.seq > head.seq and record.prev != last:
                    raise IndexContradicts(f"index: no link at seq {record.seq}")
                last = record.digest
        if last != covered.digest:
            raise IndexContradicts("index: it covers records that are not there")

    def require(self, covered: Covered) -> None:
        """Hold the ledger against the head.

        Raises:
            RolledBack: It lacks a record that this host has answered for.
            Copied: Another directory was adopted in the meantime.

        """
        head = self.head()
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
            self._file.adopt(self._head_at(covered), lower=self._adopt == "rolled back")

    def _require_head(self, head: Head, covered: Covered) -> None:
        if head.seq > covered.position.seq:
            raise RolledBack(self._path, head.seq)
        raw = self._store.at(self._place(head))
        if raw is None or _digest(raw) != head.digest:
            raise RolledBack(self._path, head.seq, "another record stands there")

    def _place(self, head: Head) -> Position:
        """Give where the remembered record stands: its segment may have been rewritten (§15.3)."""
        place = Position(head.seq, head.segment, head.offset)
        raw = self._store.at(place)
        if raw is not None and _digest(raw) == head.digest:
            return place
        first = max((each for each in self._store.segments() if each <= head.seq), default=0)
        with closing(self._store.read(Position(first, first, 0))) as found:
            for stored in found:
                if stored.position.seq == head.seq:
                    return stored.position
        return place

    def _head_at(self, covered: Covered) -> Head:
        position = covered.position
        return Head(
            chain=self._chain,
            seq=position.seq,
            digest=covered.digest,
            segment=position.segment,
            offset=position.offset,
            inode=self._store.identity(),
            since=self.since,
        )


def _digest(raw: bytes) -> bytes | None:
    try:
        return decode(raw).digest
    except Malformed:
        return None
