"""Records as bytes (spec §3). The bytes are made here by a small encoder of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.codec import (
    ZERO,
    Event,
    decode,
    encode,
    next_length,
    rekeyed_message,
    to_be_maced,
)
from ledger.errors import Malformed, ProposalInvalid, VersionUnknown

CHAIN = bytes(range(16))
KID = bytes(range(8))
TAG = bytes(range(32))
ENVELOPE = b'{"a":1}'
CARD = hashlib.sha256(ENVELOPE).digest()


def head(major: int, number: int) -> bytes:
    for size, info in ((1, 24), (2, 25), (4, 26), (8, 27)):
        if number < 24:
            return bytes([major << 5 | number])
        if number < 1 << 8 * size:
            return bytes([major << 5 | info]) + number.to_bytes(size, "big")
    raise ValueError(number)


def cbor(value: Any) -> bytes:
    """Encode by RFC 8949 §4.2.1; `bytearray` stands for bytes that are already encoded."""
    if isinstance(value, bytearray):
        return bytes(value)
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    pairs = sorted((cbor(name), cbor(member)) for name, member in value.items())
    return head(5, len(value)) + b"".join(name + member for name, member in pairs)


HEADER = bytes.fromhex("d1 84 4d a2 01 05 04 48")
OPENED = ["cardchain/1", CHAIN, 0, ZERO, 1000, "opened", None, {"name": "a", "software": "b"}]
RESOLVED_BODY = {
    "of": 1,
    "echo": CARD,
    "channel": "cli",
    "decision": "approve",
    "approver": {"id": "user:approver-1", "assurance": "label"},
}
RESOLVED = ["cardchain/1", CHAIN, 2, TAG, 2**40, "resolved", CARD, RESOLVED_BODY]


def record(payload: Any, openings: Any = None, tag: Any = TAG) -> bytes:
    payload = payload if isinstance(payload, bytes) else cbor(payload)
    return HEADER + KID + cbor(openings or {}) + cbor(payload) + cbor(tag)


def test_first_record_has_the_bytes_of_the_spec() -> None:
    """Written out by hand, byte for byte (spec §3.1, §3.2)."""
    payload = bytes.fromhex(
        "88"
        "6b 63617264636861696e2f31"  # "cardchain/1"
        "50 000102030405060708090a0b0c0d0e0f"
        "00"  # seq
        f"5820 {'00' * 32}"
        "1903e8"  # at
        "66 6f70656e6564"  # "opened"
        "f6"
        "a2 64 6e616d65 61 61 68 736f667477617265 61 62"
    )
    maced = b"\x84\x64MAC0\x4d\xa2\x01\x05\x04\x48" + KID + b"\x40\x58\x5f" + payload
    event = Event(CHAIN, 0, ZERO, 1000, "opened", None, {"software": "b", "name": "a"})
    asked: list[bytes] = []
    raw = encode(event, KID, lambda message: asked.append(message) or TAG).raw
    assert asked == [maced]
    assert raw == HEADER + KID + b"\xa0\x58\x5f" + payload + b"\x58\x20" + TAG
    assert to_be_maced(decode(raw)) == maced


def test_record_is_read_into_its_parts() -> None:
    found = decode(record(RESOLVED, {"envelope": ENVELOPE}))
    bare = record(RESOLVED)
    assert (found.kid, found.tag, found.chain, found.seq, found.prev, found.at) == (
        KID,
        TAG,
        CHAIN,
        2,
        TAG,
        2**40,
    )
    assert (found.kind, found.card, found.body) == ("resolved", CARD, RESOLVED_BODY)
    assert found.openings == {"envelope": ENVELOPE}
    assert found.bare == bare
    assert found.digest == hashlib.sha256(b"\x00" + bare).digest()


def test_chain_digest_stays_when_openings_are_removed() -> None:
    whole, bare = decode(record(RESOLVED, {"envelope": ENVELOPE})), decode(record(RESOLVED))
    assert whole.digest == bare.digest
    assert to_be_maced(whole) == to_be_maced(bare)


def changed(place: int, value: Any) -> list[Any]:
    return [*OPENED[:place], value, *OPENED[place + 1 :]]


def body(**members: Any) -> list[Any]:
    return changed(7, {"name": "a", "software": "b"} | members)


def raw_body(text: str) -> list[Any]:
    return changed(7, bytearray.fromhex(text))


GOOD = record(OPENED)
NAME, SOFTWARE = "64 6e616d65 61 61", "68 736f667477617265 61 62"
MALFORMED = {
    "nothing": b"",
    "no tag 17": GOOD[1:],
    "another tag": b"\xd2" + GOOD[1:],
    "an array of 5": b"\xd1\x85" + GOOD[2:] + b"\x00",
    "an array of 3": b"\xd1\x83" + GOOD[2:-34],
    "a byte after it": GOOD + b"\x00",
    "two records": GOOD + GOOD,
    "another algorithm": GOOD.replace(b"\xa2\x01\x05", b"\xa2\x01\x04", 1),
    "a key id of 7 bytes": b"\xd1\x84\x4c\xa2\x01\x05\x04\x47" + GOOD[9:],
    "openings that are null": HEADER + KID + b"\xf6" + GOOD[17:],
    "openings that are an array": HEADER + KID + b"\x80" + GOOD[17:],
    "openings of indefinite length": HEADER + KID + b"\xbf\xff" + GOOD[17:],
    "an opening with an integer key": HEADER + KID + b"\xa1\x01\x40" + GOOD[17:],
    "an opening that is not bound": record(OPENED, {"profile": b""}),
    "an opening of no name": record(RESOLVED, {"": b""}),
    "an opening of a later version": record(RESOLVED, {"salt": b""}),
    "an opening that is text": record(RESOLVED, {"envelope": ENVELOPE.decode()}),
    "an opening of other bytes": record(RESOLVED, {"envelope": ENVELOPE + b" "}),
    "a payload that is text": HEADER + KID + b"\xa0\x61a" + cbor(TAG),
    "a payload that is null": HEADER + KID + b"\xa0\xf6" + cbor(TAG),
    "a payload with a byte after it": record(cbor(OPENED) + b"\x00"),
    "a payload that is not CBOR": record(b"\xff"),
    "an empty payload": record(b""),
    "a payload that is a map": record(cbor({"v": "cardchain/1"})),
    "a payload of 7": record(OPENED[:7]),
    "a payload of 9": record([*OPENED, 1]),
    "a payload of 0": record([]),
    "a payload in more arrays than a reader can stack": record(b"\x81" * 50_000 + b"\x00"),
    "a tag of 31 bytes": record(OPENED, tag=TAG[1:]),
    "a tag that is text": record(OPENED, tag="a" * 32),
    "a version that is not text": record(changed(0, b"cardchain/1")),
    "a chain of 15 bytes": record(changed(1, CHAIN[1:])),
    "a seq that is text": record(changed(2, "0")),
    "a seq that is true": record(changed(2, True)),
    "a negative seq": record(changed(2, -1)),
    "a seq of 2^53": record(changed(2, 2**53)),
    "a seq that is a bignum": record(changed(2, bytearray(b"\xc2\x49\x01" + bytes(8)))),
    "a seq that is a small bignum": record(changed(2, bytearray(b"\xc2\x41\x01"))),
    "a seq in two bytes": record(changed(2, bytearray(b"\x18\x00"))),
    "a seq in nine bytes": record(changed(2, bytearray(b"\x1b" + bytes(8)))),
    "a prev of 31 bytes": record(changed(3, ZERO[1:])),
    "a prev in an indefinite length": record(
        changed(3, bytearray(b"\x5f\x58\x20" + ZERO + b"\xff"))
    ),
    "an at that is a float": record(changed(4, bytearray(b"\xf9\x3c\x00"))),
    "an at that is null": record(changed(4, None)),
    "an at that is a date": record(changed(4, bytearray(b"\xc1\x00"))),
    "a kind that is bytes": record(changed(5, b"opened")),
    "a kind that is an array": record(changed(5, ["opened"])),
    "an unknown kind": record(changed(5, "approved")),
    "a kind that is not UTF-8": record(changed(5, bytearray(b"\x62\xc3\x28"))),
    "a kind with a surrogate": record(changed(5, bytearray(b"\x63\xed\xa0\x80"))),
    "a card on a kind without one": record(changed(6, CARD)),
    "a card of 31 bytes": record([*RESOLVED[:6], CARD[1:], RESOLVED_BODY]),
    "a body that is null": record(changed(7, None)),
    "a body with an unknown member": record(body(other=1)),
    "a body with undefined": record(body(profile=bytearray(b"\xf7"))),
    "a body with a simple value": record(body(profile=bytearray(b"\xe0"))),
    "a body with a tag": record(body(vkey=bytearray(b"\xd8\x20\x61a"))),
    "a body with a shared value": record(body(vkey=bytearray(b"\xd8\x1c\x61a"))),
    "a body with unsorted keys": record(raw_body(f"a2 {SOFTWARE} {NAME}")),
    "a body with a repeated key": record(raw_body(f"a3 {NAME} {NAME} {SOFTWARE}")),
    "a body of indefinite length": record(raw_body(f"bf {NAME} {SOFTWARE} ff")),
    "a body with an integer key": record(raw_body(f"a3 01 01 {NAME} {SOFTWARE}")),
    "a body with a key in two bytes": record(raw_body(f"a2 78 04 6e616d65 61 61 {SOFTWARE}")),
    "a text in pieces": record(raw_body(f"a2 64 6e616d65 7f 61 61 ff {SOFTWARE}")),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_record_is_malformed(name: str) -> None:
    with pytest.raises(Malformed):
        decode(MALFORMED[name])


REASONS = {
    "a payload that is text": "not the frame",
    "two records": "record of 148 bytes, found 296",
    "a payload that is not CBOR": "not CBOR",
    "a tag of 31 bytes": "tag is not a byte string of 32 bytes",
    "an array of 3": "header",
    "a body with an integer key": "unknown member",
    "a body with unsorted keys": "map keys are not sorted",
    "a kind that is an array": "kind: expected text",
    "a seq in two bytes": "not in deterministic form",
    "a kind that is not UTF-8": "not CBOR",
    "another algorithm": "header",
}


@pytest.mark.parametrize("name", REASONS)
def test_malformed_record_is_told_why(name: str) -> None:
    with pytest.raises(Malformed, match=REASONS[name]):
        decode(MALFORMED[name])


def test_record_that_the_malformed_ones_were_made_from_is_good() -> None:
    assert decode(GOOD).raw == GOOD


@pytest.mark.parametrize(
    "payload", [["cardchain/2"], ["cardchain/2", {"a": [-1, None, b"", True]}], ["", 2**64 - 1]]
)
def test_other_version_is_unknown_and_not_malformed(payload: Any) -> None:
    with pytest.raises(VersionUnknown) as caught:
        decode(record(payload))
    assert caught.value.found == payload[0]


def test_other_version_may_have_other_openings() -> None:
    with pytest.raises(VersionUnknown):
        decode(record(["cardchain/2"], {"salt": b"", "note": b"a"}))


@pytest.mark.parametrize("item", ["f93c00", "f7", "e0", "c249010000000000000000", "d82061 61"])
@pytest.mark.parametrize("inside", [False, True])
def test_other_version_has_no_float_tag_or_simple_value_either(item: str, inside: bool) -> None:
    value = bytearray.fromhex(item)
    with pytest.raises(Malformed):
        decode(record(["cardchain/2", {"later": [value]} if inside else value]))


@pytest.mark.parametrize("key", ["fb3ff8000000000000", "f7", "80", "8161 61", "a0", "a1616100"])
def test_other_version_has_no_such_key_either(key: str) -> None:
    value = bytearray.fromhex(f"a1 {key} 00")
    with pytest.raises(Malformed):
        decode(record(["cardchain/2", value]))


@pytest.mark.parametrize("key", ["00", "20", "41 00", "f5", "f6"])
def test_other_version_may_have_keys_that_are_no_text(key: str) -> None:
    with pytest.raises(VersionUnknown):
        decode(record(["cardchain/2", bytearray.fromhex(f"a1 {key} 00")]))


def redacted(lines: int, last: int) -> list[Any]:
    """A payload whose size can be chosen to the byte."""
    members = {
        "seq": 0,
        "target": ZERO,
        "openings": ["a" * 256] * lines + ["a" * last],
        "by": "b",
        "reason": "other",
    }
    return ["cardchain/1", CHAIN, 1, ZERO, 0, "redacted", None, members]


def size_of_last(limit: int) -> int:
    return limit - len(record(redacted(252, 100))) + 100


def test_bare_record_of_65535_bytes_is_the_largest() -> None:
    last = size_of_last(65_535)
    assert len(decode(record(redacted(252, last))).raw) == 65_535
    with pytest.raises(Malformed, match="limit"):
        decode(record(redacted(252, last + 1)))


def test_opening_of_1048576_bytes_is_the_largest() -> None:
    for size, fits in ((1_048_576, True), (1_048_577, False)):
        envelope = b"a" * size
        digest = hashlib.sha256(envelope).digest()
        raw = record([*RESOLVED[:6], digest, RESOLVED_BODY], {"envelope": envelope})
        if fits:
            assert decode(raw).openings == {"envelope": envelope}
        else:
            with pytest.raises(Malformed):
                decode(raw)


def too_long() -> bytes:
    names = ["note", "profile", "rebuilt", "envelope", "response", "presented"]
    return record(OPENED, {name: bytes(1_048_576) for name in names})


@pytest.mark.parametrize("read", [decode, next_length])
def test_record_over_5242880_bytes_is_malformed(read: Callable[[bytes], object]) -> None:
    with pytest.raises(Malformed, match="limit 5242880"):
        read(too_long())


def test_opening_that_is_no_byte_string_is_not_even_decoded() -> None:
    """A number of some million digits behind a tag would keep a reader busy for long."""
    number = b"\xc5\x82\x00\xc2" + cbor(b"\xff" * 1_000_000)
    raw = HEADER + KID + b"\xa1\x64note" + number + cbor(cbor(OPENED)) + cbor(TAG)
    with pytest.raises(Malformed, match="not the frame"):
        decode(raw)


@given(st.binary(max_size=80))
def test_any_bytes_after_a_header_are_malformed_and_no_crash(tail: bytes) -> None:
    with pytest.raises(Malformed):
        decode(HEADER + tail)


@given(st.data())
def test_one_changed_byte_is_malformed_or_read_as_itself(data: st.DataObject) -> None:
    """What is accepted is in its one form: no two byte strings give one record."""
    good = record(RESOLVED, {"envelope": ENVELOPE})
    place = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[place] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(bytes(bad))
    except (Malformed, VersionUnknown):
        return
    parts = [found.chain, found.seq, found.prev, found.at, found.kind, found.card, found.body]
    again = cbor(["cardchain/1", *parts])
    assert bytes(bad) == (HEADER + found.kid + cbor(found.openings) + cbor(again) + cbor(found.tag))


LINES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    seq=st.integers(0, 2**53 - 1),
    at=st.integers(0, 2**53 - 1),
    members=st.fixed_dictionaries(
        {"name": LINES, "software": LINES},
        optional={"vkey": LINES, "profile": st.binary(min_size=32, max_size=32)},
    ),
)
def test_encoded_event_is_in_the_one_form_and_reads_back(
    seq: int, at: int, members: dict[str, Any]
) -> None:
    event = Event(CHAIN, seq, ZERO, at, "opened", None, members)
    made = encode(event, KID, lambda _: TAG)
    assert made.raw == record(["cardchain/1", CHAIN, seq, ZERO, at, "opened", None, members])
    found = decode(made.raw)
    assert (found.seq, found.at, found.body) == (seq, at, members)
    assert found == made


REFUSED_EVENTS = [
    ({"kind": "approved"}, ""),
    ({"body": {"name": "a"}}, "/software"),
    ({"body": {"name": "", "software": "b"}}, "/name"),
    ({"body": {"name": "a" * 257, "software": "b"}}, "/name"),
    ({"body": {"name": "\ud800", "software": "b"}}, "/name"),
    ({"openings": {"note": b"a"}}, ""),
    ({"seq": -1}, ""),
    ({"at": 2**53}, ""),
    ({"card": CARD}, ""),
]


@pytest.mark.parametrize(("changes", "pointer"), REFUSED_EVENTS)
def test_event_of_the_caller_that_does_not_fit_is_refused(
    changes: dict[str, Any], pointer: str
) -> None:
    good: dict[str, Any] = {
        "chain": CHAIN,
        "seq": 0,
        "prev": ZERO,
        "at": 0,
        "kind": "opened",
        "card": None,
        "body": {"name": "a", "software": "b"},
    }
    with pytest.raises(ProposalInvalid) as caught:
        encode(Event(**good | changes), KID, lambda _: TAG)
    assert caught.value.pointer == pointer


def test_event_too_large_for_a_record_is_refused() -> None:
    last = size_of_last(65_536)
    members = redacted(252, last)[7]
    event = Event(CHAIN, 1, ZERO, 0, "redacted", None, members)
    with pytest.raises(ProposalInvalid, match="too large"):
        encode(event, KID, lambda _: TAG)


SEVERAL = record(RESOLVED, {"envelope": ENVELOPE}), GOOD, record(redacted(252, 5))


@pytest.mark.parametrize("raw", SEVERAL, ids=["opening", "bare", "long"])
def test_length_of_a_whole_record_is_found(raw: bytes) -> None:
    assert next_length(raw) == len(raw)
    assert next_length(b"before" + raw + GOOD, 6) == len(raw)
    assert next_length(memoryview(raw + GOOD)) == len(raw)


def test_every_proper_prefix_of_a_record_may_go_on() -> None:
    raw = SEVERAL[0]
    assert [next_length(raw[:end]) for end in range(len(raw))] == [None] * len(raw)
    assert next_length(GOOD, len(GOOD)) is None


NO_FRAME = {
    "zeros": bytes(8),
    "another byte in the header": GOOD[:5] + b"\x00",
    "a kid of another size": b"\xd1\x84\x4c",
    "openings that are no map": HEADER + KID + b"\x80",
    "65 openings": HEADER + KID + b"\xb8\x41",
    "openings of indefinite length": HEADER + KID + b"\xbf",
    "a name of an opening that is not UTF-8": HEADER + KID + b"\xa1\x61\xff\x40",
    "a long name of an opening": HEADER + KID + b"\xa1\x79\x01\x01",
    "a repeated opening": HEADER + KID + b"\xa2\x64note\x40\x64note\x40",
    "unsorted openings": HEADER + KID + b"\xa2\x67profile\x40\x64note\x40",
    "an opening over the limit": HEADER + KID + b"\xa1\x64note\x5a\x00\x10\x00\x01",
    "an opening of a gigantic length": HEADER + KID + b"\xa1\x64note\x5b",
    "a length not in its shortest form": HEADER + KID + b"\xa0\x58\x17",
    "a length of 2 bytes that fits in 1": HEADER + KID + b"\xa0\x59\x00\xff",
    "a length of 4 bytes that fits in 2": HEADER + KID + b"\xa0\x5a\x00\x00\xff\xff",
    "a payload over the limit": HEADER + KID + b"\xa0\x5a\x00\x01\x00\x00",
    "a payload that is text": HEADER + KID + b"\xa0\x61",
    "a tag that is text": HEADER + KID + b"\xa0\x41\x00\x78",
    "a tag of 33 bytes": HEADER + KID + b"\xa0\x41\x00\x58\x21",
}


@pytest.mark.parametrize("name", NO_FRAME)
def test_bytes_that_no_record_begins_with_are_malformed(name: str) -> None:
    with pytest.raises(Malformed):
        next_length(NO_FRAME[name])


def test_offset_of_bytes_that_are_no_record_is_in_the_buffer() -> None:
    with pytest.raises(Malformed) as caught:
        next_length(GOOD + b"junk", len(GOOD))
    assert caught.value.offset == len(GOOD)


def test_message_of_a_rekeyed_proof_is_that_of_the_spec() -> None:
    new = bytes(8)
    assert rekeyed_message(CHAIN, 300, ZERO, KID, new) == cbor(
        ["cardchain/rekeyed", CHAIN, 300, ZERO, KID, new]
    )
