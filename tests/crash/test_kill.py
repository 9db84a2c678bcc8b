"""Writers that are killed at any moment (spec §7.4): nothing answered is lost, nothing invented."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

from ledger import Ledger, Record

NURSERY = """
import os, random, sys, time
from ledger import Ledger, Opening, Proposal

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def slow(descriptor):
    time.sleep(random.random() * 0.004)
    os.fsync(descriptor)

def live(path, life):
    random.seed(life)
    with Ledger.open(path, sync=slow) as ledger:
        say("ready")
        for number in range(10_000):
            name = f"{life}/{number}"
            size = random.choice([0, 10, 1_000, 1_000_000])
            presented = Opening(os.urandom(size)) if size else None
            proposal = Proposal.for_tool_call(
                task=("run", name), tool_name="t", arguments={}, reasoning="", ttl=600
            )
            say("want", name)
            card = ledger.issue(proposal, presented=presented)
            say("done", name, card.seq, card.record.digest.hex())

for life in sys.stdin:
    pid = os.fork()
    if pid == 0:
        live(sys.argv[1], life.strip())
        os._exit(0)
    say("born", pid)
    os.waitpid(pid, 0)
    say("dead")
"""


def lines(process: Popen[str], last: str) -> list[list[str]]:
    """Read what the process says up to a line that begins with `last`."""
    assert process.stdout is not None
    found: list[list[str]] = []
    while not found or found[-1][0] != last:
        found.append(process.stdout.readline().split())
    return found


def stored(path: Path) -> int:
    return sum(segment.stat().st_size for segment in (path / "segments").iterdir())


def test_a_kill_loses_nothing_answered_and_invents_nothing(
    tmp_path: Path,
    start: Callable[..., Popen[str]],
    soak: Callable[[int, int], int],
) -> None:
    kills = soak(40, 200)
    path = tmp_path / "ledger"
    Ledger.init(path, name="test").close()
    wanted: set[str] = set()
    done: dict[str, tuple[int, str]] = {}
    left_over, torn = 0, 0
    draw = random.Random(7)
    nursery = start(NURSERY, path)
    assert nursery.stdin is not None
    for life in range(kills):
        nursery.stdin.write(f"{life}\n")
        nursery.stdin.flush()
        said = lines(nursery, "born")
        pid = int(said[-1][1])
        if said[0][0] != "ready":
            said += lines(nursery, "ready")
        time.sleep(draw.random() * 0.06)
        os.kill(pid, signal.SIGKILL)
        said += lines(nursery, "dead")
        wanted |= {line[1] for line in said if line[0] == "want"}
        done |= {line[1]: (int(line[2]), line[3]) for line in said if line[0] == "done"}
        size, before = stored(path), len(list((path / "quarantine").iterdir()))
        with Ledger.open(path) as ledger:
            records = list(ledger.records())
        answered = [seq for seq, _ in done.values()]
        torn += len(list((path / "quarantine").iterdir())) > before
        left_over += unanswered(records, max(answered, default=0), size)
    nursery.communicate()
    assert left_over >= kills // 4
    check(path, wanted, done)
    print(f"{kills} kills, {left_over} left bytes that were not answered for, {torn} torn")


def unanswered(records: list[Record], last: int, size: int) -> bool:
    """Tell whether a kill left bytes behind the last record that was answered for."""
    return size > sum(len(record.raw) for record in records if record.seq <= last)


def check(path: Path, wanted: set[str], done: dict[str, tuple[int, str]]) -> None:
    with Ledger.open(path) as ledger:
        records = list(ledger.records())
        names = {
            record.card: ledger.card(record.card).envelope.task.step
            for record in records
            if record.kind == "issued" and record.card is not None
        }
    by_seq = {record.seq: record for record in records}
    for name, (seq, digest) in done.items():
        record = by_seq[seq]
        assert record.digest.hex() == digest
        assert record.card is not None
        assert names[record.card] == name
    assert len(names) == sum(record.kind == "issued" for record in records)
    assert set(names.values()) <= wanted
    assert {record.kind for record in records} <= {"opened", "issued", "recovered"}
    kept = {hashlib.sha256(file.read_bytes()).digest() for file in (path / "quarantine").iterdir()}
    assert {r.body["sha256"] for r in records if r.kind == "recovered"} == kept
