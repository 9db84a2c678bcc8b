"""What people and machines do to a ledger that is in use: it goes on, or says exactly why not."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from boundary import Fault
from lives import Lives
from truth import AT, Known, keys_of, refill, require_truth, verdict

from ledger import Ledger, LedgerError, Opening, Proposal
from ledger.errors import BrokenLedger, ClockWentBack, Dead, RolledBack, StoreFailed
from ledger.store.contract import NotALedger
from verifier import Verdict

Soak = Callable[[int, int], int]
Start = Callable[..., "Popen[str]"]


def ask(step: str) -> Proposal:
    return Proposal.for_tool_call(
        task=("run", step), tool_name="t", arguments={}, reasoning="r", ttl=3600
    )


def now() -> int:
    return AT


@pytest.fixture
def plain(lives: Lives) -> Path:
    """The folder of a host with a ledger of 7 records."""
    refill(lives.folder, lives.starts / "plain")
    return lives.folder


def known(lives: Lives, **more: int) -> Known:
    return Known({}, lives.known["plain"], Counter({"issued": 1, "settled": 1} | more))


def last_segment(folder: Path) -> Path:
    return sorted((folder / "approvals" / "segments").iterdir())[-1]


# Files that are moved about under a writer


def test_a_segment_that_is_copied_and_truncated_under_a_writer(lives: Lives, plain: Path) -> None:
    """As a log rotator does. The writer stops; the copy put back is the whole ledger again."""
    segment = last_segment(plain)
    with Ledger.open(plain / "approvals", clock=now) as ledger:
        shutil.copy(segment, plain / "copy")
        os.truncate(segment, 0)
        for error in (BrokenLedger, LedgerError):
            with pytest.raises(error) as caught:
                ledger.issue(ask("new"))
            assert caught.value.hint
        assert segment.stat().st_size == 0
    with pytest.raises((BrokenLedger, RolledBack)):
        Ledger.open(plain / "approvals", clock=now)
    segment.write_bytes((plain / "copy").read_bytes())
    require_truth(plain, known(lives))


@pytest.mark.parametrize("size", [1, 300, -1])
def test_a_segment_that_is_cut_under_a_writer(lives: Lives, plain: Path, size: int) -> None:
    segment = last_segment(plain)
    whole = segment.read_bytes()
    with Ledger.open(plain / "approvals", clock=now) as ledger:
        os.truncate(segment, size % len(whole))
        with pytest.raises(LedgerError) as caught:
            ledger.issue(ask("new"))
        assert caught.value.hint
    assert segment.read_bytes() == whole[: size % len(whole)]
    with pytest.raises((BrokenLedger, RolledBack)):
        Ledger.open(plain / "approvals", clock=now)
    segment.write_bytes(whole)
    require_truth(plain, known(lives))


@pytest.mark.parametrize("name", ["segment", "lock"])
def test_a_file_that_is_replaced_under_a_writer(lives: Lives, plain: Path, name: str) -> None:
    """By a copy with the same bytes: who goes on in the old file would write to nowhere."""
    file = last_segment(plain) if name == "segment" else plain / "approvals" / "lock"
    with Ledger.open(plain / "approvals", clock=now) as ledger:
        ledger.settle(lives.cards["dispatched"], "succeeded")
        file = last_segment(plain) if name == "segment" else file
        shutil.copy2(file, plain / "copy")
        os.replace(plain / "copy", file)
        with pytest.raises(StoreFailed, match="replaced by another file"):
            ledger.issue(ask("new"))
        with pytest.raises(Dead):
            ledger.issue(ask("new"))
    require_truth(plain, known(lives))


def test_a_lock_that_is_removed_under_a_writer(lives: Lives, plain: Path) -> None:
    """Nobody makes a new lock by himself, since somebody may hold the old one."""
    lock = plain / "approvals" / "lock"
    with Ledger.open(plain / "approvals", clock=now) as ledger:
        lock.unlink()
        with pytest.raises(StoreFailed, match="No such file"):
            ledger.issue(ask("new"))
    with pytest.raises(NotALedger, match="lock does not exist") as caught:
        Ledger.open(plain / "approvals", clock=now)
    assert caught.value.hint.endswith(f"touch {lock}")
    lock.touch(0o600)
    require_truth(plain, known(lives))


# Clocks


@pytest.mark.parametrize("start", ["plain", "torn"])
@pytest.mark.parametrize("back_s", [-3_600, -6, -5, 0, 10 * 365 * 86_400])
def test_a_clock_that_jumps_across_a_crash(lives: Lives, start: str, back_s: int) -> None:
    """A recovery never fails for the clock; appending does where it went back more than 5 s."""
    refill(lives.folder, lives.starts / start)
    path, at = lives.folder / "approvals", AT + back_s * 1000
    with Ledger.open(path, clock=lambda: at) as ledger:
        if back_s < -5:
            with pytest.raises(ClockWentBack, match="clock"):
                ledger.issue(ask("new"))
            ledger.clock_reset(by="user:o", reason="clock_fixed")
        ledger.issue(ask("new"))
        records = list(ledger.records())
    assert [record.kind for record in records[7:]] == (
        ["recovered"] * (start == "torn") + ["clock_reset"] * (back_s < -5) + ["issued"]
    )
    found = verdict(path, lives.folder / "state", len(records))
    assert found.verdict is Verdict.VERIFIED


# Writers beside writers


@pytest.mark.parametrize("how", ["half kill", "kill", "late kill"])
def test_a_writer_goes_on_where_another_process_died_in_its_turn(
    lives: Lives, plain: Path, how: str
) -> None:
    """Threads of one process die together; another process gets the lock, and puts it right."""
    calls = lives.go_on("settle", None).calls
    refill(lives.folder, lives.starts / "plain")
    number = 1 + next(n for n, call in enumerate(calls) if call.name == "write")
    with Ledger.open(plain / "approvals", clock=now) as ledger:
        said = lives.go_on("settle", Fault(number, how))
        assert (said.ended, said.answered) == (-9, {})
        card = ledger.issue(ask("new"))
        kinds = [record.kind for record in ledger.records()][7:]
        assert card.seq == 6 + len(kinds)
    # a record that was written and not answered for may stay
    assert kinds == {"half kill": ["recovered"], "kill": [], "late kill": ["settled"]}[how] + [
        "issued"
    ]
    require_truth(plain, known(lives, issued=2))


WRITE = """
import os, sys, threading
from ledger import Ledger, Proposal
path, name = sys.argv[1:]
with Ledger.open(path) as ledger:
    def work(thread):
        for number in range(100_000):
            step = f"{name}/{thread}/{number}"
            card = ledger.issue(Proposal.for_tool_call(
                task=("run", step), tool_name="t", arguments={}, reasoning="", ttl=3600
            ))
            os.write(1, f"{card.seq} {card.record.digest.hex()}\\n".encode())
    for thread in range(4):
        threading.Thread(target=work, args=(thread,), daemon=True).start()
    sys.stdin.readline()
"""


def test_two_processes_that_die_at_once(tmp_path: Path, start: Start, soak: Soak) -> None:
    """Both are killed in their batches, again and again: what they had answered stands."""
    path, state = tmp_path / "approvals", tmp_path / "state"
    Ledger.init(path, name="test").close()
    answered: dict[int, str] = {}
    draw, rounds = random.Random(2), soak(4, 60)
    for life in range(rounds):
        writers = [start(WRITE, path, f"{life}-{name}") for name in "ab"]
        firsts = []
        for writer in writers:
            assert writer.stdout is not None
            firsts.append(writer.stdout.readline())
        time.sleep(draw.random() * 0.05)
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
        for first, writer in zip(firsts, writers, strict=True):
            assert writer.stdout is not None
            lines = [first, *writer.stdout.read().splitlines()]  # what was read ahead is kept
            writer.communicate()
            answered |= {int(seq): digest for seq, digest in (line.split() for line in lines)}
    with Ledger.open(path) as ledger:
        digests = {record.seq: record.digest.hex() for record in ledger.records()}
    assert len(answered) >= 2 * rounds
    assert {seq: digests[seq] for seq in answered} == answered
    assert verdict(path, state, len(digests)).verdict is Verdict.VERIFIED
    assert keys_of(state)


# A file that may not grow


def test_a_write_that_the_system_takes_a_part_of(lives: Lives, plain: Path, soak: Soak) -> None:
    """A real short write: no file may grow over a limit that lies inside the record (spec §7.4)."""
    big = lives.folder.with_name("big")
    with Ledger.open(plain / "approvals", clock=now) as ledger:
        ledger.issue(ask("big"), presented=Opening(bytes(400_000)))
        before = [record.digest.hex() for record in ledger.records()]
        size = last_segment(plain).stat().st_size
        shutil.copytree(plain, big)
        record = ledger.settle(lives.cards["dispatched"], "succeeded")
    cuts = range(1, len(record.raw))
    for cut in random.Random(4).sample(cuts, min(len(cuts), soak(5, 1_000))):
        refill(plain, big)
        said = lives.go_on("settle", None, segment_bytes=10**6, limit=size + cut)
        assert [error["error"] for error in said.errors] == ["StoreFailed", "Dead"]
        assert said.answered == {}
        assert last_segment(plain).stat().st_size == size + cut
        records = require_truth(plain, Known({}, before, Counter({"issued": 1})))
        assert (records[-1].kind, records[-1].body["length"]) == ("recovered", cut)
        with Ledger.open(plain / "approvals", clock=now) as ledger:
            assert ledger.card(lives.cards["dispatched"]).state == "DISPATCHED"
