from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lives import Lives

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # the modules beside this one
pytest.register_assert_rewrite("truth", "lives")
SOAK = os.environ.get("CARDCHAIN_SOAK") == "1"

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def soak() -> Callable[[int, int], int]:
    """Choose between a count for every run and the full one (CARDCHAIN_SOAK=1)."""
    return lambda ordinary, full: full if SOAK else ordinary


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The environment of a host that remembers nothing yet, for this process and its children."""
    monkeypatch.setenv("CARDCHAIN_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("CARDCHAIN_KEY", raising=False)
    return dict(os.environ)


@pytest.fixture
def start(environ: Mapping[str, str]) -> Start:
    """Start a program of the tests in a process of its own, with pipes of text."""

    def run(program: str, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    return run


@pytest.fixture(scope="module")
def fast() -> Iterator[Path]:
    """A folder for states that are made by the thousand: in memory, where the host has that."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def lives(fast: Path) -> Iterator[Lives]:
    """A host in memory whose state directory is that of this process too."""
    from lives import Lives

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", str(fast / "host" / "state"))
        patch.delenv("CARDCHAIN_KEY", raising=False)
        made = Lives(fast)
        yield made
        made.close()
