"""One grant, one effect (spec §6.3): under races, under kills, and under floods of wrong echoes."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest

from ledger import Facts, IssuedCard, Ledger, Proposal, Refused

Start = Callable[..., "Popen[str]"]
Soak = Callable[[int, int], int]

RACE = """
import json, os, sys, time
from ledger import Facts, Ledger, Refused
path, shared, name, racers = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
cards = [line.strip() for line in open(os.path.join(shared, "cards"))]

def append(file, text):
    descriptor = os.open(os.path.join(shared, file), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, text.encode())
    os.close(descriptor)

with Ledger.open(path) as ledger:
    for number, card in enumerate(cards):
        append(f"start-{number}", ".")
        while os.stat(os.path.join(shared, f"start-{number}")).st_size < racers:
            time.sleep(0.0005)
        begun = time.monotonic_ns()
        try:
            ticket = ledger.dispatch(card, Facts.for_tool_call("pay", {"n": number}))
            append("effects", f"{ticket.effect_key}\\n")
            said = "ticket"
        except Refused as refused:
            said = refused.reason
        print(json.dumps([said, begun, time.monotonic_ns()]), flush=True)
"""

NURSERY = """
import os, signal, sys
from ledger import Facts, Ledger
path, effects = sys.argv[1:]

def run(card, number, stop):
    count = 0
    def step(frame, event, argument):
        nonlocal count
        if event in ("call", "c_call"):
            count += 1
            if count == stop:
                os.kill(os.getpid(), signal.SIGKILL)
    with Ledger.open(path) as ledger:
        sys.setprofile(step)
        with ledger.guard(card, Facts.for_tool_call("pay", {"n": number})) as effect:
            descriptor = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(descriptor, f"{card}\\n".encode())
            os.close(descriptor)
        sys.setprofile(None)
    os.write(1, f"steps {count}\\n".encode())

for line in sys.stdin:
    card, number, stop = line.split()
    pid = os.fork()
    if pid == 0:
        run(card, int(number), int(stop))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    os.write(1, f"ended {os.waitstatus_to_exitcode(status)}\\n".encode())
"""

FLOOD = """
import sys
from ledger import Ledger, Refused
path, card, name, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
with Ledger.open(path) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    refused = 0
    for number in range(count):
        echo = int(name).to_bytes(4, "big") + number.to_bytes(28, "big")
        try:
            ledger.resolve(echo, "approve", approver=f"user:{name}", target=card)
        except Refused as error:
            refused += error.reason == "hash_mismatch"
    print(refused)
"""


def granted(ledger: Ledger, number: int) -> IssuedCard:
    card = ledger.issue(
        Proposal.for_tool_call(
            task=("run", str(number)),
            tool_name="pay",
            arguments={"n": number},
            reasoning="",
            ttl=3600,
        )
    )
    ledger.resolve(card.hash, "approve", approver="user:approver-1", target=card)
    return card


def test_of_eight_processes_that_race_for_a_grant_one_gets_it(
    tmp_path: Path, start: Start, soak: Soak
) -> None:
    rounds, racers = soak(25, 500), 8
    path, shared = tmp_path / "ledger", tmp_path / "shared"
    shared.mkdir()
    with Ledger.init(path, name="test") as ledger:
        cards = [granted(ledger, number) for number in range(rounds)]
    (shared / "cards").write_text("".join(f"{card.hash}\n" for card in cards))
    processes = [start(RACE, path, shared, name, racers) for name in range(racers)]
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * racers
    winners: Counter[int] = Counter()
    overlaps = 0
    for said in zip(*(map(json.loads, output) for output in outputs), strict=True):
        assert Counter(word for word, _, _ in said) == {"ticket": 1, "already_dispatched": 7}
        (winner,) = (number for number, (word, _, _) in enumerate(said) if word == "ticket")
        winners[winner] += 1
        _, begun, ended = said[winner]
        overlaps += sum(b < ended and begun < e for _, b, e in said) - 1
    effects = (shared / "effects").read_text().splitlines()
    assert sorted(effects) == sorted(card.envelope.effect_key for card in cards)
    assert overlaps >= rounds
    assert len(winners) > 1
    with Ledger.open(path) as ledger:
        kinds = Counter(record.kind for record in ledger.records())
    assert kinds["dispatched"] == rounds


def test_a_kill_between_approval_and_outcome_loses_no_grant_and_repeats_no_effect(
    tmp_path: Path, start: Start, soak: Soak
) -> None:
    """A process is killed at every so many calls; under CARDCHAIN_SOAK at every one."""
    path, effects = tmp_path / "ledger", tmp_path / "effects"
    effects.touch()
    nursery = start(NURSERY, path, effects)
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    states: Counter[str] = Counter()

    def killed(ledger: Ledger, number: int, stop: int) -> tuple[IssuedCard, list[str]]:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        card = granted(ledger, number)
        nursery.stdin.write(f"{card.hash} {number} {stop}\n")
        nursery.stdin.flush()
        said = nursery.stdout.readline().split()
        if said[0] == "steps":
            assert nursery.stdout.readline().split() == ["ended", "0"]
        return card, said

    with Ledger.init(path, name="test") as ledger:
        card, said = killed(ledger, 0, 0)
        assert ledger.card(card).state == "SETTLED"
        steps = int(said[1])
        stops = range(1, steps + 1, soak(max(1, steps // 60), 1))
        for number, stop in enumerate(stops, start=1):
            card, said = killed(ledger, number, stop)
            assert said == ["ended", "-9"]
            ran = effects.read_text().splitlines().count(card.hash)
            state = ledger.card(card).state
            states[f"{state} {ran}"] += 1
            check_truth(ledger, card, number, ran)
        records = list(ledger.records())
    nursery.communicate()
    dispatched = Counter(record.card for record in records if record.kind == "dispatched")
    assert set(dispatched.values()) == {1}
    ran_at_all = Counter(effects.read_text().splitlines())
    assert set(ran_at_all.values()) == {1}
    assert {"APPROVED 0", "DISPATCHED 0", "DISPATCHED 1"} <= set(states)
    assert set(states) <= {"APPROVED 0", "DISPATCHED 0", "DISPATCHED 1", "SETTLED 1"}
    print(f"{len(stops)} kills in {steps} steps: {dict(states)}")


def check_truth(ledger: Ledger, card: IssuedCard, number: int, ran: int) -> None:
    """Hold what the ledger says of a card against whether its effect ran."""
    facts = Facts.for_tool_call("pay", {"n": number})
    state = ledger.card(card).state
    if state == "APPROVED":
        assert ran == 0
        assert ledger.dispatch(card, facts).effect_key == card.envelope.effect_key
        return
    with pytest.raises(Refused, match="already_dispatched"):
        ledger.dispatch(card, facts)
    if state == "SETTLED":
        assert ran == 1
        return
    assert ledger.card(card).step_state == "dispatched"
    again = Proposal.for_tool_call(
        task=("run", str(number)), tool_name="pay", arguments={"n": number}, reasoning="", ttl=60
    )
    with pytest.raises(Refused, match="attempt_unnamed"):
        ledger.issue(again.superseding(card))
    new = ledger.issue(again.superseding(card, outcome="unknown"))
    assert new.envelope.effect_key == card.envelope.effect_key
    ledger.settle(card, "succeeded" if ran else "failed")


def test_a_flood_of_wrong_echoes_adds_few_records_and_is_counted(
    tmp_path: Path, start: Start, soak: Soak
) -> None:
    each, floods = soak(150, 2_500), 4
    path = tmp_path / "ledger"
    with Ledger.init(path, name="test") as ledger:
        card = ledger.issue(
            Proposal.for_tool_call(
                task=("run", "1"), tool_name="pay", arguments={}, reasoning="", ttl=3600
            )
        )
    processes = [start(FLOOD, path, card.hash, name, each) for name in range(floods)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    outputs = [process.communicate("go\n")[0] for process in processes]
    assert outputs == [f"{each}\n"] * floods
    with Ledger.open(path) as ledger:
        records = [record for record in ledger.records() if record.kind == "refused"]
        with pytest.raises(Refused) as caught:
            ledger.resolve(bytes(32), "approve", approver="user:approver-1", target=card)
        assert ledger.card(card).state == "OPEN"
    assert len(records) < 200
    assert caught.value.count == each * floods + 1
    counts = [record.body["count"] for record in records]
    assert counts == [1, 2, 3, 4, 5, 6, 7, *(2**n for n in range(3, (each * floods).bit_length()))]


def test_a_dispatch_costs_one_append_and_nothing_that_grows_with_the_chain(
    tmp_path: Path, environ: object
) -> None:
    path = tmp_path / "ledger"
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        synced.append(descriptor)
        os.fsync(descriptor)

    def cost(ledger: Ledger, number: int) -> tuple[int, int]:
        """Give the calls and the bytes of one dispatch."""
        card = granted(ledger, number)
        facts = Facts.for_tool_call("pay", {"n": number})
        calls = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        before = sum(file.stat().st_size for file in (path / "segments").iterdir())
        synced.clear()
        sys.setprofile(count)
        ticket = ledger.dispatch(card, facts)
        sys.setprofile(None)
        after = sum(file.stat().st_size for file in (path / "segments").iterdir())
        assert len(synced) == 1
        assert after - before == len(ticket.record.raw)
        return calls, after - before

    with Ledger.init(path, name="test", sync=sync) as ledger:
        cost(ledger, 100)
        few = cost(ledger, 101)
        for number in range(102, 402):
            granted(ledger, number)
        many = cost(ledger, 402)
    assert many[0] <= few[0] * 1.02
    assert abs(many[1] - few[1]) <= 8
