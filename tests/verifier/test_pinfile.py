from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from verifier.pinfile import Head, PinRefused, read_pin, write_pin

HEAD = Head(bytes(range(16)), 7, bytes(range(32)))
MEMBERS = {
    "format": "cardchain-pin/1",
    "chain": HEAD.chain.hex(),
    "seq": 7,
    "digest": HEAD.digest.hex(),
}


def test_a_pin_file_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "pin.json"
    assert read_pin(str(file)) is None
    write_pin(str(file), HEAD)
    assert read_pin(str(file)) == HEAD
    assert json.loads(file.read_bytes()) == MEMBERS
    assert file.stat().st_mode & 0o777 == 0o600
    write_pin(str(file), HEAD._replace(seq=8))
    assert read_pin(str(file)) == HEAD._replace(seq=8)
    assert os.listdir(tmp_path) == ["pin.json"]


def test_spaces_and_order_do_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "pin.json"
    file.write_text(json.dumps(dict(reversed(MEMBERS.items())), indent=2))
    assert read_pin(str(file)) == HEAD


@pytest.mark.parametrize(
    "members",
    [
        [],
        {},
        {**MEMBERS, "format": "cardchain-pin/2"},
        {**MEMBERS, "more": 1},
        {name: value for name, value in MEMBERS.items() if name != "chain"},
        {**MEMBERS, "chain": HEAD.chain.hex().upper()},
        {**MEMBERS, "chain": HEAD.chain.hex()[:-2]},
        {**MEMBERS, "digest": HEAD.digest.hex() + "00"},
        {**MEMBERS, "digest": None},
        {**MEMBERS, "seq": -1},
        {**MEMBERS, "seq": "7"},
        {**MEMBERS, "seq": True},
        {**MEMBERS, "seq": 7.5},
        {**MEMBERS, "seq": 2**53},
    ],
)
def test_other_members_are_refused(tmp_path: Path, members: Any) -> None:
    file = tmp_path / "pin.json"
    file.write_text(json.dumps(members))
    with pytest.raises(PinRefused):
        read_pin(str(file))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"seq":1,"seq":2}', b" " * 70_000])
def test_other_bytes_are_refused_and_left_alone(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "pin.json"
    file.write_bytes(data)
    with pytest.raises(PinRefused):
        read_pin(str(file))
    assert file.read_bytes() == data


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero"), Path("a\0b")):
        with pytest.raises(PinRefused):
            read_pin(str(path))


def test_a_write_that_fails_leaves_the_old_head(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / "pin.json"
    write_pin(str(file), HEAD)
    (folder / "other").mkdir()
    with pytest.raises(OSError, match="irectory"):
        write_pin(str(folder / "other"), HEAD)
    assert sorted(os.listdir(folder)) == ["other", "pin.json"]
    assert read_pin(str(file)) == HEAD
