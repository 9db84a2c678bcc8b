"""The command `audit verify`: the verifier, and what only this host knows (spec §7.3)."""

from __future__ import annotations

import sys

import click

from ledger.cli.auditor import Auditor, with_auditor
from ledger.cli.output import put_bytes
from ledger.cli.parameters import json_option
from verifier import FORMATS, Report, every_card, render, save, verdict_line, wants_colour


@click.group(no_args_is_help=False)
def audit() -> None:
    """Verify ledgers and exports."""


@audit.command("verify")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@with_auditor
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
    auditor: Auditor,
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
    for option, file in (("--output", output), ("--pin", auditor.pin)):
        if file is not None:
            auditor.refuse_place(option, file, paths)
    report = auditor.verify(paths, every_card if name == "csv" else None)
    _put(report, name, verbose, output)
    auditor.keep_head(report)
    sys.exit(report.verdict.exit_code)


def _put(report: Report, name: str, verbose: bool, output: str | None) -> None:
    """Write the report to its file or to standard output."""
    colour = wants_colour(sys.stdout)
    if output is not None:
        save(output, render(report, name, verbose=verbose))
        put_bytes(verdict_line(report.verdict, colour).encode())
        return
    for piece in render(report, name, verbose=verbose, colour=colour):
        put_bytes(piece.encode())
