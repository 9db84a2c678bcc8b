"""Records as bytes: COSE_Mac0 in deterministic CBOR, in its one form (spec §3).

The frame around the payload is read here, since nothing in it may be acted on before its
limits are known. The payload is read by `cbor2`, which takes more than the one form, so
what it read is written again and compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

import cbor2

from ledger.errors import Malformed, ProposalInvalid, VersionUnknown
from ledger.kinds import MAX_INTEGER, MAX_OPENING, check_event

VERSION: Final = "cardchain/1"
ZERO: Final = bytes(32)
MAX_BARE: Final = 65_535
MAX_RECORD: Final = 5_242_880

_HEADER: Final = bytes.fromhex("d1844da201050448")
_BODY_START: Final = len(_HEADER) + 8
_TAG_HEAD: Final = bytes.fromhex("5820")
_TAG_SIZE: Final = 32
_NO_OPENINGS: Final = b"\xa0"
_MOST_OPENINGS: Final = 64
_LONGEST_NAME: Final = 256


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
    """A record that is well-formed: every rule of spec §3 that its bytes alone can show.

    Its tag, its link and its place among other records are not checked here.
    `digest` is its chain digest, `bare` its bytes without openings.
    """

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


def encode(event: Event, kid: bytes, tag_of: Callable[[bytes], bytes]) -> Record:
    """Give the record of an event (spec §3.1).

    `tag_of` turns ToBeMaced into the 32 bytes of the tag. Raises `ProposalInvalid`
    where a value does not fit its kind, since such a value came from the caller.
    The record is the one that `decode` gives for its bytes.
    """
    body, openings = _in_order(event.body), _in_order(event.openings)
    try:
        _check_common(event)
        check_event(event.kind, event.card, body, openings)
    except Malformed as error:
        raise ProposalInvalid(error.pointer, error.reason) from None
    payload = cbor2.dumps(
        cbor2.dumps(
            [VERSION, event.chain, event.seq, event.prev, event.at, event.kind, event.card, body]
        )
    )
    tag = tag_of(_to_be_maced(kid, payload))
    if len(tag) != _TAG_SIZE:
        raise ValueError(f"tag of {len(tag)} bytes, expected {_TAG_SIZE}")
    begin, end = _HEADER + kid, payload + _TAG_HEAD + tag
    raw, bare = begin + cbor2.dumps(openings) + end, begin + _NO_OPENINGS + end
    if len(bare) > MAX_BARE or len(raw) > MAX_RECORD:
        raise ProposalInvalid("", f"record of {len(raw)} bytes ({len(bare)} bare) is too large")
    return Record(
        raw=raw,
        kid=kid,
        tag=tag,
        chain=event.chain,
        seq=event.seq,
        prev=event.prev,
        at=event.at,
        kind=event.kind,
        card=event.card,
        body=body,
        openings=openings,
        digest=chain_digest(bare),
        bare=bare,
    )


def decode(raw: bytes) -> Record:
    """Read exactly one record, by every rule of spec §3 that its bytes alone can show.

    Raises `Malformed`, or `VersionUnknown` where the payload names another version.
    """
    try:
        frame = _frame(raw, 0)
    except IndexError:
        raise Malformed("the bytes end inside the record", len(raw)) from None
    if frame.end != len(raw):
        raise Malformed(f"record of {frame.end} bytes, found {len(raw)}")
    bare = raw[:_BODY_START] + _NO_OPENINGS + raw[frame.item :]
    if len(bare) > MAX_BARE:
        raise Malformed(f"bare record of {len(bare)} bytes, limit {MAX_BARE}")
    openings = {name: raw[start:end] for name, (start, end) in frame.openings.items()}
    event = _event(_one_form(raw[frame.payload : frame.payload_end], frame.payload), openings)
    return Record(
        raw=raw,
        kid=raw[len(_HEADER) : _BODY_START],
        tag=raw[-_TAG_SIZE:],
        chain=event.chain,
        seq=event.seq,
        prev=event.prev,
        at=event.at,
        kind=event.kind,
        card=event.card,
        body=event.body,
        openings=openings,
        digest=chain_digest(bare),
        bare=bare,
    )


def next_length(buffer: bytes | memoryview, start: int = 0) -> int | None:
    """Give the length of the record that starts at `start`, None if it goes on past the end.

    Only the frame is read: what is inside may still be malformed.
    Raises `Malformed` if no record can begin with these bytes.
    """
    try:
        end = _frame(buffer, start).end
    except IndexError:
        return None
    return end - start if end <= len(buffer) else None


def chain_digest(bare: bytes) -> bytes:
    """Give the digest that links records: SHA-256(0x00 || bare record) (spec §3.3)."""
    return hashlib.sha256(b"\x00" + bare).digest()


def digest_of(raw: bytes) -> bytes:
    """Give the chain digest of the one record in `raw`, of which only the frame is read."""
    try:
        frame = _frame(raw, 0)
    except IndexError:
        raise Malformed("the bytes end inside the record", len(raw)) from None
    return chain_digest(raw[:_BODY_START] + _NO_OPENINGS + raw[frame.item : frame.end])


def with_openings(bare: bytes, openings: Mapping[str, bytes]) -> bytes:
    """Give a bare record with openings put in, as it is stored (spec §3.3, §3.4)."""
    item = _BODY_START + len(_NO_OPENINGS)
    return bare[:_BODY_START] + cbor2.dumps(_in_order(openings)) + bare[item:]


def deterministic(value: Any) -> bytes:
    """Give the encoding of a value; the keys of its maps must be in order (RFC 8949 §4.2.1)."""
    return cbor2.dumps(value)


def to_be_maced(record: Record) -> bytes:
    """Give the bytes that the tag of a record is taken over (spec §3.1)."""
    payload = record.bare[_BODY_START + len(_NO_OPENINGS) : -len(_TAG_HEAD) - _TAG_SIZE]
    return _to_be_maced(record.kid, payload)


def rekeyed_message(chain: bytes, seq: int, prev: bytes, old_kid: bytes, new_kid: bytes) -> bytes:
    """Give the bytes that the proof of a `rekeyed` record is taken over (spec §4.2)."""
    return cbor2.dumps(["cardchain/rekeyed", chain, seq, prev, old_kid, new_kid])


def _to_be_maced(kid: bytes, payload: bytes) -> bytes:
    """Frame the payload, which comes as an encoded byte string, as MAC_structure (RFC 9052)."""
    return b"\x84\x64MAC0" + _HEADER[2:] + kid + b"\x40" + payload


def _one_form(data: bytes, offset: int) -> Any:
    """Decode one CBOR item that is the whole of `data` and in its deterministic form."""
    try:
        value = cbor2.loads(data)
        _check_order(value)
        again = cbor2.dumps(value)
    except Malformed:
        raise
    except Exception as error:
        raise Malformed(f"not CBOR of a record ({type(error).__name__})", offset) from error
    if again != data:
        raise Malformed("not in deterministic form, or data after it", offset)
    return value


def _check_order(value: Any) -> None:
    if type(value) is dict:
        plain = all(type(name) is str for name in value)  # as every version so far has it
        names = [_order(name) if plain else cbor2.dumps(name) for name in value]
        if names != sorted(names):
            raise Malformed("map keys are not sorted")
        members: Iterable[Any] = value.values()
    else:
        members = value if type(value) is list else ()
    for member in members:
        if type(member) is dict or type(member) is list:
            _check_order(member)


def _check_types(value: Any) -> None:
    """Check what every version keeps to (spec §3.1); the kinds of this one say more."""
    if type(value) is list:
        for element in value:
            _check_types(element)
    elif type(value) is dict:
        for name, member in value.items():
            if isinstance(name, tuple | Mapping):
                raise Malformed("a map key that is an array or a map")
            _check_types(name)
            _check_types(member)
    elif type(value) is int:
        if not -(2**64) <= value < 2**64:
            raise Malformed("a tag inside the payload")
    elif value is not None and type(value) not in (bool, bytes, str):
        raise Malformed("a float, a tag or a simple value inside the payload")


def _order(name: Any) -> tuple[int, bytes]:
    if type(name) is not str:
        raise Malformed("map key is not text")
    encoded = name.encode()
    return len(encoded), encoded


def _in_order(value: Any) -> Any:
    """Copy maps, and the maps in them, with keys in deterministic order (RFC 8949 §4.2.1).

    No kind has a map inside an array.
    """
    if type(value) not in _PLAIN and isinstance(value, Mapping):
        return {name: _in_order(value[name]) for name in sorted(value, key=_order_of_ours)}
    return value


_PLAIN: Final = frozenset((bytes, str, int))
"""What most values are; to tell that they are no maps is slow."""
_order_of_ours = lru_cache(256)(_order)
"""The names that a writer uses are few, and stand in spec §3.4 and §3.5."""


def _event(payload: Any, openings: dict[str, bytes]) -> Event:
    if type(payload) is not list or not payload or type(payload[0]) is not str:
        raise Malformed("payload is not an array that begins with a version")
    if payload[0] != VERSION:
        _check_types(payload)
        raise VersionUnknown(payload[0], VERSION)
    if len(payload) != 8:
        raise Malformed(f"payload is an array of {len(payload)}, expected 8")
    _, chain, seq, prev, at, kind, card, body = payload
    event = Event(chain, seq, prev, at, kind, card, body, openings)
    _check_common(event)
    check_event(event.kind, event.card, event.body, openings)
    return event


def _check_common(event: Event) -> None:
    """Check what every event has, whatever its kind (spec §3.2)."""
    if type(event.chain) is not bytes or len(event.chain) != 16:
        raise Malformed("chain: expected 16 bytes")
    if type(event.prev) is not bytes or len(event.prev) != 32:
        raise Malformed("prev: expected 32 bytes")
    for name, number in (("seq", event.seq), ("at", event.at)):
        if type(number) is not int or not 0 <= number <= MAX_INTEGER:
            raise Malformed(f"{name}: expected an integer from 0 to 2^53 - 1")
    if type(event.kind) is not str:
        raise Malformed("kind: expected text")
    if event.card is not None and (type(event.card) is not bytes or len(event.card) != 32):
        raise Malformed("card: expected 32 bytes or null")


class _Frame(NamedTuple):
    """Where the parts of a record lie: the content of its openings and of its payload."""

    openings: dict[str, tuple[int, int]]
    item: int  # the payload with its head
    payload: int
    payload_end: int
    end: int


def _frame(buffer: bytes | memoryview, start: int) -> _Frame:
    """Take apart all of a record but the payload (spec §3.1, §3.3, §3.4).

    Raises `IndexError` where the buffer ends before the head of the tag.
    """
    if not _HEADER.startswith(bytes(buffer[start : start + len(_HEADER)])):
        raise Malformed("not the header of a record", start)
    openings, item = _openings(buffer, start + _BODY_START)
    size, payload = _head(buffer, item, 2, MAX_BARE)
    payload_end = payload + size
    for place, expected in enumerate(_TAG_HEAD, payload_end):
        if buffer[place] != expected:
            raise Malformed(f"tag is not a byte string of {_TAG_SIZE} bytes", payload_end)
    end = payload_end + len(_TAG_HEAD) + _TAG_SIZE
    if end - start > MAX_RECORD:
        raise Malformed(f"record of {end - start} bytes, limit {MAX_RECORD}", start)
    return _Frame(openings, item, payload, payload_end, end)


def _openings(buffer: bytes | memoryview, at: int) -> tuple[dict[str, tuple[int, int]], int]:
    """Read the map of openings. A later version may know other names, so any name is taken."""
    count, at = _head(buffer, at, 5, _MOST_OPENINGS)
    found: dict[str, tuple[int, int]] = {}
    last = b""
    for _ in range(count):
        size, name_start = _head(buffer, at, 3, _LONGEST_NAME)
        at = name_start + size
        buffer[at - 1]
        name = bytes(buffer[name_start:at])
        if found and (len(name), name) <= (len(last), last):
            raise Malformed("repeated or unsorted opening", name_start)
        last = name
        size, start = _head(buffer, at, 2, MAX_OPENING)
        at = start + size
        found[_text(name, name_start)] = (start, at)
    return found, at


def _text(encoded: bytes, offset: int) -> str:
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        raise Malformed("text that is not UTF-8", offset) from None


def _head(buffer: bytes | memoryview, at: int, major: int, limit: int) -> tuple[int, int]:
    """Read the head of an item: its argument, and where its content begins.

    Raises `IndexError` where the buffer ends before the head does.
    """
    initial = buffer[at]
    extra = {24: 1, 25: 2, 26: 4}.get(initial & 31, 0)
    if initial >> 5 != major or initial & 31 > 26:
        raise Malformed("not the frame of a record", at)
    if extra == 0:
        argument = initial & 31
    else:
        buffer[at + extra]
        argument = int.from_bytes(buffer[at + 1 : at + 1 + extra], "big")
        if argument < (24 if extra == 1 else 1 << 4 * extra):
            raise Malformed("length not in its shortest form", at)
    if argument > limit:
        raise Malformed(f"length {argument}, limit {limit}", at)
    return argument, at + 1 + extra
