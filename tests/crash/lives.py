"""The acts of a ledger that are struck, the states they begin with, and what was said of each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundary import Call, Fault
from truth import AT, Known, refill

from ledger import Facts, Ledger, Proposal

ROOT = Path(__file__).parents[2]
NURSERY = Path(__file__).parent / "nursery.py"

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


def heard(lines: Iterable[str]) -> Said:
    """Put together what a process said, line by line."""
    said = Said()
    for line in map(json.loads, lines):
        said.answered |= dict(line.get("done", []))
        said.ended = line.get("ended", 0)
        if "error" in line:
            said.errors.append(line)
        elif "calls" in line:
            said.calls = [Call(*call) for call in line["calls"]]
        else:
            said.other |= line
    return said


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

    def go_on(self, act: str, fault: Fault | None, **more: int) -> Said:
        """Go through one act from the state that stands there.

        `segment_bytes` is the size of a segment, `limit` what the system lets any file grow to.
        """
        command = {"act": act, "folder": str(self.folder), "cards": self.cards, "fault": fault}
        command |= more
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        lines: list[str] = []
        while not lines or "ended" not in json.loads(lines[-1]):
            lines.append(self._process.stdout.readline())
        return heard(lines)

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


def known_after(lives: Lives, act: str, start: str, said: Said) -> Known:
    wanted = Counter(ACTS[act][1]) + Counter({"issued": 1})
    return Known(said.answered, lives.known.get(start, []), wanted)
