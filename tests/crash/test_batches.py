"""Batches of many threads in many processes, some of them killed (spec §7.4)."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

from ledger import Ledger

THREADS = 8
WRITE = """
import os, sys, threading, time
from ledger import Ledger, Proposal
path, name, threads, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def slow(descriptor):
    time.sleep(0.002)
    os.fsync(descriptor)

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

with Ledger.open(path, sync=slow) as ledger:
    def work(thread):
        for number in range(count):
            step = f"{name}/{thread}/{number}"
            card = ledger.issue(Proposal.for_tool_call(
                task=("run", step), tool_name="t", arguments={}, reasoning="", ttl=600
            ))
            say(step, card.seq, card.record.digest.hex())

    say("ready")
    sys.stdin.readline()
    workers = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
"""

Start = Callable[..., "Popen[str]"]


def ready(processes: list[Popen[str]]) -> None:
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"


def go(process: Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def require_all(path: Path, said: list[list[str]]) -> int:
    """Every card that was answered stands in one linear chain; gives how many cards do."""
    with Ledger.open(path) as ledger:
        records = list(ledger.records())
        assert [record.seq for record in records] == list(range(len(records)))
        digests = [bytes(32), *(record.digest for record in records)]
        assert [record.prev for record in records] == digests[:-1]
        for step, seq, digest in said:
            record = records[int(seq)]
            assert record.digest.hex() == digest
            assert json.loads(record.openings["envelope"])["task"]["step"] == step
        cards = [record.card for record in records if record.kind == "issued"]
        assert len(set(cards)) == len(cards)
        assert len(ledger.pending()) == len(cards)
    return len(cards)


def test_threads_of_many_processes_append_one_linear_chain(
    tmp_path: Path, start: Start, soak: Callable[[int, int], int]
) -> None:
    count, path = soak(12, 150), tmp_path / "ledger"
    Ledger.init(path, name="test").close()
    processes = [
        start(WRITE, path, f"process {n}".replace(" ", "-"), THREADS, count) for n in "abc"
    ]
    ready(processes)
    for process in processes:
        go(process)
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    said = [line.split() for output in outputs for line in output]
    assert len(said) == 3 * THREADS * count
    assert require_all(path, said) == len(said)


def test_a_killed_batch_loses_nothing_answered_and_holds_up_nobody(
    tmp_path: Path, start: Start, soak: Callable[[int, int], int]
) -> None:
    """One process goes through to the end beside others that are killed in their batches."""
    kills, path = soak(8, 60), tmp_path / "ledger"
    Ledger.init(path, name="test").close()
    draw = random.Random(11)
    steady = start(WRITE, path, "steady", 4, 25 * kills)
    ready([steady])
    go(steady)
    said: list[list[str]] = []
    for life in range(kills):
        victim = start(WRITE, path, f"victim-{life}", THREADS, 10_000)
        ready([victim])
        go(victim)
        time.sleep(0.05 + draw.random() * 0.1)
        os.kill(victim.pid, signal.SIGKILL)
        lines = victim.communicate()[0].splitlines()
        said += [line.split() for line in lines if len(line.split()) == 3]
    output = steady.communicate()[0].splitlines()
    assert steady.returncode == 0
    assert len(output) == 4 * 25 * kills
    assert len(said) > kills
    said += [line.split() for line in output]
    assert require_all(path, said) >= len(said)
