"""A SQLite file that can be thrown away: shared by processes, opened anew after a fork."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ledger.errors import LedgerError, StoreFailed

CACHE_KIB: Final = 32_768
"""How much of the file a replay keeps in memory, since it writes all over it."""
_MOST_PAGES: Final = 8_000
"""Changed pages that are folded into the file by a writer, if no `tidy` did so before."""


class IndexContradicts(LedgerError):
    """The index is damaged, or is not of this chain: it is made anew by a replay."""

    hint = "open the ledger again; it replays the chain once"


class Database:
    """One file with a schema of one version."""

    def __init__(self, path: Path, schema: str, version: int, *, looks: bool = False) -> None:
        """Open the file, or make it, while the tail is held; one that is no index is replaced.

        One that only `looks` is opened at any time, sees what is committed, and changes nothing.
        """
        self._path = path
        self._schema = f"{schema}PRAGMA user_version = {version};"
        self._version = version
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
                self._remove()
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
        database.execute(f"PRAGMA wal_autocheckpoint = {_MOST_PAGES}")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version == 0:
            database.executescript(f"BEGIN IMMEDIATE;{self._schema}COMMIT;")
        elif version != self._version:
            raise sqlite3.DatabaseError(f"version {version}")

    def _remove(self) -> None:
        if self._database is not None:
            self._database.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    def renew(self) -> None:
        """Begin again with an empty file."""
        self._remove()
        self._open()

    def close(self) -> None:
        """Let go of the file."""
        if os.getpid() == self._pid and self._database is not None:
            self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of a block together, or none; all reads in it see one state."""
        self._notice_fork()
        assert self._database is not None  # open from the beginning
        self._begin()
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.rollback()
            raise

    def commit(self) -> None:
        """Keep the changes of a transaction so far, and go on with it."""
        self.run("COMMIT")
        self._begin()

    def _begin(self) -> None:
        self.run("BEGIN" if self._looks else "BEGIN IMMEDIATE")

    def tidy(self) -> None:
        """Fold what was committed into the file, and sync it; writers go on meanwhile."""
        self._notice_fork()
        self.run("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _notice_fork(self) -> None:
        if os.getpid() != self._pid:
            _PARENTS.append(self._database)
            self._open()

    def run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement, or raise `IndexContradicts`."""
        assert self._database is not None  # open from the beginning
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise IndexContradicts(f"index: {error}") from error

    def put(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for each row."""
        assert self._database is not None  # open from the beginning
        if not rows:
            return
        try:
            self._database.executemany(statement, rows)
        except sqlite3.Error as error:
            raise IndexContradicts(f"index: {error}") from error

    def one(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """Give the first row of a query."""
        row: tuple[Any, ...] | None = self.run(statement, *values).fetchone()
        return row

    def all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Give the rows of a query."""
        return self.run(statement, *values).fetchall()


_PARENTS: list[sqlite3.Connection | None] = []
"""Connections of a parent process: a child must neither use nor close them."""
