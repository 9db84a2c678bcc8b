"""The commands by which a ledger holds less: redact, archive, prune, restore, compress (§15)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from ledger import chain
from ledger.archive import ArchiveUnfit
from ledger.cli.output import emit
from ledger.cli.parameters import (
    DIRECTORY,
    card_hash,
    json_option,
    key_option,
    on_ledger,
    show_progress,
    text,
    warn,
)
from ledger.hidden import shown
from ledger.keys import KeySource, find_keys
from ledger.redaction import ERASABLE
from ledger.retention import REASONS
from ledger.writer import Ledger
from verifier import Edge, Key, Verdict, render_text, verify

_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_ARCHIVE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@on_ledger
@click.argument("card", metavar="[HASH]", required=False)
@click.option(
    "--opening",
    "openings",
    metavar="NAME",
    multiple=True,
    type=click.Choice(ERASABLE),
    help=f"Only this of the card: {', '.join(ERASABLE)}. Without it all of them.",
)
@click.option("--by", metavar="ID", type=text, help="Who erases.")
@click.option("--reason", type=click.Choice(REASONS), help="Why.")
@click.option("--resume", is_flag=True, help="Only finish what a crash left to be erased.")
def redact(
    ledger: Ledger,
    card: str | None,
    openings: tuple[str, ...],
    by: str | None,
    reason: str | None,
    resume: bool,
    json_: bool,
) -> None:
    """Erase what the ended card HASH said, from every record of it in the ledger DIR.

    An event says what is erased, by whom and why, and then it is taken out of the files. The
    records stay in the chain, and decisions about the card can still be verified.
    """
    if resume:
        if card or openings or by or reason:
            raise click.UsageError("--resume takes neither HASH nor other options")
        count = ledger.finish_redactions()
        emit(json_, {"rewritten": count}, f"records rewritten: {count}")
        return
    if card is None or by is None or reason is None:
        raise click.UsageError("give HASH, --by and --reason, or --resume; nothing was recorded")
    _redact(ledger, card_hash(card), openings or ERASABLE, by, reason, json_)


def _redact(
    ledger: Ledger, card: str, openings: tuple[str, ...], by: str, reason: str, json_: bool
) -> None:
    done = ledger.redact(card, by=by, reason=reason, openings=openings)
    erased = [
        {"seq": each.body["seq"], "openings": each.body["openings"], "said_at": each.seq}
        for each in done.records
    ]
    lines = [
        f"redacted seq {each['seq']}: {', '.join(each['openings'])} (said at seq {each['said_at']})"
        for each in erased
    ]
    document = {"card_hash": card, "redacted": erased, "rewritten": done.rewritten}
    emit(json_, document, *lines or ["nothing to redact: nothing of this card is there"])


@click.command()
@on_ledger
@click.option(
    "--before", metavar="SEQ", type=click.IntRange(1), help="At most the records below SEQ."
)
@click.option("--ended", is_flag=True, help="As many records as hold only ended cards.")
@click.option(
    "-o",
    "--output",
    metavar="FILE.cbor[.gz]",
    required=True,
    type=_FILE,
    help="The new file; one that is there is not replaced.",
)
def archive(ledger: Ledger, before: int | None, ended: bool, output: Path, json_: bool) -> None:
    """Write the oldest records of the ledger DIR to one new file, which prune can check.

    It ends where a segment does.
    """
    if (before is None) != ended:
        raise click.UsageError("give either --before SEQ or --ended; nothing was written")
    done = ledger.archive(output, before=before)
    lines = [
        f"archived seq {done.first} to {done.before - 1} to {shown(str(output))}",
        f"head {done.head.hex()}",
    ]
    if done.blocked is not None:
        lines.append(f"blocked from there on: {done.blocked}")
    emit(json_, {**asdict(done), "path": str(output)}, *lines)


@click.command()
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option(
    "--archive",
    "file",
    metavar="FILE",
    required=True,
    type=_ARCHIVE,
    help="What cardchain archive has written.",
)
@click.option("--by", metavar="ID", required=True, type=text, help="Who prunes.")
@key_option
@json_option
def prune(directory: Path, file: Path, by: str, keys: tuple[KeySource, ...], json_: bool) -> None:
    """Remove the records from the ledger DIR that the archive FILE holds.

    FILE is verified first, and compared with the ledger byte for byte. Every card in it must be
    ended. Keep FILE: nothing else holds these records then.
    """
    with Ledger.open(directory, keys=keys, progress=show_progress) as ledger:
        warn(ledger)
        digest = _verified(ledger, file, keys)
        done = ledger.prune(file, by=by, verified=digest, progress=show_progress)
    emit(
        json_,
        {"before": done.before, "segments": done.segments},
        f"pruned the records below seq {done.before}; segments removed: {done.segments}",
    )


def _verified(ledger: Ledger, file: Path, keys: tuple[KeySource, ...]) -> bytes:
    """Have the verifier read an archive, and give the SHA-256 of what it read.

    Openings that were redacted are said to be so in records that may come after it.
    """
    edge = ledger.archive_edge(file)
    ring = [each.key for each in find_keys(ledger.chain, keys).files()]
    held = [Key(key.chain, key.secret) for key in ring if isinstance(key, chain.Key)]
    report = verify(
        [str(file)],
        extra_keys=held,
        environ={},
        allow_withheld=True,
        since=None if edge is None else Edge(*edge),
    )
    if report.verdict is not Verdict.VERIFIED:
        click.echo(render_text(report), err=True)
        raise ArchiveUnfit(file, f"the verifier says {report.verdict.value}")
    return bytes.fromhex(report.logs[0].inputs[0].sha256)


@click.command()
@on_ledger
@click.option(
    "--archive",
    "file",
    metavar="FILE",
    required=True,
    type=_ARCHIVE,
    help="The archive that the ledger was pruned with.",
)
def restore(ledger: Ledger, file: Path, json_: bool) -> None:
    """Put the records of the archive FILE back before those in the ledger DIR.

    What was redacted after FILE was made is not put back.
    """
    count = ledger.restore(file)
    emit(json_, {"restored": count}, f"records restored: {count}")


@click.command()
@on_ledger
def compress(ledger: Ledger, json_: bool) -> None:
    """Compress the segments of the ledger DIR that nothing is appended to any more."""
    count = ledger.compress()
    emit(json_, {"compressed": count}, f"segments compressed: {count}")
