"""The command `doctor`: what on this host could keep a ledger from working, and what to do."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import click

from ledger.answers import Status
from ledger.cli.output import emit
from ledger.cli.parameters import DIRECTORY, json_option, key_option
from ledger.errors import ClockWentBack, LedgerError, LooseMode, StoreFailed
from ledger.keys import KeySource, find_keys
from ledger.writer import Ledger

_LEAST_FREE: Final = 64 * 1024 * 1024  # one segment (spec §7.1)
_REMOTE: Final = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "ceph", "afs")


@click.command()
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@key_option
@json_option
def doctor(directory: Path, keys: tuple[KeySource, ...], json_: bool) -> None:
    """Check that this host can go on writing to the ledger DIR.

    The exit status is that of the first check that fails.
    """
    rows = [_row(name, check) for name, check in _checks(directory, keys)]
    emit(json_, {"checks": [row for row, _ in rows]}, *(_line(row) for row, _ in rows))
    failed = [status for _, status in rows if status]
    if failed:
        sys.exit(failed[0])


def _checks(
    directory: Path, keys: tuple[KeySource, ...]
) -> Iterator[tuple[str, Callable[[], str]]]:
    """Give the checks in order; those about the chain only where it can be opened."""
    yield "directory", lambda: _directory(directory)
    yield "space", lambda: _space(directory)
    yield "file system", lambda: _file_system(directory)
    try:
        with Ledger.open(directory, keys=keys) as ledger:
            status = ledger.status()
    except LedgerError as error:
        yield "chain", partial(_failed, error)
        return
    yield "chain", lambda: f"{status.count} records, the last one whole, linked and authentic"
    yield "keys", lambda: _keys(status, keys)
    yield "rollback", lambda: _rollback(status)
    yield "clock", lambda: _clock(directory, status)


def _failed(error: LedgerError) -> str:
    raise error


def _row(name: str, check: Callable[[], str]) -> tuple[dict[str, object], int]:
    try:
        return {"check": name, "ok": True, "detail": check(), "hint": ""}, 0
    except LedgerError as error:
        row = {"check": name, "ok": False, "detail": str(error), "hint": error.hint}
        return row, error.exit_status


def _line(row: dict[str, object]) -> str:
    line = f"{'ok  ' if row['ok'] else 'FAIL'} {row['check']}: {row['detail']}"
    return f"{line}\n     hint: {row['hint']}" if row["hint"] else line


def _directory(directory: Path) -> str:
    found = os.lstat(directory)
    if not stat.S_ISDIR(found.st_mode):
        raise StoreFailed(f"{directory}: a symbolic link, expected a directory")
    if found.st_mode & 0o077:
        raise LooseMode(directory, stat.S_IMODE(found.st_mode), 0o700)
    return "only its owner can read and write it"


def _keys(status: Status, keys: tuple[KeySource, ...]) -> str:
    ring = find_keys(status.chain, keys)
    ring.find(status.kid)
    return f"{len(ring.files())} at hand, {status.kid.hex()} is in force"


def _rollback(status: Status) -> str:
    if status.guarded_from is None:
        raise LedgerError(
            "this host remembers nothing of this ledger", "append a record; it is guarded from then"
        )
    return f"guarded from seq {status.guarded_from}"


def _clock(directory: Path, status: Status) -> str:
    now = time.time_ns() // 1_000_000
    if now < status.at:
        raise ClockWentBack(directory, status.at, now)
    return "not behind the last record"


def _space(directory: Path) -> str:
    free = shutil.disk_usage(directory).free
    if free < _LEAST_FREE:
        raise StoreFailed(f"{free} bytes free, expected at least {_LEAST_FREE}")
    return f"{free // 1024**2} MiB free"


def _file_system(directory: Path) -> str:
    """Locks and syncs are relied on where the file system is a local one (architecture.md)."""
    kind = _mounted(directory.resolve())
    if kind.startswith(_REMOTE):
        raise StoreFailed(f"{directory} is on {kind}, expected a local file system")
    return kind


def _mounted(path: Path) -> str:
    """Give the type of the file system that holds a path, as Linux tells it."""
    try:
        lines = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    except OSError:
        return "unknown"
    mounts = {fields[1]: fields[2] for fields in map(str.split, lines) if len(fields) > 2}
    return next((mounts[str(at)] for at in [path, *path.parents] if str(at) in mounts), "unknown")
