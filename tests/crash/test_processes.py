"""Many processes, one chain (spec §5, §6.3): nothing forks, nothing is decided twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

from ledger import Ledger, Proposal

APPEND = """
import json, sys, time
from ledger import Ledger, Proposal
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Ledger.open(path) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    seqs = []
    for number in range(count):
        proposal = Proposal.for_tool_call(
            task=(name, str(number)), tool_name="t", arguments={}, reasoning="", ttl=600
        )
        seqs.append(ledger.issue(proposal).seq)
    print(json.dumps(seqs))
"""

DECIDE = """
import json, sys, time
from ledger import Ledger, Refused
path, name, block = sys.argv[1:]
with Ledger.open(path) as ledger:
    cards = [record.card for record in ledger.records() if record.kind == "issued"]
    for number, card in enumerate(cards):
        if number % int(block) == 0:
            print("ready", flush=True)
            sys.stdin.readline()
        begun = time.monotonic_ns()
        try:
            record = ledger.resolve(card, "approve", approver=name, target=card)
            said = ["resolved", record.seq]
        except Refused as refused:
            said = [refused.reason, refused.record.seq]
        print(json.dumps([*said, begun, time.monotonic_ns()]))
"""

BLOCK = 10
"""Cards that two processes decide between one meeting and the next; divides every count."""

Start = Callable[..., "Popen[str]"]


def go(processes: list[Popen[str]]) -> None:
    """Let the processes go at one moment."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def together(processes: list[Popen[str]]) -> list[list[str]]:
    """Let the processes go at one moment; gives the lines that each printed after that."""
    go(processes)
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return outputs


def test_eight_processes_append_one_linear_chain(
    tmp_path: Path, start: Start, soak: Callable[[int, int], int]
) -> None:
    count = soak(40, 500)
    path = tmp_path / "ledger"
    Ledger.init(path, name="test").close()
    outputs = together([start(APPEND, path, f"process {n}", count) for n in range(8)])
    answered = [json.loads(output[0]) for output in outputs]
    assert sorted(seq for seqs in answered for seq in seqs) == list(range(1, 8 * count + 1))
    with Ledger.open(path) as ledger:
        records = list(ledger.records())
    assert [record.seq for record in records] == list(range(8 * count + 1))
    digests = [bytes(32), *(record.digest for record in records)]
    assert [record.prev for record in records] == digests[:-1]
    owners = {seq: number for number, seqs in enumerate(answered) for seq in seqs}
    switches = sum(owners[seq] != owners[seq + 1] for seq in range(1, 8 * count))
    assert switches > 16


def test_two_processes_that_decide_the_same_cards_decide_each_once(
    tmp_path: Path, start: Start, soak: Callable[[int, int], int]
) -> None:
    count = soak(150, 1000)
    path = tmp_path / "ledger"
    with Ledger.init(path, name="test") as ledger:
        for number in range(count):
            ledger.issue(
                Proposal.for_tool_call(
                    task=("run", str(number)), tool_name="t", arguments={}, reasoning="", ttl=600
                )
            )
    processes = [start(DECIDE, path, f"user:approver-{n}", BLOCK) for n in (1, 2)]
    said: list[list[Any]] = [[], []]
    for begin in range(0, count, BLOCK):  # meet again and again: else one may lead all the way
        go(processes if begin % (2 * BLOCK) else processes[::-1])
        for lines, process in zip(said, processes, strict=True):
            assert process.stdout is not None
            lines += [json.loads(process.stdout.readline()) for _ in range(BLOCK)]
    assert [process.communicate()[0] for process in processes] == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]
    one, two = said
    for a, b in zip(one, two, strict=True):
        assert {a[0], b[0]} == {"resolved", "already_resolved"}
    overlapped = sum(a[2] < b[3] and b[2] < a[3] for a, b in zip(one, two, strict=True))
    winners = Counter("one" if a[0] == "resolved" else "two" for a in one)
    assert overlapped > 0
    assert len(winners) == 2
    with Ledger.open(path) as ledger:
        kinds = Counter(record.kind for record in ledger.records())
    assert kinds == {"opened": 1, "issued": count, "resolved": count, "refused": count}
