"""The Merkle tree of RFC 6962 §2.1 over the chain digests of a log (spec §13.1).

Leaf hashes come from outside: the leaf hash of a record is its chain digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from verifier.spec import DIGEST_SIZE

EMPTY = hashlib.sha256().digest()  # the root of no leaf
MAX_HASHES = 63  # in a proof (spec §13.6)


def node(left: bytes, right: bytes) -> bytes:
    """Give the hash of an interior node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """The complete subtrees that a tree consists of: at most 53 hashes, whatever its size."""

    __slots__ = ("_levels", "size")

    def __init__(self) -> None:
        """Start with the empty tree."""
        self.size = 0
        self._levels: list[bytes | None] = []  # by height: a subtree of 2**height leaves, or none

    @classmethod
    def of(cls, size: int, hashes: Sequence[bytes]) -> Frontier | None:
        """Give the frontier of a size from its hashes, largest subtree first (spec §13.4).

        None where there are more or fewer of them than the size consists of.
        """
        if size.bit_count() != len(hashes):
            return None
        frontier = cls()
        frontier.size = size
        rest = list(hashes)
        frontier._levels = [rest.pop() if size >> level & 1 else None for level in _bits(size)]
        return frontier

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add leaf hashes at the end."""
        row = list(leaves)
        self.size += len(row)
        level = 0
        sha256 = hashlib.sha256
        while row:
            if level == len(self._levels):
                self._levels.append(None)
            left = self._levels[level]
            if left is not None:
                row.insert(0, left)
            self._levels[level] = row.pop() if len(row) & 1 else None
            pairs = iter(row)
            row = [sha256(b"\x01" + one + two).digest() for one, two in zip(pairs, pairs)]  # noqa: B905
            level += 1

    def root(self) -> bytes:
        """Give the root of the tree."""
        found = None
        for subtree in self._levels:
            if subtree is not None:
                found = subtree if found is None else node(subtree, found)
        return EMPTY if found is None else found


def _bits(size: int) -> range:
    return range(size.bit_length())


def root_of_inclusion(index: int, size: int, leaf: bytes, proof: Sequence[bytes]) -> bytes | None:
    """Give the root that an inclusion proof leads to (RFC 6962 §2.1.1, RFC 9162 §2.1.3.2).

    `leaf` is the leaf hash. None where the proof has not the length of one for this place.
    """
    if not 0 <= index < size or len(leaf) != DIGEST_SIZE:
        return None
    place, last, found = index, size - 1, leaf
    for hash_ in proof:
        if not last:
            return None
        if place & 1 or place == last:
            found = node(hash_, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node(found, hash_)
        place, last = place >> 1, last >> 1
    return found if not last else None


def is_consistent(
    old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Say whether a proof shows that the tree of `new` leaves extends that of `old` (spec §13.6).

    RFC 6962 §2.1.2, checked as in RFC 9162 §2.1.4.2. An old size of 0 is shown by nothing.
    """
    if not 0 < old <= new:
        return False
    if old == new:
        return not proof and old_root == new_root
    hashes = list(proof)
    if old & (old - 1) == 0:
        hashes.insert(0, old_root)
    if not hashes:
        return False
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    first = second = hashes[0]
    for hash_ in hashes[1:]:
        if not last:
            return False
        if place & 1 or place == last:
            first, second = node(hash_, first), node(hash_, second)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            second = node(second, hash_)
        place, last = place >> 1, last >> 1
    return not last and (first, second) == (old_root, new_root)
