from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import leaf, root

from verifier.coverage import Coverage
from verifier.merkle import Frontier

LEAVES = [leaf(number) for number in range(60)]
CHAIN, OTHER_CHAIN = b"chain".ljust(16), b"other".ljust(16)


def signed_at(*sizes: int, chain: bytes = CHAIN) -> dict[int, list[tuple[bytes, bytes]]]:
    return {size: [(chain, root(LEAVES[:size]))] for size in sizes}


def of_chain(coverage: Coverage) -> Coverage:
    coverage.chain = CHAIN
    return coverage


def grown(coverage: Coverage, portions: list[int], first: int = 0) -> list[bool]:
    said = []
    for portion in portions:
        said.append(coverage.extend(first, LEAVES[first : first + portion]))
        first += portion
    return said


@given(st.lists(st.integers(1, 20), max_size=6), st.sets(st.integers(1, 60), max_size=5))
def test_roots_are_those_at_the_sizes_asked_for(portions: list[int], sizes: set[int]) -> None:
    coverage = Coverage(dict.fromkeys(sizes, ()), {})
    total = sum(portions[:3])
    grown(coverage, portions[:3])
    assert coverage.roots == {size: root(LEAVES[:size]) for size in sizes if size <= total}
    assert coverage.size == 0


def test_a_signed_root_covers_what_is_below_it() -> None:
    signed = signed_at(3, 8) | {5: [(CHAIN, root(LEAVES[:4]))]}
    signed[8].insert(0, (CHAIN, bytes(32)))
    coverage = of_chain(Coverage(signed, {}))
    assert grown(coverage, [2, 1, 3, 1, 1]) == [False, True, False, False, True]
    assert coverage.size == 8
    assert sorted(coverage.sizes) == [3, 5, 8]


def test_what_is_signed_for_another_chain_covers_nothing() -> None:
    coverage = of_chain(Coverage(signed_at(3, chain=OTHER_CHAIN), {}))
    assert grown(coverage, [2, 1]) == [False, False]
    assert (coverage.size, list(coverage.roots)) == (0, [3])


def test_nothing_above_an_unsound_record_is_covered() -> None:
    coverage = of_chain(Coverage(signed_at(3, 8), {}))
    grown(coverage, [4])
    coverage.stop()
    assert not coverage.extend(4, LEAVES[4:8])
    assert (coverage.size, list(coverage.roots)) == (3, [3])


def test_a_gap_ends_the_tree() -> None:
    coverage = of_chain(Coverage(signed_at(8), {}))
    grown(coverage, [3])
    assert not coverage.extend(4, LEAVES[4:8])
    assert coverage.roots == {}


def frontier_at(first: int) -> Frontier:
    subtrees = {4: [root(LEAVES[:4])], 6: [root(LEAVES[:4]), root(LEAVES[4:6])]}[first]
    frontier = Frontier.of(first, subtrees)
    assert frontier is not None
    return frontier


@pytest.mark.parametrize("first", [4, 6])
def test_a_log_goes_on_from_its_frontier(first: int) -> None:
    coverage = of_chain(Coverage(signed_at(3, first, 9), {first: frontier_at(first)}))
    assert coverage.extend(first, LEAVES[first:9])
    assert coverage.size == 9
    assert sorted(coverage.roots) == [first, 9]


@pytest.mark.parametrize("first", [4, 6])
def test_the_root_of_a_frontier_alone_says_nothing(first: int) -> None:
    coverage = of_chain(Coverage(signed_at(first, 9), {first: frontier_at(first)}))
    assert not coverage.extend(first, LEAVES[first : first + 1])
    assert (coverage.size, coverage.roots) == (0, {})


def test_without_its_frontier_a_log_with_a_left_edge_has_no_root() -> None:
    coverage = of_chain(Coverage(signed_at(9), {4: frontier_at(4)}))
    assert not coverage.extend(5, LEAVES[5:9])
    assert coverage.roots == {}
