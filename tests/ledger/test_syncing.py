"""One sync at a time, for all who wait, and nobody is overtaken twice."""

from __future__ import annotations

import threading
import time

import pytest

from ledger.store.syncing import Syncing


class Disk:
    """A sync that waits for leave each time, and makes durable what was written before it began."""

    def __init__(self) -> None:
        self.written = 0
        self.begun = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        before = self.written
        self.begun.release()
        assert self.leave.acquire(timeout=20)
        return before


def wait(syncing: Syncing, count: int, disk: Disk) -> threading.Thread:
    thread = threading.Thread(target=syncing.reach, args=(count, disk), daemon=True)
    thread.start()
    return thread


def waiting(syncing: Syncing, count: int) -> None:
    deadline = time.monotonic() + 20
    while len(syncing._changed._waiters) < count:  # type: ignore[attr-defined]
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_the_sync_after_the_one_under_way_serves_all_who_wait() -> None:
    """Of ten who wrote while a sync was under way, one syncs, and all go on with it."""
    syncing, disk = Syncing(), Disk()
    disk.written = 1
    first = wait(syncing, 1, disk)
    assert disk.begun.acquire(timeout=20)
    disk.written = 11
    others = [wait(syncing, count, disk) for count in range(2, 12)]
    waiting(syncing, 10)
    disk.leave.release()
    first.join(20)
    assert disk.begun.acquire(timeout=20)
    disk.written = 12
    late = wait(syncing, 12, disk)
    disk.leave.release()
    for other in others:
        other.join(20)
        assert not other.is_alive()
    assert disk.begun.acquire(timeout=20)
    disk.leave.release()
    late.join(20)
    assert not late.is_alive()
    assert (disk.calls, syncing.durable) == (3, 12)


def test_what_is_durable_is_not_synced_again() -> None:
    syncing = Syncing()
    calls: list[int] = []

    def sync() -> int:
        calls.append(1)
        return 7

    syncing.reach(3, sync)
    syncing.reach(7, sync)
    assert len(calls) == 1
    syncing.reach(8, lambda: 8)
    assert syncing.durable == 8


def test_a_sync_that_fails_keeps_nobody_from_the_next() -> None:
    syncing = Syncing()

    def fail() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        syncing.reach(1, fail)
    assert syncing.durable == 0
    syncing.reach(1, lambda: 1)
    assert syncing.durable == 1


def test_nobody_syncs_while_a_segment_is_changed() -> None:
    syncing, disk = Syncing(), Disk()
    disk.written = 1
    with syncing.kept_away():
        thread = wait(syncing, 1, disk)
        waiting(syncing, 1)
        assert disk.calls == 0
    assert disk.begun.acquire(timeout=20)
    disk.leave.release()
    thread.join(20)
    assert syncing.durable == 1
