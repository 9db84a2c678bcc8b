"""The command `cardchain-verify`: parse, call, print."""

from __future__ import annotations

import argparse
import codecs
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from verifier.assurance import WORDS
from verifier.formats import FORMATS, every_card, render
from verifier.output import PlaceRefused, check_place, save, wants_colour
from verifier.pinfile import PinRefused
from verifier.progress import watcher
from verifier.report import Report
from verifier.software import SOFTWARE
from verifier.spec import EVIDENCE_CLASSES
from verifier.state import Edge
from verifier.text import diagnostic, verdict_line
from verifier.verify import keep_head, verify

CRASHED = 1
USAGE = 2
UNWRITTEN = 6
INTERRUPTED = 130
NOBODY_READS = 141  # as of a program that SIGPIPE ends


class _Formatter(argparse.HelpFormatter):
    """The same help on every terminal; its width is not asked for, which takes a while."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=78)


class _Parser(argparse.ArgumentParser):
    """Escapes what it says of a wrong argument: a file name may look like an option."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            USAGE, diagnostic(message, "cardchain-verify --help; a file name like this: ./NAME")
        )


def _head(text: str) -> bytes:
    if not re.fullmatch(r"[0-9a-f]{64}", text, re.ASCII):
        raise argparse.ArgumentTypeError("expected 64 lower-case hexadecimal digits")
    return bytes.fromhex(text)


def _since(text: str) -> Edge | str:
    seq, colon, head = text.partition(":")
    if not colon or not re.fullmatch(r"[0-9]*", seq, re.ASCII):
        return text
    if not re.fullmatch(r"0|[1-9][0-9]{0,15}", seq, re.ASCII):
        raise argparse.ArgumentTypeError("expected SEQ:HEX, a seq and its chain digest")
    return Edge(int(seq) + 1, _head(head))


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,15}", text, re.ASCII):
        raise argparse.ArgumentTypeError("expected a number of at least 1")
    return int(text)


def _jobs(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]?", text, re.ASCII):
        raise argparse.ArgumentTypeError("expected a number from 1 to 99")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command's arguments."""
    command = _Parser(
        prog="cardchain-verify",
        allow_abbrev=False,
        formatter_class=_Formatter,
        description="Verify approval logs offline. The last line is the verdict.",
        epilog="exit status: 0 VERIFIED, 3 BROKEN, 4 CANNOT VERIFY, 2 usage, "
        "6 the report cannot be written, 1 crash; "
        "example: cardchain-verify export.cbor --key key.json",
    )
    command.add_argument(
        "path", nargs="+", metavar="PATH", help="an export, a ledger directory, or - for stdin"
    )
    command.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="FILE",
        help="key file, or folder of key files; also from CARDCHAIN_KEY",
    )
    command.add_argument(
        "--expect-head", type=_head, metavar="HEX", help="a record has this chain digest"
    )
    command.add_argument(
        "--expect-count", type=_count, metavar="N", help="the log holds at least N records"
    )
    command.add_argument(
        "--since",
        type=_since,
        metavar="SEQ:HEX|FILE",
        help="verify the records after SEQ, whose chain digest was this, or after those of a "
        "signed checkpoint that was kept",
    )
    _add_anchors(command)
    command.add_argument(
        "--jobs", type=_jobs, default=1, metavar="N", help="check records in N processes"
    )
    command.add_argument(
        "--profile",
        action="append",
        default=[],
        metavar="FILE",
        help="profile that cards name, where the log does not hold it",
    )
    command.add_argument(
        "--floor",
        choices=EVIDENCE_CLASSES,
        default=EVIDENCE_CLASSES[0],
        metavar="CLASS",
        help=f"every approved card reaches this evidence class: {', '.join(EVIDENCE_CLASSES)}",
    )
    command.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help="how the report is written"
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the report to this file; standard output gets the verdict alone",
    )
    loudness = command.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    loudness.add_argument("-v", "--verbose", action="store_true", help="print every check")
    command.add_argument("--version", action="version", version=SOFTWARE)
    return command


def _add_anchors(command: argparse.ArgumentParser) -> None:
    """Add the options for what an auditor keeps (spec §16)."""
    command.add_argument(
        "--vkey",
        action="append",
        default=[],
        metavar="VKEY",
        help="public key of the signer of checkpoints, or a file of such keys",
    )
    command.add_argument(
        "--checkpoint",
        action="append",
        default=[],
        metavar="FILE",
        help="a signed checkpoint that was kept, or a proof that one extends it",
    )
    command.add_argument(
        "--pin",
        metavar="FILE",
        help="the last head seen; made or moved on when the log is verified",
    )
    command.add_argument(
        "--require",
        action="append",
        default=[],
        choices=WORDS,
        metavar="WORD",
        help=f"the assurance that the log must reach: {', '.join(WORDS)}",
    )
    command.add_argument(
        "--allow-withheld", action="store_true", help="openings may be absent; they are listed"
    )


def _named(options: argparse.Namespace) -> Iterable[str]:
    """Give all paths that are read, as far as they are paths."""
    groups = (options.path, options.key, options.profile, options.vkey, options.checkpoint)
    named = [path for group in groups for path in group]
    named += [options.since] if isinstance(options.since, str) else []
    return filter(None, [*named, os.environ.get("CARDCHAIN_KEY", "")])


def _check_places(command: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse to write where something is read."""
    for option, file in (("-o/--output", options.output), ("--pin", options.pin)):
        if file is None:
            continue
        others = [] if option == "--pin" or options.pin is None else [options.pin]
        try:
            check_place(file, [*_named(options), *others])
        except PlaceRefused as error:
            command.error(f"argument {option}: {file}: {error}; nothing was read")


def run(arguments: Sequence[str] | None = None) -> int:
    """Verify what the arguments name, print the report, give the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    _check_places(command, options)
    try:
        report = _report(options)
    except PinRefused as error:
        command.error(f"argument --pin: {options.pin}: {error}; it is left as it is")
    colour = wants_colour(sys.stdout)
    if options.output is not None:
        save(options.output, render(report, options.format, verbose=options.verbose))
        pieces = iter((verdict_line(report.verdict, colour),))
    else:
        pieces = render(report, options.format, verbose=options.verbose, colour=colour)
    if not options.quiet:
        _print(pieces)
    problem = "" if options.pin is None else keep_head(report, options.pin)
    if problem and sys.stderr is not None:
        sys.stderr.write(
            diagnostic(problem, "the report stands; verify again with --pin", "warning")
        )
    return report.verdict.exit_code


def _report(options: argparse.Namespace) -> Report:
    return verify(
        options.path,
        options.key,
        expect_head=options.expect_head,
        expect_count=options.expect_count,
        since=options.since,
        jobs=options.jobs,
        progress=watcher(sys.stderr),
        profile_files=options.profile,
        floor=options.floor,
        wanted=every_card if options.format == "csv" else None,
        vkeys=options.vkey,
        checkpoint_files=options.checkpoint,
        pin_file=options.pin,
        required=options.require,
        allow_withheld=options.allow_withheld,
        moves_pin=False,
    )


def _print(pieces: Iterable[str]) -> None:
    """Write to standard output in UTF-8 where it can show it, else with what it cannot escaped."""
    stream = sys.stdout
    if stream is None:
        raise OSError(None, "standard output is closed")
    encoder = codecs.getincrementalencoder(stream.encoding or "ascii")("backslashreplace")
    sys.stdout.flush()
    for piece in pieces:
        stream.buffer.write(encoder.encode(piece))
    stream.buffer.flush()


def main() -> NoReturn:
    """Run the command and exit; the entry of the script and of a zip file of this package."""
    sys.exit(status())


def status(arguments: Sequence[str] | None = None) -> int:
    """Run the command; a crash is one line and exit status 1, never a traceback."""
    try:
        return run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return NOBODY_READS
    except OSError as error:
        _forget_output()
        place = "" if error.filename is None else f" to {error.filename}"
        sys.stderr.write(
            diagnostic(
                f"the report cannot be written{place}: {error.strerror or error}",
                "this is no verdict; write to another place, or ask for the exit status: --quiet",
            )
        )
        return UNWRITTEN
    except Exception as error:
        sys.stderr.write(
            diagnostic(
                f"internal error: {type(error).__name__}: {error}",
                "this is no verdict; report it with the version and, if you may, the log",
            )
        )
        return CRASHED


def _forget_output() -> None:
    """Drop what cannot be written, so that the interpreter does not try it again at its end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
