"""Measure what the project promises of its speed: `python3 dev.py bench [--gate]`.

Prints a table, or with `--json` one object. Without arguments everything is measured in the full
sizes, and docs/images/growth.svg is made anew. `--gate` takes the short set in smaller sizes,
measures a result over its limit once more, and exits 1 if it is still over. Method and limits are
described in docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict, astuple, dataclass
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import growth
from entries import ENTRIES, FULL, GATE, ON_LEDGERS, Bench, Entry, Sizes
from measure import ROUNDS, Spread


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of an entry; it passes while the median is at most the limit."""

    entry: Entry
    what: str
    spread: Spread

    @property
    def passes(self) -> bool:
        return self.spread.median <= self.entry.limit


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    entries = _chosen(options)
    sizes = Sizes(*(options.sizes or astuple(GATE if options.gate else FULL)))
    with tempfile.TemporaryDirectory() as name, _builder(Path(name, "state")) as pool:
        bench = Bench(Path(name), sizes, pool)
        if any(entry in ON_LEDGERS for entry in entries):
            # These take longest; processor time lets them be built beside the first benchmarks.
            bench.build(sizes.small, sizes.large, sizes.few, sizes.most)
        results = []
        for entry in entries:
            result = _measured(entry, bench)
            results.append(result if result.passes or not options.gate else _measured(entry, bench))
            print(f"{entry.name} {result.spread.median:.2f}", file=sys.stderr)
        if options.growth or not (options.gate or options.only or options.sizes):
            growth.write(growth.measured(bench))
        bench.check()
    print(_json(results, sizes) if options.json else _table(results))
    return 1 if options.gate and not all(result.passes for result in results) else 0


def _builder(state: Path) -> Pool:
    """Start the process that builds ledgers; it and all others keep their keys in `state`."""
    os.environ["CARDCHAIN_STATE"] = str(state)
    return get_context("spawn").Pool(1)


def _chosen(options: argparse.Namespace) -> list[Entry]:
    if options.growth:
        return []
    if options.only:
        return [entry for entry in ENTRIES if entry.name in options.only]
    return [entry for entry in ENTRIES if entry.gate or not options.gate]


def _measured(entry: Entry, bench: Bench) -> Result:
    return Result(entry, entry.what.format(**asdict(bench.sizes)), entry.measure(bench))


# What is printed.


def _table(results: list[Result]) -> str:
    head = f"{'':4}  {'value':>9}  {'limit':>7}  {'from':>7}  {'to':>7}  {'took':>9}"
    lines = [f"{head}  what (median of {ROUNDS} rounds)"]
    lines += [
        f"{'ok' if item.passes else 'OVER':4}  {item.spread.median:7.2f} {item.entry.unit}"
        f"  {item.entry.limit:7.2f}  {item.spread.low:7.2f}  {item.spread.high:7.2f}"
        f"  {_duration(item.spread.seconds):>9}  {item.entry.name}: {item.what}"
        for item in results
    ]
    return "\n".join(lines)


def _duration(seconds: float | None) -> str:
    """Give a time in the unit that suits it."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} us"


def _json(results: list[Result], sizes: Sizes) -> str:
    return json.dumps(
        {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "rounds": ROUNDS,
            "sizes": asdict(sizes),
            "results": [_described(item) for item in results],
        },
        indent=2,
    )


def _described(item: Result) -> dict[str, Any]:
    return {
        "name": item.entry.name,
        "what": item.what,
        "value": item.spread.median,
        "limit": item.entry.limit,
        "unit": item.entry.unit,
        "low": item.spread.low,
        "high": item.spread.high,
        "seconds": item.spread.seconds,
        "passes": item.passes,
    }


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--gate", action="store_true", help="the short set; exit 1 if a result is over its limit"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--growth", action="store_true", help="make docs/images/growth.svg anew, and nothing else"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=[entry.name for entry in ENTRIES],
        help="measure these entries alone",
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs=7,
        metavar=tuple(name.upper() for name in Sizes.__dataclass_fields__),
        help="numbers of records, for a quick try; of ledgers at least 1000",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
