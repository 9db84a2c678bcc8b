"""An export: the bytes of a ledger in one file, whole or not there at all (spec §7.2)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from ledger.answers import Exported
from ledger.codec import ZERO, Record
from ledger.errors import LedgerError, StoreFailed
from ledger.hidden import shown
from ledger.store.contract import AlreadyThere


class InsideLedger(LedgerError):
    """An export does not belong among the files of a ledger, where each name has a meaning."""

    exit_status = 2
    hint = "choose a path outside the ledger; nothing was changed"

    def __init__(self, path: Path, ledger: Path) -> None:
        """Take the path of the export, and the ledger directory."""
        super().__init__(f"{shown(str(path))}: inside the ledger {shown(str(ledger))}")
        self.path = path
        self.ledger = ledger


def write(path: Path, ledger: Path, records: Iterable[Record], *, overwrite: bool) -> Exported:
    """Write the records of a ledger to `path`, mode 0600, durably, and then give it its name.

    Raises:
        InsideLedger: `path` is inside the directory `ledger`.
        AlreadyThere: Something stands at `path`, and `overwrite` is false.
        StoreFailed: The disk refused. `path` is as it was.

    """
    if path.absolute().parent.resolve().is_relative_to(ledger.resolve()):
        raise InsideLedger(path, ledger)
    if not overwrite and os.path.lexists(path):
        raise AlreadyThere(path)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        try:
            exported = _write(part, records)
            _name(part, path, overwrite=overwrite)
        finally:
            part.unlink(missing_ok=True)
    except FileExistsError as error:
        raise AlreadyThere(path) from error
    except OSError as error:
        raise StoreFailed(f"export to {path}: {error.strerror}") from error
    return exported


def _write(part: Path, records: Iterable[Record]) -> Exported:
    count, size, head = 0, 0, ZERO
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "wb") as out:
        for record in records:
            out.write(record.raw)
            count, size, head = count + 1, size + len(record.raw), record.digest
        out.flush()
        os.fsync(out.fileno())
    return Exported(count, size, head)


def _name(part: Path, path: Path, *, overwrite: bool) -> None:
    """Give the finished file its name in one step, and make the name durable."""
    if overwrite:
        os.replace(part, path)
    else:
        os.link(part, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
