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
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


@dataclass(slots=True)
class Slow:
    """A sync that takes a fixed time, and no processor; it counts."""

    seconds: float = SYNC_S
    calls: int = 0

    def __call__(self, descriptor: int) -> None:
        time.sleep(self.seconds)
        self.calls += 1


# One record, and many in one turn


def single(folder: Path) -> Spread:
    """Seal, write and sync one record of 1.2 kB, over a write and a sync of the same bytes.

    Processor time, and 2 ms for a sync: a disk with a cache syncs in less than a record takes.
    """
    with _lowest(folder, 60 * ROUNDS, sync=Slow(0)) as low:
        bare = os.open(folder / f"bare-{next(_NUMBERS)}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def cost(act: Callable[[], object]) -> float:
            return statistics.median(cpu(act) for _ in range(60)) + SYNC_S

        one, write = partial(low.append, 1), lambda: os.write(bare, low.last)
        measured = rounds(lambda: cost(one), lambda: cost(write))
        os.close(bare)
    return measured


def many(size: int, folder: Path) -> Spread:
    """Append `size` records in one turn, over one by one: processor time, and 2 ms for a sync."""

    def cost(records: int) -> float:
        return cpu(lambda: low.append(records)) + SYNC_S

    with _lowest(folder, (3 * size + 30) * ROUNDS, sync=Slow(0)) as low:
        return rounds(
            lambda: statistics.median(cost(size) for _ in range(3)) / size,
            lambda: statistics.median(cost(1) for _ in range(30)),
        )


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
    logs.check(path, 1 + records)


# Many callers


def threads(folder: Path) -> Spread:
    """Append by 32 threads, each waiting for its own record, over one writer."""
    return _threads(folder, _append, Slow(), per=30)


def threads_issue(folder: Path) -> Spread:
    """Issue whole cards by 32 threads, over one writer."""
    return _threads(folder, _issue, Slow(), per=10)


def threads_disk(folder: Path) -> Spread:
    """Append by 32 threads with the sync of the disk, over one writer."""
    return _threads(folder, _append, None, per=30)


def fairness(folder: Path) -> Spread:
    """The wait of the 99th of 100 callers over that of the 50th, in syncs, of 32 threads."""
    sync, per, waited = Slow(), 30, []
    with _made(folder, sync=sync) as ledger:
        for _ in range(ROUNDS):
            waits: list[float] = []

            def act(ledger: Ledger, waits: list[float] = waits) -> None:
                before = sync.calls
                _append(ledger)
                waits.append(sync.calls - before)

            _together(ledger, act, THREADS, per)
            waited.append((statistics.quantiles(waits, n=100)[98], statistics.median(waits)))
        path = ledger.path
    logs.check(path, 1 + per * ROUNDS * THREADS)
    return replace(spread(waited), seconds=None)


def _threads(
    folder: Path,
    act: Callable[[Ledger], None],
    sync: Callable[[int], None] | None,
    per: int,
) -> Spread:
    """Give the time of a record of many threads over one."""

    def best(callers: int) -> float:
        tries = [_together(ledger, act, callers, per) for _ in range(TRIES)]
        return min(tries) / callers / per

    options = {} if sync is None else {"sync": sync}
    with _made(folder, **options) as ledger:
        measured = rounds(lambda: best(THREADS), lambda: best(1))
        path = ledger.path
    logs.check(path, 1 + TRIES * per * ROUNDS * (1 + THREADS))
    return measured


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


def processes(folder: Path) -> Spread:
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
            measured = rounds(
                lambda: _at_once(pool, path, per, go, PROCESSES),
                lambda: _at_once(pool, path, per, alone, 1),
            )
    logs.check(path, 1 + PROCESSES + TRIES * ROUNDS * per * (PROCESSES + 1))
    return measured


def _at_once(pool: Any, path: Path, per: int, go: Any, processes: int) -> float:
    """Give the seconds of a record in the fastest try."""
    calls = [(path, per, go)] * processes
    tries = [max(pool.starmap(_process, calls, chunksize=1)) for _ in range(TRIES)]
    return float(min(tries)) / processes / per


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
        def one() -> None:
            ledger.resolve(cards.pop().hash, "approve", approver="user:approver-1")

        return statistics.median(cpu(one) for _ in range(4))

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

        return cpu(work) / 5

    return rounds(lambda: opened(large[0]), lambda: opened(small[0]))


# Ledgers, and what came of them


@contextmanager
def _made(folder: Path, **options: Any) -> Iterator[Ledger]:
    from ledger import Ledger

    with Ledger.init(folder / f"appending-{next(_NUMBERS)}", name="benchmark", **options) as ledger:
        yield ledger
