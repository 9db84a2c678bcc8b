"""Any log, as the verifier reads it: what it says is worth no more than its verdict."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from ledger import envelope as envelopes
from ledger.answers import text_of
from ledger.cli.entries import Entry, of_event, of_history, of_log
from ledger.cli.output import utc
from ledger.cli.sight import NOTHING_SEEN, Glance, Seen, only
from ledger.errors import AmbiguousPrefix, LedgerError, UnknownCard
from ledger.hidden import shown, word
from ledger.report.foreign import foreign_text
from verifier import Finding, History, LogReport, Report

_FINDINGS: Final = 20
"""How many findings are said; `audit verify` gives all."""


class Evidence:
    """A log that the verifier read."""

    def __init__(self, report: Report) -> None:
        """Look at a report that holds the history of every card."""
        self.report = report
        self.log: LogReport = report.logs[0]
        self._cards = {each.card: each for each in self.log.histories}

    def entries(self) -> Iterator[Entry]:
        """Give every event in the order of the chain."""
        return iter(of_log(self.log))

    def follow(self) -> Iterator[Entry]:
        """Refuse: nobody appends to it."""
        raise click.UsageError("--follow needs a ledger of this host")

    def card(self, prefix: str) -> Seen:
        """Give the one card that begins with these digits, or raise UnknownCard."""
        history = self._cards[only(self._find, prefix).hex()]
        document: dict[str, Any] = {"card_hash": history.card, "state": history.state}
        document["as_of"] = self.log.end_at
        document["doubt"] = history.doubt
        document["findings"] = [each.check for each in history.findings]
        document["verdict"] = self.log.verdict.value
        document["envelope"] = None if history.envelope is None else json.loads(history.envelope)
        entries = list(of_history(history))
        text = _text(history, self._cards)
        state = _state(history)
        redactions = self._redactions({entry.seq for entry in entries})
        told = document, _doubts(history), self.log.end_at, self.log.verdict.exit_code == 0
        return Seen(text, history.envelope, state, entries, redactions, *told)

    def _find(self, prefix: str) -> bytes:
        matching = [each for each in self._cards if each.startswith(prefix)]
        if not matching:
            raise UnknownCard(prefix)
        if len(matching) > 1:
            raise AmbiguousPrefix(prefix, len(matching))
        return bytes.fromhex(matching[0])

    def _redactions(self, seqs: set[int]) -> list[Entry]:
        events = (each for each in self.log.chain_events if each.kind == "redacted")
        return [of_event(each) for each in events if each.body["seq"] in seqs]

    def state(self, card: bytes) -> str:
        """Give the state of a card that an event names."""
        return _state(self._cards[card.hex()])

    def glance(self) -> Glance:
        """Give what the log holds."""
        log = self.log
        states = Counter(map(_state, self._cards.values()))
        document: dict[str, Any] = {"chain": log.chain, "kids": log.kids, "head": log.head}
        document |= {"count": log.counts.records, "states": states, "verdict": log.verdict.value}
        ended = "" if log.end_at is None else f", the last at {utc(log.end_at)}"
        lines = (
            *(() if log.chain is None else (f"chain {log.chain}",)),
            *(f"kid {kid}" for kid in log.kids),
            f"records {log.counts.records}{ended}",
            *(() if log.head is None else (f"head {log.head}",)),
            *(f"{state} {number}" for state, number in sorted(states.items())),
        )
        return Glance(document, lines)

    def verdict(self) -> tuple[Sequence[str], int]:
        """Give the verdict of the log, which all that was shown is worth no more than."""
        log = self.log
        lines = [line for each in log.findings[:_FINDINGS] for line in _finding(each)]
        if log.findings_total > _FINDINGS:
            more = log.findings_total - _FINDINGS
            lines.append(f"{more} more findings: cardchain audit verify {word(log.path)}")
        if log.first_seq is not None:
            rests = " and ".join(log.assurance) or "none"
            lines.append(f"seq {log.first_seq} to {log.last_seq}, assurance: {rests}")
        return [*lines, log.verdict.value], log.verdict.exit_code


def _state(history: History) -> str:
    marks = ["not sure"] if history.doubt and history.state else []
    marks += ["with findings"] if history.findings else []
    said = f" ({', '.join(marks)})" if marks else ""
    return f"{history.state or 'not known'}{said}"


def _finding(found: Finding) -> Iterator[str]:
    where = "" if found.seq is None else f", seq {found.seq}"
    yield f"finding {found.check} in {shown(found.file)}{where}: {shown(found.cause)}"
    yield f"next: {shown(found.next_command)}"


def _text(history: History, others: Mapping[str, History]) -> str:
    """Give what the approver saw, as the ledger would show it (spec §9.1)."""
    if history.envelope is None:
        return NOTHING_SEEN
    try:
        envelope = envelopes.parse(history.envelope)
    except LedgerError:
        return foreign_text(history.envelope)
    return text_of(envelope, _envelope_of(envelope.supersedes, others))


def _envelope_of(card_hash: bytes | None, others: Mapping[str, History]) -> bytes | None:
    other = None if card_hash is None else others.get(card_hash.hex())
    return other.envelope if other else None


def _doubts(history: History) -> list[str]:
    lines = [f"note: the state is not sure: {shown(history.doubt)}"] if history.doubt else []
    found = (f"note: finding {each.check}: {shown(each.cause)}" for each in history.findings)
    return [*lines, *found]
