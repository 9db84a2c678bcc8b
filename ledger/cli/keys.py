"""The commands `keys`: secrets of a chain, and the key of its signer (spec §4, §13.3)."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.cli.output import emit, put, summary
from ledger.cli.parameters import DIRECTORY, json_option, key_option, on_ledger, text
from ledger.errors import KeyMissing
from ledger.hidden import shown
from ledger.keys import KeySource, find_keys
from ledger.writer import Ledger


@click.group(no_args_is_help=False)
def keys() -> None:
    """List, rotate and make the keys of a ledger."""


@keys.command("list")
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@key_option
@json_option
def keys_list(directory: Path, keys: tuple[KeySource, ...], json_: bool) -> None:
    """List the key files that this host has for the ledger DIR, never a secret."""
    try:
        with Ledger.open(directory, keys=keys) as ledger:
            found = ledger.status()
        chain, kid = found.chain, found.kid
    except KeyMissing as error:
        chain, kid = error.chain, error.kid
    files = {file.key.kid: str(file.path) for file in find_keys(chain, keys).files()}
    rows = [(each, each == kid, files.get(each)) for each in {**files, kid: None}]
    document = [{"kid": each, "needed": needed, "path": path} for each, needed, path in rows]
    emit(json_, {"chain": chain, "keys": document}, *(_key_line(*row) for row in rows))


@keys.command("rotate")
@on_ledger
def keys_rotate(ledger: Ledger, json_: bool) -> None:
    """Make a new secret for the ledger DIR, and put it in force from the next record on.

    The old key file stays: without it nobody can check the records before.
    """
    record = ledger.rotate()
    kid: bytes = record.body["kid"]
    emit(
        json_,
        {**summary(record), "kid": kid},
        f"rekeyed seq {record.seq}",
        f"kid {kid.hex()}",
        "Back up the new key file in the state directory, and keep the old one.",
    )


@keys.command("signer")
@on_ledger
@click.option("--by", metavar="ID", required=True, type=text, help="Who announces the vkey.")
@click.option("--replace", is_flag=True, help="Put a new key in the place of the one there is.")
def keys_signer(ledger: Ledger, by: str, replace: bool, json_: bool) -> None:
    """Make the key that signs checkpoints of the ledger DIR, and print its vkey.

    The vkey is announced in the log; give it to auditors by another way, since they trust only
    one that they were given. The key itself stays in the state directory.
    """
    vkey = ledger.make_signer(by=by, replace=replace)
    if json_:
        emit(json_, {"chain": ledger.chain, "vkey": vkey})
    else:
        put(shown(vkey))


def _key_line(kid: bytes, needed: bool, path: str | None) -> str:
    where = "missing" if path is None else shown(path)
    return f"{kid.hex()} {'in force' if needed else 'not in force'} {where}"
