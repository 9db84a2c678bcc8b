"""What is measured: the entries of the table of docs/performance.md, with their limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path

import appending
import commands
import logs
import signing
import verifying
from commands import Ledger
from measure import Spread


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many records each benchmark takes.

    A ledger of `large` records is held against one of `small`; opening `most` against `few`.
    """

    verification: int
    page: int
    memory: int
    small: int
    large: int
    few: int
    most: int


FULL = Sizes(20_000, 20_000, 1_000_000, 10_000, 1_000_000, 3_000, 3_000_000)
GATE = Sizes(10_000, 2_000, 60_000, 3_000, 60_000, 3_000, 60_000)


class Bench:
    """Where the benchmarks work, and the ledgers that a second process builds beside them."""

    def __init__(self, folder: Path, sizes: Sizes, pool: Pool) -> None:
        """Work in a folder; nothing is built before `build`."""
        self.folder = folder
        self.sizes = sizes
        self._pool = pool
        self._ledgers: dict[int, AsyncResult[Ledger]] = {}

    def build(self, *records: int) -> None:
        """Let ledgers be built, in this order."""
        for count in records:
            if count not in self._ledgers:
                result = self._pool.apply_async(logs.ledger, (self.folder, count))
                self._ledgers[count] = result

    def ledger(self, records: int) -> Ledger:
        """Give a ledger and its open cards, when it is built."""
        self.build(records)
        return self._ledgers[records].get()

    def check(self) -> None:
        """Each ledger is VERIFIED after all that was done in it, and a changed bit is seen."""
        for result in self._ledgers.values():
            logs.check(result.get()[0])
        self._ledgers.clear()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the table; `what` may name a size. With `gate` it belongs to the short set."""

    name: str
    what: str
    limit: float
    measure: Callable[[Bench], Spread]
    gate: bool = True
    unit: str = "x"


def _verified(measure: Callable[[Path, int], Spread]) -> Callable[[Bench], Spread]:
    return lambda bench: measure(bench.folder, bench.sizes.verification)


def _grown(measure: Callable[[Ledger, Ledger], Spread]) -> Callable[[Bench], Spread]:
    return lambda bench: measure(bench.ledger(bench.sizes.small), bench.ledger(bench.sizes.large))


def _appended(measure: Callable[[Path], Spread]) -> Callable[[Bench], Spread]:
    return lambda bench: measure(bench.folder)


def _of_two_sizes(measure: Callable[[Path, int, int], Spread]) -> Callable[[Bench], Spread]:
    return lambda bench: measure(bench.folder, bench.sizes.verification, bench.sizes.memory)


def _page(bench: Bench) -> Spread:
    return verifying.page(bench.folder, bench.sizes.page)


def _page_seconds(bench: Bench) -> Spread:
    seconds = _page(bench).seconds
    assert seconds is not None
    return Spread(seconds, seconds, seconds)


def _open(bench: Bench) -> Spread:
    return appending.open_grown(bench.ledger(bench.sizes.few), bench.ledger(bench.sizes.most))


def _receipt(bench: Bench) -> Spread:
    small, large = bench.ledger(bench.sizes.small), bench.ledger(bench.sizes.large)
    return signing.receipt(small[0], large[0], bench.folder)


def _receipt_size(bench: Bench) -> Spread:
    return signing.receipt_size(bench.ledger(bench.sizes.large)[0], bench.folder)


def _checkpoint(small: Ledger, large: Ledger) -> Spread:
    return signing.checkpoint(small[0], large[0])


_LARGE = "at {large:,} records / at {small:,}"
ALONE = (
    Entry(
        "verify",
        "a full verification / HMAC and SHA-256 of the same bytes",
        7.5,
        _verified(verifying.whole),
    ),
    Entry(
        "verify-no-key",
        "a verification without a key / with it",
        1.1,
        _verified(verifying.without_key),
    ),
    Entry(
        "verify-profile",
        "a verification of cards under a profile / without",
        2.5,
        _verified(verifying.under_profile),
    ),
    Entry(
        "verify-since",
        "a verification of the last twentieth of a file / of all of it",
        0.25,
        _verified(verifying.since),
    ),
    Entry(
        "verify-bernstein",
        "a verification of a log of Bernstein / HMAC and SHA-256 of the same bytes",
        6.25,
        _verified(verifying.of_bernstein),
    ),
    Entry("page", "a report page of {page:,} records / their verification", 18, _page),
    Entry(
        "page-seconds",
        "processor time of a report page of {page:,} records",
        5,
        _page_seconds,
        gate=False,
        unit="s",
    ),
    Entry(
        "memory",
        "peak memory of a verification of {memory:,} records over 40 MB, per card",
        420,
        lambda bench: verifying.memory(bench.folder, bench.sizes.memory),
        gate=False,
        unit="B",
    ),
    Entry(
        "memory-grown",
        "peak memory that a card adds, from {verification:,} records to {memory:,}",
        500,
        _of_two_sizes(verifying.memory_grown),
        unit="B",
    ),
    Entry(
        "verify-grown",
        "a record of {memory:,}, verified / of {verification:,}",
        1.2,
        _of_two_sizes(verifying.grown),
    ),
    Entry(
        "start-verify",
        "verifying a log of one record / python -c pass",
        6,
        lambda bench: commands.verify_start(bench.folder),
    ),
    Entry("start-help", "cardchain --help / python -c pass", 7.5, lambda _: commands.help_start()),
)
ON_LEDGERS = (
    Entry("cli-approve", f"cardchain approve {_LARGE}", 1.25, _grown(commands.approve)),
    Entry("cli-show", f"cardchain show {_LARGE}", 1.25, _grown(commands.show)),
    Entry("resolve", f"Ledger.resolve {_LARGE}", 1.5, _grown(appending.resolve_grown)),
    Entry("open", "Ledger.open at {most:,} records / at {few:,}", 2, _open),
    Entry("checkpoint", f"Ledger.checkpoint {_LARGE}", 1.25, _grown(_checkpoint)),
    Entry("receipt", f"Ledger.receipt {_LARGE}", 1.8, _receipt),
    Entry(
        "receipt-size",
        "a receipt at {large:,} records, less the envelope",
        8_192,
        _receipt_size,
        unit="B",
    ),
)
APPENDING = (
    Entry(
        "append-one",
        "one durable record / write and sync of its bytes",
        1.25,
        _appended(appending.single),
    ),
    Entry(
        "append-64",
        "a record of 64 appended at once / one by one",
        1 / 20,
        _appended(partial(appending.many, 64)),
    ),
    Entry(
        "append-256",
        "a record of 256 appended at once / one by one",
        1 / 25,
        _appended(partial(appending.many, 256)),
    ),
    Entry(
        "threads",
        "a record of 32 threads / of one writer, a sync of 2 ms",
        1 / 10,
        _appended(appending.threads),
    ),
    Entry(
        "threads-issue",
        "a card issued by 32 threads / by one writer, a sync of 2 ms",
        1 / 5,
        _appended(appending.threads_issue),
    ),
    Entry(
        "threads-disk",
        "a record of 32 threads / of one writer, on this disk",
        1 / 3,
        _appended(appending.threads_disk),
        gate=False,
    ),
    Entry(
        "threads-wait",
        "syncs that the 99th of 100 callers waits for / the 50th, 32 threads",
        5,
        _appended(appending.fairness),
    ),
    Entry(
        "processes",
        "a record of 4 processes / of one, a sync of 2 ms",
        1 / 1.2,
        _appended(appending.processes),
    ),
)
BY_THE_CLOCK = (  # on every core, so when no ledger is being built any more
    Entry(
        "verify-jobs",
        "time of a verification with 2 jobs / with 1",
        1 / 1.5,
        lambda bench: verifying.shared(bench.folder, bench.sizes.memory // 10),
        gate=False,
    ),
)
ENTRIES = ALONE + ON_LEDGERS + APPENDING + BY_THE_CLOCK
