from __future__ import annotations

import base64
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import growth, leaf, path, root

from verifier.merkle import EMPTY, Frontier, is_consistent, root_of_inclusion

VECTORS = Path(__file__).parents[3] / "shared" / "vectors" / "merkle" / "testdata"
LEAVES = [leaf(number) for number in range(200)]


@cache
def root_at(size: int) -> bytes:
    return root(LEAVES[:size])


def files(folder: str) -> list[Path]:
    return sorted(VECTORS.glob(f"{folder}/**/*.json")) or [VECTORS / folder / "absent.json"]


def vector(file: Path) -> Any:
    if file.is_file():
        return json.loads(file.read_bytes())
    if os.environ.get("CI") == "true":
        pytest.fail(f"{file} is not there")
    pytest.skip("the vectors are not beside the project")


def hashes(texts: list[str] | None) -> list[bytes]:
    return [base64.b64decode(text) for text in texts or []]


@pytest.mark.parametrize("file", files("inclusion"), ids=lambda file: "-".join(file.parts[-2:]))
def test_published_inclusion_proofs(file: Path) -> None:
    case = vector(file)
    leaf_hash, top = hashes([case["leafHash"], case["root"]])
    found = root_of_inclusion(case["leafIdx"], case["treeSize"], leaf_hash, hashes(case["proof"]))
    assert (found == top) is not case["wantErr"]


@pytest.mark.parametrize("file", files("consistency"), ids=lambda file: "-".join(file.parts[-2:]))
def test_published_consistency_proofs(file: Path) -> None:
    case = vector(file)
    old, new = hashes([case["root1"], case["root2"]])
    holds = is_consistent(case["size1"], case["size2"], old, new, hashes(case["proof"]))
    assert holds is not case["wantErr"]


def test_roots_are_those_of_the_definition() -> None:
    frontier = Frontier()
    assert frontier.root() == EMPTY
    for size, one in enumerate(LEAVES, 1):
        frontier.extend([one])
        assert frontier.root() == root_at(size)


@given(st.lists(st.integers(0, 40), max_size=5))
def test_leaves_may_come_in_any_portions(portions: list[int]) -> None:
    frontier = Frontier()
    for portion in portions:
        frontier.extend(LEAVES[frontier.size : frontier.size + portion])
    size = sum(portions)
    assert frontier.size == size
    assert frontier.root() == (root_at(size) if size else EMPTY)


@given(st.integers(1, 150), st.integers(0, 50))
def test_a_frontier_goes_on_from_its_hashes(size: int, more: int) -> None:
    ends = [sum(1 << b for b in range(8) if size >> b & 1 and b >= level) for level in range(8)]
    cuts = sorted({0, *ends} - {0})
    subtrees = [root(LEAVES[a:b]) for a, b in zip([0, *cuts], cuts, strict=False)]
    frontier = Frontier.of(size, subtrees)
    assert frontier is not None
    frontier.extend(LEAVES[size : size + more])
    assert frontier.root() == root_at(size + more)
    assert Frontier.of(size, subtrees[1:]) is None
    assert Frontier.of(size, [*subtrees, subtrees[0]]) is None


@pytest.mark.parametrize("size", range(1, 201))
def test_every_inclusion_proof_leads_to_the_root(size: int) -> None:
    for place in range(size):
        proof = path(place, LEAVES[:size])
        assert root_of_inclusion(place, size, LEAVES[place], proof) == root_at(size)
        for wrong in (place - 1, place + 1):
            assert root_of_inclusion(wrong, size, LEAVES[place], proof) != root_at(size)
        if proof:
            assert root_of_inclusion(place, size, LEAVES[place], proof[:-1]) is None
        assert root_of_inclusion(place, size, LEAVES[place], [*proof, LEAVES[0]]) is None


@pytest.mark.parametrize("size", range(1, 201))
def test_every_consistency_proof_holds(size: int) -> None:
    for old in range(1, size + 1):
        proof = growth(old, LEAVES[:size])
        assert is_consistent(old, size, root_at(old), root_at(size), proof)
        if old < size:
            assert not is_consistent(old, size, root_at(size), root_at(old), proof)
        assert not is_consistent(old, size, root_at(old), root_at(size), [*proof, LEAVES[0]])
        if proof:
            assert not is_consistent(old, size, root_at(old), root_at(size), proof[:-1])
    assert not is_consistent(0, size, EMPTY, root_at(size), [])
    assert not is_consistent(size + 1, size, root_at(size), root_at(size), [])


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(st.integers(1, 200), st.data(), st.integers(0, 255))
def test_any_flipped_bit_is_refused(size: int, data: st.DataObject, bit: int) -> None:
    place = data.draw(st.integers(0, size - 1))
    proof = path(place, LEAVES[:size])
    assert root_of_inclusion(place, size, flipped(LEAVES[place], bit), proof) != root_at(size)
    if proof:
        where = data.draw(st.integers(0, len(proof) - 1))
        proof[where] = flipped(proof[where], bit)
        assert root_of_inclusion(place, size, LEAVES[place], proof) != root_at(size)
    old = place + 1
    proof = growth(old, LEAVES[:size])
    assert not is_consistent(old, size, flipped(root_at(old), bit), root_at(size), proof)
    assert not is_consistent(old, size, root_at(old), flipped(root_at(size), bit), proof)
    if proof:
        where = data.draw(st.integers(0, len(proof) - 1))
        proof[where] = flipped(proof[where], bit)
        assert not is_consistent(old, size, root_at(old), root_at(size), proof)
