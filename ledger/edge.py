"""The frontier of what was pruned: all that proofs need of it (spec §13.5).

Nobody trusts it: with a wrong one no signed root comes out.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from ledger import wholefile
from ledger.store import directory
from ledger.tree import HASH_SIZE, Frontier

_NAME: Final = re.compile(r"([0-9]{20})\.frontier")
_MAX_BYTES: Final = 4_096


def read(ledger: Path, size: int) -> Frontier | None:
    """Give the frontier of the first `size` records, None if none is kept or it is damaged."""
    if size == 0:
        return Frontier()
    try:
        with os.fdopen(directory.open_file(_place(ledger, size), os.O_RDONLY), "rb") as file:
            lines = file.read(_MAX_BYTES).decode().splitlines()
        hashes = tuple(base64.b64decode(line, validate=True) for line in lines)
        known = Frontier(size, hashes)
    except (FileNotFoundError, ValueError, binascii.Error):
        return None
    return known if all(len(each) == HASH_SIZE for each in hashes) else None


def write(ledger: Path, frontier: Frontier) -> None:
    """Keep a frontier, durably."""
    lines = "".join(f"{base64.b64encode(each).decode()}\n" for each in frontier.hashes)
    wholefile.write(_place(ledger, frontier.size), [lines.encode()], overwrite=True)


def keep_only(ledger: Path, size: int) -> None:
    """Remove the frontiers of other sizes."""
    for name in filter(_NAME.fullmatch, os.listdir(ledger / "checkpoints")):
        if name != _place(ledger, size).name:
            with suppress(FileNotFoundError):
                os.unlink(ledger / "checkpoints" / name)


def _place(ledger: Path, size: int) -> Path:
    return ledger / "checkpoints" / f"{size:020}.frontier"
