"""Every scenario holds: in this project, whose log then verifies, and in a second, naive one."""

from __future__ import annotations

import functools
from pathlib import Path

import corpus
import pytest
from naive import Naive
from play import Play
from real import Real


@pytest.mark.parametrize("path", corpus.PATHS, ids=lambda path: path.stem)
def test_the_ledger_does_what_the_scenario_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARDCHAIN_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("CARDCHAIN_KEY", raising=False)
    play = Play(corpus.load(path), functools.partial(Real, tmp_path))
    try:
        play.check()
    finally:
        play.driver.ledger.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", corpus.PATHS, ids=lambda path: path.stem)
def test_a_naive_second_implementation_agrees(path: Path) -> None:
    Play(corpus.load(path), Naive).check()
