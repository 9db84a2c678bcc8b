"""The cache of hashes gives what the tree has, or says that it does not (architecture.md)."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import StoreFailed
from ledger.tiles import Tiles, TilesLacking


def leaf(number: int) -> bytes:
    return hashlib.sha256(number.to_bytes(8, "big")).digest()


def leaves(start: int, end: int) -> bytes:
    return b"".join(map(leaf, range(start, end)))


def subtree(level: int, index: int) -> bytes:
    """Give a complete subtree by the definition of RFC 6962 §2.1."""
    if level == 0:
        return leaf(index)
    halves = subtree(level - 1, 2 * index), subtree(level - 1, 2 * index + 1)
    return hashlib.sha256(b"\x01" + halves[0] + halves[1]).digest()


@settings(max_examples=40)
@given(st.lists(st.integers(1, 700), min_size=1, max_size=5), st.data())
def test_subtrees_after_growth_in_any_steps(steps: list[int], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        tiles, end = Tiles(Path(folder, "tree")), 0
        for step in steps:
            tiles.extend(end, leaves(end, end + step))
            end += step
            assert tiles.count() == end
        for level in range(end.bit_length()):
            index = data.draw(st.integers(0, (end >> level) - 1))
            assert tiles.subtree(level, index) == subtree(level, index)
            with pytest.raises(TilesLacking):
                tiles.subtree(level, end >> level)


def test_the_third_file_holds_the_roots_of_65536_leaves(tmp_path: Path) -> None:
    tiles = Tiles(tmp_path / "tree")
    tiles.extend(0, leaves(0, 65_536))
    assert tiles.subtree(16, 0) == subtree(16, 0)
    assert sorted(file.name for file in (tmp_path / "tree").iterdir()) == [
        *("00.hashes", "08.hashes", "16.hashes")
    ]
    assert stat.S_IMODE((tmp_path / "tree" / "00.hashes").stat().st_mode) == 0o600


def test_a_gap_is_not_filled(tmp_path: Path) -> None:
    tiles = Tiles(tmp_path / "tree")
    tiles.extend(3, leaves(3, 9))
    assert tiles.count() == 0
    with pytest.raises(TilesLacking):
        tiles.subtree(0, 3)


def test_leaves_put_again_drop_those_behind(tmp_path: Path) -> None:
    tiles = Tiles(tmp_path / "tree")
    tiles.extend(0, leaves(1_000, 2_000))
    tiles.extend(0, leaves(0, 300))
    assert tiles.count() == 300
    assert tiles.subtree(8, 0) == subtree(8, 0)
    with pytest.raises(TilesLacking):
        tiles.subtree(8, 1)


def test_what_is_cleared_is_gone(tmp_path: Path) -> None:
    tiles = Tiles(tmp_path / "tree")
    tiles.extend(0, leaves(0, 300))
    tiles.clear()
    assert tiles.count() == 0
    with pytest.raises(TilesLacking):
        tiles.subtree(8, 0)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "tree").write_text("a file")
    with pytest.raises(StoreFailed):
        Tiles(tmp_path / "tree").extend(0, leaves(0, 3))
