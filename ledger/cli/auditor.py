"""What an auditor hands to the verifier, as options of the commands that call it (spec §10, §16).

Reads, and makes nothing but the pin file: neither a key nor a state directory.
"""

from __future__ import annotations

import functools
import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar, cast

import click

from ledger.cli.parameters import chain_digest, key_file_option
from ledger.codec import MAX_RECORD, decode, next_length
from ledger.errors import LedgerError
from ledger.head import Head, HeadFile
from ledger.hidden import shown
from ledger.schema import EVIDENCE_CLASSES
from verifier import (
    ASSURANCE,
    Edge,
    LogReport,
    PinRefused,
    PlaceRefused,
    Report,
    check_place,
    keep_head,
    verify,
    watcher,
)

Command = TypeVar("Command", bound=Callable[..., Any])
Wanted = Callable[[str], bool]

_UNREADABLE: Final = (OSError, ValueError, EOFError, zlib.error, LedgerError)
_SINCE: Final = re.compile(r"(0|[1-9][0-9]{0,15}):([0-9a-f]{64})", re.ASCII)
_IN_DIGITS: Final = re.compile(r"[0-9]*:", re.ASCII)
_FILE: Final = click.Path(path_type=Path)


class Auditor(NamedTuple):
    """What the options of one run say; `verify` and `refuse_place` act on them."""

    keys: tuple[Path, ...]
    expect_head: bytes | None
    expect_count: int | None
    since: Edge | str | None
    profiles: tuple[Path, ...]
    floor: str
    vkeys: tuple[str, ...]
    checkpoints: tuple[Path, ...]
    pin: str | None
    required: tuple[str, ...]
    allow_withheld: bool
    jobs: int

    @classmethod
    def plain(cls, keys: tuple[Path, ...], vkeys: tuple[str, ...], allow_withheld: bool) -> Auditor:
        """Give one who asks for nothing beyond the checks of every log."""
        floor = EVIDENCE_CLASSES[0]
        return cls(keys, None, None, None, (), floor, vkeys, (), None, (), allow_withheld, jobs=1)

    def verify(self, paths: tuple[str, ...], wanted: Wanted | None = None) -> Report:
        """Verify all logs together, and each ledger once more against the memory of this host."""
        remembered = [_remembered(path) for path in paths]  # first: a ledger may grow meanwhile
        asked = self.expect_head is not None or self.expect_count is not None
        if len(paths) == 1 and remembered[0] and not asked:
            return self._against(remembered[0], paths[0], wanted)
        report = self._verify(paths, wanted, self.expect_head, self.expect_count, self.pin)
        heads = enumerate(remembered)
        logs = tuple(self._held(report, place, head, paths, wanted) for place, head in heads)
        return report._replace(logs=logs)

    def keep_head(self, report: Report) -> None:
        """Move the pin file on, once the report was written (spec §16.2)."""
        problem = "" if self.pin is None else keep_head(report, self.pin)
        if problem:
            click.echo(f"cardchain: warning: {shown(problem)}", err=True)
            click.echo("cardchain: hint: the report stands; verify again with --pin", err=True)

    def refuse_place(self, option: str, file: str, paths: tuple[str, ...]) -> None:
        """Refuse to write where something is read."""
        own = [*paths, *self._key_files(), *self.vkeys]
        own += map(str, (*self.profiles, *self.checkpoints))
        own += [self.since] if isinstance(self.since, str) else []
        own += filter(None, [os.environ.get("CARDCHAIN_KEY"), self.pin if file != self.pin else ""])
        try:
            check_place(file, own)
        except PlaceRefused as error:
            raise click.UsageError(f"{option}: {file}: {error}; nothing was read") from None

    def _verify(
        self,
        paths: tuple[str, ...],
        wanted: Wanted | None,
        head: bytes | None,
        count: int | None,
        pin: str | None,
    ) -> Report:
        try:
            return verify(
                paths,
                self._key_files(),
                expect_head=head,
                expect_count=count,
                profile_files=map(str, self.profiles),
                floor=self.floor,
                vkeys=self.vkeys,
                checkpoint_files=map(str, self.checkpoints),
                pin_file=pin,
                required=self.required,
                allow_withheld=self.allow_withheld,
                wanted=wanted,
                since=self.since,
                jobs=self.jobs,
                progress=watcher(sys.stderr),
                moves_pin=False,
            )
        except PinRefused as error:
            raise click.UsageError(f"--pin: {pin}: {error}; it is left as it is") from None

    def _against(self, head: Head, path: str, wanted: Wanted | None) -> Report:
        """Verify a ledger that must hold a record; the digest covers the seq."""
        return self._verify((path,), wanted, head.digest, None, self.pin)

    def _held(
        self,
        report: Report,
        place: int,
        head: Head | None,
        paths: tuple[str, ...],
        wanted: Wanted | None,
    ) -> LogReport:
        """Give the report of a ledger with what its verdict becomes if it lacks `head`."""
        log = report.logs[place]
        if head is None:
            return log
        # a checkpoint may be of the chain of another input (spec §13.7)
        if self.checkpoints or isinstance(self.since, str):
            other = self._verify(paths, wanted, head.digest, None, None).logs[place]
        else:
            (other,) = self._verify((log.path,), wanted, head.digest, None, None).logs
        return other if log.verdict.worse(other.verdict) is not log.verdict else log

    def _key_files(self) -> list[str]:
        folders = {str(file.parent) for file in _state_home().glob("*/keys/*.json")}
        return [*map(str, self.keys), *sorted(folders)]


def with_auditor(command: Command) -> Callable[..., Any]:
    """Give a command the options of an auditor; it gets them as `auditor`."""

    @functools.wraps(command)
    def gathered(**options: Any) -> Any:
        own = {name: options.pop(name) for name in Auditor._fields}
        return command(auditor=Auditor(**own), **options)

    return functools.reduce(lambda inner, option: option(inner), reversed(_OPTIONS), gathered)


def _edge(_: click.Context, __: click.Parameter, text: str | None) -> Edge | str | None:
    if text is None or not _IN_DIGITS.match(text):
        return text
    found = _SINCE.fullmatch(text)
    if found is None:
        raise click.BadParameter("expected SEQ:HEX, a seq and its chain digest")
    return Edge(int(found[1]) + 1, bytes.fromhex(found[2]))


_OPTIONS: Final = (
    key_file_option,
    click.option(
        "--expect-head", metavar="HEX", type=chain_digest, help="A record has this chain digest."
    ),
    click.option(
        "--expect-count",
        metavar="N",
        type=click.IntRange(1),
        help="The log holds at least N records.",
    ),
    click.option(
        "--since",
        metavar="SEQ:HEX|FILE",
        callback=_edge,
        help="Verify the records after SEQ, whose chain digest was this, or after those of a "
        "signed checkpoint that was kept.",
    ),
    click.option(
        "--profile",
        "profiles",
        metavar="FILE",
        multiple=True,
        type=_FILE,
        help="A profile that cards name, where the log does not hold it.",
    ),
    click.option(
        "--floor",
        type=click.Choice(EVIDENCE_CLASSES),
        default=EVIDENCE_CLASSES[0],
        help="Every approved card reaches this evidence class.",
    ),
    click.option(
        "--vkey",
        "vkeys",
        metavar="VKEY",
        multiple=True,
        help="The public key of the signer of checkpoints, or a file of such keys.",
    ),
    click.option(
        "--checkpoint",
        "checkpoints",
        metavar="FILE",
        multiple=True,
        type=_FILE,
        help="A signed checkpoint that was kept, or a proof that one extends it.",
    ),
    click.option(
        "--pin",
        metavar="FILE",
        help="The last head seen; made or moved on when the log is verified.",
    ),
    click.option(
        "--require",
        "required",
        multiple=True,
        type=click.Choice(ASSURANCE),
        help="The assurance that the log must reach.",
    ),
    click.option("--allow-withheld", is_flag=True, help="Openings may be absent; they are listed."),
    click.option(
        "--jobs",
        metavar="N",
        type=click.IntRange(1, 99),
        default=1,
        help="Check records in N processes.",
    ),
)


def is_known(path: Path) -> bool:
    """Tell whether this host remembers anything of the ledger in a directory; makes nothing."""
    chain = _chain_of(path / "segments")
    return chain is not None and state_of(chain).is_dir()


def state_of(chain: bytes) -> Path:
    """Give the state directory of a chain, which need not exist."""
    return _state_home() / chain.hex()


def _state_home() -> Path:
    """Give the folder that holds a state directory per chain; it need not exist."""
    home = os.environ.get("CARDCHAIN_STATE") or os.environ.get("XDG_STATE_HOME")
    return Path(home or os.path.expanduser("~/.local/state")) / "cardchain"


def _remembered(path: str) -> Head | None:
    """Give the last record that this host has answered for, if `path` is a ledger it knows."""
    chain = _chain_of(Path(path) / "segments")
    if chain is None:
        return None
    return HeadFile(state_of(chain) / "head", Path(path)).read()


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
