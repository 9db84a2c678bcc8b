"""The Merkle tree over the records of a chain (spec §13.1; RFC 6962 §2.1).

Pure functions over 32-byte hashes. A *subtree* is complete: the one of (level, index) holds the
leaves from index * 2^level up to (index + 1) * 2^level - 1; at level 0 it is a leaf.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, TypeAlias

HASH_SIZE: Final = 32
Subtree: TypeAlias = Callable[[int, int], bytes]
"""Gives the hash of a complete subtree, by its level and its index there."""


def node(left: bytes, right: bytes) -> bytes:
    """Give the hash of an interior node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True, slots=True)
class Frontier:
    """The roots of the complete subtrees that a size consists of, largest first (spec §13.4)."""

    size: int = 0
    hashes: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        """Refuse another number of hashes than the size has, with `ValueError`."""
        if self.size < 0 or len(self.hashes) != self.size.bit_count():
            raise ValueError(f"{len(self.hashes)} hashes for a tree of {self.size} leaves")

    def add(self, leaf: bytes) -> Frontier:
        """Give the frontier with one more leaf."""
        hashes, size = list(self.hashes), self.size
        while size & 1:
            leaf = node(hashes.pop(), leaf)
            size >>= 1
        return Frontier(self.size + 1, (*hashes, leaf))

    def root(self) -> bytes:
        """Give the root of a tree of at least one leaf."""
        return reduce(lambda right, left: node(left, right), reversed(self.hashes))


def frontier(size: int, subtree: Subtree) -> Frontier:
    """Give the frontier of a tree that can be asked for its subtrees."""
    hashes, end = [], 0
    for level in _levels(size):
        hashes.append(subtree(level, end >> level))
        end += 1 << level
    return Frontier(size, tuple(hashes))


def behind(edge: Frontier, subtree: Subtree) -> Subtree:
    """Give a tree of whose first leaves only the frontier is known, and `subtree` of the rest."""
    known, end = {}, 0
    for level, found in zip(_levels(edge.size), edge.hashes, strict=True):
        known[level, end >> level] = found
        end += 1 << level

    def part(level: int, index: int) -> bytes:
        if (level, index) in known:
            return known[level, index]
        if index << level < edge.size < (index + 1) << level:
            return node(part(level - 1, 2 * index), part(level - 1, 2 * index + 1))
        return subtree(level, index)

    return part


def _levels(size: int) -> list[int]:
    """Give the levels of the complete subtrees that a size consists of, largest first."""
    return [level for level in reversed(range(size.bit_length())) if size >> level & 1]


def inclusion(index: int, size: int, subtree: Subtree) -> tuple[bytes, ...]:
    """Give the proof that leaf `index` stands in the tree of `size` leaves (RFC 6962 §2.1.1)."""
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    return tuple(_path(index, 0, size, subtree))


def consistency(old: int, new: int, subtree: Subtree) -> tuple[bytes, ...]:
    """Give the proof that the tree of `new` leaves extends that of `old` (RFC 6962 §2.1.2)."""
    if not 1 <= old <= new:
        raise ValueError(f"a tree of {new} leaves does not extend one of {old}")
    return tuple(_subproof(old, 0, new, subtree))


def proves_inclusion(
    index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes
) -> bool:
    """Tell whether a proof leads from a leaf to a root (RFC 9162 §2.1.3.2)."""
    if not 0 <= index < size or len(leaf) != HASH_SIZE:
        return False
    place, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node(sibling, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node(found, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def proves_consistency(
    old: int, new: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes
) -> bool:
    """Tell whether a proof leads from an older root to a newer one (RFC 9162 §2.1.4.2)."""
    if not 1 <= old <= new or (old == new) != (not proof):
        return False
    if old == new:
        return old_root == new_root
    first, *rest = proof if old & (old - 1) else (old_root, *proof)
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    before = after = first
    for sibling in rest:
        if last == 0:
            return False
        if place & 1 or place == last:
            before, after = node(sibling, before), node(sibling, after)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            after = node(after, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and before == old_root and after == new_root


def _path(index: int, begin: int, end: int, subtree: Subtree) -> Iterator[bytes]:
    if end - begin > 1:
        middle = _middle(begin, end)
        if index < middle:
            yield from _path(index, begin, middle, subtree)
            yield _root(middle, end, subtree)
        else:
            yield from _path(index, middle, end, subtree)
            yield _root(begin, middle, subtree)


def _subproof(old: int, begin: int, end: int, subtree: Subtree) -> Iterator[bytes]:
    """Yield SUBPROOF of RFC 6962; the old tree is known whole where it begins at leaf 0."""
    if old == end:
        if begin:
            yield _root(begin, end, subtree)
        return
    middle = _middle(begin, end)
    if old <= middle:
        yield from _subproof(old, begin, middle, subtree)
        yield _root(middle, end, subtree)
    else:
        yield from _subproof(old, middle, end, subtree)
        yield _root(begin, middle, subtree)


def _root(begin: int, end: int, subtree: Subtree) -> bytes:
    """Give the root over the leaves from `begin` to `end` - 1, as the tree is cut."""
    count = end - begin
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return subtree(level, begin >> level)
    middle = _middle(begin, end)
    return node(_root(begin, middle, subtree), _root(middle, end, subtree))


def _middle(begin: int, end: int) -> int:
    """Give where RFC 6962 cuts: after the largest power of two of leaves below their number."""
    return begin + (1 << (end - begin - 1).bit_length() - 1)
