"""Two ways to look at approvals: the ledger of this host, and any log as the verifier reads it.

A ledger that this host writes is looked up in its index. Everything else, an export, a receipt, a
foreign log, a copy or a ledger that cannot be opened, is verified first, and the verdict is said
last, since what a log says is worth no more than its verdict.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ledger.cli.auditor import Auditor, is_known
from ledger.cli.live import Live
from ledger.cli.parameters import json_option, key_option, show_progress, warn
from ledger.cli.sight import View
from ledger.cli.verified import Evidence
from ledger.errors import LedgerError
from ledger.keys import KeyFiles, KeySource
from ledger.writer import Ledger
from verifier import every_card

Command = Callable[..., Any]


def on_view(command: Command) -> Command:
    """Give a command PATH and the options to read it; it gets what it looks at as `view`."""

    @functools.wraps(command)
    def opened(
        path: Path,
        keys: tuple[KeySource, ...],
        vkeys: tuple[str, ...],
        allow_withheld: bool,
        **rest: Any,
    ) -> Any:
        with ExitStack() as stack:
            return command(view=_view(path, keys, vkeys, allow_withheld, stack), **rest)

    argument = click.argument("path", metavar="PATH", type=click.Path(exists=True, path_type=Path))
    vkey = click.option(
        "--vkey",
        "vkeys",
        metavar="VKEY",
        multiple=True,
        help="Of a log that is not of this host: the public key of its signer, or a file of it.",
    )
    withheld = click.option(
        "--allow-withheld",
        is_flag=True,
        help="Of a log that is not of this host: openings may be absent.",
    )
    return argument(key_option(vkey(withheld(json_option(opened)))))


def end(view: View) -> None:
    """Say on standard error what a log that was verified is worth, and exit with that."""
    lines, status = view.verdict()
    for said in lines:
        click.echo(f"cardchain: {said}", err=True)
    if status:
        sys.exit(status)


def _view(
    path: Path,
    keys: tuple[KeySource, ...],
    vkeys: tuple[str, ...],
    allow_withheld: bool,
    stack: ExitStack,
) -> View:
    def verified() -> Evidence:
        files = [source.path for source in keys if isinstance(source, KeyFiles)]
        if len(files) < len(keys):
            raise click.UsageError("a log that is not a ledger of this host takes key files only")
        auditor = Auditor.plain(tuple(files), vkeys, allow_withheld)
        return Evidence(auditor.verify((str(path),), every_card))

    if is_known(path):
        try:
            ledger = stack.enter_context(Ledger.open(path, keys=keys, progress=show_progress))
        except LedgerError as error:
            click.echo(f"cardchain: note: not taken as the ledger of this host: {error}", err=True)
        else:
            warn(ledger)
            return Live(ledger, verified)
    return verified()
