"""The arguments and options that commands share, and what they accept."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import click

from ledger import jcs, keysource
from ledger.jcs import MAX_BYTES
from ledger.keys import KeySource
from ledger.writer import Ledger

Command = Callable[..., None]

_PROGRESS_STEP: Final = 100_000


def card_hash(value: str) -> str:
    """Take all digits of a card hash, as an argument; anything else is a usage error."""
    return _hexadecimal(value, 64, "64 lower-case hexadecimal digits")


def chain_digest(value: str) -> bytes:
    """Take all digits of a chain digest, as an argument; anything else is a usage error."""
    return bytes.fromhex(_hexadecimal(value, 64, "64 lower-case hexadecimal digits"))


def rule_hash(value: str) -> str:
    """Take all digits of the digest of a rule; anything else is a usage error."""
    return _hexadecimal(value, 64, "64 lower-case hexadecimal digits")


def card_prefix(value: str) -> str:
    """Take the first digits of a card hash, or all of them; anything else is a usage error."""
    return _hexadecimal(value, 4, "4 to 64 lower-case hexadecimal digits")


def _hexadecimal(value: str, least: int, expected: str) -> str:
    if re.fullmatch(f"[0-9a-f]{{{least},64}}", value) is None:
        raise click.BadParameter(f"expected {expected}, found {value!r}; nothing was recorded")
    return value


def text(value: str) -> str:
    """Take text that has a UTF-8 form; an argument of a shell can be any bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise click.BadParameter(f"{value!r} is not UTF-8; nothing was recorded") from None
    return value


def _key_source(value: str) -> KeySource:
    """Take a source of keys; one that cannot be there is a usage error."""
    if not value.startswith(("env:", "fd:")) and not os.path.exists(value):
        raise click.BadParameter(f"{value!r} does not exist")
    try:
        return keysource.named(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}; nothing was recorded") from None


DIRECTORY: Final = click.Path(exists=True, file_okay=False, path_type=Path)
DOCUMENT: Final = click.File("rb")

card_argument: Final = click.argument("card", metavar="HASH", type=card_hash)
json_option: Final = click.option(
    "--json", "json_", is_flag=True, help="Print one JSON document instead of text."
)
key_option: Final = click.option(
    "--key",
    "keys",
    metavar="SOURCE",
    multiple=True,
    type=_key_source,
    help="A key, besides CARDCHAIN_KEY and the state directory: a key file or a folder of them, "
    "or the content of one in env:NAME or fd:N.",
)
key_file_option: Final = click.option(
    "--key",
    "keys",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A key file or a folder of them, besides CARDCHAIN_KEY and the state directory.",
)


def warn(ledger: Ledger) -> None:
    """Say what is wrong with the memory of this host, on standard error."""
    for warning in ledger.warnings:
        click.echo(f"cardchain: warning: {warning}", err=True)


def on_ledger(command: Command) -> Command:
    """Give a command DIR, --key and --json; it gets the ledger in DIR, opened."""

    @functools.wraps(command)
    def opened(
        directory: Path,
        keys: tuple[KeySource, ...],
        profiles: tuple[BinaryIO, ...] = (),
        **rest: object,
    ) -> None:
        known = [read_profile(file) for file in profiles]
        with Ledger.open(directory, keys=keys, profiles=known, progress=show_progress) as ledger:
            warn(ledger)
            command(ledger, **rest)

    argument = click.argument("directory", metavar="DIR", type=DIRECTORY)
    return argument(key_option(json_option(opened)))


def on_ledger_with_profiles(command: Command) -> Command:
    """Give a command what `on_ledger` gives, and --profile for the profiles that cards name."""
    option = click.option(
        "--profile",
        "profiles",
        metavar="FILE",
        multiple=True,
        type=DOCUMENT,
        help="A profile that a card names and the ledger does not hold.",
    )
    return option(on_ledger(command))


def read_document(file: BinaryIO) -> bytes:
    """Read a JSON document, and one byte more than the most there may be (spec §2.1)."""
    return file.read(MAX_BYTES + 1)


def read_profile(file: BinaryIO) -> bytes:
    """Read a profile, however it is spelled, as the canonical bytes that name it (spec §8.5)."""
    return jcs.encode(jcs.parse(read_document(file)))


def show_progress(count: int) -> None:
    """Say now and then, on standard error, how many records were read again."""
    if count and count % _PROGRESS_STEP == 0:
        click.echo(f"cardchain: replaying, {count} records", err=True)
