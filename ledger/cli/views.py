"""Two ways to look at approvals: the ledger of this host, and any log as the verifier reads it.

A ledger that this host writes is looked up in its index. Everything else, an export, a receipt, a
foreign log, a copy or a ledger that cannot be opened, is verified first, and the verdict is said
last, since what a log says is worth no more than its verdict.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import click

from ledger import envelope as envelopes
from ledger.answers import CardStatus, text_of
from ledger.cli.auditor import Auditor
from ledger.cli.entries import Entry, of_history, of_log, of_record
from ledger.cli.parameters import json_option, key_option, show_progress, warn
from ledger.errors import AmbiguousPrefix, LedgerError, UnknownCard
from ledger.hidden import shown
from ledger.keys import KeyFiles, KeySource
from ledger.writer import Ledger
from verifier import History, LogReport, Report, every_card

Command = Callable[..., Any]

_POLL_S: Final = 0.2
_NOTHING_SEEN: Final = "the envelope is not in this log: it was redacted, withheld or lost"


class Seen(NamedTuple):
    """One card: what the approver saw, its state, its events, and what --json says besides.

    `text` and `notes` are lines that were escaped already; `envelope` is None where it is absent.
    """

    text: str
    envelope: bytes | None
    state: str
    entries: Sequence[Entry]
    document: dict[str, Any]
    notes: Sequence[str] = ()


class View(Protocol):
    """What the commands that look ask."""

    def entries(self) -> Iterator[Entry]:
        """Give every event in the order of the chain."""

    def follow(self) -> Iterator[Entry]:
        """Give every event, and go on as events are appended."""

    def card(self, prefix: str) -> Seen:
        """Give the one card that begins with these digits, or raise UnknownCard."""

    def states(self) -> dict[bytes, str]:
        """Give the state of every issued card, in the order of issue."""

    def verdict(self) -> tuple[Sequence[str], int]:
        """Give what to say last, as safe lines, and the exit status."""


class Live:
    """The ledger of this host."""

    def __init__(self, ledger: Ledger) -> None:
        """Look at an open ledger."""
        self.ledger = ledger

    def entries(self) -> Iterator[Entry]:
        """Give every event in the order of the chain."""
        return map(of_record, self.ledger.records())

    def follow(self) -> Iterator[Entry]:
        """Give every event, and go on as events are appended."""
        start = 0
        while True:
            for record in self.ledger.records(start):
                yield of_record(record)
                start = record.seq + 1
            time.sleep(_POLL_S)

    def card(self, prefix: str) -> Seen:
        """Give the one card that begins with these digits, or raise UnknownCard."""
        status = self.ledger.card(self.ledger.find(prefix))
        entries = [of_record(record) for record in self.ledger.events(status.card.hash)]
        envelope = status.envelope.bytes
        return Seen(status.text, envelope, status.state, entries, card(status), notes(status))

    def states(self) -> dict[bytes, str]:
        """Give the state of every issued card, in the order of issue."""
        issued = (each for each in self.ledger.records() if each.kind == "issued")
        hashes = [record.card for record in issued if record.card is not None]
        return {each: self.ledger.card(each).state for each in hashes}

    def verdict(self) -> tuple[Sequence[str], int]:
        """Say nothing: the ledger was checked as it was opened."""
        return (), 0


class Evidence:
    """A log that the verifier read."""

    def __init__(self, report: Report) -> None:
        """Look at a report that holds the history of every card."""
        self.report = report
        self.log: LogReport = report.logs[0]

    def entries(self) -> Iterator[Entry]:
        """Give every event in the order of the chain."""
        return iter(of_log(self.log))

    def follow(self) -> Iterator[Entry]:
        """Refuse: nobody appends to it."""
        raise click.UsageError("--follow needs a ledger of this host")

    def card(self, prefix: str) -> Seen:
        """Give the one card that begins with these digits, or raise UnknownCard."""
        found = {each.card: each for each in self.log.histories}
        matching = [each for each in found if each.startswith(prefix)]
        if not matching:
            raise UnknownCard(prefix)
        if len(matching) > 1:
            raise AmbiguousPrefix(prefix, len(matching))
        history = found[matching[0]]
        document: dict[str, Any] = {"card_hash": history.card, "state": history.state}
        document["doubt"] = history.doubt
        document["findings"] = [each.check for each in history.findings]
        document["verdict"] = self.log.verdict.value
        document["envelope"] = None if history.envelope is None else json.loads(history.envelope)
        entries = list(of_history(history))
        text = _text(history, found)
        return Seen(text, history.envelope, history.state, entries, document, _doubts(history))

    def states(self) -> dict[bytes, str]:
        """Give the state of every card that the log names, in that order."""
        return {bytes.fromhex(each.card): each.state for each in self.log.histories}

    def verdict(self) -> tuple[Sequence[str], int]:
        """Give the verdict of the log, which all that was shown is worth no more than."""
        log = self.log
        lines = [f"finding {each.check} at seq {each.seq}" for each in log.findings]
        if log.first_seq is not None:
            rests = " and ".join(log.assurance) or "none"
            lines.append(f"seq {log.first_seq} to {log.last_seq}, assurance: {rests}")
        return [*lines, log.verdict.value], log.verdict.exit_code


def on_view(command: Command) -> Command:
    """Give a command PATH, --key, --vkey and --json; it gets what it looks at as `view`."""

    @functools.wraps(command)
    def opened(path: Path, keys: tuple[KeySource, ...], vkeys: tuple[str, ...], **rest: Any) -> Any:
        with ExitStack() as stack:
            return command(view=_view(path, keys, vkeys, stack), **rest)

    argument = click.argument("path", metavar="PATH", type=click.Path(exists=True, path_type=Path))
    vkey = click.option(
        "--vkey",
        "vkeys",
        metavar="VKEY",
        multiple=True,
        help="Of a log that is not of this host: the public key of its signer, or a file of it.",
    )
    return argument(key_option(vkey(json_option(opened))))


def _view(
    path: Path, keys: tuple[KeySource, ...], vkeys: tuple[str, ...], stack: ExitStack
) -> View:
    if (path / "segments").is_dir():
        try:
            ledger = stack.enter_context(Ledger.open(path, keys=keys, progress=show_progress))
        except LedgerError as error:
            click.echo(f"cardchain: note: read as a log of another host: {error}", err=True)
        else:
            warn(ledger)
            return Live(ledger)
    files = [source.path for source in keys if isinstance(source, KeyFiles)]
    if len(files) < len(keys):
        raise click.UsageError("a log that is not a ledger of this host takes key files only")
    auditor = Auditor.plain(tuple(files), vkeys)
    return Evidence(auditor.verify((str(path),), every_card))


def _text(history: History, others: Mapping[str, History]) -> str:
    """Give what the approver saw, as the ledger would show it (spec §9.1)."""
    if history.envelope is None:
        return f"{_NOTHING_SEEN}\n"
    try:
        envelope = envelopes.parse(history.envelope)
    except LedgerError:
        pretty = json.dumps(json.loads(history.envelope), indent=2, ensure_ascii=False)
        return "".join(f"{shown(line)}\n" for line in pretty.split("\n"))
    return text_of(envelope, _envelope_of(envelope.supersedes, others))


def _envelope_of(card_hash: bytes | None, others: Mapping[str, History]) -> bytes | None:
    other = None if card_hash is None else others.get(card_hash.hex())
    return other.envelope if other else None


def _doubts(history: History) -> list[str]:
    lines = [f"note: the state is not sure: {shown(history.doubt)}"] if history.doubt else []
    found = (f"note: finding {each.check}: {shown(each.cause)}" for each in history.findings)
    return [*lines, *found]


def notes(status: CardStatus) -> list[str]:
    """Say what an approver should know and no envelope tells."""
    return [
        f"note: another task asked for the same call before; {each.state}: card {each.hash.hex()}"
        for each in status.returned
    ]


def card(status: CardStatus) -> dict[str, Any]:
    """Give a card of this host for --json."""
    returned = [{"card_hash": each.hash.hex(), "state": each.state} for each in status.returned]
    return {
        "returned": returned,
        "card_hash": status.hash,
        "state": status.state,
        "step_state": status.step_state,
        "seq": status.card.seq,
        "not_after": status.card.not_after,
        "envelope": status.envelope.document,
    }
