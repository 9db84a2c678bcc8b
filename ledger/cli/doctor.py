"""The command `doctor`: what on this host could keep a ledger from working, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from ledger.cli import casework, checkup
from ledger.cli.checkup import Told
from ledger.cli.footing import Footing, Unknown
from ledger.cli.output import emit
from ledger.cli.parameters import DIRECTORY, json_option, key_option
from ledger.errors import LedgerError, StoreFailed
from ledger.keys import KeySource
from ledger.store.contract import NotALedger

_CHECKS: Final[dict[str, Callable[[Footing], Told]]] = {
    "directory": checkup.directory,
    "segments": checkup.segments,
    "state": checkup.state,
    "keys": checkup.keys,
    "space": checkup.space,
    "file system": checkup.file_system,
    "lock": checkup.lock,
    "chain": checkup.chain,
    "key in force": checkup.kid,
    "rollback": checkup.rollback,
    "clock": checkup.clock,
    "index": casework.index,
    "signer": casework.signer,
    "checkpoint": casework.checkpoint,
    "tree": casework.tree,
    "recoveries": casework.quarantine,
    "pending": casework.pending,
    "grants": casework.grants,
    "outcomes": casework.outcomes,
    "openings": casework.openings,
}


class Row(NamedTuple):
    """One line: `mark` is ok, note or FAIL, `status` the exit status that a failure asks for."""

    check: str
    mark: str
    detail: str
    hint: str
    status: int = 0


@click.command()
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@key_option
@json_option
def doctor(directory: Path, keys: tuple[KeySource, ...], json_: bool) -> None:
    """Check that this host can go on writing to the ledger DIR.

    Changes nothing. The exit status is that of the first check that fails.
    """
    with ExitStack() as stack:
        rows = list(_rows(Footing(directory, keys, stack)))
    emit(json_, {"checks": [_document(row) for row in rows]}, *map(_line, rows))
    sys.exit(next((row.status for row in rows if row.status), 0))


def _rows(footing: Footing) -> Iterator[Row]:
    """Make the checks in order; an error is said once, by the first check that it stops."""
    said: list[Exception] = []
    for name, check in _CHECKS.items():
        try:
            told = check(footing)
        except (LedgerError, OSError, Unknown) as error:
            yield _failed(name, error, known=any(error is each for each in said))
            said.append(error)
            if isinstance(error, NotALedger) and not (footing.directory / "segments").is_dir():
                return
        else:
            yield Row(name, "note" if told.note else "ok", told.detail, told.hint)


def _failed(name: str, error: Exception, *, known: bool) -> Row:
    if known or isinstance(error, Unknown):
        return Row(name, "note", "not known, for the reason above", "")
    told = error if isinstance(error, LedgerError) else _system(error)
    return Row(name, "FAIL", str(told), told.hint, told.exit_status)


def _system(error: Exception) -> StoreFailed:
    place = getattr(error, "filename", None)
    reason = getattr(error, "strerror", None) or str(error)
    return StoreFailed(f"{place}: {reason}" if place else reason)


def _document(row: Row) -> dict[str, Any]:
    ok = row.mark != "FAIL"
    return {"check": row.check, "ok": ok, "mark": row.mark, "detail": row.detail, "hint": row.hint}


def _line(row: Row) -> str:
    line = f"{row.mark:<4} {row.check}: {row.detail}"
    return f"{line}\n     hint: {row.hint}" if row.hint else line
