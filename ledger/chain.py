"""Keys, tags and links: what makes records a chain (spec §3.1, §3.3, §4)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Protocol

from ledger.codec import (
    ZERO,
    Event,
    Record,
    chain_digest,
    encode,
    rekeyed_message,
    to_be_maced,
)

__all__ = [
    "ZERO",
    "Key",
    "Tagger",
    "authentic",
    "chain_digest",
    "hmac_sha256",
    "key_id",
    "rekey_proof",
    "seal",
]

_SECRET_SIZE = 32


def key_id(chain: bytes, secret: bytes) -> bytes:
    """Give the 8 bytes that name a secret of a chain (spec §4.1)."""
    return hashlib.sha256(b"cardchain/kid" + chain + secret).digest()[:8]


class Tagger(Protocol):
    """What a chain needs of a key. A device or a service that gives no secret away can be one."""

    @property
    def chain(self) -> bytes:
        """The 16 bytes that name the chain."""

    @property
    def kid(self) -> bytes:
        """The 8 bytes that name the key (spec §4.1)."""

    def tag(self, message: bytes) -> bytes:
        """Give the HMAC-SHA-256 of a message under the key, 32 bytes."""


@dataclass(frozen=True, slots=True)
class Key:
    """A secret of a chain, 32 bytes, and the kid that follows from both. Never shown.

    Raises `ValueError` where the secret is not of that size or the kid does not follow.
    """

    chain: bytes
    kid: bytes
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a key that could be used for something else than its kid says."""
        if len(self.secret) != _SECRET_SIZE:
            raise ValueError(f"secret of {len(self.secret)} bytes, expected {_SECRET_SIZE}")
        if self.kid != key_id(self.chain, self.secret):
            raise ValueError(f"kid {self.kid.hex()} does not follow from the chain and the secret")

    @classmethod
    def of(cls, chain: bytes, secret: bytes) -> Key:
        """Give the key with the kid that follows (spec §4.1)."""
        return cls(chain, key_id(chain, secret), secret)

    def tag(self, message: bytes) -> bytes:
        """Give the tag of a message, 32 bytes (spec §3.1)."""
        return hmac_sha256(self.secret, message)


def seal(event: Event, key: Tagger) -> Record:
    """Give the record of an event, tagged under the key (spec §3.1).

    Nothing malformed can be written: the event passes the rules that a reader holds it against.
    """
    return encode(event, key.kid, key.tag)


def authentic(record: Record, key: Tagger) -> bool:
    """Tell whether the record names the key and its tag holds under it, in constant time.

    The openings are bound by digests that `decode` has checked (spec §3.1, §3.4).
    """
    return record.kid == key.kid and hmac.compare_digest(record.tag, key.tag(to_be_maced(record)))


def rekey_proof(new: Tagger, *, seq: int, prev: bytes, old_kid: bytes) -> bytes:
    """Give the proof in a `rekeyed` record that its writer held the new secret (spec §4.2)."""
    message = rekeyed_message(new.chain, seq, prev, old_kid, new.kid)
    return new.tag(message)


def hmac_sha256(secret: bytes, message: bytes) -> bytes:
    """Give the HMAC-SHA-256 of a message, 32 bytes (RFC 2104)."""
    return hmac.digest(secret, message, "sha256")
