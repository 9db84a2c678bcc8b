"""The commands that hand a ledger to others: export, receipt, checkpoint (spec §13, §14)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from ledger import wholefile
from ledger.answers import Exported
from ledger.checkpoint import Signed
from ledger.cli.output import emit, put_bytes
from ledger.cli.parameters import card_argument, on_ledger, show_progress
from ledger.hidden import shown
from ledger.kinds import OPENINGS
from ledger.note import MAX_BYTES
from ledger.writer import Ledger

_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_NEW: Final = "The new file; one that is there is not replaced."
_OUT: Final = f"{_NEW} `-` is standard output."
_STANDARD_OUTPUT: Final = Path("-")
_CHUNK: Final = 1_048_576
_SEQ: Final = click.IntRange(0, 2**53 - 1)
_withhold_option: Final = click.option(
    "--withhold",
    metavar="OPENING",
    multiple=True,
    type=click.Choice(OPENINGS),
    help=f"Leave out every opening of this name: {', '.join(OPENINGS)}.",
)


@click.command()
@on_ledger
@click.option("-o", "--output", metavar="FILE.cbor|-", required=True, type=_FILE, help=_OUT)
@click.option("--from", "first", metavar="SEQ", type=_SEQ, help="Only the records from SEQ on.")
@click.option("--to", "last", metavar="SEQ", type=_SEQ, help="Only those up to SEQ; with --from.")
@_withhold_option
def export(
    ledger: Ledger,
    output: Path,
    first: int | None,
    last: int | None,
    withhold: tuple[str, ...],
    json_: bool,
) -> None:
    """Write every record of the ledger DIR to one new file.

    Where this host has a signer, the checkpoint at its size is put beside it, in FILE.cbor.note.
    With --from the file is an excerpt: the records of a range, what they rest on, and proofs.
    """
    if first is None and last is not None:
        raise click.UsageError("--to needs --from; nothing was written")

    def write(file: Path) -> Exported:
        if first is None:
            return ledger.export(file, withhold=withhold, progress=show_progress)
        return ledger.export_range(file, first, last, withhold=withhold, progress=show_progress)

    if output == _STANDARD_OUTPUT:
        _stream(json_, write)
    else:
        _emit(json_, "exported", output, write(output))


def _stream(json_: bool, write: Callable[[Path], Exported]) -> None:
    """Print what `write` puts into a file, when it is whole."""
    if json_:
        raise click.UsageError("-o - and --json exclude each other; nothing was written")
    if sys.stdout.isatty():
        raise click.UsageError("-o - prints bytes: pipe it into a program; nothing was written")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "export.cbor")
        done = write(file)
        with file.open("rb") as source:
            while piece := source.read(_CHUNK):
                put_bytes(piece)
    head = done.head.hex()
    click.echo(f"cardchain: note: exported {done.count} records, head {head}", err=True)


@click.command()
@on_ledger
@card_argument
@click.option("-o", "--output", metavar="FILE", required=True, type=_FILE, help=_NEW)
@_withhold_option
def receipt(
    ledger: Ledger, card: str, output: Path, withhold: tuple[str, ...], json_: bool
) -> None:
    """Write every record of the card HASH to one new file, with proofs that it is in the log.

    The proofs end in the newest checkpoint; one is signed if it does not cover these records.
    """
    done = ledger.receipt(card, output, withhold=withhold, progress=show_progress)
    _emit(json_, "receipt of", output, done)


@click.command()
@on_ledger
@click.option("-o", "--output", metavar="FILE", type=_FILE, help=_NEW)
@click.option(
    "--every",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    help="Give the last checkpoint if fewer than N records came after it.",
)
@click.option(
    "--since",
    metavar="SIZE|NOTE",
    help="Also prove that it extends the tree of SIZE records, or the checkpoint in the file NOTE.",
)
def checkpoint(
    ledger: Ledger, output: Path | None, every: int, since: str | None, json_: bool
) -> None:
    """Sign a statement about all records of the ledger DIR so far, and print it.

    With --since the proof is printed, which ends with the checkpoint; with -o FILE the checkpoint
    goes to FILE and the proof to FILE.consistency.
    """
    files = () if output is None else (output, output.with_name(f"{output.name}.consistency"))
    for file in files[: 1 if since is None else 2]:
        ledger.require_free(file)
    if since is None:
        signed, proof = ledger.checkpoint(every=every, progress=show_progress), None
    else:
        proof, signed = ledger.consistency(_older(since), every=every, progress=show_progress)
    for file, data in zip(files, (signed.note, proof), strict=False):
        if data is not None:
            wholefile.write(file, [data], overwrite=False)
    if output is None and not json_:
        put_bytes(signed.note if proof is None else proof)
    else:
        _emit_signed(json_, signed, proof, files[: 1 if proof is None else 2])


def _emit_signed(json_: bool, signed: Signed, proof: bytes | None, files: tuple[Path, ...]) -> None:
    size, root = signed.checkpoint.size, signed.checkpoint.root
    document = {
        "size": size,
        "root": root,
        "new": signed.new,
        "path": str(signed.path),
        "note": signed.note.decode(),
        "consistency": None if proof is None else proof.decode(),
    }
    lines = [f"written to {shown(str(file))}" for file in files]
    emit(json_, document, f"checkpoint of {size} records", f"root {root.hex()}", *lines)


def _older(since: str) -> int | bytes:
    """Take a size, or read the file of a note."""
    if since.isascii() and since.isdigit():
        return int(since)
    try:
        with open(since, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise click.BadParameter(f"{since!r}: {error.strerror}") from error


def _emit(json_: bool, word: str, output: Path, done: Exported) -> None:
    lines = [f"{word} {done.count} records to {shown(str(output))}", f"head {done.head.hex()}"]
    if done.note is not None:
        lines.append(f"checkpoint {shown(done.note)}")
    emit(json_, {**asdict(done), "path": str(output)}, *lines)
