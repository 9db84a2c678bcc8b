"""What the chain says, kept in SQLite so that no gate needs a replay (architecture.md, host state).

A disposable projection: it holds nothing that one replay of the chain would not give again, but
for the running counts of refusals that were not recorded. It is used only while the tail of the
store is held, and each transaction takes it from one record to a later one. It is never evidence.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from ledger.codec import Record
from ledger.errors import LedgerError, StoreFailed
from ledger.projection import Card, Flood, State, Step
from ledger.store.contract import Position, Stored

VERSION: Final = 2
CACHE_KIB: Final = 32_768
"""How much of the file a replay keeps in memory, since it writes all over it."""
_CARD = tuple(field.name for field in fields(Card))
_SCHEMA: Final = f"""
CREATE TABLE cards ({", ".join(_CARD)}, PRIMARY KEY (hash)) WITHOUT ROWID;
CREATE INDEX open_cards ON cards (seq) WHERE state = 'OPEN';
CREATE INDEX asked ON cards (ask, state, seq);
CREATE INDEX grants ON cards (seq) WHERE state = 'APPROVED';
CREATE TABLE steps (task PRIMARY KEY, latest, dispatched) WITHOUT ROWID;
CREATE TABLE floods (gate, reason, subject, count, PRIMARY KEY (gate, reason, subject))
    WITHOUT ROWID;
CREATE TABLE events (card, seq, segment, offset, PRIMARY KEY (card, seq)) WITHOUT ROWID;
CREATE TABLE profiles (digest PRIMARY KEY, text, seq) WITHOUT ROWID;
CREATE TABLE kids (kid PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE covered (seq, segment, offset, size, digest, at, kid, reset);
PRAGMA user_version = {VERSION};
"""
_card_values = attrgetter(*_CARD)
_flood_values = attrgetter("gate", "reason", "subject")
_GIVE_CARD: Final = f"SELECT {', '.join(_CARD)} FROM cards"
_PUT_CARD: Final = f"INSERT OR REPLACE INTO cards VALUES ({', '.join('?' * len(_CARD))})"


class IndexContradicts(LedgerError):
    """The index is damaged, or is not of this chain: it is made anew by a replay."""

    hint = "open the ledger again; it replays the chain once"


@dataclass(frozen=True, slots=True)
class Covered:
    """The last record that the index covers, where it stands, and the kid in force after it."""

    position: Position
    size: int
    digest: bytes
    at: int
    kid: bytes

    @property
    def end(self) -> Position:
        """Where the record after it may begin."""
        position = self.position
        return Position(position.seq + 1, position.segment, position.offset + self.size)


class Index:
    """The views of one chain on disk, shared by all processes of this host."""

    def __init__(self, path: Path, *, looks: bool = False) -> None:
        """Open the file, or make it, while the tail is held; one that is no index is replaced.

        One that only `looks` is opened at any time, sees what is committed, and changes nothing.
        """
        self._path = path
        self._looks = looks
        self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        self._database: sqlite3.Connection | None = None
        try:
            self._connect()
        except (sqlite3.DatabaseError, OSError) as error:
            if self._looks:
                raise IndexContradicts(f"index: {error}") from error
            try:
                self.remove()
                self._connect()
            except (sqlite3.Error, OSError) as error:
                raise StoreFailed(f"index {self._path}: {error}") from error

    def _connect(self) -> None:
        if not self._looks and not self._path.exists():
            flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(self._path, flags, 0o600))
        self._database = database = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=rw",
            timeout=30,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        if self._looks:
            database.execute("PRAGMA query_only = 1")
            return
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version == 0:
            database.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}COMMIT;")
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"version {version}")

    def remove(self) -> None:
        """Forget everything, and the file with it."""
        if self._database is not None:
            self._database.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    def renew(self) -> None:
        """Begin again with an empty file."""
        self.remove()
        self._open()

    def close(self) -> None:
        """Let go of the file."""
        if os.getpid() == self._pid and self._database is not None:
            self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of a block together, or none."""
        if os.getpid() != self._pid:
            _PARENTS.append(self._database)
            self._open()
        assert self._database is not None  # open from the beginning
        self._run("BEGIN" if self._looks else "BEGIN IMMEDIATE")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.rollback()
            raise

    # What is covered

    def covered(self) -> Covered | None:
        """Give the last record covered, None if there is none yet."""
        row = self._one("SELECT seq, segment, offset, size, digest, at, kid FROM covered")
        if row is None:
            return None
        seq, segment, offset, size, digest, at, kid = row
        return Covered(Position(seq, segment, offset), size, digest, at, kid)

    def cover(self, stored: Stored, record: Record, kid: bytes) -> Covered:
        """Cover the record after the last; `kid` is the one in force from the next record on."""
        position, size = stored.position, len(stored.data)
        place = (position.seq, position.segment, position.offset)
        self._run("INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?)", record.card or b"", *place)
        values = (*place, size, record.digest, record.at, kid)
        if position.seq == 0:
            self._run("INSERT INTO covered VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", *values)
        else:
            self._run(
                "UPDATE covered SET seq = ?, segment = ?, offset = ?, size = ?, digest = ?, "
                "at = ?, kid = ?",
                *values,
            )
        return Covered(position, size, record.digest, record.at, kid)

    def was_in_force(self, kid: bytes) -> bool:
        """Tell whether a kid was ever in force."""
        return self._one("SELECT 1 FROM kids WHERE kid = ?", kid) is not None

    def put_kid(self, kid: bytes) -> None:
        """Keep that a kid came into force."""
        self._run("INSERT OR IGNORE INTO kids VALUES (?)", kid)

    # Views, for `projection.fold` and `gate`

    def card(self, card: bytes) -> Card | None:
        """Give a card by its hash."""
        row = self._one(f"{_GIVE_CARD} WHERE hash = ?", card)
        return _card(row) if row else None

    def step(self, task: bytes) -> Step | None:
        """Give a step by its task digest."""
        row = self._one("SELECT latest, dispatched FROM steps WHERE task = ?", task)
        return Step(*row) if row else None

    def last_reset(self) -> int | None:
        """Give the seq of the last `clock_reset`."""
        row = self._one("SELECT reset FROM covered")
        return row[0] if row else None

    def refusals(self, flood: Flood) -> int:
        """Give the running count of refusals."""
        row = self._one(
            "SELECT count FROM floods WHERE gate = ? AND reason = ? AND subject = ?",
            *_flood_values(flood),
        )
        return row[0] if row else 0

    def profile(self) -> bytes | None:
        """Give the digest of the newest chain profile."""
        row = self._one("SELECT digest FROM profiles ORDER BY seq DESC LIMIT 1")
        return row[0] if row else None

    def profile_bytes(self, digest: bytes) -> bytes | None:
        """Give the bytes of a chain profile."""
        row = self._one("SELECT text FROM profiles WHERE digest = ?", digest)
        return row[0] if row else None

    def put_card(self, card: Card) -> None:
        """Keep a card."""
        self._run(_PUT_CARD, *_card_values(card))

    def put_step(self, task: bytes, step: Step) -> None:
        """Keep a step."""
        self._run(
            "INSERT OR REPLACE INTO steps VALUES (?, ?, ?)", task, step.latest, step.dispatched
        )

    def put_reset(self, seq: int) -> None:
        """Keep the seq of the last `clock_reset`."""
        self._run("UPDATE covered SET reset = ?", seq)

    def put_refusals(self, flood: Flood, count: int) -> None:
        """Keep a running count of refusals."""
        self._run("INSERT OR REPLACE INTO floods VALUES (?, ?, ?, ?)", *_flood_values(flood), count)

    def put_profile(self, digest: bytes, text: bytes | None, seq: int) -> None:
        """Keep a chain profile."""
        self._run(
            "INSERT INTO profiles VALUES (?, ?, ?) ON CONFLICT (digest) DO UPDATE "
            "SET text = coalesce(excluded.text, text), seq = excluded.seq",
            digest,
            text,
            seq,
        )

    # Looking things up

    def cards_from(self, first: bytes, last: bytes) -> list[bytes]:
        """Give the hashes of the issued cards from `first` to `last`, both included."""
        rows = self._all("SELECT hash FROM cards WHERE hash BETWEEN ? AND ?", first, last)
        return [row[0] for row in rows]

    def open_cards(self) -> list[Card]:
        """Give the cards that nobody decided, in the order in which they were issued."""
        return [_card(row) for row in self._all(f"{_GIVE_CARD} WHERE state = 'OPEN' ORDER BY seq")]

    def granted_cards(self) -> list[Card]:
        """Give the cards that were approved and not dispatched, in the order of their issue."""
        rows = self._all(f"{_GIVE_CARD} WHERE state = 'APPROVED' ORDER BY seq")
        return [_card(row) for row in rows]

    def asked_before(self, card: Card, at: int) -> list[Card]:
        """Give the earlier cards of other tasks that asked for the same call and came to nothing.

        Of those that were rejected, of those that have expired, and of those of which the grant
        has lapsed, the newest.
        """
        reset = "(SELECT reset FROM covered)"
        ends: tuple[tuple[str, tuple[int, ...]], ...] = (
            ("state = 'REJECTED'", ()),
            (f"state = 'OPEN' AND (not_after * 1000 <= ? OR seq < {reset})", (at,)),
            (
                "state = 'APPROVED' AND (resolved_at + grant_ttl * 1000 <= ?"
                f" OR resolved_seq < {reset})",
                (at,),
            ),
        )
        asked = f"{_GIVE_CARD} WHERE ask = ? AND task != ? AND seq < ?"
        rows = (
            self._one(
                f"{asked} AND {end} ORDER BY seq DESC LIMIT 1",
                *(card.ask, card.task, card.seq, *more),
            )
            for end, more in ends
        )
        return [_card(row) for row in rows if row]

    def events(self, card: bytes) -> list[Position]:
        """Give where the events of a card stand, in order, refusals too."""
        rows = self._all(
            "SELECT seq, segment, offset FROM events WHERE card = ? ORDER BY seq", card
        )
        return [Position(*row) for row in rows]

    def event(self, card: bytes, seq: int) -> Position | None:
        """Give where one event of a card stands."""
        row = self._one(
            "SELECT seq, segment, offset FROM events WHERE card = ? AND seq = ?", card, seq
        )
        return Position(*row) if row else None

    def _run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        assert self._database is not None  # open from the beginning
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise IndexContradicts(f"index: {error}") from error

    def _one(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._run(statement, *values).fetchone()
        return row

    def _all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._run(statement, *values).fetchall()


_PARENTS: list[sqlite3.Connection | None] = []
"""Connections of a parent process: a child must neither use nor close them."""


def _card(row: tuple[Any, ...]) -> Card:
    values = dict(zip(_CARD, row, strict=True))
    try:
        return Card(**{**values, "state": State(values["state"])})
    except ValueError as error:
        raise IndexContradicts("index: a card with an unknown state") from error
