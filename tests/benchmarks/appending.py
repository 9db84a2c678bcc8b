"""What appending costs: alone, in bulk, by many threads and processes, and in a ledger that grew.

Each benchmark gives the time of a thing over that of another, measured in the same rounds, and
checks the ledger that it wrote: VERIFIED, and BROKEN with one bit of its middle changed.
An injected sync is a sleep, so that such a result does not rest on the disk of the day.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import logs
from generator import Card, Chain
from measure import ROUNDS, Spread, cpu, rounds, spread

if TYPE_CHECKING:
    from ledger import Ledger
    from ledger.chain import Key

SYNC_S = 0.002
THREADS = 32
PROCESSES = 4
TRIES = 3
"""Of so many tries in a round the fastest counts: other work on the machine only adds."""
_NUMBERS = count()


class Measured(NamedTuple):
    """A result: its name, its ratios, and the highest that their median may be."""

    name: str
    ratios: Spread
    limit: float


@dataclass(slots=True)
class Slow:
    """A sync that takes a fixed time, and no processor; it counts."""

    seconds: float = SYNC_S
    calls: int = 0

    def __call__(self, descriptor: int) -> None:
        time.sleep(self.seconds)
        self.calls += 1


# One record, and many in one turn


def single(folder: Path) -> Measured:
    """Seal, write and sync one record of 1.2 kB, over a write and a sync of the same bytes.

    Processor time, and 2 ms for a sync: a disk with a cache syncs in less than a record takes.
    """
    with _lowest(folder, 60 * ROUNDS, sync=Slow(0)) as low:
        bare = os.open(folder / f"bare-{next(_NUMBERS)}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def cost(act: Callable[[], object]) -> float:
            return statistics.median(cpu(act) for _ in range(60)) + SYNC_S

        one, write = partial(low.append, 1), lambda: os.write(bare, low.last)
        ratios = [cost(one) / cost(write) for _ in range(ROUNDS)]
        os.close(bare)
    return Measured("one durable record / write and sync of its bytes", spread(ratios), 1.25)


def many(size: int, limit: float, folder: Path) -> Measured:
    """Append `size` records in one turn, over one by one: processor time, and 2 ms for a sync."""

    def cost(records: int) -> float:
        return cpu(lambda: low.append(records)) + SYNC_S

    with _lowest(folder, (3 * size + 30) * ROUNDS, sync=Slow(0)) as low:
        ratios = [
            statistics.median(cost(size) for _ in range(3))
            / size
            / statistics.median(cost(1) for _ in range(30))
            for _ in range(ROUNDS)
        ]
    return Measured(f"a record of {size} appended at once / one by one", spread(ratios), limit)


class Lowest:
    """The lowest way to append: the lock, the seal, the write and the sync, and no index.

    What it appends was made by the generator of lawful logs, and is sealed again.
    """

    def __init__(self, ledger: Ledger, records: int) -> None:
        """Make that many events, to follow the first record of a new ledger."""
        from ledger.codec import Event, decode

        (first,) = ledger.records()
        self._store = ledger._log.store
        self._key = key = _key(ledger)
        self._end = ledger._log.run(lambda turn: turn.covered.end)
        self._prev = first.digest
        self.last = first.raw
        self._events: Iterator[Callable[[bytes], Event]] = iter(
            [
                partial(_after, record.chain, record.seq, record)
                for record in map(
                    decode,
                    Chain(first.chain, key.secret, 1, first.digest, first.at + 1).records(records),
                )
            ]
        )

    def append(self, size: int) -> None:
        """Append the next events, and return when they are durable."""
        from ledger.chain import seal

        with self._store.exclusive() as tail:
            for event in islice(self._events, size):
                record = seal(event(self._prev), self._key)
                self._end, self._prev = tail.append(self._end, record.raw).end, record.digest
                self.last = record.raw
            tail.write()
        self._store.sync(self._end)


def _after(chain: bytes, seq: int, record: Any, prev: bytes) -> Any:
    from ledger.codec import Event

    return Event(
        chain, seq, prev, record.at, record.kind, record.card, record.body, record.openings
    )


def _key(ledger: Ledger) -> Key:
    from ledger.keys import read

    (key,) = Path(os.environ["CARDCHAIN_STATE"]).glob(f"cardchain/{ledger.chain.hex()}/keys/*")
    return read(key).key


@contextmanager
def _lowest(folder: Path, records: int, **options: Any) -> Iterator[Lowest]:
    start = time.time_ns() // 1_000_000 - records - 60_000
    with _made(folder, clock=lambda: start, **options) as ledger:
        yield Lowest(ledger, records)
        path = ledger.path
    _check(path, 1 + records)


# Many callers


def threads(folder: Path) -> Measured:
    """Append by 32 threads, each waiting for its own record, over one writer."""
    ratios = _threads(folder, _append, Slow(), per=30)
    name = f"a record of {THREADS} threads / of one writer, a sync of 2 ms"
    return Measured(name, spread(ratios), 0.1)


def threads_issue(folder: Path) -> Measured:
    """Issue whole cards by 32 threads, over one writer."""
    ratios = _threads(folder, _issue, Slow(), per=15)
    name = f"a card issued by {THREADS} threads / by one writer, a sync of 2 ms"
    return Measured(name, spread(ratios), 0.2)


def threads_disk(folder: Path) -> Measured:
    """Append by 32 threads with the sync of the disk, over one writer."""
    ratios = _threads(folder, _append, None, per=30)
    name = f"a record of {THREADS} threads / of one writer, on this disk"
    return Measured(name, spread(ratios), 1 / 3)


def fairness(folder: Path) -> Measured:
    """The wait of the 99th of 100 callers over that of the 50th, in syncs, of 32 threads."""
    sync, per, ratios = Slow(), 30, []
    with _made(folder, sync=sync) as ledger:
        for _ in range(ROUNDS):
            waits: list[float] = []

            def act(ledger: Ledger, waits: list[float] = waits) -> None:
                before = sync.calls
                _append(ledger)
                waits.append(sync.calls - before)

            _together(ledger, act, THREADS, per)
            ratios.append(statistics.quantiles(waits, n=100)[98] / statistics.median(waits))
        path = ledger.path
    _check(path, 1 + per * ROUNDS * THREADS)
    name = f"syncs that the 99th of 100 callers waits for / the 50th, {THREADS} threads"
    return Measured(name, spread(ratios), 5)


def _threads(
    folder: Path,
    act: Callable[[Ledger], None],
    sync: Callable[[int], None] | None,
    per: int,
) -> list[float]:
    """Give per round the time of a record of many threads over one."""
    options = {} if sync is None else {"sync": sync}
    with _made(folder, **options) as ledger:
        ratios = []
        for _ in range(ROUNDS):
            alone = min(_together(ledger, act, 1, per) for _ in range(TRIES))
            shared = min(_together(ledger, act, THREADS, per) for _ in range(TRIES))
            ratios.append(shared / THREADS / alone)
        path = ledger.path
    _check(path, 1 + TRIES * per * ROUNDS * (1 + THREADS))
    return ratios


def _together(ledger: Ledger, act: Callable[[Ledger], None], callers: int, per: int) -> float:
    """Give the seconds that some threads take for so many acts each."""
    done = []
    ready = threading.Barrier(callers + 1)

    def work() -> None:
        ready.wait()
        for _ in range(per):
            act(ledger)
        done.append(per)

    workers = [threading.Thread(target=work) for _ in range(callers)]
    for worker in workers:
        worker.start()
    ready.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - start
    assert len(done) == callers, "an act failed"
    return seconds


def processes(folder: Path) -> Measured:
    """Append by 4 processes, over one."""
    per = 40
    with _made(folder, sync=Slow()) as ledger:
        path = ledger.path
    start = get_context("spawn")
    with start.Manager() as manager:
        go = manager.Barrier(PROCESSES)
        alone = manager.Barrier(1)
        with start.Pool(PROCESSES) as pool:
            pool.starmap(_process, [(path, 1, go)] * PROCESSES, chunksize=1)
            ratios = []
            for _ in range(ROUNDS):
                one = min(_at_once(pool, path, per, alone, 1) for _ in range(TRIES))
                four = min(_at_once(pool, path, per, go, PROCESSES) for _ in range(TRIES))
                ratios.append(four / PROCESSES / one)
    _check(path, 1 + PROCESSES + TRIES * ROUNDS * per * (PROCESSES + 1))
    name = f"a record of {PROCESSES} processes / of one, a sync of 2 ms"
    return Measured(name, spread(ratios), 1 / 1.2)


def _at_once(pool: Any, path: Path, per: int, go: Any, processes: int) -> float:
    seconds: list[float] = pool.starmap(_process, [(path, per, go)] * processes, chunksize=1)
    return max(seconds)


def _process(path: Path, per: int, go: Any) -> float:
    from ledger import Ledger

    with Ledger.open(path, sync=Slow()) as ledger:
        go.wait()
        start = time.perf_counter()
        for _ in range(per):
            _append(ledger)
        return time.perf_counter() - start


def _append(ledger: Ledger) -> None:
    """Append one small record by the way of every act, with the index and without a gate."""
    ledger.configure(by="user:operator-1", vkey="benchmark")


def _issue(ledger: Ledger) -> None:
    from ledger import Proposal

    number = next(_NUMBERS)
    ledger.issue(
        Proposal.for_tool_call(
            task=(f"run-{number}", "refund"),
            tool_name="refund.create",
            arguments={"order": f"SO-{number}", "amount": "199.00", "items": [{"count": 2}] * 3},
            reasoning="the order was paid twice " * 12,
            ttl=3600,
        )
    )


# A ledger that grew


def resolve_grown(small: tuple[Path, list[Card]], large: tuple[Path, list[Card]]) -> Spread:
    """Decide a card in an open ledger: processor time in the large one over the small one."""
    from ledger import Ledger

    def decide(ledger: Ledger, cards: list[Card]) -> float:
        cards = [cards.pop() for _ in range(4)]

        def work() -> None:
            for card in cards:
                ledger.resolve(card.hash, "approve", approver="user:approver-1")

        return cpu(work)

    with (
        Ledger.open(small[0], sync=Slow(0)) as few,
        Ledger.open(large[0], sync=Slow(0)) as most,
    ):
        decide(few, small[1])
        decide(most, large[1])
        return rounds(lambda: decide(most, large[1]), lambda: decide(few, small[1]))


def open_grown(small: tuple[Path, list[Card]], large: tuple[Path, list[Card]]) -> Spread:
    """Open a ledger whose index is there, in a process that has the modules: large over small."""
    from ledger import Ledger

    def opened(path: Path) -> float:
        def work() -> None:
            for _ in range(5):
                Ledger.open(path).close()

        return cpu(work)

    return rounds(lambda: opened(large[0]), lambda: opened(small[0]))


# Ledgers, and what came of them


@contextmanager
def _made(folder: Path, **options: Any) -> Iterator[Ledger]:
    from ledger import Ledger

    with Ledger.init(folder / f"appending-{next(_NUMBERS)}", name="benchmark", **options) as ledger:
        yield ledger


def _check(path: Path, records: int) -> None:
    """The ledger holds all that was answered, is VERIFIED, and a changed bit of it is seen."""
    from verifier.verify import verify

    (segment,) = (path / "segments").iterdir()
    chain = Path(os.environ["CARDCHAIN_STATE"], "cardchain")
    keys = [str(key) for key in chain.glob("*/keys/*.json")]
    report = verify([str(path)], keys)
    assert report.verdict.value == "VERIFIED", report
    assert report.logs[0].counts.records == records, (report.logs[0].counts.records, records)
    logs.flipped(segment).replace(segment)
    assert verify([str(path)], keys).verdict.value == "BROKEN"


ALONE: tuple[Callable[[Path], Measured], ...] = (
    single,
    partial(many, 64, 1 / 12),
    partial(many, 256, 1 / 18),
    threads,
    threads_issue,
    threads_disk,
    fairness,
    processes,
)
