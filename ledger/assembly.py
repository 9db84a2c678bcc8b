"""How the log of a directory is put together: its store, its keys, what this host remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ledger import keys
from ledger.codec import decode, next_length
from ledger.errors import BrokenLedger, Malformed
from ledger.keys import KeySource
from ledger.log import Log
from ledger.profile import Profile
from ledger.recall import Adoption
from ledger.state import state_directory
from ledger.store.files import FileStore


def assembled(
    path: Path,
    chain: bytes | None,
    sources: tuple[KeySource, ...],
    clock: Callable[[], int],
    sync: Callable[[int], None],
    *,
    profiles: Mapping[bytes, Profile] | None = None,
    progress: Callable[[int], None] | None = None,
    adopt: Adoption | None = None,
) -> Log:
    """Give the log of a directory; without `chain`, the first record says which it is."""
    store = FileStore(path.absolute(), next_length, sync=sync)
    try:
        named = chain_of(store) if chain is None else chain
        log = Log(
            path,
            named,
            store,
            state_directory(named),
            lambda: keys.find_keys(named, sources),
            clock,
            profiles=profiles,
            progress=progress,
            adopt=adopt,
        )
        store.answered_to = log.recall.answered_to
    except BaseException:
        store.close()
        raise
    return log


def chain_of(store: FileStore) -> bytes:
    """Give the chain that the first record of a store names; nothing else of it is checked."""
    origin = store.origin()
    place = store.place(origin.segment)
    raw = store.at(origin)
    if raw is None:
        reason = "no whole record at the beginning; was init interrupted?"
        error = BrokenLedger(place, 0, origin.seq, reason)
        error.hint = "if so, remove the directory and make it again; if not, restore a copy"
        raise error
    try:
        return decode(raw).chain
    except Malformed as error:
        raise BrokenLedger(place, 0, origin.seq, error.reason) from error
