"""Keys, tags and links (spec §3.1, §3.3, §4)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.chain import ZERO, Key, authentic, chain_digest, key_id, rekey_proof, seal
from ledger.codec import Event, decode

CHAIN = bytes(range(16))
SECRET = bytes(range(32))
OTHER = bytes(range(1, 33))
KEY = Key.of(CHAIN, SECRET)
EVENT = Event(CHAIN, 0, ZERO, 1000, "opened", None, {"name": "a", "software": "b"})
KID = hashlib.sha256(b"cardchain/kid" + CHAIN + SECRET).digest()[:8]


def test_kid_follows_from_chain_and_secret() -> None:
    assert key_id(CHAIN, SECRET) == KID
    assert KEY.kid == KID


def test_same_secret_has_another_kid_in_another_chain() -> None:
    assert key_id(bytes(16), SECRET) != KID


@pytest.mark.parametrize("size", [0, 31, 33])
def test_secret_is_exactly_32_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="expected 32"):
        Key.of(CHAIN, bytes(size))


def test_kid_that_does_not_follow_is_refused() -> None:
    with pytest.raises(ValueError, match="does not follow"):
        Key(CHAIN, bytes(8), SECRET)


def test_secret_is_never_shown() -> None:
    for text in (repr(KEY), str(KEY), f"{KEY}"):
        assert SECRET.hex() not in text
        assert repr(SECRET) not in text


def test_tag_is_hmac_sha256_over_the_mac_structure() -> None:
    record = seal(EVENT, KEY)
    payload = record.raw[17:-34]
    maced = b"\x84\x64MAC0\x4d\xa2\x01\x05\x04\x48" + KID + b"\x40" + payload
    assert record.kid == KID
    assert record.tag == hmac.new(SECRET, maced, hashlib.sha256).digest()
    assert record.raw.endswith(b"\x58\x20" + record.tag)


def test_sealed_record_is_authentic_under_its_key_alone() -> None:
    record = seal(EVENT, KEY)
    assert authentic(record, KEY)
    assert not authentic(record, Key.of(CHAIN, OTHER))


def test_record_that_names_another_key_is_not_authentic() -> None:
    """The tag alone would hold: the kid says which secret is to be used."""
    forged = seal(EVENT, KEY)
    assert not authentic(replace(forged, kid=bytes(8)), KEY)


@given(st.integers(0, 31), st.integers(1, 255))
def test_changed_tag_is_not_authentic(place: int, flip: int) -> None:
    raw = bytearray(seal(EVENT, KEY).raw)
    raw[len(raw) - 32 + place] ^= flip
    assert not authentic(decode(bytes(raw)), KEY)


@pytest.mark.parametrize(
    "changes",
    [{"seq": 1}, {"prev": bytes([1] * 32)}, {"at": 1001}, {"body": {"name": "c", "software": "b"}}],
)
def test_tag_of_one_event_does_not_hold_for_another(changes: dict[str, object]) -> None:
    tag = seal(EVENT, KEY).raw[-32:]
    other = seal(replace(EVENT, **changes), KEY).raw  # type: ignore[arg-type]
    assert not authentic(decode(other[:-32] + tag), KEY)


def test_chain_digest_is_the_leaf_hash_of_rfc_6962() -> None:
    """The empty leaf has a published hash."""
    empty = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert chain_digest(b"").hex() == empty


def test_record_links_by_the_digest_of_the_bare_record() -> None:
    envelope = b"{}"
    body = {"task": bytes(32), "not_after": 2}
    event = Event(CHAIN, 1, ZERO, 0, "issued", hashlib.sha256(envelope).digest(), body)
    bare = seal(event, KEY)
    whole = seal(replace(event, openings={"envelope": envelope}), KEY)
    assert whole.raw != bare.raw
    assert whole.digest == hashlib.sha256(b"\x00" + bare.raw).digest()


def test_proof_of_a_new_key_is_made_with_the_new_secret() -> None:
    new = Key.of(CHAIN, OTHER)
    message = (
        b"\x86\x71cardchain/rekeyed\x50"
        + CHAIN
        + b"\x07\x58\x20"
        + ZERO
        + b"\x48"
        + KID
        + b"\x48"
        + new.kid
    )
    expected = hmac.new(OTHER, message, hashlib.sha256).digest()
    assert rekey_proof(new, seq=7, prev=ZERO, old_kid=KID) == expected
