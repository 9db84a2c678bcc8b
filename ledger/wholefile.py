"""A file that is there whole or not at all, durable and private."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from ledger.errors import StoreFailed
from ledger.store import directory
from ledger.store.contract import AlreadyThere


def write(path: Path, pieces: Iterable[bytes], *, overwrite: bool) -> None:
    """Write a file of mode 0600, and give it its name when all of it is on the disk.

    Raises:
        AlreadyThere: Something stands at `path`, and `overwrite` is false.
        StoreFailed: The disk refused. `path` is as it was, or whole and perhaps not durable.

    """
    if not overwrite and os.path.lexists(path):
        raise AlreadyThere(path)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        try:
            _fill(part, pieces)
            if overwrite:
                os.replace(part, path)
            else:
                os.link(part, path)
        finally:
            part.unlink(missing_ok=True)
        directory.sync(path.parent)
    except FileExistsError as error:
        raise AlreadyThere(path) from error
    except OSError as error:
        raise StoreFailed(f"write {path}: {error.strerror}") from error


def _fill(part: Path, pieces: Iterable[bytes]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "wb") as out:
        os.fchmod(out.fileno(), 0o600)
        for piece in pieces:
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())
