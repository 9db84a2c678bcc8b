"""Records as bytes: COSE_Mac0 in deterministic CBOR, one form only (spec §3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

VERSION: Final = "cardchain/1"
ZERO: Final = bytes(32)
MAX_BARE: Final = 65_535
MAX_OPENING: Final = 1_048_576
MAX_RECORD: Final = 5_242_880


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, before it is sealed. `at` is unix milliseconds (spec §3.2)."""

    chain: bytes
    seq: int
    prev: bytes
    at: int
    kind: str
    card: bytes | None
    body: Mapping[str, Any]
    openings: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """A well-formed record. Its tag, its link and its place in time are not checked here."""

    raw: bytes
    kid: bytes
    tag: bytes
    chain: bytes
    seq: int
    prev: bytes
    at: int
    kind: str
    card: bytes | None
    body: Mapping[str, Any]
    openings: Mapping[str, bytes]
    digest: bytes
    bare: bytes


def encode(event: Event, kid: bytes, tag_of: Callable[[bytes], bytes]) -> bytes:
    """Give the bytes of a record; `tag_of` turns ToBeMaced into the 32 bytes of the tag."""
    raise NotImplementedError


def decode(raw: bytes) -> Record:
    """Read exactly one record, or raise `Malformed` or `VersionUnknown`."""
    raise NotImplementedError


def next_length(buffer: bytes | memoryview, start: int = 0) -> int | None:
    """Give the length of the record that starts at `start`, None if it goes on past the end.

    Raises `Malformed` if no record can begin with these bytes.
    """
    raise NotImplementedError


def to_be_maced(record: Record) -> bytes:
    """Give the bytes that the tag of a record is taken over (spec §3.1)."""
    raise NotImplementedError
