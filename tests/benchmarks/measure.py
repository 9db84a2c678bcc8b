"""How a cost is taken: processor time, in rounds that run everything back to back.

A machine drifts by half between two measurements, and it drifts alike for all that runs within
one round. So a result is the median of the ratios of the rounds, never a time on its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 7
PASS = ("-c", "pass")


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, lowest and highest of what the rounds gave.

    `seconds` is the median time of what stands above the line of a ratio. It is printed, for whom
    it interests, and nothing rests on it.
    """

    median: float
    low: float
    high: float
    seconds: float | None = None


def spread(pairs: Iterable[tuple[float, float]]) -> Spread:
    """Give the ratios of pairs of seconds, one pair for each round."""
    made = list(pairs)
    ratios = [first / second for first, second in made]
    seconds = statistics.median(first for first, _ in made)
    return Spread(statistics.median(ratios), min(ratios), max(ratios), seconds)


def exactly(value: float) -> Spread:
    """A value that is the same in every round."""
    return Spread(value, value, value)


def cpu(work: Callable[[], object]) -> float:
    """Processor seconds of a call in this process."""
    start = time.process_time_ns()
    work()
    return (time.process_time_ns() - start) / 1e9


def clock(work: Callable[[], object]) -> float:
    """Seconds of the clock of a call; for what several processes do at once."""
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1e9


def python(*arguments: str, state: Path | None = None, expect: int = 0) -> tuple[float, str]:
    """Run a fresh interpreter; give its processor seconds and its output.

    Raises AssertionError where its exit status is not `expect`.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled once
    if state is not None:
        environment["CARDCHAIN_STATE"] = str(state)
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    assert process.returncode == expect, f"{arguments}: exit {process.returncode}\n{output}"
    return usage.ru_utime + usage.ru_stime, output


def rounds(first: Callable[[], float], second: Callable[[], float], count: int = ROUNDS) -> Spread:
    """Give first / second, each round measuring both."""
    return spread((first(), second()) for _ in range(count))
