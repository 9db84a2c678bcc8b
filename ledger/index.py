"""What the chain says, kept in SQLite so that no gate needs a replay (architecture.md, host state).

A disposable projection: it holds nothing that one replay of the chain would not give again, but
for the running counts of refusals that were not recorded. Each transaction takes it from one record
to a later one, while the tail of the store is held. It is never evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from ledger.codec import Record
from ledger.database import Database
from ledger.lookups import CARD, GIVE_CARD, Lookups, card_of
from ledger.projection import Card, Flood, Step
from ledger.rows import Rows
from ledger.store.contract import Position, Stored

VERSION: Final = 5
_SCHEMA: Final = f"""
CREATE TABLE cards ({", ".join(CARD)}, PRIMARY KEY (hash)) WITHOUT ROWID;
CREATE INDEX open_cards ON cards (not_after, seq) WHERE state = 'OPEN';
CREATE INDEX asked ON cards (ask, state, seq);
CREATE INDEX grants ON cards (seq) WHERE state = 'APPROVED';
CREATE TABLE steps (task PRIMARY KEY, latest, dispatched) WITHOUT ROWID;
CREATE TABLE floods (gate, reason, subject, count, seq, PRIMARY KEY (gate, reason, subject))
    WITHOUT ROWID;
CREATE TABLE events (card, seq, segment, offset, PRIMARY KEY (card, seq)) WITHOUT ROWID;
CREATE TABLE profiles (digest PRIMARY KEY, text) WITHOUT ROWID;
CREATE TABLE configured (seq PRIMARY KEY, digest) WITHOUT ROWID;
CREATE TABLE kids (kid PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE covered (id PRIMARY KEY, seq, segment, offset, size, digest, at, kid) WITHOUT ROWID;
CREATE TABLE reset (id PRIMARY KEY, seq) WITHOUT ROWID;
CREATE TABLE edge (id PRIMARY KEY, seq, prev, named) WITHOUT ROWID;
CREATE TABLE pruned (id PRIMARY KEY, before) WITHOUT ROWID;
CREATE TABLE missing (seq, name, PRIMARY KEY (seq, name)) WITHOUT ROWID;
CREATE TABLE redactions (event, seq, name, done, PRIMARY KEY (event, name)) WITHOUT ROWID;
CREATE INDEX redacted ON redactions (seq);
CREATE INDEX unfinished ON redactions (done) WHERE done = 0;
"""
_card_values = attrgetter(*CARD)
_flood_values = attrgetter("gate", "reason", "subject")
_PUT_CARD: Final = f"INSERT OR REPLACE INTO cards VALUES ({', '.join('?' * len(CARD))})"


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


@dataclass(slots=True)
class _Draft:
    """What a transaction has changed and not yet put into the file."""

    cards: Rows[bytes, Card]
    steps: Rows[bytes, Step]
    floods: Rows[Flood, tuple[int, int]]
    profile: Rows[None, bytes]
    covered: Rows[None, Covered]
    reset: Rows[None, int]
    events: list[tuple[bytes, int, int, int]] = field(default_factory=list)
    changed: bool = False


class Index(Lookups):
    """The views of one chain on disk, shared by all processes of this host."""

    def __init__(self, path: Path, *, looks: bool = False) -> None:
        """Open the file, as `Database` does; one that only `looks` may be opened at any time."""
        self._file = Database(path, _SCHEMA, VERSION, looks=looks)
        self._draft = self._new_draft()

    def renew(self) -> None:
        """Begin again with an empty file."""
        self._draft = self._new_draft()
        self._file.renew()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of a block together, or none; all reads in it see one state."""
        self._draft = self._new_draft()
        try:
            with self._file.transaction():
                yield
                self.flush()
        except BaseException:
            self._draft = self._new_draft()
            raise

    def keep(self) -> None:
        """Keep what a long replay has so far, in the order of its keys, so that it can go on here.

        A later failure takes nothing of it back: what is covered was checked.
        """
        self.flush()
        self._file.commit()

    def tidy(self) -> None:
        """Do what keeps the file small, while others may write it."""
        self._file.tidy()

    def flush(self) -> None:
        """Put what changed into the file; it counts from the end of the transaction on."""
        draft = self._draft
        if not draft.changed:
            return
        draft.changed = False
        put = self._file.put
        cards = sorted(draft.cards.take().items())
        put(_PUT_CARD, [_card_values(card) for _, card in cards])
        put(
            "INSERT OR REPLACE INTO steps VALUES (?, ?, ?)",
            [
                (task, step.latest, step.dispatched)
                for task, step in sorted(draft.steps.take().items())
            ],
        )
        put(
            "INSERT OR REPLACE INTO floods VALUES (?, ?, ?, ?, ?)",
            [(*_flood_values(flood), *last) for flood, last in draft.floods.take().items()],
        )
        put("INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?)", sorted(draft.events))
        draft.events.clear()
        put(
            "INSERT OR REPLACE INTO covered VALUES (0, ?, ?, ?, ?, ?, ?, ?)",
            [_covered_values(covered) for covered in draft.covered.take().values()],
        )
        put(
            "INSERT OR REPLACE INTO reset VALUES (0, ?)",
            [(seq,) for seq in draft.reset.take().values()],
        )
        draft.profile.take()

    def _new_draft(self) -> _Draft:
        return _Draft(
            cards=Rows(self._read_card),
            steps=Rows(self._read_step),
            floods=Rows(self._read_refusals),
            profile=Rows(self._read_profile),
            covered=Rows(self._read_covered),
            reset=Rows(self._read_reset),
        )

    # What is covered

    def covered(self) -> Covered | None:
        """Give the last record covered, None if there is none yet."""
        return self._draft.covered.get(None)

    def _read_covered(self, _: None) -> Covered | None:
        row = self._file.one("SELECT seq, segment, offset, size, digest, at, kid FROM covered")
        if row is None:
            return None
        seq, segment, offset, size, digest, at, kid = row
        return Covered(Position(seq, segment, offset), size, digest, at, kid)

    def cover(self, stored: Stored, record: Record, kid: bytes) -> Covered:
        """Cover the record after the last; `kid` is the one in force from the next record on."""
        position = stored.position
        draft = self._draft
        place = (record.card or b"", position.seq, position.segment, position.offset)
        draft.events.append(place)
        covered = Covered(position, len(stored.data), record.digest, record.at, kid)
        draft.covered.put(None, covered)
        draft.changed = True
        return covered

    def was_in_force(self, kid: bytes) -> bool:
        """Tell whether a kid was ever in force."""
        return self._file.one("SELECT 1 FROM kids WHERE kid = ?", kid) is not None

    def put_kid(self, kid: bytes) -> None:
        """Keep that a kid came into force."""
        self._file.run("INSERT OR IGNORE INTO kids VALUES (?)", kid)

    # Views, for `projection.fold` and `gate`

    def card(self, card: bytes) -> Card | None:
        """Give a card by its hash."""
        return self._draft.cards.get(card)

    def _read_card(self, card: bytes) -> Card | None:
        row = self._file.one(f"{GIVE_CARD} WHERE hash = ?", card)
        return card_of(row) if row else None

    def put_card(self, card: Card) -> None:
        """Keep a card."""
        self._draft.cards.put(card.hash, card)
        self._draft.changed = True

    def step(self, task: bytes) -> Step | None:
        """Give a step by its task digest."""
        return self._draft.steps.get(task)

    def _read_step(self, task: bytes) -> Step | None:
        row = self._file.one("SELECT latest, dispatched FROM steps WHERE task = ?", task)
        return Step(*row) if row else None

    def put_step(self, task: bytes, step: Step) -> None:
        """Keep a step."""
        self._draft.steps.put(task, step)
        self._draft.changed = True

    def last_reset(self) -> int | None:
        """Give the seq of the last `clock_reset`."""
        return self._draft.reset.get(None)

    def _read_reset(self, _: None) -> int | None:
        row = self._file.one("SELECT seq FROM reset")
        return row[0] if row else None

    def put_reset(self, seq: int) -> None:
        """Keep the seq of the last `clock_reset`."""
        self._draft.reset.put(None, seq)
        self._draft.changed = True

    def refusals(self, flood: Flood) -> int:
        """Give the running count of refusals."""
        return (self._draft.floods.get(flood) or (0, 0))[0]

    def _read_refusals(self, flood: Flood) -> tuple[int, int] | None:
        row = self._file.one(
            "SELECT count, seq FROM floods WHERE gate = ? AND reason = ? AND subject = ?",
            *_flood_values(flood),
        )
        return (row[0], row[1]) if row else None

    def put_refusals(self, flood: Flood, count: int, seq: int | None = None) -> None:
        """Keep a running count of refusals; `seq` is that of the last one, if it is recorded."""
        if seq is None:
            seq = (self._draft.floods.get(flood) or (0, 0))[1]
        self._draft.floods.put(flood, (count, seq))
        self._draft.changed = True

    def profile(self) -> bytes | None:
        """Give the digest of the newest chain profile."""
        return self._draft.profile.get(None)

    def _read_profile(self, _: None) -> bytes | None:
        row = self._file.one("SELECT digest FROM configured ORDER BY seq DESC LIMIT 1")
        return row[0] if row else None

    def profile_bytes(self, digest: bytes) -> bytes | None:
        """Give the bytes of a chain profile."""
        row = self._file.one("SELECT text FROM profiles WHERE digest = ?", digest)
        return row[0] if row else None

    def put_profile(self, digest: bytes, text: bytes | None, seq: int) -> None:
        """Keep a chain profile."""
        self._file.run(
            "INSERT INTO profiles VALUES (?, ?) ON CONFLICT (digest) DO UPDATE "
            "SET text = coalesce(excluded.text, text)",
            digest,
            text,
        )
        self._file.run("INSERT OR REPLACE INTO configured VALUES (?, ?)", seq, digest)
        self._draft.profile.put(None, digest)

    # What is gone (spec §15)

    def begin_at(self, seq: int, prev: bytes) -> None:
        """Keep that the log begins above seq 0, behind a record with the digest `prev`."""
        self._file.run("INSERT INTO edge VALUES (0, ?, ?, 0)", seq, prev)

    def begins_again_at(self, seq: int) -> None:
        """Keep that the log begins at a lower seq than it did, since records were put back."""
        self._file.run("UPDATE edge SET seq = ?", seq)

    def edge(self) -> bool:
        """Tell whether the log begins above seq 0 and no `pruned` has named that yet."""
        return self._file.one("SELECT 1 FROM edge WHERE named = 0") is not None

    def put_missing(self, seq: int, names: list[str]) -> None:
        """Keep that a record binds openings which are not there."""
        self._file.put("INSERT OR REPLACE INTO missing VALUES (?, ?)", [(seq, n) for n in names])

    def put_redaction(self, event: int, seq: int, names: list[str]) -> None:
        """Keep that a record names openings of an earlier one, and whether they are erased."""
        for name in names:
            self._file.run(
                "INSERT OR REPLACE INTO redactions VALUES (?1, ?2, ?3,"
                " EXISTS (SELECT 1 FROM missing WHERE seq = ?2 AND name = ?3)"
                " OR EXISTS (SELECT 1 FROM edge WHERE seq > ?2))",
                *(event, seq, name),
            )
            self._file.run("DELETE FROM missing WHERE seq = ? AND name = ?", seq, name)

    def erased(self, seqs: Iterable[int], cards: Iterable[bytes]) -> None:
        """Keep that what was named of these records is erased, and forget what was read of it."""
        self._renew_draft()
        self._file.put("UPDATE redactions SET done = 1 WHERE seq = ?", [(seq,) for seq in seqs])
        self._file.put(
            "UPDATE cards SET ask = NULL, named = NULL WHERE hash = ?", [(card,) for card in cards]
        )

    def move(self, places: list[tuple[int, int, bytes]], covered: Covered) -> None:
        """Take in where records begin in their segment now: offset, seq and card of each."""
        self._renew_draft()
        rows = [(offset, card, seq) for offset, seq, card in places]
        self._file.put("UPDATE events SET offset = ? WHERE card = ? AND seq = ?", rows)
        self._draft.covered.put(None, covered)
        self._draft.changed = True

    def forget(self, before: int) -> None:
        """Forget what a `pruned` record says may be gone (spec §15.2).

        Cards issued since then are held to the first profile that was put in force since then: the
        one before it stood in a record that may be gone.
        """
        self._renew_draft()
        for statement in _FORGET:
            self._file.run(statement, before)

    def _renew_draft(self) -> None:
        """Put what changed into the file and read it anew, since statements are about to."""
        self.flush()
        self._draft = self._new_draft()

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Give the rows of a query that must see what this transaction changed."""
        self.flush()
        return self._file.all(statement, *values)


_FIRST_PROFILE: Final = "SELECT {} FROM configured WHERE seq >= ?1 ORDER BY seq LIMIT 1"
_FORGET: Final = (
    "DELETE FROM cards WHERE seq < ?1",
    "DELETE FROM steps WHERE latest NOT IN (SELECT hash FROM cards WHERE seq >= ?1)",
    "UPDATE steps SET dispatched = NULL"
    " WHERE dispatched NOT IN (SELECT hash FROM cards WHERE seq >= ?1)",
    "DELETE FROM floods WHERE seq < ?1",
    "DELETE FROM events WHERE seq < ?1",
    "DELETE FROM reset WHERE seq < ?1",
    "DELETE FROM missing WHERE seq < ?1",
    "DELETE FROM redactions WHERE event < ?1",
    f"UPDATE cards SET profile = ({_FIRST_PROFILE.format('digest')})"
    f" WHERE seq < coalesce(({_FIRST_PROFILE.format('seq')}), seq + 1)",
    "DELETE FROM configured WHERE seq < ?1",
    "DELETE FROM profiles WHERE digest NOT IN (SELECT digest FROM configured WHERE seq >= ?1)",
    "UPDATE edge SET named = 1 WHERE seq <= ?1",
    "INSERT OR REPLACE INTO pruned VALUES (0, ?1)",
)
_covered_values = attrgetter(
    "position.seq", "position.segment", "position.offset", "size", "digest", "at", "kid"
)
