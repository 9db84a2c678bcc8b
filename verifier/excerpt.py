"""The form of an excerpt: some records of a log, with proofs that they stand in it (spec §14.1).

One pass finds out whether the file has its one form and what each record says of itself; the
records are taken apart again, one by one, when they are judged, so that a large file stays small.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from verifier import cbor
from verifier.checkpoint import Inclusion, parse_inclusion
from verifier.evidence import PROTECTED_END, Evidence, frame, parse
from verifier.note import NoteRefused
from verifier.shape import Problem
from verifier.spec import (
    DIGEST_SIZE,
    EXCERPT_FORMAT,
    HEADER,
    MAX_INTEGER,
    MAX_OPENING,
    MAX_RECORD,
)

MAX_EXCERPT = 67_108_864  # bytes
MAX_WHOLE = 1 << 30  # bytes of openings, each counted for every record that binds it
_MAGIC = b"\x85" + cbor.text(EXCERPT_FORMAT)
_ARRAY, _BYTES, _TEXT = 4, 2, 3
# of a receipt, the kinds of records that are of no card
_BESIDE = ("clock_reset", "redacted")


class ExcerptRefused(Exception):
    """An excerpt is not in its one form."""

    def __init__(self, expected: str, found: str) -> None:
        """Keep both for a finding."""
        super().__init__(f"expected {expected}, found {found}")
        self.problem: Problem = (expected, found)


class LaterFormat(ExcerptRefused):
    """An excerpt is of a version that is not known, so nothing more can be said of it."""


class Scope(NamedTuple):
    """What an excerpt is of: one card, or the records from one seq to another."""

    card: bytes | None
    first: int = 0
    last: int = -1

    def __str__(self) -> str:
        """Give it in words."""
        if self.card is not None:
            return f"receipt of card {self.card.hex()}"
        return f"range from seq {self.first} to seq {self.last}"


class Entry(NamedTuple):
    """One record of an excerpt: where it stands in the file, and what links it to others.

    `seq`, `prev` and `chain` are None where it cannot be read.
    """

    start: int
    end: int
    seq: int | None
    prev: bytes | None
    chain: bytes | None
    digest: bytes


class Excerpt(NamedTuple):
    """An excerpt in its form; nothing that it says is checked."""

    file: str
    data: bytes
    scope: Scope
    entries: tuple[Entry, ...]
    proofs: tuple[Inclusion, ...]
    openings: dict[bytes, bytes]

    @property
    def chain(self) -> bytes | None:
        """The chain that the first readable record names."""
        return next((entry.chain for entry in self.entries if entry.chain is not None), None)

    def records(self) -> Iterator[Evidence]:
        """Take the records apart, each with the openings that it binds and that are there."""
        for entry in self.entries:
            record = parse(self.file, -1, self.data[entry.start : entry.end])
            record.openings = {
                name: self.openings[digest]
                for name, digest in record.bound.items()
                if digest in self.openings
            }
            record.limit = record.limit or _limit_problem(record)
            yield record


def _limit_problem(record: Evidence) -> Problem | None:
    sizes = {name: len(value) for name, value in record.openings.items()}
    if len(record.data) + sum(sizes.values()) > MAX_RECORD:
        return f"a record of at most {MAX_RECORD} bytes", "more with its openings"
    for name, size in sizes.items():
        if size > MAX_OPENING:
            return f"an opening of at most {MAX_OPENING} bytes", f"{name} of {size} bytes"
    return None


class Bound:
    """The digests that records bind, and how often; all of them, if every record can be read."""

    __slots__ = ("all_known", "times")

    def __init__(self) -> None:
        """Start with none."""
        self.times: Counter[bytes] = Counter()
        self.all_known = True


def parse_excerpt(file: str, data: bytes) -> Excerpt:
    """Read an excerpt; raises ExcerptRefused, and LaterFormat where the version is not known."""
    try:
        return _parse(file, data)
    except IndexError:
        raise ExcerptRefused("a whole excerpt", "its bytes end early") from None
    except cbor.NotDeterministic as error:
        raise ExcerptRefused("deterministic CBOR", str(error)) from None
    except NoteRefused as error:
        raise ExcerptRefused(*error.problem) from None


def _parse(file: str, data: bytes) -> Excerpt:
    if not data.startswith(_MAGIC):
        raise _other(data)
    if len(data) > MAX_EXCERPT:
        raise ExcerptRefused(f"at most {MAX_EXCERPT} bytes", f"at least {len(data)} bytes")
    scope, pos = _scope(data, len(_MAGIC))
    entries, bound, pos = _entries(file, data, pos, scope)
    proofs, pos = _proofs(data, pos)
    _check_indexes(proofs, entries)
    openings, pos = _openings(data, pos, bound)
    whole = sum(times * len(openings.get(digest, b"")) for digest, times in bound.times.items())
    if whole > MAX_WHOLE:
        raise ExcerptRefused(f"records of at most {MAX_WHOLE} bytes with their openings", "more")
    if pos != len(data):
        raise ExcerptRefused("nothing after the fifth member", f"{len(data) - pos} bytes")
    return Excerpt(file, data, scope, tuple(entries), tuple(proofs), openings)


def _other(data: bytes) -> ExcerptRefused:
    """Say what is wrong with an item that does not begin as it must."""
    kind, _, pos = cbor.decode_head(data, 0)
    version, _ = cbor.decode_item(data, pos, 1)
    if kind == _ARRAY and type(version) is str and version != EXCERPT_FORMAT:
        return LaterFormat(EXCERPT_FORMAT, version)
    return ExcerptRefused(f"an array of five that begins with {EXCERPT_FORMAT}", "another item")


def _scope(data: bytes, pos: int) -> tuple[Scope, int]:
    value, pos = cbor.decode_item(data, pos, 1)
    if type(value) is dict and value.keys() == {"card"} and _is_digest(value["card"]):
        return Scope(value["card"]), pos
    if type(value) is dict and value.keys() == {"from", "to"}:
        first, last = value["from"], value["to"]
        if _is_seq(first) and _is_seq(last) and first <= last:
            return Scope(None, first, last), pos
    raise ExcerptRefused("a scope of a card, or from one seq to another", "something else")


def _is_digest(value: Any) -> bool:
    return type(value) is bytes and len(value) == DIGEST_SIZE


def _is_seq(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INTEGER


def _strings(data: bytes, pos: int, major: int, what: str) -> Iterator[tuple[Any, int, int]]:
    """Give the members of an array of strings, each with its place; the last is the end."""
    kind, count, pos = cbor.decode_head(data, pos)
    if kind != _ARRAY:
        raise ExcerptRefused(f"an array of {what}", "something else")
    for _ in range(count):
        if data[pos] >> 5 != major:
            raise ExcerptRefused(f"an array of {what}", "another member")
        value, end = cbor.decode_item(data, pos, 2)
        yield value, pos, end
        pos = end
    yield None, pos, pos


def _entries(file: str, data: bytes, pos: int, scope: Scope) -> tuple[list[Entry], Bound, int]:
    """Give the records, and all digests that they bind."""
    entries: list[Entry] = []
    bound = Bound()
    seen_card, last = False, -1
    for value, _, end in _strings(data, pos, _BYTES, "bare records"):
        pos = end
        if value is None:
            break
        record = parse(file, -1, _bare(value))
        if record.seq is not None and record.seq <= last:
            raise ExcerptRefused(f"a seq above {last}", f"seq {record.seq}")
        last = last if record.seq is None else record.seq
        bound.times.update(record.bound.values())
        bound.all_known &= record.kind is not None
        if scope.card is not None and record.kind is not None and record.kind not in _BESIDE:
            _check_receipt(record, scope.card, seen_card)
            seen_card = True
        place = end - len(value)
        entries.append(Entry(place, end, record.seq, record.prev, record.chain, record.digest))
    if not entries:
        raise ExcerptRefused("at least one record", "none")
    return entries, bound, pos


def _bare(data: bytes) -> bytes:
    """Give a bare record as it is; raises ExcerptRefused where it is none."""
    try:
        whole = data.startswith(HEADER) and frame(data, 0) == len(data)
    except (cbor.Truncated, cbor.NotWellFormed):
        whole = False
    if not whole or data[PROTECTED_END] != 0xA0:
        raise ExcerptRefused("bare records", "bytes that are none")
    return data


def _check_receipt(record: Evidence, card: bytes, seen_card: bool) -> None:
    if record.card != card:
        found = "none" if record.card is None else record.card.hex()
        raise ExcerptRefused(f"records of card {card.hex()}", f"{record.kind} of card {found}")
    if not seen_card and record.kind != "issued":
        raise ExcerptRefused("the issued record of the card first", str(record.kind))


def _proofs(data: bytes, pos: int) -> tuple[list[Inclusion], int]:
    proofs: list[Inclusion] = []
    for value, _, end in _strings(data, pos, _TEXT, "proofs"):
        pos = end
        if value is None:
            break
        proof = parse_inclusion(value)
        if proofs and proof.seq <= proofs[-1].seq:
            raise ExcerptRefused(f"an index above {proofs[-1].seq}", f"index {proof.seq}")
        if proofs and proof.note != proofs[0].note:
            raise ExcerptRefused("proofs under one checkpoint", "two checkpoints")
        proofs.append(proof)
    return proofs, pos


def _check_indexes(proofs: list[Inclusion], entries: list[Entry]) -> None:
    """Refuse a proof about no record of the file, if every seq can be read."""
    seqs = {entry.seq for entry in entries}
    for proof in proofs:
        if None not in seqs and proof.seq not in seqs:
            raise ExcerptRefused("proofs of its records", f"one of seq {proof.seq}")


def _openings(data: bytes, pos: int, bound: Bound) -> tuple[dict[bytes, bytes], int]:
    openings: dict[bytes, bytes] = {}
    last = b""
    for value, _, end in _strings(data, pos, _BYTES, "openings"):
        pos = end
        if value is None:
            break
        digest = hashlib.sha256(value).digest()
        if digest <= last:
            raise ExcerptRefused("openings ascending by their digest", "another order")
        if bound.all_known and digest not in bound.times:
            raise ExcerptRefused("openings that a record binds", f"one of digest {digest.hex()}")
        openings[digest] = value
        last = digest
    return openings, pos
