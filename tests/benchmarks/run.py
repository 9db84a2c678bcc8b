"""Measure what the project promises of its speed: `python tests/benchmarks/run.py [--gate]`.

Prints a table, or with `--json` one object. `--gate` measures a result over its limit once more
and exits 1 if it is still over. Method and limits are described in docs/performance.md.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import appending
import cbor2
import logs
import signing
import verifying
from generator import SECRET, Card, Chain
from measure import PASS, ROUNDS, Spread, cpu, python, rounds

# As the installed commands start, without what `python -m` adds.
VERIFY = ("-c", "import sys; from verifier.cli import main; sys.exit(main())")
CARDCHAIN = ("-c", "import sys; from ledger.cli import main; sys.exit(main())")
BROKEN = 3
Ledger = tuple[Path, list[Card]]
Measure = Callable[[Path, int], Spread]
PEAK = """
import sys
from verifier.verify import verify
report = verify([sys.argv[1]], [sys.argv[2]])
print(report.verdict.value, report.logs[0].counts.cards)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many records each benchmark takes."""

    verification: int = 20_000
    memory: int = 100_000
    small: int = 3_000
    large: int = 300_000


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table; it passes while `value` is at most `limit`."""

    name: str
    value: float
    limit: float
    unit: str
    low: float
    high: float

    @property
    def passes(self) -> bool:
        return self.value <= self.limit


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the benchmarks work, and the ledger that is built beside them."""

    folder: Path
    sizes: Sizes

    @property
    def state(self) -> Path:
        return self.folder / "state"


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    sizes = Sizes(*(options.sizes or ()))
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), sizes)
        os.environ["CARDCHAIN_STATE"] = str(bench.state)
        # The large ledger takes longest; processor time lets it be built beside the others.
        with get_context("spawn").Pool(1) as pool:
            large = pool.apply_async(logs.ledger, (bench.folder, sizes.large))
            results = [_measured(benchmark, bench, options.gate) for benchmark in ALONE]
            small = logs.ledger(bench.folder, sizes.small)
            ledgers = (small, large.get())
        for benchmark in APPENDING:  # these need both cores
            results.append(_measured(benchmark, bench, options.gate))
        for benchmark in ON_LEDGERS:
            results.append(_measured(partial(benchmark, *ledgers), bench, options.gate))
        _check_ledger(bench, small[0])
    print(_json(results, sizes) if options.json else _table(results))
    return 1 if options.gate and not all(result.passes for result in results) else 0


def _measured(benchmark: Callable[[Bench], Result], bench: Bench, gate: bool) -> Result:
    result = benchmark(bench)
    return benchmark(bench) if gate and not result.passes else result


# Verification.


def verification(bench: Bench) -> Result:
    """Everything the verifier does, over the digests and HMACs that it cannot avoid."""
    from verifier.verify import verify

    log, key = logs.export(bench.folder, bench.sizes.verification)
    paths, keys = [str(log)], [str(key)]
    report = verify(paths, keys)
    assert report.verdict.value == "VERIFIED", report
    assert report.logs[0].counts.records == bench.sizes.verification
    assert verify([str(logs.flipped(log))], keys).verdict.value == "BROKEN"
    floor = _floor(bench.sizes.verification)
    measured = rounds(lambda: cpu(lambda: verify(paths, keys)), lambda: cpu(floor))
    return _ratio("verify / HMAC and SHA-256 of the same bytes", measured, 7)


def _floor(records: int) -> Callable[[], None]:
    """Give the least work: per record one digest of envelope and bare record, and one HMAC."""
    pieces = []
    for raw in Chain().records(records):
        _, openings, payload, _ = cbor2.loads(raw).value
        head = raw[2:16]
        bare = b"\0" + raw[:16] + b"\xa0" + raw[-(len(cbor2.dumps(payload)) + 34) :]
        message = b"\x84\x64MAC0" + head + b"\x40" + cbor2.dumps(payload)
        pieces.append((openings.get("envelope", b""), bare, message))
    keyed = hmac.new(SECRET, digestmod=hashlib.sha256)

    def floor() -> None:
        sha256 = hashlib.sha256
        for envelope, bare, message in pieces:
            sha256(envelope).digest()
            sha256(bare).digest()
            tag = keyed.copy()
            tag.update(message)
            tag.digest()

    return floor


def memory(bench: Bench) -> Result:
    """The peak of a verification, less 40 MB, per card."""
    log, key = logs.export(bench.folder, bench.sizes.memory)
    _, output = python("-c", PEAK, str(log), str(key))
    verdict, cards, peak = output.split()
    assert verdict == "VERIFIED", output
    _, output = python("-c", PEAK, str(logs.flipped(log)), str(key))
    assert output.startswith("BROKEN"), output
    value = max(0, int(peak) * 1024 - 40_000_000) / int(cards)
    return Result("memory of a verification over 40 MB, per card", value, 420, "B", value, value)


def verify_other(bench: Bench, what: str, limit: float, measure: Measure) -> Result:
    """A verification of another kind, beside the usual one."""
    return _ratio(what, measure(bench.folder, bench.sizes.verification), limit)


def verify_grown(bench: Bench) -> Result:
    """A record of a large log, over one of a small log."""
    few, many = bench.sizes.verification, bench.sizes.memory
    what = f"verify a record of {many:,} / of {few:,}"
    return _ratio(what, verifying.grown(bench.folder, few, many), 1.2)


# Start-up.


def verify_start(bench: Bench) -> Result:
    """Verifying a log of one record, over starting Python."""
    log, key = logs.export(bench.folder, 1)
    call = (*VERIFY, str(log), "--key", str(key))
    assert "VERIFIED" in python(*call)[1]
    python(*VERIFY, str(logs.flipped(log)), "--key", str(key), expect=BROKEN)
    measured = rounds(lambda: python(*call)[0], lambda: python(*PASS)[0])
    return _ratio("verify a log of one record / python -c pass", measured, 5)


def help_start(bench: Bench) -> Result:
    """Printing the help, over starting Python."""
    call = (*CARDCHAIN, "--help")
    assert "issue" in python(*call)[1]
    measured = rounds(lambda: python(*call)[0], lambda: python(*PASS)[0])
    return _ratio("cardchain --help / python -c pass", measured, 8)


# A ledger that grew.


def resolve(small: Ledger, large: Ledger, bench: Bench) -> Result:
    """Approving a card in a fresh process: a hundred times the records, the same cost."""

    def approve(ledger: Ledger) -> float:
        path, cards = ledger
        card = cards.pop().hash.hex()
        call = ("approve", str(path), card, "--approver", "user:approver-1")
        seconds, output = python(*CARDCHAIN, *call, state=bench.state)
        assert "approved" in output, output
        return seconds

    measured = rounds(lambda: approve(large), lambda: approve(small))
    return _ratio(_grown("cardchain approve", bench.sizes), measured, 1.5)


def show(small: Ledger, large: Ledger, bench: Bench) -> Result:
    """Showing a card in a fresh process."""

    def one(ledger: Ledger) -> float:
        path, cards = ledger
        call = ("show", str(path), cards[0].hash.hex())
        seconds, output = python(*CARDCHAIN, *call, state=bench.state)
        assert cards[0].hash.hex() in output, output
        return seconds

    measured = rounds(lambda: one(large), lambda: one(small))
    return _ratio(_grown("cardchain show", bench.sizes), measured, 1.5)


def appended(measure: Callable[[Path], appending.Measured], bench: Bench) -> Result:
    """One of the measurements of appending."""
    measured = measure(bench.folder)
    return _ratio(measured.name, measured.ratios, measured.limit)


def resolve_open(small: Ledger, large: Ledger, bench: Bench) -> Result:
    """Approving a card in a ledger that is open."""
    measured = appending.resolve_grown(small, large)
    return _ratio(_grown("Ledger.resolve", bench.sizes), measured, 1.3)


def open_again(small: Ledger, large: Ledger, bench: Bench) -> Result:
    """Opening a ledger whose index is there."""
    measured = appending.open_grown(small, large)
    return _ratio(_grown("Ledger.open", bench.sizes), measured, 2)


def checkpoint(small: Ledger, large: Ledger, bench: Bench) -> Result:
    """Signing a checkpoint in a ledger that is open."""
    measured = signing.checkpoint(small[0], large[0])
    return _ratio(_grown("Ledger.checkpoint", bench.sizes), measured, 1.5)


def receipt(small: Ledger, large: Ledger, bench: Bench) -> Result:
    """Writing a receipt in a ledger that is open."""
    measured = signing.receipt(small[0], large[0], bench.folder)
    return _ratio(_grown("Ledger.receipt", bench.sizes), measured, 1.8)


def receipt_size(small: Ledger, large: Ledger, bench: Bench) -> Result:
    """The receipt of a card with four records, less its envelope."""
    size = signing.receipt_size(large[0], bench.folder)
    name = f"a receipt at {bench.sizes.large:,} records, less the envelope"
    return Result(name, size, 8_192, "B", size, size)


APPENDING = tuple(partial(appended, measure) for measure in appending.ALONE)
VERIFYING = [
    partial(verify_other, what=what, limit=limit, measure=measure)
    for what, limit, measure in (
        ("verify without a key / with it", 1.25, verifying.without_key),
        ("verify under a profile / without", 3.5, verifying.under_profile),
        ("verify the last twentieth of a file / all of it", 0.35, verifying.since),
        ("verify with 2 jobs, here / with 1", 0.65, verifying.shared),
    )
]
ALONE = (verification, *VERIFYING, memory, verify_grown, verify_start, help_start)
ON_LEDGERS = (resolve, show, resolve_open, open_again, checkpoint, receipt, receipt_size)


def _check_ledger(bench: Bench, path: Path) -> None:
    """The small ledger holds after the decisions; a changed bit of it is seen.

    Opening the large one for the first time checked each of its tags and links already.
    """
    call = (*CARDCHAIN, "audit", "verify", str(path))
    assert python(*call, state=bench.state)[1].rstrip().endswith("VERIFIED")
    (segment,) = (path / "segments").iterdir()
    changed = logs.flipped(segment)
    changed.replace(segment)
    python(*call, state=bench.state, expect=BROKEN)


# What is printed.


def _grown(what: str, sizes: Sizes) -> str:
    return f"{what} at {sizes.large:,} records / at {sizes.small:,}"


def _ratio(name: str, measured: Spread, limit: float) -> Result:
    return Result(name, measured.median, limit, "x", measured.low, measured.high)


def _table(results: list[Result]) -> str:
    head = f"{'':4}  {'value':>9}  {'limit':>7}  {'from':>7}  {'to':>7}"
    lines = [f"{head}  what (median of {ROUNDS} rounds)"]
    lines += [
        f"{'ok' if item.passes else 'OVER':4}  {item.value:7.2f} {item.unit}  {item.limit:7.2f}  "
        f"{item.low:7.2f}  {item.high:7.2f}  {item.name}"
        for item in results
    ]
    return "\n".join(lines)


def _json(results: list[Result], sizes: Sizes) -> str:
    return json.dumps(
        {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "rounds": ROUNDS,
            "sizes": asdict(sizes),
            "results": [asdict(item) | {"passes": item.passes} for item in results],
        },
        indent=2,
    )


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a result is over its limit")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs=4,
        metavar=("VERIFICATION", "MEMORY", "SMALL", "LARGE"),
        help="numbers of records, for a quick try",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
