"""The command `cardchain`: parse, call, print.

The only package that imports click. Here stand the table of commands and the
one place that turns an error into a line, a hint and an exit status.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Final

import click

from ledger.errors import LedgerError
from ledger.hidden import shown

# name: (module, what it does); a module is imported when one of its commands runs
_COMMANDS: Final = {
    "demo": ("demo", "Tell the story of an approval, with a ledger in a temporary folder."),
    "init": ("custody", "Make a ledger in the new directory DIR, and its key."),
    "status": ("standing", "Say what a ledger or log holds and what this host remembers of it."),
    "log": ("history", "List the events of a ledger or log, oldest first."),
    "show": ("history", "Show one card as the approver saw it, and what happened to it."),
    "issue": ("decisions", "Issue a card for a proposal and print its hash."),
    "diff": ("history", "Show what changed since the card that another one supersedes."),
    "affected": (
        "history",
        "List the open cards and unused grants that a changed rule asked for.",
    ),
    "pending": ("history", "List the cards that wait for a decision."),
    "approve": ("decisions", "Approve the card HASH, the hash that was on the screen."),
    "reject": ("decisions", "Reject the card HASH, the hash that was on the screen."),
    "withdraw": ("decisions", "Withdraw the open card or the unused grant HASH."),
    "dispatch": ("decisions", "Spend the grant of the card HASH, right before the effect."),
    "settle": ("decisions", "Record how the dispatched card HASH ended."),
    "hash": ("documents", "Print the hash that a proposal has if issued at a given second."),
    "render": ("documents", "Print an envelope as the approver sees it."),
    "export": ("publishing", "Write every record of the ledger DIR to one new file."),
    "receipt": (
        "publishing",
        "Write every record of the card HASH to one new file, with proofs that it is in the log.",
    ),
    "checkpoint": (
        "publishing",
        "Sign a statement about all records of the ledger DIR so far, and print it.",
    ),
    "audit": ("audit", "Verify ledgers and exports."),
    "report": (
        "report",
        "Write one HTML page: the verdict, what each approver saw, what was decided and what ran.",
    ),
    "doctor": ("doctor", "Check that this host can go on writing to the ledger DIR."),
    "keys": ("keys", "List, rotate and make the keys of a ledger."),
    "configure": ("custody", "Put a profile in force for the cards issued from now on."),
    "redact": (
        "retention",
        "Erase what the ended card HASH said, from every record of it in the ledger DIR.",
    ),
    "archive": (
        "retention",
        "Write the oldest records of the ledger DIR to one new file, which prune can check.",
    ),
    "prune": ("retention", "Remove the records from the ledger DIR that the archive FILE holds."),
    "restore": (
        "retention",
        "Put the records of the archive FILE back before those in the ledger DIR.",
    ),
    "compress": (
        "retention",
        "Compress the segments of the ledger DIR that nothing is appended to any more.",
    ),
    "clock-reset": ("custody", "Accept a clock that is behind the last record of the ledger DIR."),
    "adopt": ("custody", "Accept the directory DIR, a copy, as the ledger of this host."),
}

_EXIT_CODES: Final = """\b
Exit status:
  0  done                     4  cannot verify
  1  crash, a bug             5  refused
  2  wrong usage or input     6  disk, lock, key or clock
  3  broken"""


class _Commands(click.Group):
    """Lists its commands without importing them, so that help is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"ledger.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


def _print_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        click.echo(f"cardchain {version('cardchain')}")
        ctx.exit()


@click.group(
    cls=_Commands,
    no_args_is_help=False,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version.",
)
def cli() -> None:
    """Approval cards as events in one hash chain.

    Results are on standard output, everything else on standard error.
    """


def main() -> None:
    """Run the command line of this process: the entry point of `cardchain`."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `cardchain log | head` ends silently
    _open_streams()
    status = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # told already; what is left in the buffer must not end in a traceback
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)


def _open_streams() -> None:
    """Make all three streams usable, in UTF-8 whatever the locale says.

    A closed one would lend its number to a file of the ledger.
    """
    closed = sys.stdout is None
    for stream, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, stream) is None:
            setattr(sys, stream, open(os.devnull, mode))  # noqa: SIM115 - for the whole process
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, TextIOWrapper):
            output.reconfigure(encoding="utf-8", errors="backslashreplace")
    if closed:
        sys.exit(_complain("standard output is closed; nothing was done"))


def run(arguments: Sequence[str]) -> int:
    """Run one command and give its exit status; every error has become a line by then."""
    try:
        status = cli.main(list(arguments), prog_name="cardchain", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "cardchain"
        return _complain(error.format_message(), f"run: {path} --help", status=2)
    except click.ClickException as error:
        return _complain(error.format_message(), status=2)
    except LedgerError as error:
        return _complain(str(error), error.hint, status=error.exit_status, safe=True)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        hint = "check that it is there and that you may use it; no success was reported"
        return _complain(f"{name}{error.strerror or error}", hint, status=6)
    except Exception as error:
        if os.environ.get("CARDCHAIN_DEBUG") == "1":
            raise
        hint = "this is a bug: report it with what CARDCHAIN_DEBUG=1 shows"
        return _complain(f"internal error: {type(error).__name__}: {error}", hint, status=1)


def _complain(message: str, hint: str = "", *, status: int = 6, safe: bool = False) -> int:
    """Print an error and its hint; a `safe` message has its hostile text escaped already."""
    with suppress(OSError):  # a full disk under standard error leaves the exit status to tell
        click.echo(f"cardchain: error: {message if safe else shown(message)}", err=True)
        if hint:
            click.echo(f"cardchain: hint: {hint}", err=True)
    return status
