"""A ledger of this host, looked up in its index."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

import click

from ledger.answers import CardStatus
from ledger.cli.entries import Entry, of_record
from ledger.cli.output import quoted, utc
from ledger.cli.sight import NOTHING_SEEN, Glance, Seen, only
from ledger.cli.verified import Evidence
from ledger.errors import BrokenLedger, UnknownCard
from ledger.view import Redacted
from ledger.writer import Ledger

_POLL_S: Final = 0.2


class Live:
    """The ledger of this host, until a record of it turns out not to hold: then `evidence`."""

    def __init__(self, ledger: Ledger, verify: Callable[[], Evidence]) -> None:
        """Look at an open ledger; `verify` reads it as a log of any host."""
        self.ledger = ledger
        self._verify = verify
        self._broken: Evidence | None = None

    def entries(self) -> Iterator[Entry]:
        """Give every event in the order of the chain."""
        start = 0
        try:
            for record in self.ledger.records():
                yield of_record(record)
                start = record.seq + 1
        except BrokenLedger as error:
            yield from (each for each in self._turn(error).entries() if each.seq >= start)

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
        try:
            return self._card(only(self.ledger.find, prefix))
        except BrokenLedger as error:
            return self._turn(error).card(prefix)

    def _card(self, card_hash: bytes) -> Seen:
        state, step_state = self.ledger.state(card_hash)
        entries = [of_record(record) for record in self.ledger.events(card_hash)]
        redactions = [of_record(record) for record in self.ledger.redactions(card_hash)]
        try:
            status = self.ledger.card(card_hash)
        except Redacted:
            document: dict[str, Any] = {"card_hash": card_hash, "state": state}
            document |= {"step_state": step_state, "envelope": None}
            return Seen(NOTHING_SEEN, None, state, entries, redactions, document)
        envelope = status.envelope.bytes
        told = card(status), notes(status)
        return Seen(status.text, envelope, state, entries, redactions, *told)

    def state(self, card: bytes) -> str:
        """Give the state of a card that an event names."""
        if self._broken is not None:
            return self._broken.state(card)
        try:
            return self.ledger.state(card)[0]
        except UnknownCard:
            return "NOT ISSUED"
        except BrokenLedger as error:
            return self._turn(error).state(card)

    def glance(self) -> Glance:
        """Give what the ledger holds, and what this host remembers of it."""
        try:
            found = self.ledger.status()
        except BrokenLedger as error:
            return self._turn(error).glance()
        since = found.guarded_from
        lines = (
            f"name {'not known: it was pruned' if found.name is None else quoted(found.name)}",
            f"chain {found.chain.hex()}",
            f"kid {found.kid.hex()}",
            f"records {found.count} in {found.segments} segments, the last at {utc(found.at)}",
            f"head {found.head.hex()}",
            f"pending {found.pending}",
            "rollback not guarded" if since is None else f"rollback guarded from seq {since}",
        )
        return Glance(asdict(found), lines)

    def verdict(self) -> tuple[Sequence[str], int]:
        """Say nothing, since what was read was checked; or what the verifier says."""
        return ((), 0) if self._broken is None else self._broken.verdict()

    def _turn(self, error: BrokenLedger) -> Evidence:
        """Have it verified, so that what is wrong is said and not only where it began."""
        click.echo(f"cardchain: warning: {error}", err=True)
        self._broken = self._verify()
        return self._broken


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
