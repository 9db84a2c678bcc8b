"""A process dies at any step of signing: no checkpoint that was handed out is forgotten (§13.4)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ledger import Ledger, Proposal, note
from ledger.errors import SignerRefuses
from ledger.signing import held

SIGN = """
import os, sys
from ledger import Ledger

path, step = sys.argv[1], int(sys.argv[2])
steps = 0

def dying(call):
    def died(*arguments, **options):
        global steps
        steps += 1
        if steps == step:
            os._exit(9)
        return call(*arguments, **options)
    return died

with Ledger.open(path) as ledger:
    for name in ("open", "fsync", "fdatasync", "replace", "link", "unlink", "pwrite", "ftruncate"):
        setattr(os, name, dying(getattr(os, name)))
    signed = ledger.checkpoint()
    os.write(1, signed.note)
    os._exit(0)
"""


def issue(ledger: Ledger, step: str) -> None:
    ask = {"tool_name": "t", "arguments": {}, "reasoning": "r", "ttl": 60}
    ledger.issue(Proposal.for_tool_call(task=("run", step), **ask))  # type: ignore[arg-type]


@pytest.fixture
def grown(environ: Mapping[str, str], tmp_path: Path) -> Path:
    """A ledger with a checkpoint of 4 records and two records after it, and a copy of the 4."""
    path = tmp_path / "approvals"
    with Ledger.init(path, name="test") as ledger:
        ledger.make_signer(by="user:operator-1")
        issue(ledger, "a")
        issue(ledger, "b")
        ledger.checkpoint()
        ledger.close()
    shutil.copytree(path, tmp_path / "early")
    with Ledger.open(path) as ledger:
        issue(ledger, "c")
        issue(ledger, "d")
    return path


def test_no_checkpoint_that_was_handed_out_is_forgotten(
    grown: Path, start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """After each death the next signer goes on; a fork below what was handed out is refused."""
    state = Path(os.environ["CARDCHAIN_STATE"])
    folders = (grown, state, tmp_path / "early")
    kept = tmp_path / "kept"
    for folder in folders:
        shutil.copytree(folder, kept / folder.name)
    steps, handed = 1, []
    while True:
        for folder in folders:
            _refill(folder, kept / folder.name)
        child = start(SIGN, grown, steps)
        out, _ = child.communicate()
        assert child.returncode in (0, 9)
        _require_that_it_goes_on(grown, out)
        if child.returncode == 0:
            break
        assert out == ""
        handed.append(steps)
        steps += 1
    assert len(handed) > 15
    assert out.split("\n")[1] == "6"
    shutil.rmtree(grown)
    (tmp_path / "early").rename(grown)
    with Ledger.adopt(grown, rolled_back=True) as fork:
        for step in ("e", "f", "g"):
            issue(fork, step)
            with pytest.raises(SignerRefuses):
                fork.checkpoint()


def _refill(folder: Path, source: Path) -> None:
    """Put a folder back as it was; it stays the same folder."""
    for place in folder.iterdir():
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    shutil.copytree(source, folder, dirs_exist_ok=True)


def _require_that_it_goes_on(path: Path, handed: str) -> None:
    """The next signer gives the same tree, and what was handed out is its note."""
    with Ledger.open(path) as ledger:
        signed = ledger.checkpoint()
        assert (signed.checkpoint.size, signed.path.read_bytes()) == (6, signed.note)
        with held(ledger.chain) as signer:
            assert signer.signed(signed.note) == signed.checkpoint
        if handed:
            assert signed.note == handed.encode()
        issue(ledger, "later")
        proof, later = ledger.consistency(signed.note)
        assert note.parse(proof.partition(b"\n\n")[2]) == note.parse(later.note)
