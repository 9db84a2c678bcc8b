"""The last record that a host has answered for: never lower, never another directory's."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.errors import Copied, StoreFailed
from ledger.head import Head, HeadFile

HEAD = Head(
    chain=bytes(range(16)),
    seq=7,
    digest=bytes(range(32)),
    segment=2,
    offset=400,
    inode=99,
    since=1,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "head"


def file(path: Path) -> HeadFile:
    return HeadFile(path, path.parent / "ledger")


def test_it_is_read_back_by_everybody(path: Path) -> None:
    assert file(path).read() is None
    file(path).advance(HEAD)
    assert file(path).read() == HEAD
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_is_never_lower(path: Path) -> None:
    file(path).advance(HEAD)
    file(path).advance(replace(HEAD, seq=6))
    file(path).advance(replace(HEAD, digest=bytes(32)))
    assert file(path).read() == HEAD
    file(path).advance(replace(HEAD, seq=8))
    assert file(path).read() == replace(HEAD, seq=8)


def test_it_keeps_its_place_in_the_file_system(path: Path) -> None:
    file(path).advance(HEAD)
    before = path.stat()
    file(path).advance(replace(HEAD, seq=2**53 - 1, offset=2**53 - 1, inode=99))
    assert (path.stat().st_ino, path.stat().st_size) == (before.st_ino, before.st_size)


def test_another_directory_is_refused_until_it_is_adopted(path: Path) -> None:
    file(path).advance(HEAD)
    other = replace(HEAD, inode=100, seq=9)
    with pytest.raises(Copied):
        file(path).advance(other)
    assert file(path).read() == HEAD
    file(path).adopt(other)
    assert file(path).read() == other


def test_an_older_copy_is_not_adopted(path: Path) -> None:
    file(path).advance(HEAD)
    file(path).adopt(replace(HEAD, inode=100, seq=6))
    assert file(path).read() == HEAD


def test_records_that_an_operator_gave_up_are_forgotten(path: Path) -> None:
    file(path).advance(HEAD)
    earlier = replace(HEAD, inode=100, seq=6)
    file(path).adopt(earlier, lower=True)
    assert file(path).read() == earlier


def test_any_change_of_its_text_makes_it_none(path: Path) -> None:
    file(path).advance(HEAD)
    content = path.read_bytes()
    for position in range(len(content.rstrip())):
        changed = bytearray(content)
        changed[position] ^= 0x20
        path.write_bytes(changed)
        assert file(path).read() is None


def test_a_link_in_its_place_is_not_followed(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")
    with pytest.raises(StoreFailed):
        file(path).advance(HEAD)
    assert not (path.parent / "elsewhere").exists()


def test_what_cannot_be_read_is_said(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreFailed):
        file(path).read()
