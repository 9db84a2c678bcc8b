"""Where a host remembers (spec §7.3, architecture.md)."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ledger.errors import LooseMode, NoStateDirectory
from ledger.state import state_directory

CHAIN = bytes(range(16))


def test_the_first_that_is_set_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    environ = {
        "CARDCHAIN_STATE": str(tmp_path / "own"),
        "XDG_STATE_HOME": str(tmp_path / "xdg"),
    }
    below = f"cardchain/{CHAIN.hex()}"
    assert state_directory(CHAIN, environ) == tmp_path / "own" / below
    del environ["CARDCHAIN_STATE"]
    assert state_directory(CHAIN, environ) == tmp_path / "xdg" / below
    environ["XDG_STATE_HOME"] = ""
    assert state_directory(CHAIN, environ) == tmp_path / "home" / ".local" / "state" / below


def test_it_is_made_private(tmp_path: Path) -> None:
    path = state_directory(CHAIN, {"CARDCHAIN_STATE": str(tmp_path / "new")})
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_one_that_others_can_write_is_refused(tmp_path: Path) -> None:
    environ = {"CARDCHAIN_STATE": str(tmp_path)}
    path = state_directory(CHAIN, environ)
    path.chmod(0o770)
    with pytest.raises(LooseMode):
        state_directory(CHAIN, environ)


def test_one_that_is_a_link_is_refused(tmp_path: Path) -> None:
    environ = {"CARDCHAIN_STATE": str(tmp_path)}
    path = state_directory(CHAIN, environ)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoStateDirectory):
        state_directory(CHAIN, environ)


def test_one_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NoStateDirectory) as caught:
        state_directory(CHAIN, {"CARDCHAIN_STATE": str(tmp_path / "file")})
    assert "CARDCHAIN_STATE" in caught.value.hint
