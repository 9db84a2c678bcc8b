"""One contract for every store (spec §7); a new store adds one factory to `STORES`."""

from __future__ import annotations

import errno
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.errors import Dead, LockTimeout, Malformed, StoreFailed
from ledger.store import directory
from ledger.store.contract import ORIGIN, Position, Store, Tail, TornBytes
from ledger.store.files import FileStore
from ledger.store.memory import MemoryStore

LIMIT = 64


def framing(buffer: bytes, start: int = 0) -> int | None:
    """Records of this test: one byte of length, then as many bytes; a length of 0 is none."""
    if start >= len(buffer):
        return None
    length = buffer[start]
    if length == 0:
        raise Malformed("a length of 0", start)
    return length + 1 if start + length < len(buffer) else None


def record(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def fail(*_: object) -> None:
    raise OSError(errno.EIO, "injected")


class Failing:
    """A sync that fails from the first time it is told to."""

    def __init__(self) -> None:
        self.failing = False
        self.calls = 0

    def __call__(self, *_: object) -> None:
        self.calls += 1
        if self.failing:
            fail()


Make = Callable[..., Store]


def memory(path: Path, **options: object) -> Store:
    return MemoryStore(framing, lock_timeout_s=0.05, **options)  # type: ignore[arg-type]


def files(path: Path, **options: object) -> Store:
    if not path.exists():
        directory.make(path)
    return FileStore(
        path,
        framing,
        segment_bytes=LIMIT,
        lock_timeout_s=0.05,
        **options,  # type: ignore[arg-type]
    )


STORES = {"memory": memory, "files": files}


@pytest.fixture(params=STORES.values(), ids=STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    return lambda **options: request.param(tmp_path / "store", **options)


def append(tail: Tail, end: Position, *texts: str) -> Position:
    for text in texts:
        end = tail.append(end, record(text)).end
    tail.write()
    return end


def test_an_empty_store_has_no_records(make: Make) -> None:
    store = make()
    assert list(store.read(ORIGIN)) == []
    assert store.at(ORIGIN) is None
    with store.exclusive() as tail:
        assert tail.rest(ORIGIN) == b""


def test_what_was_appended_is_read_back_in_order_from_anywhere(make: Make) -> None:
    store = make()
    texts = [f"record {number:020}" for number in range(20)]
    with store.exclusive() as tail:
        end = append(tail, ORIGIN, *texts)
    store.sync(end)
    whole = list(store.read(ORIGIN))
    assert [stored.data for stored in whole] == [record(text) for text in texts]
    assert [stored.position.seq for stored in whole] == list(range(20))
    for stored in whole:
        assert store.at(stored.position) == stored.data
        after = [later.data for later in store.read(stored.end)]
        assert after == [record(text) for text in texts[stored.position.seq + 1 :]]


def test_the_place_of_a_record_is_told_when_it_is_appended(make: Make) -> None:
    store = make()
    with store.exclusive() as tail:
        end, places = ORIGIN, []
        for number in range(12):
            stored = tail.append(end, record(f"record {number:020}"))
            places.append(stored)
            end = stored.end
        tail.write()
    assert list(store.read(ORIGIN)) == places


def test_bytes_that_are_no_whole_record_are_the_rest(make: Make) -> None:
    store = make()
    with store.exclusive() as tail:
        end = append(tail, ORIGIN, "a", "b")
        tail.append(end, b"\x05cut")
        tail.write()
        assert [stored.data for stored in tail.read(ORIGIN)] == [record("a"), record("b")]
        assert tail.rest(end) == b"\x05cut"


def test_reading_stops_before_bytes_that_no_record_begins_with(make: Make) -> None:
    store = make()
    with store.exclusive() as tail:
        end = append(tail, ORIGIN, "a")
        tail.append(end, b"\x00" + record("b"))
        tail.write()
        assert [stored.data for stored in tail.read(ORIGIN)] == [record("a")]
        assert tail.rest(end) == b"\x00" + record("b")


def test_torn_bytes_are_set_aside_and_accounted_for_until_a_record_follows(make: Make) -> None:
    store = make()
    torn = b"\x05cut"
    account = (TornBytes(len(torn), hashlib.sha256(torn).digest()),)
    with store.exclusive() as tail:
        end = append(tail, ORIGIN, "a")
        tail.append(end, torn)
        tail.write()
        assert tail.set_aside(end) == account
        assert tail.rest(end) == b""
        assert tail.set_aside(end) == account
        end = append(tail, end, "b")
        assert tail.set_aside(end) == ()
    assert [stored.data for stored in store.read(ORIGIN)] == [record("a"), record("b")]


def test_appending_anywhere_but_at_the_end_fails_and_ends_the_object(make: Make) -> None:
    store = make()
    with store.exclusive() as tail:
        append(tail, ORIGIN, "a")
        with pytest.raises(StoreFailed):
            tail.append(ORIGIN, record("b"))
    with pytest.raises(Dead), store.exclusive():
        pass
    assert [stored.data for stored in store.read(ORIGIN)] == [record("a")]


def test_a_failed_sync_ends_the_object(make: Make) -> None:
    sync = Failing()
    store = make(sync=sync)
    with store.exclusive() as tail:
        end = append(tail, ORIGIN, "a")
    sync.failing = True
    with pytest.raises(StoreFailed):
        store.sync(end)
    sync.failing = False
    with pytest.raises(Dead):
        store.sync(end)
    with pytest.raises(Dead), store.exclusive():
        pass


def test_the_lock_is_free_while_another_waits_for_the_sync(make: Make) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        begun.set()
        assert go_on.wait(10)

    store = make(sync=slow)
    with store.exclusive() as tail:
        end = append(tail, ORIGIN, "a")
    waiting = threading.Thread(target=store.sync, args=(end,))
    waiting.start()
    assert begun.wait(10)
    with store.exclusive() as tail:
        append(tail, end, "b")
    go_on.set()
    waiting.join()
    assert [stored.data for stored in store.read(ORIGIN)] == [record("a"), record("b")]


def test_one_thread_at_a_time_holds_the_tail(make: Make) -> None:
    store = make()
    failures: list[LockTimeout] = []

    def want() -> None:
        try:
            with store.exclusive():
                pass
        except LockTimeout as error:
            failures.append(error)

    with store.exclusive():
        other = threading.Thread(target=want)
        other.start()
        other.join()
    assert len(failures) == 1
    want()
    assert len(failures) == 1


def test_the_tail_is_let_go_after_an_error(make: Make) -> None:
    store = make()
    with pytest.raises(ZeroDivisionError), store.exclusive():
        raise ZeroDivisionError
    with store.exclusive() as tail:
        append(tail, ORIGIN, "a")
