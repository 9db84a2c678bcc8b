"""Callers that wait at one time share a turn (architecture.md): each gets its own answer."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ledger import Ledger, Proposal, ProposalInvalid, Refused
from ledger.batch import Ask, Batch, Gathering
from ledger.errors import Dead, LockTimeout, StoreFailed
from ledger.turn import Turn

Propose = Callable[..., Proposal]


class Disk:
    """A sync that waits while it is held, fails while it is told to, and counts."""

    def __init__(self) -> None:
        self.failing = False
        self.calls = 0
        self.begun = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def __call__(self, descriptor: int) -> None:
        self.calls += 1
        self.begun.set()
        assert self.free.wait(20)
        if self.failing:
            raise OSError(errno.EIO, "injected")

    def hold(self) -> None:
        self.free.clear()
        self.begun.clear()


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def shared(host: Path, tmp_path: Path, disk: Disk) -> Iterator[Ledger]:
    with Ledger.init(tmp_path / "approvals", name="test", sync=disk) as made:
        yield made


class Caller(threading.Thread):
    """A thread that keeps the answer or the error of one call."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.act = act
        self.answer: object = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self.act()
        except BaseException as error:
            self.error = error

    def over(self) -> Caller:
        self.join(20)
        assert not self.is_alive(), "nobody may be left waiting"
        return self


def issuing(ledger: Ledger, proposal: Proposal) -> Caller:
    return Caller(lambda: ledger.issue(proposal))


def gather(ledger: Ledger, count: int) -> None:
    """Return when `count` callers wait for the next turn."""
    gathering = ledger._log._gathering
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        batch = gathering._open
        if batch is not None and len(batch.asks) == count:
            return
        time.sleep(0.001)
    raise AssertionError(f"no batch of {count}")


def require_linear(ledger: Ledger, count: int) -> None:
    records = list(ledger.records())
    assert [record.seq for record in records] == list(range(count))
    digests = [bytes(32), *(record.digest for record in records)]
    assert [record.prev for record in records] == digests[:-1]


def test_callers_that_wait_for_the_lock_share_one_sync(
    shared: Ledger, disk: Disk, proposal: Propose
) -> None:
    with shared._log.store.exclusive():
        callers = [issuing(shared, proposal(f"step {n}")) for n in range(16)]
        gather(shared, 16)
        disk.calls = 0
    answers = [caller.over().answer for caller in callers]
    assert disk.calls == 1
    assert sorted(answer.seq for answer in answers) == list(range(1, 17))  # type: ignore[attr-defined]
    require_linear(shared, 17)


def test_each_of_a_batch_is_decided_over_those_before_it(shared: Ledger, proposal: Propose) -> None:
    """The same step twice: one card, and the other caller gets the record of it."""
    with shared._log.store.exclusive():
        callers = [issuing(shared, proposal("same")) for _ in range(4)]
        gather(shared, 4)
    assert {caller.over().answer.seq for caller in callers} == {1}  # type: ignore[attr-defined]
    require_linear(shared, 2)


def test_an_error_of_one_is_no_error_of_the_others(shared: Ledger, proposal: Propose) -> None:
    """It takes back what it appended, too."""

    def fails(turn: Turn) -> None:
        turn.append("configured", None, {"by": "user:operator-1", "vkey": "k"})
        raise ZeroDivisionError

    with shared._log.store.exclusive():
        callers = [
            issuing(shared, proposal("a")),
            Caller(lambda: shared._log.run(fails)),
            Caller(lambda: shared.settle(bytes(32), "failed")),
            Caller(lambda: shared.clock_reset(by="user:operator-1", reason="other")),
            issuing(shared, proposal("b")),
        ]
        gather(shared, 5)
    one, two, three, four, five = (caller.over() for caller in callers)
    assert isinstance(two.error, ZeroDivisionError)
    assert isinstance(three.error, Refused)
    assert three.error.recorded
    assert isinstance(four.error, ProposalInvalid)
    assert (one.error, five.error) == (None, None)
    require_linear(shared, 4)
    assert len(shared.pending()) == 2


def test_a_failed_sync_is_told_to_all_who_share_it(
    shared: Ledger, disk: Disk, proposal: Propose, host: Path
) -> None:
    (head,) = host.glob("cardchain/*/head")
    with shared._log.store.exclusive():
        callers = [issuing(shared, proposal(f"step {n}")) for n in range(4)]
        callers.append(Caller(lambda: shared.settle(bytes(32), "failed")))
        gather(shared, 5)
        disk.failing = True
        before = head.read_bytes()
    errors = [caller.over().error for caller in callers]
    assert [type(error) for error in errors] == [StoreFailed] * 5
    assert len({id(error) for error in errors}) == 5
    assert head.read_bytes() == before
    disk.failing = False
    with pytest.raises(Dead):
        shared.issue(proposal("later"))
    with Ledger.open(shared.path) as again:
        require_linear(again, again.status().count)


def test_a_lock_that_is_not_had_is_told_to_all_who_wait(
    shared: Ledger, proposal: Propose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared._log.store._lock, "_timeout", 0.3)  # type: ignore[attr-defined]
    with shared._log.store.exclusive():
        callers = [issuing(shared, proposal(f"step {n}")) for n in range(3)]
        errors = [caller.over().error for caller in callers]
    assert [type(error) for error in errors] == [LockTimeout] * 3
    assert shared.status().count == 1


class Stop(BaseException):
    """What ends a thread from outside."""


@pytest.mark.parametrize("stage", ["deciding", "writing", "syncing"])
def test_whatever_ends_a_leader_leaves_nobody_waiting(
    shared: Ledger, disk: Disk, proposal: Propose, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the write the others are decided anew; after it they sync; between, they are told."""
    armed = True

    def stop(after: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object) -> object:
            nonlocal armed
            if armed and threading.current_thread() is callers[0]:
                armed = False
                raise Stop
            return after(*args)

        return run

    log = shared._log
    if stage == "deciding":
        monkeypatch.setattr(log._source.replay, "append", stop(log._source.replay.append))
    elif stage == "writing":
        monkeypatch.setattr("ledger.store.files.write", stop(os.write))
    else:
        monkeypatch.setattr(log.store, "_sync", stop(log.store._sync))  # type: ignore[attr-defined]
    callers: list[Caller] = []
    with log.store.exclusive():
        for n in range(4):
            callers.append(issuing(shared, proposal(f"step {n}")))
            gather(shared, n + 1)
    leader, *others = (caller.over() for caller in callers)
    assert isinstance(leader.error, Stop)
    if stage == "writing":
        assert {type(caller.error) for caller in others} <= {StoreFailed, Dead}
        with pytest.raises(Dead):
            shared.status()
        with Ledger.open(shared.path) as again:
            require_linear(again, 1)
    else:
        assert [caller.error for caller in others] == [None] * 3
        require_linear(shared, 4 if stage == "deciding" else 5)


def test_an_interrupt_takes_a_waiter_out_of_the_batch(shared: Ledger, proposal: Propose) -> None:
    """The main thread waits behind a leader; Ctrl-C ends its call and nobody else's."""
    store = shared._log.store
    with store.exclusive():
        leader = issuing(shared, proposal("leader"))
        gather(shared, 1)

        def interrupt() -> None:
            gather(shared, 2)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        other = Caller(interrupt)
        with pytest.raises(KeyboardInterrupt):
            shared.issue(proposal("interrupted"))
        follower = issuing(shared, proposal("follower"))
        gather(shared, 2)
    assert other.over().error is None
    assert (leader.over().error, follower.over().error) == (None, None)
    require_linear(shared, 3)


def test_a_child_of_a_fork_waits_for_no_thread_of_its_parent(
    shared: Ledger, disk: Disk, proposal: Propose
) -> None:
    """It forks while a batch gathers, whose leader does not live in the child."""
    disk.hold()
    syncing = issuing(shared, proposal("a"))
    assert disk.begun.wait(20)
    with shared._log.store.exclusive():
        waiting = [issuing(shared, proposal(f"step {n}")) for n in range(3)]
        gather(shared, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            disk.free.set()
            with suppress(BaseException):
                os._exit(0 if shared.issue(proposal("child")).seq >= 2 else 3)
            os._exit(1)
    disk.free.set()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [caller.over().error for caller in (syncing, *waiting)] == [None] * 4
    require_linear(shared, 6)


def test_a_look_waits_for_no_writer(shared: Ledger, proposal: Propose) -> None:
    card = shared.issue(proposal("a"))
    with shared._log.store.exclusive():
        looks = [
            Caller(lambda: shared.card(card).state),
            Caller(lambda: len(shared.pending())),
            Caller(lambda: shared.status().count),
            Caller(lambda: len(shared.events(card))),
            Caller(lambda: shared.find(card.hash[:12])),
        ]
        found = [look.over().answer for look in looks]
    assert found == ["OPEN", 1, 2, 1, card.hash_bytes]


def test_a_look_holds_up_no_writer(shared: Ledger, proposal: Propose) -> None:
    shared.issue(proposal("a"))
    with shared._log._looking:
        assert shared.issue(proposal("b")).seq == 2


def test_a_look_sees_all_that_was_answered(shared: Ledger, proposal: Propose) -> None:
    """Also what another writer appended, and what the index of this one does not have yet."""
    shared.issue(proposal("a"))
    with Ledger.open(shared.path) as other:
        card = other.issue(proposal("b"))
        assert shared.card(card).state == "OPEN"
        shared.resolve(card, "reject", approver="user:approver-1")
        assert other.card(card).state == "REJECTED"
        assert [status.state for status in other.pending()] == ["OPEN"]


def test_a_look_waits_until_what_it_saw_is_durable(
    shared: Ledger, disk: Disk, proposal: Propose
) -> None:
    disk.hold()
    writer = issuing(shared, proposal("a"))
    assert disk.begun.wait(20)
    look = Caller(lambda: shared.status().count)
    look.join(0.1)
    assert look.is_alive()
    disk.free.set()
    assert look.over().answer == 2
    assert writer.over().error is None


def test_bulk_is_one_sync_and_answers_in_order(
    shared: Ledger, disk: Disk, proposal: Propose
) -> None:
    first = shared.issue(proposal("b", reasoning="other"))
    disk.calls = 0
    other = proposal("b", arguments={"order": "SO-1002"})
    answers = shared.issue_many([proposal("a"), other, proposal("c"), proposal("a")])
    assert disk.calls == 1
    a, refused, c, again = answers
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.record.seq) == ("open_exists", 3)
    assert not isinstance(a, Refused)
    assert not isinstance(c, Refused)
    assert not isinstance(again, Refused)
    assert (a.seq, c.seq, again.seq) == (2, 4, 2)
    assert shared.card(first).state == "OPEN"
    assert shared.issue_many([]) == []
    require_linear(shared, 5)


def test_a_bulk_with_one_that_is_malformed_issues_none(
    shared: Ledger, proposal: Propose, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProposalInvalid) as caught:
        shared.issue_many([proposal("a"), "b", proposal("c")])  # type: ignore[list-item]
    assert caught.value.pointer == "/1"
    with pytest.raises(ProposalInvalid, match="1024"):
        shared.issue_many(proposal(str(n)) for n in range(1025))
    monkeypatch.setattr("ledger.codec.MAX_BARE", 340)  # so that only the runtime is too large
    with pytest.raises(ProposalInvalid) as caught:
        shared.issue_many([proposal("a"), proposal("b")], runtime={"name": "r" * 256})
    assert caught.value.pointer == "/0"
    assert shared.status().count == 1
    assert shared.pending() == ()


def test_a_batch_over_a_rotation_is_written_whole(
    host: Path, tmp_path: Path, proposal: Propose, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.init(tmp_path / "approvals", name="test") as ledger:
        monkeypatch.setattr(ledger._log.store, "_segment_bytes", 3000)
        ledger.issue_many([proposal(f"step {n}") for n in range(20)])
        assert ledger.status().segments > 3
        assert len(ledger.pending()) == 20
        require_linear(ledger, 21)
    with Ledger.open(tmp_path / "approvals") as again:
        require_linear(again, 21)


# The gathering alone


def test_a_second_interrupt_while_the_first_is_handled_strands_nobody() -> None:
    """The leader is stopped, and stopped again while it lets the others go."""
    gathering = Gathering()
    follower: list[Caller] = []
    stops = 0

    class Stopped(Batch):
        __slots__ = ()

        def wake(self) -> None:
            nonlocal stops
            stops += 1
            if stops == 1:
                raise Stop
            super().wake()

    ask = Ask(lambda turn: None)

    def lead(batch: Batch) -> None:
        batch.__class__ = Stopped
        follower.append(Caller(lambda: gathering.share(Ask(lambda turn: None), lead)))
        while len(batch.asks) < 2:
            time.sleep(0.001)
        raise Stop

    with pytest.raises(Stop):
        gathering.share(ask, lead)
    assert stops == 2
    assert follower[0].over().error is None


def test_a_batch_that_is_closed_takes_nobody_in() -> None:
    gathering, led = Gathering(), []

    def lead(batch: Batch) -> None:
        gathering.close(batch)
        led.append(batch)
        if len(led) == 1:
            gathering.share(Ask(lambda turn: None), lead)

    gathering.share(Ask(lambda turn: None), lead)
    assert [len(batch.asks) for batch in led] == [1, 1]
