"""Torn bytes that were moved aside, each file named by the place and the digest (spec §7.4)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from ledger.store import directory
from ledger.store.contract import TornBytes
from ledger.store.segment import write


def keep(folder: Path, seq: int, torn: bytes) -> None:
    """Keep the bytes that stood where record `seq` was to be, durably.

    A recovery that was cut short may have left them here already, whole or in part, not durable.
    """
    path = folder / f"{seq:020}-{hashlib.sha256(torn).hexdigest()}"
    whole = directory.stands(path) and path.read_bytes() == torn
    if not whole:
        path.unlink(missing_ok=True)
    descriptor = directory.open_file(path, os.O_RDONLY) if whole else directory.create(path)
    try:
        if not whole:
            write(descriptor, torn)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    directory.sync(folder)


def kept(folder: Path, seq: int) -> tuple[TornBytes, ...]:
    """Give everything that was ever kept for a place, by what it is now.

    Where the power failed a file may hold less than its name says, and nothing if it is empty.
    """
    files = sorted(folder.glob(f"{seq:020}-" + "[0-9a-f]" * 64))
    pieces = filter(None, (path.read_bytes() for path in files))
    return tuple(TornBytes(len(torn), hashlib.sha256(torn).digest()) for torn in pieces)


def remove(folder: Path, beginnings: Iterable[bytes]) -> None:
    """Remove, durably, every piece in which one of these texts stands, or ends it half-way."""
    for path in sorted(folder.iterdir()):
        torn = path.read_bytes()
        if any(_holds(torn, text) for text in beginnings):
            path.unlink()
    directory.sync(folder)


def _holds(torn: bytes, text: bytes) -> bool:
    """Tell whether a piece holds a text, or at least half of it at its end."""
    halves = range(len(text) // 2 + 1, len(text))
    return text in torn or any(torn.endswith(text[:size]) for size in halves)
