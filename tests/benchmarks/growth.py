"""How costs grow with a log and with a ledger: measured, and drawn as docs/images/growth.svg.

`python3 dev.py bench` measures it last, and with `--growth` alone; it writes the picture and its
numbers, docs/images/growth.json. `python tests/benchmarks/growth.py` draws the numbers again.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import appending
import logs
import signing
from measure import ROOT, cpu, python

if TYPE_CHECKING:
    from entries import Bench

PICTURE = ROOT / "docs" / "images" / "growth.svg"
NUMBERS = PICTURE.with_suffix(".json")
RECORDS = (1_000, 10_000, 100_000, 1_000_000)
_ROUNDS = 5
_VERIFY = """
import sys, time
from verifier import verify
verify([sys.argv[3]], [sys.argv[2]])  # for what is imported late
start = time.process_time()
report = verify([sys.argv[1]], [sys.argv[2]])
seconds = time.process_time() - start
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
print(report.verdict.value, report.logs[0].counts.records, seconds, peak)
"""


# Measuring


def measured(bench: Bench, records: Iterable[int] = RECORDS) -> dict[str, Any]:
    """Give the numbers of the picture; each log is VERIFIED. The ledgers are checked by `bench`."""
    sizes = tuple(records)
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.machine()} with {os.cpu_count()} cores, {platform.system()}",
        "verification": [_verification(bench.folder, count) for count in sizes],
        "ledger": _ledgers(bench, sizes),
    }


def _verification(folder: Path, records: int) -> dict[str, float]:
    """Give the time of a record and the peak of the process, each the median of some runs."""
    log, key = logs.export(folder, records)
    first, _ = logs.export(folder, 1)
    times, peaks = [], []
    for _ in range(_ROUNDS if records < 1_000_000 else 1):
        verdict, count, seconds, peak = python("-c", _VERIFY, str(log), str(key), str(first))[
            1
        ].split()
        assert (verdict, int(count)) == ("VERIFIED", records)
        times.append(float(seconds) / records * 1e6)
        peaks.append(int(peak) / 1e6)
    time, most = statistics.median(times), statistics.median(peaks)
    return {"records": records, "microseconds": round(time, 2), "peak_megabytes": round(most, 1)}


def _ledgers(bench: Bench, sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Give the milliseconds of three acts in ledgers of growing size, all in each round."""
    from ledger import Ledger

    made = [bench.ledger(count) for count in sizes]
    acts: list[dict[str, list[float]]] = [{} for _ in sizes]
    with ExitStack() as opened:
        ledgers = [
            opened.enter_context(Ledger.open(path, sync=appending.Slow(0))) for path, _ in made
        ]
        for ledger in ledgers:
            ledger.checkpoint()
        for _ in range(_ROUNDS):
            for taken, ledger, (path, cards) in zip(acts, ledgers, made, strict=True):
                card = cards.pop().hash

                def approve(ledger: Ledger = ledger, card: bytes = card) -> None:
                    ledger.resolve(card, "approve", approver="user:approver-1")

                for name, seconds in (
                    ("open", cpu(lambda path=path: Ledger.open(path).close())),
                    ("resolve", cpu(approve)),
                    ("checkpoint", signing.signed(ledger)),
                ):
                    taken.setdefault(name, []).append(seconds * 1e3)
    return [
        {"records": count}
        | {name: round(statistics.median(times), 2) for name, times in taken.items()}
        for count, taken in zip(sizes, acts, strict=True)
    ]


# Drawing

_SIZE = (1_000, 330)
_LEFT, _TOP, _WIDTH, _HEIGHT, _STEP = 46, 84, 196, 176, 318
_STYLE = """
  .paper { fill: #ffffff } text { fill: #1c2024; font: 13px system-ui, sans-serif }
  .name { font-weight: 600 } .soft { fill: #4d5762; font-size: 12px } .grid { stroke: #c9d1d9 }
  .s0 { stroke: #0b57a4; fill: #0b57a4 } .s1 { stroke: #a3161a; fill: #a3161a }
  .s2 { stroke: #176338; fill: #176338 }
  polyline { fill: none !important; stroke-width: 2 } text.label { stroke: none }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #14181c } text { fill: #e8ecf0 } .soft { fill: #a9b4bf }
    .grid { stroke: #3a444e } .s0 { stroke: #7db8f0; fill: #7db8f0 }
    .s1 { stroke: #ff8f88; fill: #ff8f88 } .s2 { stroke: #7ee2a8; fill: #7ee2a8 }
  }
"""


@dataclass(frozen=True, slots=True)
class _Panel:
    """One chart: what its lines are called, their values, and the unit of these."""

    title: str
    unit: str
    sizes: tuple[int, ...]
    lines: dict[str, tuple[float, ...]]

    @property
    def top(self) -> float:
        """The highest value of the axis: one digit and zeros, above every value."""
        most = max(value for line in self.lines.values() for value in line)
        digit = 10.0 ** int(log10(most) // 1)
        return ceil(most * 1.1 / digit) * digit


def drawn(numbers: dict[str, Any]) -> str:
    """Give the picture of such numbers."""
    width, height = _SIZE
    said = f"Measured on {numbers['date']}: {numbers['interpreter']}, {numbers['machine']}"
    panels = _panels(numbers)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>Costs against the number of records</title>",
        f"<desc>{escape(_description(panels))}</desc>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        '<text class="name" x="20" y="28">Costs against the number of records</text>',
        f'<text class="soft" x="20" y="{height - 14}">{escape(said)}; processor time.</text>',
    ]
    for number, panel in enumerate(panels):
        parts += _chart(panel, _LEFT + number * _STEP)
    return "\n".join([*parts, "</svg>\n"])


def _panels(numbers: dict[str, Any]) -> list[_Panel]:
    logs_, ledgers = numbers["verification"], numbers["ledger"]

    def line(rows: list[dict[str, float]], name: str) -> tuple[float, ...]:
        return tuple(row[name] for row in rows)

    sizes = tuple(int(row["records"]) for row in logs_)
    grown = tuple(int(row["records"]) for row in ledgers)
    acts = {name: line(ledgers, name) for name in ("open", "resolve", "checkpoint")}
    return [
        _Panel("verify a record", "µs", sizes, {"": line(logs_, "microseconds")}),
        _Panel("peak memory of it", "MB", sizes, {"": line(logs_, "peak_megabytes")}),
        _Panel("act in a ledger", "ms", grown, acts),
    ]


def _description(panels: list[_Panel]) -> str:
    """Say every number in words, for those who do not see the picture."""
    return "; ".join(
        f"{' '.join(filter(None, (panel.title, name)))} at {size:,} records: {value} {panel.unit}"
        for panel in panels
        for name, line in panel.lines.items()
        for size, value in zip(panel.sizes, line, strict=True)
    )


def _chart(panel: _Panel, left: int) -> Iterator[str]:
    across, up = _scales(panel, left)
    yield f'<text class="name" x="{left}" y="{_TOP - 22}">{panel.title}, {panel.unit}</text>'
    for value in (0.0, panel.top / 2, panel.top):
        y = up(value)
        yield f'<path class="grid" d="M{left} {y}h{_WIDTH}"/>'
        yield f'<text class="soft" x="{left - 6}" y="{y + 4}" text-anchor="end">{value:g}</text>'
    for size in panel.sizes:
        x, label = across(size), f"{size // 1000:,}k".replace("1,000k", "1M")
        y = _TOP + _HEIGHT + 18
        yield f'<text class="soft" x="{x}" y="{y}" text-anchor="middle">{label}</text>'
    ends = _apart([up(line[-1]) for line in panel.lines.values()])
    for number, (name, line) in enumerate(panel.lines.items()):
        points = [(across(s), up(v)) for s, v in zip(panel.sizes, line, strict=True)]
        joined = " ".join(f"{x},{y}" for x, y in points)
        yield f'<g class="s{number}"><polyline points="{joined}"/>'
        for (x, y), value in zip(points, line, strict=True):
            yield f'<circle cx="{x}" cy="{y}" r="3.5"/>'
            if not name:
                at = f'x="{x}" y="{y - 9}" text-anchor="middle"'
                yield f'<text class="label" {at}>{value:g}</text>'
        if name:
            x, y = across(panel.sizes[-1]) + 9, ends[number] + 4
            yield f'<text class="label" x="{x}" y="{y}">{name} {line[-1]:g}</text>'
        yield "</g>"


def _scales(panel: _Panel, left: int) -> tuple[Callable[[int], float], Callable[[float], float]]:
    """Give where a size stands, on a logarithmic axis, and where a value stands."""
    low, high = log10(panel.sizes[0]), log10(panel.sizes[-1])

    def across(size: int) -> float:
        return round(left + 14 + (_WIDTH - 28) * (log10(size) - low) / (high - low), 1)

    def up(value: float) -> float:
        return round(_TOP + _HEIGHT * (1 - value / panel.top), 1)

    return across, up


def _apart(places: list[float], least: float = 16) -> list[float]:
    """Move places down, so that labels at them do not touch."""
    moved, last = list(places), -least
    for at in sorted(range(len(places)), key=places.__getitem__):
        moved[at] = last = max(places[at], last + least)
    return moved


def write(numbers: dict[str, Any]) -> None:
    """Put the numbers and the picture among the documents."""
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    PICTURE.write_text(drawn(numbers), "utf-8")


if __name__ == "__main__":
    PICTURE.write_text(drawn(json.loads(NUMBERS.read_text("utf-8"))), "utf-8")
