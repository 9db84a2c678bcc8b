"""Every call of the system fails in turn, in every way, during every act of a ledger (spec §7).

A process of its own goes through an act and is struck at one call of it (`boundary`, `nursery`).
`truth` holds what is left against what the process had answered. `dev.py soak` strikes every call
in every way, an ordinary run a sample that is the same each time.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from boundary import Call, Fault, faults_of
from lives import ACTS, RECOVERIES, Lives, Said, known_after
from truth import AT, Known, digest_of, require_truth, require_verified

from ledger import Ledger, LedgerError
from ledger.errors import Copied, SignerExists

Soak = Callable[[int, int], int]


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


def require_no_parts(folder: Path, said: Said, fault: Fault) -> None:
    """No half file stays, unless the process had no chance to remove it."""
    struck_call = said.calls[fault.call - 1].name if len(said.calls) >= fault.call else ""
    if not fault.how.endswith("kill") and fault.how != "gone" and struck_call != "unlink":
        assert list(folder.rglob(".*.part")) == []


def struck(lives: Lives, act: str, start: str, fault: Fault) -> Said:
    """Go through an act with a fault, and require all that must hold after any."""
    said = lives.live(act, start, fault)
    require_said_plainly(said, fault)
    require_no_retry_of_a_failed_sync(said, fault)
    require_no_parts(lives.folder, said, fault)
    return said


def tears_head(calls: list[Call], fault: Fault) -> bool:
    """Whether a fault leaves half of the head, which no sector of a disk does."""
    call = calls[fault.call - 1]
    return call == ("pwrite", "head") and fault.how in ("half kill", "short, then full")


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
        (name, fault, tears_head(calls, fault))
        for name in states.values()
        for calls in [lives.live("opening", name, None).calls]
        for fault in points(calls, 10**6, "")
    ]
    if len(chosen) > (most := soak(30, 10**6)):
        chosen = random.Random(3).sample(chosen, most)
    broken = Broken()
    for name, fault, forgot in chosen:
        with broken.noting(name, fault):
            said = struck(lives, "opening", name, fault)
            known = known_after(lives, "opening", name, said)
            records = require_truth(lives.folder, known, forgot=forgot)
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
