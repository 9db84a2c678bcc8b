"""How a ledger is made, opened and adopted (architecture.md, host state)."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Self

from ledger import checkpoint, keys, keysource, redaction, request
from ledger.assembly import assembled
from ledger.errors import failing
from ledger.keysource import Given
from ledger.log import Log
from ledger.periodic import Periodic
from ledger.profile import parse as parse_profile
from ledger.reader import Reader
from ledger.recall import Adoption
from ledger.store import directory
from ledger.store.contract import ORIGIN
from ledger.store.files import SYNC
from ledger.store.segments import Segments

SOFTWARE: Final = "cardchain 0.1.0"


def _now() -> int:
    return time.time_ns() // 1_000_000


class Access(Reader):
    """The ways to come by an open ledger, and to let go of it."""

    _periodic: Periodic | None = None

    @classmethod
    def init(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str,
        profile: bytes | None = None,
        clock: Callable[[], int] = _now,
        sync: Callable[[int], None] = SYNC,
    ) -> Self:
        """Make a ledger at `path`, which must be free or an empty directory, and its key.

        `profile` holds the canonical bytes of what every card is held to (spec §8.5).

        Raises:
            AlreadyThere: Something stands at `path`. Nothing was changed.
            StoreFailed: The disk refused. At `path` is nothing, or a ledger that can be opened.

        """
        told, kept = request.profile(profile)
        body = {"name": request.line("name", name), "software": SOFTWARE, **told}
        where = Path(path)
        with failing(f"init {where}"):
            directory.require_free(where)
            key_file = keys.make(secrets.token_bytes(16))
            directory.make(where)
            log: Log | None = None
            try:
                log = assembled(where, key_file.key.chain, (), clock, sync)
                record = log.found(body, kept, key_file.key)
                keys.pin(key_file, record.seq, record.digest)
            except BaseException:
                if log is None or log.store.at(ORIGIN) is None:
                    directory.unmake(where)  # without a record it would be no ledger, in the way
                if log is not None:
                    log.close()
                raise
            return cls(where, log)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        keys: Iterable[Given] = (),
        profiles: Iterable[bytes] = (),
        clock: Callable[[], int] = _now,
        sync: Callable[[int], None] = SYNC,
        progress: Callable[[int], None] | None = None,
        checkpoint_every: int | None = None,
    ) -> Self:
        """Open a ledger for append, and read what was appended since this host last did.

        `keys` are key files, folders of them or other sources of keys, beside `CARDCHAIN_KEY` and
        the state directory.
        `profiles` are the canonical bytes of those that cards name and the chain does not hold.
        `clock` gives unix milliseconds; `sync` makes a file descriptor durable; `progress` is told
        the count of records while a lost index is made anew. With `checkpoint_every` a checkpoint
        is signed beside the appends whenever so many records came since the last; one that fails
        is told in `warnings`.

        Raises:
            NotALedger: There is none at `path`.
            BrokenLedger: Its files are not what this software wrote.
            RolledBack, Copied: It is not the ledger that this host remembers.
            KeyMissing, LooseMode, LockTimeout, NoStateDirectory, StoreFailed: The host.

        """
        every = None if checkpoint_every is None else request.count("every", checkpoint_every)
        ledger = cls._open(Path(path), keys, clock, sync, profiles=profiles, progress=progress)
        if every is not None:
            ledger._sign_every(every)
        return ledger

    @classmethod
    def adopt(
        cls,
        path: str | os.PathLike[str],
        *,
        keys: Iterable[Given] = (),
        clock: Callable[[], int] = _now,
        rolled_back: bool = False,
    ) -> Self:
        """Open a copy as the ledger to append to; `rolled_back` gives up the records it lacks."""
        how: Adoption = "rolled back" if rolled_back else "copy"
        return cls._open(Path(path), keys, clock, SYNC, adopt=how)

    @classmethod
    def _open(
        cls,
        path: Path,
        sources: Iterable[Given],
        clock: Callable[[], int],
        sync: Callable[[int], None],
        *,
        profiles: Iterable[bytes] = (),
        progress: Callable[[int], None] | None = None,
        adopt: Adoption | None = None,
    ) -> Self:
        given = tuple(map(keysource.source, sources))
        known = {each.digest: each for each in map(parse_profile, profiles)}
        with failing(f"open {path}"):
            log = assembled(
                path, None, given, clock, sync, profiles=known, progress=progress, adopt=adopt
            )
        ledger = cls(path, log)
        try:
            log.run(lambda turn: None)
            if log.look(redaction.unfinished):
                redaction.finish(Segments(path), log)
        except BaseException:
            log.close()
            raise
        return ledger

    def _sign_every(self, every: int) -> None:
        def sign(every: int) -> int:
            return checkpoint.sign(self.path, self._log, every=every).checkpoint.size

        self._periodic = Periodic(every, sign)
        self._log.answered = self._periodic.answered

    def close(self) -> None:
        """Let go of all files, when a checkpoint that is being signed is done."""
        if self._periodic is not None:
            self._periodic.close()
        super().close()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for people about what this host has lost, and checkpoints that failed."""
        trouble = self._periodic.warning if self._periodic else None
        return super().warnings if trouble is None else (*super().warnings, trouble)
