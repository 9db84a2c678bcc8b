"""Merkle trees written down as RFC 6962 §2.1 defines them, and notes signed with a test key."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def leaf(number: int) -> bytes:
    return sha256(b"leaf %d" % number).digest()


def split(count: int) -> int:
    """The largest power of two smaller than `count`."""
    return 1 << (count - 1).bit_length() - 1


def root(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return sha256(b"\x01" + root(leaves[:k]) + root(leaves[k:])).digest()


def path(place: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if place < k:
        return [*path(place, leaves[:k]), root(leaves[k:])]
    return [*path(place - k, leaves[k:]), root(leaves[:k])]


def growth(old: int, leaves: list[bytes], whole: bool = True) -> list[bytes]:
    if old == len(leaves):
        return [] if whole else [root(leaves)]
    k = split(len(leaves))
    if old <= k:
        return [*growth(old, leaves[:k], whole), root(leaves[k:])]
    return [*growth(old - k, leaves[k:], False), root(leaves[:k])]


def base64(data: bytes) -> str:
    return b64encode(data).decode()


class Signer:
    """A signing key of counting bytes, with the name that stands before its signatures."""

    def __init__(self, name: str, first: int = 64) -> None:
        self.key = Ed25519PrivateKey.from_private_bytes(bytes(range(first, first + 32)))
        self.name = name
        self.public = self.key.public_key().public_bytes_raw()
        self.key_id = sha256(name.encode() + b"\n\x01" + self.public).digest()[:4]
        self.vkey = f"{name}+{self.key_id.hex()}+{base64(bytes([1]) + self.public)}"

    def line(self, text: str) -> str:
        return f"— {self.name} {base64(self.key_id + self.key.sign(text.encode()))}\n"


def statement(chain: bytes, leaves: list[bytes]) -> str:
    return f"cardchain/{chain.hex()}\n{len(leaves)}\n{base64(root(leaves))}\n"


def checkpoint(chain: bytes, leaves: list[bytes], *signers: Signer) -> str:
    """The checkpoint of all leaves, signed by the signers, or by the one of the chain."""
    text = statement(chain, leaves)
    signers = signers or (Signer(f"cardchain/{chain.hex()}"),)
    return text + "\n" + "".join(signer.line(text) for signer in signers)


def inclusion(log: Any, seq: int, note: str, size: int | None = None) -> str:
    """The tlog-proof of a record under a checkpoint of the first `size` records."""
    hashes = path(seq, log.digests[:size])
    lines = "".join(f"{base64(one)}\n" for one in hashes)
    return f"c2sp.org/tlog-proof@v1\nindex {seq}\n{lines}\n{note}"


def consistency(log: Any, old: int, note: str, size: int | None = None) -> str:
    """The proof that a checkpoint of the first `size` records extends one of `old`."""
    lines = "".join(f"{base64(one)}\n" for one in growth(old, log.digests[:size]))
    return f"old {old}\n{lines}\n{note}"


def signed(log: Any, size: int | None = None, *signers: Signer) -> str:
    """The checkpoint of the first `size` records of a log."""
    return checkpoint(log.chain, log.digests[:size], *signers)


class Excerpt:
    """The members of an excerpt, which a test may change before they are written."""

    def __init__(
        self,
        log: Any,
        scope: dict[str, Any],
        seqs: Iterable[int],
        openings: Iterable[bytes] = (),
        size: int | None = None,
    ) -> None:
        kept = list(seqs)
        self.encode = log.cbor
        self.format = "cardchain-excerpt/1"
        self.scope = scope
        self.records = [log.bare[seq] for seq in kept]
        note = signed(log, size)
        ends = [seq for seq in kept if seq + 1 not in kept]
        self.proofs = [inclusion(log, seq, note, size) for seq in ends]
        self.openings = sorted(openings, key=lambda one: sha256(one).digest())

    @property
    def data(self) -> bytes:
        members = [self.format, self.scope, self.records, self.proofs, self.openings]
        data: bytes = self.encode(members)
        return data
