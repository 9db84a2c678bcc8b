"""Keys, tags and links (spec §3.3, §4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ledger.codec import ZERO, Event, Record

__all__ = ["ZERO", "Key", "authentic", "chain_digest", "key_id", "rekey_proof", "seal"]


def key_id(chain: bytes, secret: bytes) -> bytes:
    """Give the 8 bytes that name a secret of a chain (spec §4.1)."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Key:
    """A secret of a chain, 32 bytes, and the kid that follows from both. Never shown."""

    chain: bytes
    kid: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, chain: bytes, secret: bytes) -> Key:
        """Give the key with the kid that follows (spec §4.1)."""
        raise NotImplementedError


def seal(event: Event, key: Key) -> Record:
    """Give the record of an event, tagged under the key (spec §3.1)."""
    raise NotImplementedError


def authentic(record: Record, key: Key) -> bool:
    """Tell whether the tag of a record holds under the key, in constant time (spec §3.1)."""
    raise NotImplementedError


def chain_digest(bare: bytes) -> bytes:
    """Give the digest that links records: SHA-256(0x00 || bare record) (spec §3.3)."""
    raise NotImplementedError


def rekey_proof(new: Key, *, seq: int, prev: bytes, old_kid: bytes) -> bytes:
    """Give the proof in a `rekeyed` record that its writer held the new secret (spec §4.2)."""
    raise NotImplementedError
