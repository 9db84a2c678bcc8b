"""Compare with other verifiers, which are installed elsewhere: `peers.py --help`.

Not part of CI, and nothing here is a promise: it prints a table with the date of the run. Python
environments with the packages are made by hand, as in docs/performance.md:

    python3.12 -m venv A && A/bin/pip install bernstein
    python3.11 -m venv B && B/bin/pip install ogentic-audit auditchain

All that is compared runs back to back in each round, in processes of its own. Times are processor
time. Each verifier must accept its log, and reject it with one bit of its middle changed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bernstein
import cbor2
import logs
from generator import Chain
from measure import ROOT

_REPORT = """
import json
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
print(json.dumps([bool(ok), count, seconds, peak]))
"""
_OURS = """
import sys, time
from verifier.verify import verify
start = time.process_time()
report = verify([sys.argv[1]], [sys.argv[2]])
seconds = time.process_time() - start
ok, count = report.verdict.value == "VERIFIED", report.logs[0].counts.records
"""
_BERNSTEIN = """
import sys, time
from verifier.readers import bernstein
start = time.process_time()
report = bernstein.verify_log(sys.argv[1], [sys.argv[2]], None, None)
seconds = time.process_time() - start
ok, count = report.verdict.value == "VERIFIED", report.counts.records
"""
_OGENTIC = """
import sys, time
from ogentic_audit import KeyHandle, verify
key = KeyHandle.from_bytes(bytes(range(32)))
start = time.process_time()
report = verify(sys.argv[1], key)
seconds = time.process_time() - start
ok, count = report.ok, report.records_inspected
"""
_OGENTIC_WRITE = """
import json, sys
from ogentic_audit import KeyHandle, Writer
with Writer.open(sys.argv[1], KeyHandle.from_bytes(bytes(range(32)))) as log:
    for line in open(sys.argv[2]):
        kind, envelope = json.loads(line)
        log.append({"actor": "gate", "event": kind, "payload": {"envelope": envelope}})
"""
_AUDITCHAIN = """
import sys, time
from auditchain import JsonlBackend, LogCorruptedError, SyncAuditLog
start = time.process_time()
try:
    report = SyncAuditLog(JsonlBackend(sys.argv[1]), seal_key=bytes(range(32))).verify()
    ok, count = report.ok, report.records_checked
except (LogCorruptedError, ValueError):
    ok, count = False, 0
seconds = time.process_time() - start
"""
_AUDITCHAIN_WRITE = """
import json, sys
from auditchain import JsonlBackend, SyncAuditLog
log = SyncAuditLog(JsonlBackend(sys.argv[1]), seal_key=bytes(range(32)))
lines = [json.loads(line) for line in open(sys.argv[2])]
for at in range(0, len(lines), 1000):
    log.append_many([("gate", kind, "", {"card": card}) for kind, card in lines[at : at + 1000]])
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What one verification said and took: records if told, processor seconds, peak in bytes."""

    ok: bool
    records: int | None
    seconds: float
    peak: int


@dataclass(frozen=True, slots=True)
class Contender:
    """A verifier and its log."""

    name: str
    log: Path
    verify: Callable[[Path], Run]


def main() -> None:
    options = _options()
    today = datetime.datetime.now(datetime.UTC).date()
    print(f"{today}, Python {sys.version.split()[0]}, medians of {options.rounds} rounds")
    print(f"{'us/event':>9}  {'ratio':>7}  {'peak MB':>8}  {'ratio':>7}  what")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.peers:
            _compare(_cards(folder, options.peers, options.events), options.events, options.rounds)
        if options.bernstein:
            contenders = _bernstein(folder, options.bernstein, options.events)
            _compare(contenders, options.events, options.rounds)


def _compare(contenders: list[Contender], events: int, rounds: int) -> None:
    """Print a line for each contender, with its ratios to the first one."""
    for item in contenders:
        _assert_rejects(item)
    runs: dict[str, list[Run]] = {item.name: [] for item in contenders}
    for _ in range(rounds):
        for item in contenders:
            run = item.verify(item.log)
            assert run.ok, item.name
            assert run.records in (events, None), (item.name, run)
            runs[item.name].append(run)
    first = runs[contenders[0].name]
    for name, made in runs.items():
        time = statistics.median(run.seconds for run in made) / events * 1e6
        peak = statistics.median(run.peak for run in made)
        times = statistics.median(a.seconds / b.seconds for a, b in zip(made, first, strict=True))
        peaks = statistics.median(a.peak / b.peak for a, b in zip(made, first, strict=True))
        print(f"{time:9.2f}  {times:6.2f}x  {peak / 1e6:8.1f}  {peaks:6.2f}x  {name}", flush=True)


def _assert_rejects(item: Contender) -> None:
    """Change one bit of the middle of the largest file, verify, and change it back."""
    files = [item.log] if item.log.is_file() else [p for p in item.log.rglob("*") if p.is_file()]
    path = max(files, key=lambda file: file.stat().st_size)
    at = path.stat().st_size // 2
    with path.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)[0]
        for value in (byte ^ 1, byte):
            stream.seek(at)
            stream.write(bytes([value]))
            stream.flush()
            if value != byte:
                assert not item.verify(item.log).ok, f"{item.name} accepts a changed byte"


def _cards(folder: Path, peers: Path, events: int) -> list[Contender]:
    """The same cards in three formats: ours, and those of ogentic-audit and auditchain."""
    log, key = logs.export(folder, events)
    lines = folder / "cards.jsonl"
    with lines.open("w") as stream:
        for raw in Chain().records(events):
            _, openings, payload, _ = cbor2.loads(raw).value
            kind = cbor2.loads(payload)[5] if isinstance(payload, bytes) else payload[5]
            stream.write(json.dumps([kind, openings.get("envelope", b"").decode()]) + "\n")
    python = str(peers / "bin" / "python")
    ogentic, auditchain = folder / "ogentic", folder / "auditchain.jsonl"
    _child(python, _OGENTIC_WRITE, ogentic, lines)
    _child(python, _AUDITCHAIN_WRITE, auditchain, lines)
    return [
        Contender("ours, every check of every card", log, _ours(_OURS, key)),
        Contender("ogentic-audit (Rust), chain alone", ogentic, _peer(python, _OGENTIC)),
        Contender("auditchain, chain alone", auditchain, _peer(python, _AUDITCHAIN)),
    ]


def _bernstein(folder: Path, environment: Path, events: int) -> list[Contender]:
    """Bernstein's own log, read by us and by Bernstein."""
    log, key = bernstein.written(folder / "bernstein", events, daily=True, others=10)
    command = str(environment / "bin" / "bernstein")
    state = {**os.environ, "BERNSTEIN_AUDIT_KEY_PATH": str(key), "HOME": str(folder)}

    def theirs(path: Path) -> Run:
        process = subprocess.Popen(
            [command, "audit", "verify", "--hmac-only"],
            cwd=path,
            env=state,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        return Run(process.returncode == 0, None, seconds, usage.ru_maxrss * 1024)

    return [
        Contender("ours, a log of Bernstein with its cards", log, _ours(_BERNSTEIN, key)),
        Contender("bernstein audit verify --hmac-only", log, theirs),
    ]


def _ours(code: str, key: Path) -> Callable[[Path], Run]:
    return lambda log: _run(_child(sys.executable, code + _REPORT, log, key))


def _peer(python: str, code: str) -> Callable[[Path], Run]:
    return lambda log: _run(_child(python, code + _REPORT, log))


def _run(output: str) -> Run:
    return Run(*json.loads(output.splitlines()[-1]))


def _child(python: str, code: str, *arguments: Path) -> str:
    """Run code in a fresh interpreter, away from the modules of this folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT) if python == sys.executable else ""}
    call = [python, "-c", code, *map(str, arguments)]
    return subprocess.run(
        call, env=environment, cwd="/", stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=Path, help="environment with ogentic-audit and auditchain")
    parser.add_argument("--bernstein", type=Path, help="environment with bernstein")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not shutil.which(str((options.peers or options.bernstein or Path()) / "bin" / "python")):
        parser.error("give --peers or --bernstein, each a Python environment")
    return options


if __name__ == "__main__":
    main()
