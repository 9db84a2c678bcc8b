"""The commands for who looks after a ledger: make it, check it, repair its footing."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from ledger.cli.output import emit, emit_record, summary
from ledger.cli.parameters import (
    DIRECTORY,
    DOCUMENT,
    json_option,
    key_option,
    on_ledger,
    read_profile,
    text,
    warn,
)
from ledger.hidden import shown
from ledger.keys import KeySource
from ledger.state import state_directory
from ledger.writer import Ledger


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", type=text, help="What people call this ledger; else the name of DIR.")
@click.option(
    "--profile", metavar="FILE", type=DOCUMENT, help="What every card is held to, as JSON."
)
@json_option
def init(directory: Path, name: str | None, profile: BinaryIO | None, json_: bool) -> None:
    """Make a ledger in the new directory DIR, and its key."""
    rules = None if profile is None else read_profile(profile)
    called = name or directory.absolute().name
    with Ledger.init(directory, name=called, profile=rules) as ledger:
        made = ledger.status()
    state = str(state_directory(made.chain))
    emit(
        json_,
        {"path": str(directory), "chain": made.chain, "kid": made.kid, "state": state},
        f"ledger {shown(str(directory))}",
        f"chain {made.chain.hex()}",
        f"kid {made.kid.hex()}",
        f"state {shown(state)}",
        "Back up the key file in the state directory: without it nobody can verify this ledger.",
    )


@click.command()
@on_ledger
@click.option("--by", metavar="ID", required=True, type=text, help="Who configures.")
@click.option(
    "--profile", metavar="FILE", type=DOCUMENT, help="What every card is held to, as JSON."
)
@click.option("--vkey", metavar="KEY", type=text, help="A verification key of checkpoints.")
def configure(
    ledger: Ledger, by: str, profile: BinaryIO | None, vkey: str | None, json_: bool
) -> None:
    """Put a profile in force for the cards issued from now on.

    Cards issued before keep the profile that was in force then.
    """
    if profile is None and vkey is None:
        raise click.UsageError("give --profile, --vkey or both; nothing was recorded")
    rules = None if profile is None else read_profile(profile)
    record = ledger.configure(by=by, profile=rules, vkey=vkey)
    named = record.body.get("profile")
    lines = [] if named is None else [f"profile {named.hex()}"]
    document = {**summary(record), "profile": named, "vkey": vkey}
    emit(json_, document, f"configured seq {record.seq}", *lines)


@click.command("clock-reset")
@on_ledger
@click.option("--by", metavar="ID", required=True, type=text, help="Who says so.")
@click.option(
    "--reason",
    required=True,
    type=click.Choice(["clock_fixed", "restored", "other"]),
    help="Why the clock is behind.",
)
def clock_reset(ledger: Ledger, by: str, reason: str, json_: bool) -> None:
    """Accept a clock that is behind the last record of the ledger DIR.

    Ends every open card and every unused grant: whether they are in time can no longer be told.
    """
    emit_record(json_, "clock reset", ledger.clock_reset(by=by, reason=reason))


@click.command()
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option(
    "--rolled-back",
    is_flag=True,
    help="Give up records that this host has answered for and DIR lacks.",
)
@key_option
@json_option
def adopt(directory: Path, rolled_back: bool, keys: tuple[KeySource, ...], json_: bool) -> None:
    """Accept the directory DIR, a copy, as the ledger of this host.

    Make sure that nothing writes to the other copy any more.
    """
    with Ledger.adopt(directory, keys=keys, rolled_back=rolled_back) as ledger:
        warn(ledger)
        found = ledger.status()
    emit(
        json_,
        {"path": str(directory), "chain": found.chain, "count": found.count},
        f"adopted {shown(str(directory))} with {found.count} records",
    )
