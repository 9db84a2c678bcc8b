"""The Merkle tree (spec §13.1), held against RFC 6962 as it is written there, over all leaves."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.tree import (
    Frontier,
    consistency,
    frontier,
    inclusion,
    proves_consistency,
    proves_inclusion,
)

MOST = 300
LEAVES = [hashlib.sha256(bytes([0, *number.to_bytes(4, "big")])).digest() for number in range(MOST)]


def interior(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def mth(leaves: Sequence[bytes]) -> bytes:
    """Give MTH of RFC 6962 §2.1 by its definition, the leaves being hashed already."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return interior(mth(leaves[:k]), mth(leaves[k:]))


ROOTS = [b"", *(mth(LEAVES[:size]) for size in range(1, MOST + 1))]


@cache
def subtree(level: int, index: int) -> bytes:
    """Give a complete subtree; asking for one that is not whole is a fault of the caller."""
    leaves = LEAVES[index << level : index + 1 << level]
    assert len(leaves) == 1 << level
    return mth(leaves)


def test_the_root_of_every_size() -> None:
    grown = Frontier()
    for size, leaf in enumerate(LEAVES, 1):
        grown = grown.add(leaf)
        assert grown.root() == ROOTS[size]
        assert grown == frontier(size, subtree)


def test_every_leaf_of_every_size_is_proved() -> None:
    for size in range(1, MOST + 1):
        for index in range(size):
            proof = inclusion(index, size, subtree)
            assert len(proof) <= (size - 1).bit_length()
            assert proves_inclusion(index, size, LEAVES[index], proof, ROOTS[size])


def test_every_size_extends_every_smaller_one() -> None:
    for new in range(1, MOST + 1):
        for old in range(1, new + 1):
            proof = consistency(old, new, subtree)
            assert proves_consistency(old, new, proof, ROOTS[old], ROOTS[new])


sizes = st.integers(1, MOST)


@given(st.data(), sizes)
def test_no_proof_leads_from_another_leaf_or_place(data: st.DataObject, size: int) -> None:
    index = data.draw(st.integers(0, size - 1))
    other = (
        data.draw(st.integers(0, size - 1).filter(lambda each: each != index)) if size > 1 else 0
    )
    proof = inclusion(index, size, subtree)
    if size > 1:
        assert not proves_inclusion(index, size, LEAVES[other], proof, ROOTS[size])
        assert not proves_inclusion(other, size, LEAVES[index], proof, ROOTS[size])
        assert not proves_inclusion(index, size, LEAVES[index], proof[:-1], ROOTS[size])
    assert not proves_inclusion(index, size, LEAVES[index], (*proof, bytes(32)), ROOTS[size])
    assert not proves_inclusion(index, size, LEAVES[index], proof, bytes(32))


@given(st.data(), sizes.filter(lambda size: size > 1))
def test_no_proof_leads_from_another_tree(data: st.DataObject, new: int) -> None:
    old = data.draw(st.integers(1, new - 1))
    proof = list(consistency(old, new, subtree))
    place = data.draw(st.integers(0, len(proof) - 1))
    flipped = bytearray(proof[place])
    flipped[data.draw(st.integers(0, 31))] ^= 1
    wrong = [*proof[:place], bytes(flipped), *proof[place + 1 :]]
    assert not proves_consistency(old, new, wrong, ROOTS[old], ROOTS[new])
    assert not proves_consistency(old, new, proof, bytes(32), ROOTS[new])
    assert not proves_consistency(old, new, proof, ROOTS[old], bytes(32))
    assert not proves_consistency(old, new, proof[:-1], ROOTS[old], ROOTS[new])
    assert not proves_consistency(old, new, [*proof, bytes(32)], ROOTS[old], ROOTS[new])


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_no_proof_of_a_leaf_that_is_not_there(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="no leaf"):
        inclusion(index, size, subtree)


@pytest.mark.parametrize(("old", "new"), [(0, 3), (4, 3), (-1, 2)])
def test_no_proof_from_an_empty_or_larger_tree(old: int, new: int) -> None:
    with pytest.raises(ValueError, match="does not extend"):
        consistency(old, new, subtree)


@pytest.mark.parametrize(("size", "count"), [(3, 1), (4, 2), (0, 1), (-1, 0)])
def test_a_frontier_has_a_hash_for_each_bit_of_its_size(size: int, count: int) -> None:
    with pytest.raises(ValueError, match="hashes for a tree"):
        Frontier(size, (bytes(32),) * count)
