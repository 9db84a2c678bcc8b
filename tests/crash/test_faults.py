"""Every call of the system fails in turn, in every way, during every act of a ledger (spec §7).

A process of its own goes through an act and is struck at one call of it (`boundary`, `nursery`).
`truth` holds what is left against what the process had answered. `dev.py soak` strikes every call
in every way, an ordinary run a sample that is the same each time.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from boundary import Call, Fault, faults_of
from truth import AT, Known, digest_of, refill, require_truth, require_verified

from ledger import Facts, Ledger, LedgerError, Proposal
from ledger.errors import Copied, SignerExists

ROOT = Path(__file__).parents[2]
NURSERY = Path(__file__).parent / "nursery.py"
Soak = Callable[[int, int], int]

# act: (what stands there before, the kinds of records that may come of it)
ACTS: dict[str, tuple[str, dict[str, int]]] = {
    "init": ("nothing", {"opened": 1}),
    "opening": ("plain", {}),
    "issue": ("plain", {"issued": 1}),
    "resolve": ("plain", {"resolved": 1}),
    "dispatch": ("plain", {"dispatched": 1}),
    "settle": ("plain", {"settled": 1}),
    "batch": ("plain", {"issued": 4}),
    "segments": ("plain", {"issued": 7}),
    "rotate": ("plain", {"rekeyed": 1}),
    "signer": ("plain", {"configured": 1}),
    "checkpoint": ("signed", {}),
    "export": ("signed", {}),
    "look": ("plain", {}),
    "adopt": ("copied", {}),
}
RECOVERIES = ("torn", "unindexed", "index damaged", "torn and unindexed")


@dataclass
class Said:
    """What a process said of one act: answers, errors, the calls it made, how it ended."""

    answered: dict[int, str] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    other: dict[str, Any] = field(default_factory=dict)
    ended: int = 0

    @property
    def again(self) -> bool:
        """Whether the object that was struck took another card."""
        return "again" in self.other


class Lives:
    """The process that goes through acts, and the states that they begin with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "host"
        self.starts = folder / "starts"
        self.folder.mkdir()
        self.known: dict[str, list[str]] = {}
        self._process = subprocess.Popen(
            [sys.executable, str(NURSERY)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.cards: dict[str, str] = {}
        self._prepare()

    def close(self) -> None:
        self._process.communicate()

    def keep(self, name: str) -> None:
        """Keep the state that stands there now as one to begin with."""
        shutil.copytree(self.folder, self.starts / name)

    def live(self, act: str, start: str, fault: Fault | None) -> Said:
        """Go through one act from a state, with a fault or none."""
        refill(self.folder, self.starts / start)
        return self.go_on(act, fault)

    def go_on(self, act: str, fault: Fault | None) -> Said:
        """Go through one act from the state that stands there."""
        command = {"act": act, "folder": str(self.folder), "cards": self.cards, "fault": fault}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        said = Said()
        while True:
            line = json.loads(self._process.stdout.readline())
            said.answered |= dict(line.get("done", []))
            if "error" in line:
                said.errors.append(line)
            elif "calls" in line:
                said.calls = [Call(*call) for call in line["calls"]]
            elif "ended" in line:
                said.ended = line["ended"]
                return said
            else:
                said.other |= line

    def _prepare(self) -> None:
        path = self.folder / "approvals"
        self.keep("nothing")
        ask = {"tool_name": "pay", "arguments": {"n": 1}, "reasoning": "r", "ttl": 3600}
        with Ledger.init(path, name="test", clock=lambda: AT) as ledger:

            def issue(step: str) -> str:
                return ledger.issue(Proposal.for_tool_call(task=("run", step), **ask)).hash  # type: ignore[arg-type]

            for name in ("open", "approved", "dispatched"):
                self.cards[name] = issue(name)
            for name in ("approved", "dispatched"):
                ledger.resolve(self.cards[name], "approve", approver="user:a")
            ledger.dispatch(self.cards["dispatched"], Facts.for_tool_call("pay", {"n": 1}))
            plain = [record.digest.hex() for record in ledger.records()]
            self.keep_closed(ledger, "plain", plain)
            raw = ledger.issue(Proposal.for_tool_call(task=("run", "torn"), **ask)).record.raw  # type: ignore[arg-type]
        refill(self.folder, self.starts / "plain")
        with Ledger.open(path, clock=lambda: AT) as ledger:
            ledger.make_signer(by="user:o")
            ledger.checkpoint()
            issue("later")
            self.keep_closed(ledger, "signed", [r.digest.hex() for r in ledger.records()])
        self._prepare_damage(path, plain, raw)

    def keep_closed(self, ledger: Ledger, name: str, records: list[str]) -> None:
        """Keep a state with nobody at work in it."""
        self.keep(name)
        self.known[name] = records

    def _prepare_damage(self, path: Path, plain: list[str], raw: bytes) -> None:
        state = next((self.folder / "state" / "cardchain").iterdir()).name
        for name in RECOVERIES:
            refill(self.folder, self.starts / "plain")
            host = self.folder / "state" / "cardchain" / state
            if "torn" in name:
                with open(path / "segments" / f"{0:020}.cbor", "ab") as segment:
                    segment.write(raw[: len(raw) // 2])
            for file in host.glob("index.sqlite*") if "unindexed" in name else ():
                file.unlink()
            if "damaged" in name:
                (host / "index.sqlite").write_bytes(b"no database, and long enough" * 500)
            self.keep(name)
            self.known[name] = plain
        refill(self.folder, self.starts / "plain")
        other = self.folder / "other"
        shutil.copytree(path, other)
        Ledger.adopt(other, clock=lambda: AT).close()
        shutil.rmtree(other)
        self.keep("copied")
        self.known["copied"] = plain


@pytest.fixture(scope="module")
def lives(fast: Path) -> Iterator[Lives]:
    """A host in memory whose state directory is that of this process too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", str(fast / "host" / "state"))
        patch.delenv("CARDCHAIN_KEY", raising=False)
        made = Lives(fast)
        yield made
        made.close()


def points(calls: list[Call], count: int, seed: str) -> list[Fault]:
    """Give every way to strike, or so many of them, the same each time."""
    found = [
        Fault(number, how)
        for number, call in enumerate(calls, start=1)
        for how in faults_of(call.name)
    ]
    if count >= len(found):
        return found
    return random.Random(seed).sample(found, count)


def require_said_plainly(said: Said, fault: Fault) -> None:
    """An error is one of ours with a hint; nobody hangs, and only a kill ends a process."""
    assert "broken" not in said.other, said.other
    assert "stuck" not in said.other
    assert "locked" not in said.other
    for error in said.errors:
        assert error["told"], error["text"]
        assert error["error"] == "KeyboardInterrupt" or error["hint"], error
    assert said.ended == (-9 if fault.how.endswith("kill") and not said.calls else 0)


def require_no_retry_of_a_failed_sync(said: Said, fault: Fault) -> None:
    """Who was told that a sync of records failed gets no later answer from the same object."""
    if not said.calls or len(said.calls) < fault.call or fault.how not in ("EIO", "late EIO"):
        return
    call = said.calls[fault.call - 1]
    if call.name in ("fsync", "fdatasync") and call.target.endswith(".cbor"):
        assert said.errors
        assert not said.again


def require_no_parts(folder: Path, fault: Fault) -> None:
    """No half file stays, unless the process had no chance to remove it."""
    if not fault.how.endswith("kill") and fault.how not in ("gone", "EIO"):
        assert list(folder.rglob(".*.part")) == []


def struck(lives: Lives, act: str, start: str, fault: Fault) -> Said:
    """Go through an act with a fault, and require all that must hold after any."""
    said = lives.live(act, start, fault)
    require_said_plainly(said, fault)
    require_no_retry_of_a_failed_sync(said, fault)
    require_no_parts(lives.folder, fault)
    return said


def tears_head(calls: list[Call], fault: Fault) -> bool:
    """Whether a fault leaves half of the head, which no sector of a disk does."""
    call = calls[fault.call - 1]
    return call == ("pwrite", "head") and fault.how in ("half kill", "short, then full")


def known_after(lives: Lives, act: str, start: str, said: Said) -> Known:
    wanted = Counter(ACTS[act][1]) + Counter({"issued": 1})
    return Known(said.answered, lives.known.get(start, []), wanted)


@pytest.mark.parametrize("act", [act for act in ACTS if act != "init"])
def test_an_act_that_is_struck_anywhere(lives: Lives, act: str, soak: Soak) -> None:
    start = ACTS[act][0]
    calls = lives.live(act, start, None).calls
    assert len(calls) > 5
    ended: Counter[str] = Counter()
    chosen, broken = points(calls, soak(12, 10**6), act), Broken()
    for fault in chosen:
        with broken.noting(act, calls[fault.call - 1], fault):
            said = struck(lives, act, start, fault)
            ended[said.errors[0]["error"] if said.errors else str(said.ended)] += 1
            EXTRA.get(act, nothing_more)(lives, said, fault)
            forgot = tears_head(calls, fault) or (act == "batch" and "half" in fault.how)
            require_truth(lives.folder, known_after(lives, act, start, said), forgot=forgot)
    broken.require_none()
    print(f"{act}: {len(calls)} calls, {len(chosen)} faults: {dict(ended)}")


class Broken(list[str]):
    """What did not hold, one line for each fault, so that one run shows all of it."""

    @contextmanager
    def noting(self, *where: object) -> Iterator[None]:
        """Go on to the next fault when this one shows something."""
        try:
            yield
        except (AssertionError, LedgerError, OSError) as error:
            self.append(f"{where}: {type(error).__name__}: {str(error)[:600]}")

    def require_none(self) -> None:
        assert not self, "\n".join(self)


def nothing_more(lives: Lives, said: Said, fault: Fault) -> None:
    """Nothing else must hold."""


def require_whole_export(lives: Lives, said: Said, fault: Fault) -> None:
    """An export is there whole or not at all; one that was answered for is there with its note."""
    path = lives.folder / "export.cbor"
    if "exported" in said.other:
        assert path.with_name("export.cbor.note").exists()
    if path.exists() or "exported" in said.other:
        require_verified(path, lives.folder / "state", len(lives.known["signed"]))


def require_signer_goes_on(lives: Lives, said: Said, fault: Fault) -> None:
    """The next checkpoint extends the one that was handed out."""
    with Ledger.open(lives.folder / "approvals", clock=lambda: AT) as ledger:
        signed = ledger.checkpoint()
        if "signed" in said.other:
            size, note = said.other["signed"]
            assert ledger.consistency(note.encode())[0].startswith(b"old %d\n" % size)
        assert signed.checkpoint.size >= len(lives.known["signed"])
        said.answered |= {signed.checkpoint.size - 1: list(ledger.records())[-1].digest.hex()}


def require_signer_can_be_made(lives: Lives, said: Said, fault: Fault) -> None:
    """A signer that was told is there; any other can be made, or announced, or stands."""
    with Ledger.open(lives.folder / "approvals", clock=lambda: AT) as ledger:
        told = "vkey" in said.other
        with suppress(SignerExists):
            ledger.make_signer(by="user:o")
            assert not told
        ledger.checkpoint()


def require_adoption_can_be_repeated(lives: Lives, said: Said, fault: Fault) -> None:
    """An adoption that did not come about can be made again; one that was told stands."""
    path = lives.folder / "approvals"
    try:
        Ledger.open(path, clock=lambda: AT).close()
    except Copied:
        assert "count" not in said.other
        Ledger.adopt(path, clock=lambda: AT).close()


EXTRA = {
    "adopt": require_adoption_can_be_repeated,
    "export": require_whole_export,
    "checkpoint": require_signer_goes_on,
    "signer": require_signer_can_be_made,
}


def test_an_init_that_is_struck_anywhere(lives: Lives, soak: Soak) -> None:
    """Who was answered has a ledger and its key; else the path is free, or it is said why not."""
    calls = lives.live("init", "nothing", None).calls
    path = lives.folder / "approvals"
    ended: Counter[str] = Counter()
    chosen, broken = points(calls, soak(24, 10**6), "init"), Broken()
    for fault in chosen:
        with broken.noting(calls[fault.call - 1], fault):
            said = struck(lives, "init", "nothing", fault)
            if said.answered:
                ended["answered"] += 1
            elif opens(path):
                ended["opens"] += 1
            else:
                left = path.exists() and any(path.iterdir())
                ended["left" if left else "free"] += 1
                assert not left or leaves_some(calls[fault.call - 1], fault)
                shutil.rmtree(path, ignore_errors=True)
                Ledger.init(path, name="test", clock=lambda: AT).close()
            known = Known(said.answered, [], Counter({"opened": 1, "issued": 1}))
            require_truth(lives.folder, known, forgot=not said.answered)
    broken.require_none()
    print(f"init: {len(calls)} calls, {len(chosen)} faults: {dict(ended)}")


def leaves_some(call: Call, fault: Fault) -> bool:
    """Whether a process cannot take back what it made: it died, or does not know that it did."""
    late = fault.how.startswith("late") and call.name in ("mkdir", "open")
    return late or fault.how == "gone" or fault.how.endswith("kill")


def opens(path: Path) -> bool:
    """Whether a ledger stands there; if not, an error says so and what to do."""
    hint = ""
    try:
        Ledger.open(path, clock=lambda: AT).close()
    except LedgerError as error:
        hint = error.hint
    else:
        return True
    assert hint
    return False


@pytest.mark.parametrize("start", RECOVERIES)
def test_a_recovery_that_is_struck_anywhere(lives: Lives, start: str, soak: Soak) -> None:
    calls = lives.live("opening", start, None).calls
    chosen, broken = points(calls, soak(16, 10**6), start), Broken()
    for fault in chosen:
        with broken.noting(start, calls[fault.call - 1], fault):
            said = struck(lives, "opening", start, fault)
            known, forgot = known_after(lives, "opening", start, said), tears_head(calls, fault)
            records = require_truth(lives.folder, known, forgot=forgot)
            assert ("torn" in start) == any(record.kind == "recovered" for record in records)
    broken.require_none()
    print(f"{start}: {len(calls)} calls, {len(chosen)} faults")


def test_a_recovery_of_a_recovery_that_is_struck_anywhere(lives: Lives, soak: Soak) -> None:
    """The process dies anywhere in a recovery, and the next one is struck anywhere."""
    calls = lives.live("opening", "torn", None).calls
    deaths = [
        each
        for each in points(calls, 10**6, "")
        if each.how.endswith("kill") and not tears_head(calls, each)
    ]
    states: dict[str, str] = {}
    for death in deaths:
        lives.live("opening", "torn", death)
        name = f"died {len(states)}"
        if (digest := digest_of(lives.folder)) not in states:
            states[digest] = name
            lives.keep(name)
            lives.known[name] = lives.known["torn"]
    chosen = [
        (name, fault)
        for name in states.values()
        for fault in points(lives.live("opening", name, None).calls, 10**6, "")
    ]
    if len(chosen) > (most := soak(30, 10**6)):
        chosen = random.Random(3).sample(chosen, most)
    broken = Broken()
    for name, fault in chosen:
        with broken.noting(name, fault):
            said = struck(lives, "opening", name, fault)
            records = require_truth(lives.folder, known_after(lives, "opening", name, said))
            assert any(record.kind == "recovered" for record in records)
    broken.require_none()
    print(f"{len(deaths)} deaths, {len(states)} states, {len(chosen)} faults")


def test_every_act_is_gone_through_without_a_fault(lives: Lives) -> None:
    """What the other tests strike does what it should where nothing strikes."""
    for act, (start, wanted) in ACTS.items():
        said = lives.live(act, start, None)
        assert said.errors == [], act
        assert len(said.answered) in (0, sum(wanted.values()))
        require_verified(lives.folder / "approvals", lives.folder / "state")
    assert said.calls
