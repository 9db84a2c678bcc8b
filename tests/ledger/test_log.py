"""Opening, recovery, and what a host remembers (spec §4, §5, §7.4; architecture.md)."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import Facts, Ledger, Proposal, Record
from ledger.errors import (
    BrokenLedger,
    ClockWentBack,
    Copied,
    Dead,
    KeyMissing,
    LooseMode,
    RolledBack,
    StoreFailed,
)
from ledger.replay import Replay
from ledger.store.contract import Stored

Propose = Callable[..., Proposal]


@pytest.fixture
def path(ledger: Ledger, proposal: Propose) -> Path:
    """A ledger with three cards, closed."""
    for step in ("a", "b", "c"):
        ledger.issue(proposal(step))
    ledger.close()
    return ledger.path


def segment(path: Path) -> Path:
    return path / "segments" / f"{0:020}.cbor"


def memory(host: Path, name: str) -> Path:
    (found,) = host.glob(f"cardchain/*/{name}")
    return found


def forget(host: Path, *names: str) -> None:
    for name in names:
        for file in host.glob(f"cardchain/*/{name}"):
            file.unlink()


def kinds(ledger: Ledger) -> list[str]:
    return [record.kind for record in ledger.records()]


def test_what_was_answered_is_there_when_it_is_opened_again(path: Path) -> None:
    with Ledger.open(path) as ledger:
        assert kinds(ledger) == ["opened", "issued", "issued", "issued"]
        assert [status.state for status in ledger.pending(0)] == ["OPEN"] * 3


def test_opening_with_its_index_replays_nothing(
    path: Path, host: Path, monkeypatch: pytest.MonkeyPatch, proposal: Propose, clock: Any
) -> None:
    """Opening, a decision and a look cost the same however long the ledger is."""
    replayed: list[int] = []
    take = Replay.take

    def counted(self: Replay, index: Any, stored: Stored, covered: Any) -> Any:
        replayed.append(stored.position.seq)
        return take(self, index, stored, covered)

    monkeypatch.setattr(Replay, "take", counted)
    with Ledger.open(path, clock=clock) as ledger:
        card = ledger.issue(proposal("a"))
        ledger.resolve(card.hash, "approve", approver="user:approver-1")
        ledger.events(card)
        with Ledger.open(path, clock=clock) as other:
            other.issue(proposal("d"))
        ledger.status()
    assert replayed == []
    forget(host, "index.sqlite*")
    Ledger.open(path, clock=clock).close()
    assert replayed == list(range(6))


def test_a_lost_index_costs_one_replay_and_no_answer(
    path: Path, host: Path, proposal: Propose, clock: Callable[[], int]
) -> None:
    forget(host, "index.sqlite*")
    with Ledger.open(path, clock=clock) as ledger:
        assert ledger.status().warnings == ()
        assert ledger.issue(proposal("a")).seq == 1


def test_a_replay_tells_how_far_it_is(
    path: Path, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.catchup._PROGRESS_EVERY", 2)
    forget(host, "index.sqlite*")
    told: list[int] = []
    Ledger.open(path, progress=told.append).close()
    assert told == [2, 4]


def test_a_replay_that_was_interrupted_goes_on_where_it_was(
    path: Path, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.catchup._KEEP_EVERY", 2)
    forget(host, "index.sqlite*")
    replayed: list[int] = []
    take = Replay.take

    def interrupted(self: Replay, index: Any, stored: Stored, covered: Any) -> Any:
        replayed.append(stored.position.seq)
        if replayed == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return take(self, index, stored, covered)

    monkeypatch.setattr(Replay, "take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Ledger.open(path)
    with Ledger.open(path) as ledger:
        assert replayed == [0, 1, 2, 3, 2, 3]
        assert len(ledger.pending(0)) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b"no database"),
        lambda file: file.write_bytes(file.read_bytes()[:5000]),
        lambda file: query(file, "DROP TABLE cards"),
        lambda file: query(file, "UPDATE covered SET digest = zeroblob(32)"),
        lambda file: query(file, "UPDATE covered SET offset = offset + 1"),
        lambda file: query(file, "UPDATE covered SET segment = 3"),
        lambda file: query(file, "PRAGMA user_version = 99"),
        lambda file: query(file, "DELETE FROM covered"),
    ],
)
def test_a_damaged_index_is_made_anew(
    path: Path, host: Path, proposal: Propose, damage: Callable[[Path], None], clock: object
) -> None:
    damage(memory(host, "index.sqlite"))
    with Ledger.open(path, clock=clock) as ledger:  # type: ignore[arg-type]
        assert ledger.issue(proposal("a")).seq == 1
        assert len(ledger.pending()) == 3


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE cards SET state = 'APPROVED', decision = 'approve'",
        "UPDATE cards SET state = 'nonsense'",
        "UPDATE cards SET last = 2",
        "UPDATE events SET offset = 0",
        "DELETE FROM events",
    ],
)
def test_an_index_that_contradicts_the_record_it_points_to_is_made_anew(
    path: Path, host: Path, statement: str, clock: object, facts: Callable[..., Facts]
) -> None:
    query(memory(host, "index.sqlite"), statement)
    with Ledger.open(path, clock=clock) as ledger:  # type: ignore[arg-type]
        card = next(record.card for record in ledger.records() if record.seq == 3)
        assert card is not None
        assert ledger.card(card).state == "OPEN"


def query(file: Path, statement: str) -> None:
    with sqlite3.connect(file) as database:
        database.execute(statement)
    database.close()


def test_a_lost_state_directory_is_a_warning_and_one_replay(
    path: Path, host: Path, proposal: Propose, clock: object
) -> None:
    keys = host.parent / "keys"
    shutil.copytree(next(host.glob("cardchain/*/keys")), keys)
    shutil.rmtree(host)
    with pytest.raises(KeyMissing):
        Ledger.open(path)
    with Ledger.open(path, keys=[keys], clock=clock) as ledger:  # type: ignore[arg-type]
        status = ledger.status()
        assert status.guarded_from == 3
        assert len(status.warnings) == 1
        assert "seq 3" in status.warnings[0]
        assert ledger.issue(proposal("a")).seq == 1
    with Ledger.open(path, keys=[keys]) as ledger:
        assert ledger.status().warnings == ()
        assert ledger.status().guarded_from == 3


def test_a_lost_head_is_a_warning_and_a_full_replay(path: Path, host: Path) -> None:
    forget(host, "head")
    query(memory(host, "index.sqlite"), "UPDATE cards SET state = 'REJECTED'")
    with Ledger.open(path) as ledger:
        assert len(ledger.status().warnings) == 1
        assert len(ledger.pending(0)) == 3


@pytest.mark.parametrize("content", [b"", b"cardchain-head/1", b"{}\n0", bytes(512)])
def test_a_damaged_head_is_as_good_as_none(path: Path, host: Path, content: bytes) -> None:
    memory(host, "head").write_bytes(content)
    with Ledger.open(path) as ledger:
        assert len(ledger.status().warnings) == 1


def test_a_rolled_back_ledger_is_not_opened(path: Path, tmp_path: Path, proposal: Propose) -> None:
    shutil.copytree(path / "segments", tmp_path / "backup")
    with Ledger.open(path) as ledger:
        last = ledger.issue(proposal("d"))
    shutil.copy(tmp_path / "backup" / segment(path).name, segment(path))
    with pytest.raises(RolledBack) as caught:
        Ledger.open(path)
    assert caught.value.seq == last.seq


def test_a_rolled_back_ledger_is_noticed_without_its_index(
    path: Path, host: Path, tmp_path: Path, proposal: Propose
) -> None:
    shutil.copytree(path / "segments", tmp_path / "backup")
    with Ledger.open(path) as ledger:
        ledger.issue(proposal("d"))
    shutil.copy(tmp_path / "backup" / segment(path).name, segment(path))
    forget(host, "index.sqlite*")
    with pytest.raises(RolledBack):
        Ledger.open(path)


def test_another_history_of_the_same_length_is_not_opened(
    path: Path, host: Path, tmp_path: Path, proposal: Propose
) -> None:
    shutil.copytree(path / "segments", tmp_path / "backup")
    with Ledger.open(path) as ledger:
        ledger.issue(proposal("d"))
    head = memory(host, "head").read_bytes()
    shutil.copy(tmp_path / "backup" / segment(path).name, segment(path))
    forget(host, "head", "index.sqlite*")
    with Ledger.open(path) as ledger:
        ledger.issue(proposal("e"))
        ledger.issue(proposal("f"))
    memory(host, "head").write_bytes(head)
    with pytest.raises(RolledBack, match="another record stands there"):
        Ledger.open(path)


def test_a_copied_ledger_is_refused_until_it_is_adopted(
    path: Path, tmp_path: Path, proposal: Propose
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    with pytest.raises(Copied) as caught:
        Ledger.open(copy)
    assert f"cardchain adopt {copy}" in caught.value.hint
    with Ledger.adopt(copy) as ledger:
        assert ledger.issue(proposal("d")).seq == 4
    with Ledger.open(copy) as ledger:
        assert ledger.issue(proposal("e")).seq == 5
    with pytest.raises(Copied):
        Ledger.open(path)


def test_the_original_that_is_open_is_refused_once_a_copy_was_adopted(
    path: Path, tmp_path: Path, proposal: Propose
) -> None:
    original = Ledger.open(path)
    shutil.copytree(path, tmp_path / "copy")
    Ledger.adopt(tmp_path / "copy").close()
    with pytest.raises(Copied), original:
        original.issue(proposal("d"))


def test_an_older_copy_is_not_adopted(path: Path, tmp_path: Path, proposal: Propose) -> None:
    shutil.copytree(path, tmp_path / "copy")
    with Ledger.open(path) as ledger:
        ledger.issue(proposal("d"))
    with pytest.raises(RolledBack):
        Ledger.adopt(tmp_path / "copy")
    with Ledger.open(path) as ledger:
        assert ledger.status().count == 5


def test_a_rolled_back_ledger_goes_on_once_its_records_are_given_up(
    path: Path, tmp_path: Path, proposal: Propose
) -> None:
    shutil.copytree(path, tmp_path / "backup")
    with Ledger.open(path) as ledger:
        lost = ledger.issue(proposal("d")).record
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "backup", path)
    for attempt in (Ledger.open, Ledger.adopt):
        with pytest.raises((RolledBack, Copied)):
            attempt(path)
    with Ledger.adopt(path, rolled_back=True) as ledger:
        assert f"up to seq 4, chain digest {lost.digest.hex()}" in ledger.warnings[0]
        assert ledger.status().guarded_from == 3
    with Ledger.open(path) as ledger:
        assert ledger.warnings == ()
        assert ledger.issue(proposal("e")).seq == 4


def test_a_moved_ledger_is_the_same_ledger(path: Path, tmp_path: Path) -> None:
    path.rename(tmp_path / "moved")
    with Ledger.open(tmp_path / "moved") as ledger:
        assert ledger.status().count == 4


# The tail (spec §7.4)


@pytest.mark.parametrize("cut", [1, 8, 40, 150])
@pytest.mark.parametrize("remembered", [True, False])
def test_a_torn_tail_is_moved_aside_and_named_before_anything_else(
    path: Path, host: Path, proposal: Propose, cut: int, remembered: bool
) -> None:
    torn = segment(path).read_bytes()[:cut]
    with segment(path).open("ab") as file:
        file.write(torn)
    if not remembered:
        forget(host, "head", "index.sqlite*")
    with Ledger.open(path) as ledger:
        ledger.issue(proposal("d"))
        recovered, issued = list(ledger.records(4))
    assert (recovered.kind, issued.kind) == ("recovered", "issued")
    assert recovered.body == {
        "after_seq": 3,
        "length": cut,
        "sha256": hashlib.sha256(torn).digest(),
    }
    (kept,) = (path / "quarantine").iterdir()
    assert kept.read_bytes() == torn


@pytest.mark.parametrize(
    "junk",
    [bytes(4096), b"\xff", b"\xd1\x84\x4d\xff", b"text\n"],
    ids=["zeros", "byte", "header", "text"],
)
def test_junk_above_the_remembered_head_is_torn(path: Path, junk: bytes) -> None:
    with segment(path).open("ab") as file:
        file.write(junk)
    with Ledger.open(path) as ledger:
        assert kinds(ledger)[-1] == "recovered"


@pytest.mark.parametrize("junk", [bytes(4096), b"\xff", b"text\n"])
def test_junk_that_is_no_prefix_is_broken_without_a_remembered_head(
    path: Path, host: Path, junk: bytes
) -> None:
    before = segment(path).read_bytes()
    segment(path).write_bytes(before + junk)
    forget(host, "head", "index.sqlite*")
    with pytest.raises(BrokenLedger) as caught:
        Ledger.open(path)
    assert (caught.value.offset, caught.value.seq) == (len(before), 4)
    assert segment(path).read_bytes() == before + junk
    assert list((path / "quarantine").iterdir()) == []


def test_a_forged_record_above_the_head_is_torn_and_below_it_broken(
    path: Path, host: Path, proposal: Propose
) -> None:
    before = segment(path).stat().st_size
    with Ledger.open(path) as ledger:
        head = memory(host, "head").read_bytes()
        ledger.issue(proposal("d"))
    content = bytearray(segment(path).read_bytes())
    content[-1] ^= 1
    segment(path).write_bytes(content)
    forget(host, "index.sqlite*")
    with pytest.raises(BrokenLedger, match="tag") as caught:
        Ledger.open(path)
    assert (caught.value.offset, caught.value.seq) == (before, 4)
    assert "cardchain audit verify" in caught.value.hint
    memory(host, "head").write_bytes(head)
    with Ledger.open(path) as ledger:
        assert kinds(ledger) == ["opened", "issued", "issued", "issued", "recovered"]


def test_a_change_in_the_middle_is_broken_and_names_the_place(
    path: Path, host: Path, clock: object
) -> None:
    with Ledger.open(path) as ledger:
        records = list(ledger.records())
    start = len(records[0].raw) + len(records[1].raw)
    content = bytearray(segment(path).read_bytes())
    content[start + len(records[2].raw) - 1] ^= 1
    segment(path).write_bytes(content)
    forget(host, "index.sqlite*")
    with pytest.raises(BrokenLedger) as caught:
        Ledger.open(path)
    assert str(caught.value.file) == str(segment(path))
    assert (caught.value.offset, caught.value.seq) == (start, 2)


def test_removed_swapped_and_doubled_records_are_broken(path: Path, host: Path) -> None:
    with Ledger.open(path) as ledger:
        a, b, c, d = (record.raw for record in ledger.records())
    for order in ([a, c, d], [a, c, b, d], [a, b, b, c, d], [b, c, d], [d]):
        segment(path).write_bytes(b"".join(order))
        forget(host, "index.sqlite*")
        with pytest.raises((BrokenLedger, RolledBack)):
            Ledger.open(path)


def test_an_empty_ledger_says_that_its_making_was_interrupted(path: Path) -> None:
    segment(path).write_bytes(b"")
    with pytest.raises(BrokenLedger, match="init"):
        Ledger.open(path)


def test_a_crash_between_quarantine_and_event_is_accounted_for(path: Path) -> None:
    torn = b"\xd1\x84"
    digest = hashlib.sha256(torn)
    (path / "quarantine" / f"{4:020}-{digest.hexdigest()}").write_bytes(torn)
    with Ledger.open(path) as ledger:
        (record,) = ledger.records(4)
    assert record.body == {"after_seq": 3, "length": 2, "sha256": digest.digest()}
    with Ledger.open(path) as ledger:
        assert ledger.status().count == 5


def test_a_tail_torn_by_another_process_is_recovered_while_the_ledger_is_open(
    path: Path, proposal: Propose
) -> None:
    with Ledger.open(path) as ledger:
        with segment(path).open("ab") as file:
            file.write(b"\xd1\x84\x4d")
        ledger.issue(proposal("d"))
        assert kinds(ledger)[-2:] == ["recovered", "issued"]


def test_what_was_never_answered_for_is_read_again_whatever_the_index_says(
    path: Path, host: Path, proposal: Propose
) -> None:
    """A failed sync may leave less than the index covers, also before a record that is there."""
    with Ledger.open(path) as ledger:
        head = memory(host, "head").read_bytes()
        before = segment(path).stat().st_size
        lost = ledger.issue(proposal("d")).record
        ledger.issue(proposal("e"))
    memory(host, "head").write_bytes(head)
    content = bytearray(segment(path).read_bytes())
    content[before + len(lost.raw) - 1] ^= 1
    segment(path).write_bytes(content)
    with Ledger.open(path) as ledger:
        assert kinds(ledger) == ["opened", "issued", "issued", "issued", "recovered"]
        assert len(ledger.pending(0)) == 3


# Failures


class Disk:
    """A sync that can be told to fail."""

    def __init__(self) -> None:
        self.failing = False

    def __call__(self, descriptor: int) -> None:
        if self.failing:
            raise OSError(errno.EIO, "injected")
        os.fsync(descriptor)


def test_a_failed_sync_gives_no_answer_and_ends_the_object(
    path: Path, proposal: Propose, host: Path
) -> None:
    disk = Disk()
    ledger = Ledger.open(path, sync=disk)
    before = memory(host, "head").read_bytes()
    disk.failing = True
    with pytest.raises(StoreFailed):
        ledger.issue(proposal("d"))
    assert memory(host, "head").read_bytes() == before
    disk.failing = False
    with pytest.raises(Dead):
        ledger.issue(proposal("d"))
    with pytest.raises(Dead):
        ledger.status()
    ledger.close()
    with Ledger.open(path) as again:
        assert again.issue(proposal("d")).seq == 4


def test_answers_that_rest_on_what_others_wrote_wait_for_the_disk_too(
    path: Path, proposal: Propose, clock: object
) -> None:
    """A record of another writer may not be durable yet, so reading it syncs."""
    disk = Disk()
    reader = Ledger.open(path, sync=disk, clock=clock)  # type: ignore[arg-type]
    with Ledger.open(path, clock=clock) as writer:  # type: ignore[arg-type]
        card = writer.issue(proposal("d"))
    disk.failing = True
    with pytest.raises(StoreFailed):
        reader.card(card)
    reader.close()


def test_a_refusal_and_a_repeated_answer_wait_for_the_disk_too(
    path: Path, proposal: Propose, clock: object
) -> None:
    for ask in (
        lambda ledger: ledger.issue(proposal("a")),
        lambda ledger: ledger.settle(bytes(32), "failed"),
    ):
        disk = Disk()
        ledger = Ledger.open(path, sync=disk, clock=clock)  # type: ignore[arg-type]
        with Ledger.open(path, clock=clock) as other:  # type: ignore[arg-type]
            other.issue(proposal(f"new {id(ask)}"))
        disk.failing = True
        with pytest.raises(StoreFailed):
            ask(ledger)
        ledger.close()


def test_threads_share_one_sync(path: Path, proposal: Propose) -> None:
    calls: list[int] = []
    slow = threading.Event()

    def sync(descriptor: int) -> None:
        calls.append(descriptor)
        slow.wait(0.02)

    ledger = Ledger.open(path, sync=sync)
    calls.clear()
    threads = [
        threading.Thread(target=ledger.issue, args=(proposal(f"step {n}"),)) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.status().count == 20
    assert 1 <= len(calls) < 12
    ledger.close()


# Time (spec §5)


def test_a_small_step_back_holds_the_clock(
    ledger: Ledger, proposal: Propose, clock: object
) -> None:
    first = ledger.issue(proposal("a")).record
    clock.forward(-5)  # type: ignore[attr-defined]
    assert ledger.issue(proposal("b")).record.at == first.at


def test_a_large_step_back_is_refused_and_records_nothing(
    ledger: Ledger, proposal: Propose, clock: object
) -> None:
    ledger.issue(proposal("a"))
    clock.forward(-5.001)  # type: ignore[attr-defined]
    with pytest.raises(ClockWentBack) as caught:
        ledger.issue(proposal("b"))
    assert f"cardchain clock-reset {ledger.path}" in caught.value.hint
    assert ledger.status().count == 2


# Keys (spec §4)


def test_a_key_that_others_can_read_is_refused_with_the_command(path: Path, host: Path) -> None:
    (key,) = host.glob("cardchain/*/keys/*.json")
    key.chmod(0o640)
    with pytest.raises(LooseMode) as caught:
        Ledger.open(path)
    assert caught.value.hint == f"run: chmod 600 {key}"


def test_a_new_key_is_in_force_from_the_record_after(
    path: Path, proposal: Propose, host: Path
) -> None:
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        rekeyed = ledger.rotate()
        ledger.issue(proposal("d"))
        other.issue(proposal("e"))
        records = list(ledger.records())
    old, new = records[0].kid, rekeyed.body["kid"]
    assert [record.kid for record in records] == [old] * 5 + [new] * 2
    forget(host, "index.sqlite*")
    with Ledger.open(path) as ledger:
        assert ledger.status().kid == new


def test_a_log_that_holds_another_record_than_a_key_pins_is_broken(path: Path, host: Path) -> None:
    (key,) = host.glob("cardchain/*/keys/*.json")
    text = key.read_text()
    with Ledger.open(path) as ledger:
        digest: Record = next(ledger.records())
    key.write_text(text.replace(digest.digest.hex(), "0" * 64))
    forget(host, "index.sqlite*")
    with pytest.raises(BrokenLedger, match="pins"):
        Ledger.open(path)
