"""What the commands that look ask of a ledger or log, and what they get."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ledger.cli.entries import Entry
from ledger.errors import AmbiguousPrefix, UnknownCard

NOTHING_SEEN: Final = "the envelope is not in this log: it was redacted, withheld or lost\n"
_DIGITS: Final = "0123456789abcdef"
_LIST: Final = "none begins with this digit; list the cards: cardchain log PATH --kind issued"


class Seen(NamedTuple):
    """One card: what the approver saw, its state, its events, and what --json says besides.

    `text` and `notes` are lines that were escaped already; `envelope` is None where it is absent.
    `redactions` are the events that say which openings of its records were erased. `as_of` is the
    time of the state in unix milliseconds, None for now. Where it is not `sure`, there may be
    records of the card that nobody can read.
    """

    text: str
    envelope: bytes | None
    state: str
    entries: Sequence[Entry]
    redactions: Sequence[Entry]
    document: dict[str, Any]
    notes: Sequence[str] = ()
    as_of: int | None = None
    sure: bool = True


class Glance(NamedTuple):
    """A ledger or log at a glance: for --json, and as lines that were escaped already."""

    document: Mapping[str, Any]
    lines: Sequence[str]


class View(Protocol):
    """What the commands that look ask."""

    def entries(self) -> Iterator[Entry]:
        """Give every event in the order of the chain."""

    def follow(self) -> Iterator[Entry]:
        """Give every event, and go on as events are appended."""

    def card(self, prefix: str) -> Seen:
        """Give the one card that begins with these digits, or raise UnknownCard."""

    def state(self, card: bytes) -> str:
        """Give the state of a card that an event names."""

    def glance(self) -> Glance:
        """Give what the ledger or log holds."""

    def verdict(self) -> tuple[Sequence[str], int]:
        """Give what to say last, as safe lines, and the exit status."""


def only(find: Callable[[str], bytes], prefix: str) -> bytes:
    """Give the card that `find` finds for these digits; its errors name what else there is."""
    try:
        return find(prefix)
    except AmbiguousPrefix as error:
        error.hint = f"give more digits: {', '.join(_longer(find, prefix))}"
        raise
    except UnknownCard as error:
        if error.hint != UnknownCard.hint:  # it may have been pruned
            raise
        shorter = (_begun(find, prefix[:length]) for length in range(len(prefix) - 1, 0, -1))
        near = next(filter(None, shorter), "")
        error.hint = f"the nearest: {near}" if near else _LIST
        raise


def _longer(find: Callable[[str], bytes], prefix: str) -> list[str]:
    """Say how the cards go on that begin so, from the first digit in which they differ."""
    while True:
        found = {digit: _begun(find, prefix + digit) for digit in _DIGITS}
        begun = {digit: said for digit, said in found.items() if said}
        if len(begun) != 1:
            return list(begun.values())
        prefix += next(iter(begun))


def _begun(find: Callable[[str], bytes], prefix: str) -> str:
    """Say which card begins so, or how many; nothing if none does."""
    try:
        return find(prefix).hex()
    except AmbiguousPrefix as error:
        return f"{prefix}... ({error.count} cards)"
    except UnknownCard:
        return ""
