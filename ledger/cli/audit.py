"""The command `audit verify`: the verifier, and what only this host knows (spec §7.3).

Reads, and makes nothing: neither a key nor a state directory.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, cast

import click

from ledger.cli.output import put_bytes
from ledger.cli.parameters import chain_digest, json_option, key_file_option
from ledger.codec import MAX_RECORD, decode, next_length
from ledger.errors import LedgerError
from ledger.head import Head, HeadFile
from ledger.schema import EVIDENCE_CLASSES
from verifier import (
    FORMATS,
    LogReport,
    PlaceRefused,
    Report,
    check_place,
    every_card,
    render,
    save,
    verdict_line,
    verify,
    wants_colour,
)

Verify = Callable[..., Report]

_UNREADABLE: Final = (OSError, ValueError, EOFError, zlib.error, LedgerError)


@click.group(no_args_is_help=False)
def audit() -> None:
    """Verify ledgers and exports."""


@audit.command("verify")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@key_file_option
@click.option(
    "--expect-head", metavar="HEX", type=chain_digest, help="A record has this chain digest."
)
@click.option(
    "--expect-count", metavar="N", type=click.IntRange(1), help="The log holds at least N records."
)
@click.option(
    "--profile",
    "profiles",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A profile that cards name, where the log does not hold it.",
)
@click.option(
    "--floor",
    type=click.Choice(EVIDENCE_CLASSES),
    default=EVIDENCE_CLASSES[0],
    help="Every approved card reaches this evidence class.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print every check, and for each approval its three properties.",
)
@click.option("--format", "format_", type=click.Choice(FORMATS), help="How the report is written.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the report to FILE; standard output gets the verdict alone.",
)
@json_option
def audit_verify(
    paths: tuple[str, ...],
    keys: tuple[Path, ...],
    expect_head: bytes | None,
    expect_count: int | None,
    profiles: tuple[Path, ...],
    floor: str,
    verbose: bool,
    format_: str | None,
    output: str | None,
    json_: bool,
) -> None:
    """Verify files, ledger directories and foreign logs; the last line is the verdict.

    The keys of this host are used too, and a ledger directory must hold the last record
    that this host has answered for.
    """
    if json_ and format_ not in (None, "json"):
        raise click.UsageError(f"--json and --format {format_} exclude each other")
    name = "json" if json_ else format_ or FORMATS[0]
    key_files = [*map(str, keys), *_key_folders()]
    if output is not None:
        _check_place(output, [*paths, *key_files, *map(str, profiles)])
    check = partial(
        verify,
        key_files=key_files,
        profile_files=[*map(str, profiles)],
        floor=floor,
        wanted=every_card if name == "csv" else None,
    )
    report = _verified(paths, check, expect_head, expect_count)
    _put(report, name, verbose, output)
    sys.exit(report.verdict.exit_code)


def _check_place(output: str, named: list[str]) -> None:
    try:
        check_place(output, [*named, *filter(None, [os.environ.get("CARDCHAIN_KEY")])])
    except PlaceRefused as error:
        raise click.UsageError(f"--output: {output}: {error}; nothing was read") from None


def _put(report: Report, name: str, verbose: bool, output: str | None) -> None:
    """Write the report to its file or to standard output."""
    colour = wants_colour(sys.stdout)
    if output is not None:
        save(output, render(report, name, verbose=verbose))
        put_bytes(verdict_line(report.verdict, colour).encode())
        return
    for piece in render(report, name, verbose=verbose, colour=colour):
        put_bytes(piece.encode())


def _verified(
    paths: tuple[str, ...], check: Verify, head: bytes | None, count: int | None
) -> Report:
    """Verify all logs together, and each ledger once more against the memory of this host."""
    remembered = [_remembered(path) for path in paths]  # first: a ledger may grow meanwhile
    if len(paths) == 1 and remembered[0] and head is None and count is None:
        return _against(remembered[0], paths[0], check)
    report = check(paths, expect_head=head, expect_count=count)
    pairs = zip(report.logs, remembered, strict=True)
    return report._replace(logs=tuple(_held(log, memory, check) for log, memory in pairs))


def _against(head: Head, path: str, check: Verify) -> Report:
    return check([path], expect_head=head.digest)  # the digest covers the seq


def _held(log: LogReport, head: Head | None, check: Verify) -> LogReport:
    """Give the report of a ledger with what its verdict becomes if it lacks `head`."""
    if head is None:
        return log
    (other,) = _against(head, log.path, check).logs
    return other if log.verdict.worse(other.verdict) is not log.verdict else log


def _state_home() -> Path:
    """Give the folder that holds a state directory per chain; it need not exist."""
    home = os.environ.get("CARDCHAIN_STATE") or os.environ.get("XDG_STATE_HOME")
    return Path(home or os.path.expanduser("~/.local/state")) / "cardchain"


def _key_folders() -> list[str]:
    return sorted({str(file.parent) for file in _state_home().glob("*/keys/*.json")})


def _remembered(path: str) -> Head | None:
    """Give the last record that this host has answered for, if `path` is a ledger it knows."""
    chain = _chain_of(Path(path) / "segments")
    if chain is None:
        return None
    return HeadFile(_state_home() / chain.hex() / "head", Path(path)).read()


def _chain_of(segments: Path) -> bytes | None:
    """Give the chain that the first record names; None is for the verifier to explain."""
    try:
        with _open(min(segments.iterdir())) as file:
            data = file.read(MAX_RECORD)
        length = next_length(data)
        return None if length is None else decode(data[:length]).chain
    except _UNREADABLE:
        return None


def _open(segment: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(segment)) if segment.suffix == ".gz" else segment.open("rb")
