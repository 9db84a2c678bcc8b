"""A process dies at any step of redact, prune, restore or compress (spec §15).

At every instant the verifier sees a whole log, and the next process finishes what was begun.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import verifier
from ledger import Ledger, Opening, Proposal, assembly
from ledger.archive import sha256
from ledger.store.files import FileStore

CALLS = (
    "open",
    "write",
    "fsync",
    "fdatasync",
    "rename",
    "replace",
    "link",
    "unlink",
    "pwrite",
    "ftruncate",
)
SECRET = b"HUSH-4711"
BY = "user:operator-1"


@dataclass
class Copied:
    """A ledger with its host, and a copy of both to begin from again."""

    path: Path
    state: Path
    kept: Path
    cards: list[str]

    def again(self) -> None:
        """Put everything back as it was; the ledger stays the same directory."""
        for folder in (self.path, self.state):
            for place in folder.iterdir():
                shutil.rmtree(place) if place.is_dir() else place.unlink()
            shutil.copytree(self.kept / folder.name, folder, dirs_exist_ok=True)

    def keep(self) -> None:
        shutil.rmtree(self.kept, ignore_errors=True)
        for folder in (self.path, self.state):
            shutil.copytree(folder, self.kept / folder.name)

    def verdict(self) -> str:
        (keys,) = self.state.glob("cardchain/*/keys")
        return verifier.verify([str(self.path)], [str(keys)], environ={}).verdict.value

    def holds(self, text: bytes) -> list[str]:
        """Name the files of the host in which a text stands."""
        files = [file for file in (*self.path.rglob("*"), *self.state.rglob("*")) if file.is_file()]
        return [file.name for file in files if text in file.read_bytes()]


@pytest.fixture
def made(environ: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copied:
    """A ledger in four segments with a signer; the card in the first and the last is rejected."""
    monkeypatch.setattr(assembly, "FileStore", functools.partial(FileStore, segment_bytes=3_000))
    path, state = tmp_path / "approvals", Path(os.environ["CARDCHAIN_STATE"])
    with Ledger.init(path, name="test") as ledger:
        ledger.make_signer(by=BY)
        cards = [issue(ledger, SECRET.decode())]
        cards += [issue(ledger, f"plain {number}") for number in range(5)]
        for card in cards:
            ledger.resolve(card, "reject", approver="user:approver-1", note=SECRET.decode())
        assert len(list((path / "segments").iterdir())) >= 4
    copied = Copied(path, state, tmp_path / "kept", cards)
    copied.keep()
    return copied


def issue(ledger: Ledger, text: str) -> str:
    proposal = Proposal.for_tool_call(
        task=("run", text), tool_name="t", arguments={"text": text}, reasoning="x" * 200, ttl=600
    )
    return ledger.issue(proposal, presented=Opening(text.encode())).hash


def dies_at(step: int, path: Path, act: Callable[[Ledger], object]) -> bool:
    """Run an act in a process that dies before its `step`-th call of the system; False if done."""
    child = os.fork()
    if child == 0:
        try:
            with Ledger.open(path) as ledger:
                _arm(step)
                act(ledger)
            os._exit(0)
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9


def _arm(step: int) -> None:
    count = 0

    def dying(call: Callable[..., object]) -> Callable[..., object]:
        def died(*arguments: object, **options: object) -> object:
            nonlocal count
            count += 1
            if count == step:
                os._exit(9)
            return call(*arguments, **options)

        return died

    for name in CALLS:
        setattr(os, name, dying(getattr(os, name)))


def test_a_death_at_any_step_of_redact_leaves_a_whole_log_that_the_next_opening_erases(
    made: Copied,
) -> None:
    card, step, said = made.cards[0], 1, 0
    while dies_at(step, made.path, lambda ledger: ledger.redact(card, by=BY, reason="secret")):
        assert made.verdict() == "VERIFIED", step
        with Ledger.open(made.path) as ledger:
            redacted = ledger.redactions(card)
            assert made.verdict() == "VERIFIED", step
            if redacted:
                said += 1
                assert [each for record in ledger.events(card) for each in record.openings] == []
            issue(ledger, "later")
        assert not list(made.path.glob(".*")), step
        assert made.verdict() == "VERIFIED", step
        made.again()
        step += 1
    assert step > 25
    assert said > 12
    assert made.holds(b'{"text":"HUSH') == []


def test_a_death_at_any_step_of_prune_leaves_a_whole_log_that_prune_goes_on_with(
    made: Copied, tmp_path: Path
) -> None:
    file = tmp_path / "archive.cbor"
    with Ledger.open(made.path) as ledger:
        edge = ledger.archive(file).before
    made.keep()
    digest = sha256(file)
    numbers = {int(each.name[:20]) for each in (made.path / "segments").iterdir()}
    edges = sorted(number for number in numbers if 0 < number <= edge)
    step, begun = 1, 0
    while dies_at(step, made.path, lambda ledger: ledger.prune(file, by=BY, verified=digest)):
        assert made.verdict() == "VERIFIED", step
        with Ledger.open(made.path) as ledger:
            begun += any(record.kind == "pruned" for record in ledger.records())
            ledger.prune(file, by=BY, verified=digest)
            assert ledger.status().first == edge
            issue(ledger, "later")
            ledger.checkpoint()
            records = list(ledger.records())
        assert [each.body["before"] for each in records if each.kind == "pruned"] == edges
        assert [each.kind for each in records].count("configured") == 1
        assert made.verdict() == "VERIFIED", step
        made.again()
        step += 1
    assert step > 40
    assert begun > 15
    assert made.verdict() == "VERIFIED"


def test_a_death_at_any_step_of_restore_leaves_a_whole_log_that_restore_goes_on_with(
    made: Copied, tmp_path: Path
) -> None:
    file = tmp_path / "archive.cbor.gz"
    before = sorted(each.name for each in (made.path / "segments").iterdir())
    with Ledger.open(made.path) as ledger:
        ledger.archive(file)
        ledger.prune(file, by=BY, verified=sha256(file))
    made.keep()
    step, whole = 1, 0
    while dies_at(step, made.path, lambda ledger: ledger.restore(file)):
        assert made.verdict() == "VERIFIED", step
        with Ledger.open(made.path) as ledger:
            first = ledger.status().first
            whole += first == 0
            assert first == 0 or ledger.restore(file) > 0
            issue(ledger, "later")
        names = sorted(each.name for each in (made.path / "segments").iterdir())
        assert names[: len(before)] == before
        assert not list(made.path.glob(".*")), step
        assert made.verdict() == "VERIFIED", step
        made.again()
        step += 1
    assert step > 15
    assert whole > 0


def test_a_death_at_any_step_of_compress_leaves_one_file_of_each_number(made: Copied) -> None:
    numbers = {each.name[:20] for each in (made.path / "segments").iterdir()}
    step, half = 1, 0
    while dies_at(step, made.path, lambda ledger: ledger.compress()):
        found = [each.name[:20] for each in (made.path / "segments").iterdir()]
        assert sorted(found) == sorted(numbers), step
        plain = [each for each in (made.path / "segments").iterdir() if each.suffix == ".cbor"]
        half += any(each.read_bytes()[:2] == b"\x1f\x8b" for each in plain)
        assert made.verdict() == "VERIFIED", step
        with Ledger.open(made.path) as ledger:
            assert not list(made.path.glob(".*")), step
            plain = [each for each in (made.path / "segments").iterdir() if each.suffix == ".cbor"]
            assert not any(each.read_bytes()[:2] == b"\x1f\x8b" for each in plain)
            ledger.compress()
            assert len(list(ledger.records())) == ledger.status().count
            issue(ledger, "later")
        assert len(list((made.path / "segments").glob("*.gz"))) == len(numbers) - 1
        assert made.verdict() == "VERIFIED", step
        made.again()
        step += 1
    assert step > 20
    assert half > 2
