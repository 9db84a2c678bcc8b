"""What a store of files promises beyond the contract (spec §7.1, §7.4)."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.errors import BrokenLedger, Dead, LockTimeout, LooseMode, Malformed, StoreFailed
from ledger.store import directory
from ledger.store.contract import ORIGIN, AlreadyThere, NotALedger, Position, Stored
from ledger.store.files import FileStore

LIMIT = 100
RECORD = bytes([39]) + b"x" * 39


def framing(buffer: bytes, start: int = 0) -> int | None:
    """Records of this test: one byte of length, then as many bytes; a length of 0 is none."""
    if start >= len(buffer):
        return None
    length = buffer[start]
    if length == 0:
        raise Malformed("a length of 0", start)
    return length + 1 if start + length < len(buffer) else None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    directory.make(tmp_path / "store")
    return tmp_path / "store"


def opened(path: Path, **options: object) -> FileStore:
    return FileStore(path, framing, segment_bytes=LIMIT, lock_timeout_s=0.05, **options)  # type: ignore[arg-type]


def fill(store: FileStore, count: int, end: Position = ORIGIN) -> Position:
    with store.exclusive() as tail:
        for _ in range(count):
            end = tail.append(end, RECORD).end
        tail.write()
    store.sync(end)
    return end


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path / "segments"))


def everything(path: Path) -> list[Path]:
    return [path, *path.rglob("*")]


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_no_umask_opens_anything_to_others(tmp_path: Path) -> None:
    path = tmp_path / "store"
    directory.make(path)
    store = opened(path)
    end = fill(store, 5)
    with store.exclusive() as tail:
        tail.append(end, b"\x05cut")
        tail.write()
        tail.set_aside(end)
    modes = {stat.S_IMODE(os.lstat(file).st_mode) for file in everything(path) if file.is_file()}
    assert modes == {0o600}
    folders = {stat.S_IMODE(os.lstat(file).st_mode) for file in everything(path) if file.is_dir()}
    assert folders == {0o700}
    assert len(list((path / "quarantine").iterdir())) == 1


def test_files_are_private_from_the_instant_they_exist(tmp_path: Path) -> None:
    """A child with umask 000 is traced by the flags and mode that it gives to open."""
    seen: list[tuple[str, int]] = []
    before, real = os.umask(0), os.open

    def spy(name: str, flags: int, mode: int = 0o777, **rest: object) -> int:
        if flags & os.O_CREAT:
            seen.append((os.fspath(name), mode))
        return real(name, flags, mode, **rest)  # type: ignore[arg-type]

    os.open = spy  # type: ignore[assignment]
    try:
        directory.make(tmp_path / "store")
        fill(opened(tmp_path / "store"), 5)
    finally:
        os.open = real
        os.umask(before)
    assert len(seen) == 4
    assert {mode for _, mode in seen} == {0o600}


def test_a_segment_is_cut_between_records_and_named_by_its_first_seq(path: Path) -> None:
    fill(opened(path), 5)
    assert names(path) == [f"{seq:020}.cbor" for seq in (0, 2, 4)]
    sizes = [os.path.getsize(path / "segments" / name) for name in names(path)]
    assert sizes == [80, 80, 40]


def test_a_record_that_fits_no_segment_gets_one_of_its_own(path: Path) -> None:
    store = opened(path)
    large = bytes([150]) + b"y" * 150
    with store.exclusive() as tail:
        end = tail.append(ORIGIN, large).end
        end = tail.append(end, large).end
        tail.write()
    assert [stored.data for stored in store.read(ORIGIN)] == [large, large]
    assert names(path) == [f"{seq:020}.cbor" for seq in (0, 1)]


def test_the_segment_before_is_durable_when_a_new_one_begins(path: Path) -> None:
    synced: list[str] = []

    def sync(descriptor: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))

    store = opened(path, sync=sync)
    with store.exclusive() as tail:
        end = ORIGIN
        for _ in range(3):
            end = tail.append(end, RECORD).end
        tail.write()
    assert synced == [f"{0:020}.cbor"]
    store.sync(end)
    assert synced == [f"{seq:020}.cbor" for seq in (0, 2)]


def test_a_sync_serves_all_who_wrote_before_it(path: Path) -> None:
    calls: list[int] = []
    store = opened(path, sync=calls.append)
    with store.exclusive() as tail:
        end = tail.append(ORIGIN, RECORD).end
        after = tail.append(end, RECORD).end
        tail.write()
    store.sync(end)
    store.sync(after)
    assert len(calls) == 1


def test_a_failed_sync_of_the_old_segment_stops_the_rotation(path: Path) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "injected")

    store = opened(path, sync=fail)
    with store.exclusive() as tail:
        end = tail.append(tail.append(ORIGIN, RECORD).end, RECORD).end
        tail.append(end, RECORD)
        with pytest.raises(StoreFailed):
            tail.write()
    with pytest.raises(Dead), store.exclusive():
        pass
    assert names(path) == [f"{0:020}.cbor"]


def test_a_segment_that_was_begun_and_not_written_is_used(path: Path) -> None:
    end = fill(opened(path), 2)
    os.close(directory.create(path / "segments" / f"{2:020}.cbor"))
    store = opened(path)
    assert fill(store, 1, end) == Position(3, 2, 40)
    assert len(list(store.read(ORIGIN))) == 3


def test_a_compressed_segment_is_read_as_it_was(path: Path) -> None:
    fill(opened(path), 5)
    plain = path / "segments" / f"{2:020}.cbor"
    with gzip.open(f"{plain}.gz", "wb") as packed:
        packed.write(plain.read_bytes())
    plain.unlink()
    store = opened(path)
    assert [stored.data for stored in store.read(ORIGIN)] == [RECORD] * 5
    assert store.at(Position(3, 2, 40)) == RECORD
    assert store.place(2) == f"{plain}.gz"


def test_a_new_segment_follows_a_compressed_one(path: Path) -> None:
    end = fill(opened(path), 1)
    plain = path / "segments" / f"{0:020}.cbor"
    with gzip.open(f"{plain}.gz", "wb") as packed:
        packed.write(plain.read_bytes())
    plain.unlink()
    store = opened(path)
    fill(store, 1, end)
    assert names(path) == [f"{0:020}.cbor.gz", f"{1:020}.cbor"]
    assert len(list(store.read(ORIGIN))) == 2


@pytest.mark.parametrize("name", ["notes.txt", "5.cbor", f"{7:020}.cbor.bak", f"{0:020}.cbor.gz"])
def test_a_foreign_name_among_the_segments_is_refused(path: Path, name: str) -> None:
    fill(opened(path), 1)
    (path / "segments" / name).touch()
    with pytest.raises(BrokenLedger, match="not the name of a segment"):
        opened(path)


def link(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to(place.with_name("elsewhere"))


def outside(place: Path) -> None:
    target = place.parents[2] / "elsewhere"
    target.write_bytes(place.read_bytes())
    place.unlink()
    place.symlink_to(target)


def fifo(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


@pytest.mark.parametrize("replace", [outside, fifo])
def test_a_segment_that_is_no_file_is_refused(path: Path, replace: object, tmp_path: Path) -> None:
    end = fill(opened(path), 1)
    replace(path / "segments" / f"{0:020}.cbor")  # type: ignore[operator]
    store = opened(path)
    with pytest.raises(BrokenLedger), store.exclusive() as tail:
        tail.append(end, RECORD)


@pytest.mark.parametrize("replace", [link, fifo])
def test_a_lock_that_is_no_file_is_refused(path: Path, replace: object) -> None:
    replace(path / "lock")  # type: ignore[operator]
    with pytest.raises(BrokenLedger):
        opened(path)


@pytest.mark.parametrize("name", ["", "segments", "quarantine"])
def test_a_directory_that_is_a_link_is_refused(path: Path, name: str) -> None:
    link(path / name if name else path)
    with pytest.raises(BrokenLedger, match="symbolic link"):
        opened(path)


@pytest.mark.parametrize("name", ["", "segments", "lock", f"segments/{0:020}.cbor"])
@pytest.mark.parametrize("bit", [stat.S_IWGRP, stat.S_IWOTH])
def test_what_others_can_write_is_not_appended_to(path: Path, name: str, bit: int) -> None:
    end = fill(opened(path), 1)
    place = path / name
    place.chmod(place.stat().st_mode | bit)
    with pytest.raises(LooseMode) as caught:
        fill(opened(path), 1, end)
    assert "chmod" in caught.value.hint
    assert len((path / "segments" / f"{0:020}.cbor").read_bytes()) == len(RECORD)


def test_a_path_without_a_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(NotALedger):
        opened(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(NotALedger):
        opened(tmp_path / "file")
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("name", ["quarantine", "checkpoints"])
def test_an_empty_directory_that_a_copy_lost_is_to_be_made(path: Path, name: str) -> None:
    (path / name).rmdir()
    with pytest.raises(NotALedger) as caught:
        opened(path)
    assert caught.value.hint == f"run: mkdir -m 700 {path / name}"


def test_a_ledger_is_not_made_over_anything(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("kept")
    with pytest.raises(AlreadyThere):
        directory.make(tmp_path / "full")
    assert os.listdir(tmp_path / "full") == ["file"]


def test_a_segment_cut_short_under_an_open_store_is_noticed(path: Path) -> None:
    store = opened(path)
    end = fill(store, 2)
    os.truncate(path / "segments" / f"{0:020}.cbor", 40)
    with pytest.raises(BrokenLedger, match="cut short"), store.exclusive() as tail:
        tail.rest(end)


@pytest.mark.parametrize("name", ["lock", f"segments/{0:020}.cbor"])
def test_a_file_replaced_under_an_open_store_is_noticed(path: Path, name: str) -> None:
    """Another process that rotates or restores files must not split the log in two."""
    store = opened(path)
    fill(store, 1)
    shutil.copy(path / name, path / "copy")
    os.replace(path / "copy", path / name)
    with pytest.raises(StoreFailed, match="replaced"), store.exclusive():
        pass
    with pytest.raises(Dead), store.exclusive():
        pass


def test_bytes_before_a_later_segment_are_no_work_of_a_crash(path: Path) -> None:
    end = fill(opened(path), 3)
    first = path / "segments" / f"{0:020}.cbor"
    first.write_bytes(first.read_bytes() + b"\x00")
    assert len(list(opened(path).read(ORIGIN))) == 2
    store = opened(path)
    with store.exclusive() as tail, pytest.raises(BrokenLedger):
        tail.rest(Position(2, 0, 80))
    assert end == Position(3, 2, 40)


def test_a_missing_segment_in_the_middle_is_no_end(path: Path) -> None:
    fill(opened(path), 5)
    (path / "segments" / f"{2:020}.cbor").unlink()
    store = opened(path)
    with store.exclusive() as tail, pytest.raises(BrokenLedger):
        tail.rest(Position(2, 0, 80))


def test_two_stores_see_what_the_other_appends_over_rotations(path: Path) -> None:
    one, two = opened(path), opened(path)
    ends = [ORIGIN, ORIGIN]
    for turn in range(9):
        with (one, two)[turn % 2].exclusive() as tail:
            for stored in tail.read(ends[turn % 2]):
                ends[turn % 2] = stored.end
            assert tail.rest(ends[turn % 2]) == b""
            ends[turn % 2] = tail.append(ends[turn % 2], RECORD).end
            tail.write()
    assert [stored.position.seq for stored in one.read(ORIGIN)] == list(range(9))


def test_another_store_is_kept_out_and_told(path: Path) -> None:
    one, two = opened(path), opened(path)
    with one.exclusive(), pytest.raises(LockTimeout) as caught, two.exclusive():
        pass
    assert caught.value.path == path / "lock"
    assert caught.value.seconds == 0.05


def fork() -> int:
    """Fork, also where the test runner has threads of its own, which the child does not use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def test_closing_again_closes_no_file_of_anybody_else(path: Path) -> None:
    store = opened(path)
    fill(store, 1)
    store.close()
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]
    store.close()
    assert [os.get_inheritable(other) for other in others] == [False] * 4  # all are open
    for other in others:
        os.close(other)


def test_a_child_after_a_fork_does_not_share_the_lock(path: Path) -> None:
    store = opened(path)
    with store.exclusive():
        pid = fork()
        if pid == 0:
            try:
                with store.exclusive():
                    os._exit(1)
            except LockTimeout:
                os._exit(42)
            os._exit(2)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 42


def test_a_child_after_a_fork_appends_behind_its_parent(path: Path) -> None:
    store = opened(path)
    end = fill(store, 1)
    pid = fork()
    if pid == 0:
        try:
            fill(store, 1, end)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    with store.exclusive() as tail:
        found: list[Stored] = list(tail.read(end))
        tail.append(found[-1].end, RECORD)
        tail.write()
    assert len(list(store.read(ORIGIN))) == 3


SHORT = """
import resource, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from ledger.errors import Dead, StoreFailed
from ledger.store.contract import ORIGIN
from ledger.store.files import FileStore

record = bytes([79]) + b"x" * 79
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = FileStore(Path(sys.argv[1]), lambda buffer, start: 80 if len(buffer) >= 80 else None)
resource.setrlimit(resource.RLIMIT_FSIZE, (120, 120))
with store.exclusive() as tail:
    end = tail.append(ORIGIN, record).end
    tail.write()
    tail.append(end, record)
    try:
        tail.write()
    except StoreFailed as error:
        print(error)
try:
    store.sync(end)
except Dead:
    print("dead")
"""


def test_a_short_write_is_an_error_and_takes_nothing_back(path: Path) -> None:
    root = str(Path(__file__).parents[2])
    ran = subprocess.run(
        [sys.executable, "-c", SHORT, str(path), root],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "File too large" in ran.stdout
    assert ran.stdout.endswith("dead\n")
    assert os.path.getsize(path / "segments" / f"{0:020}.cbor") == 120


def test_torn_bytes_stay_in_quarantine_under_their_digest(path: Path) -> None:
    store = opened(path)
    end = fill(store, 1)
    with store.exclusive() as tail:
        tail.append(end, b"\x05cut")
        tail.write()
        (torn,) = tail.set_aside(end)
    kept = path / "quarantine" / f"{1:020}-{torn.sha256.hex()}"
    assert kept.read_bytes() == b"\x05cut"
    assert os.path.getsize(path / "segments" / f"{0:020}.cbor") == 40


def test_torn_bytes_are_kept_again_if_a_crash_cut_them_in_quarantine(path: Path) -> None:
    store = opened(path)
    end = fill(store, 1)
    with store.exclusive() as tail:
        tail.append(end, b"\x05cut")
        tail.write()
        (torn,) = tail.set_aside(end)
    kept = path / "quarantine" / f"{1:020}-{torn.sha256.hex()}"
    kept.write_bytes(b"\x05c")
    with (path / "segments" / f"{0:020}.cbor").open("ab") as segment:
        segment.write(b"\x05cut")
    with opened(path).exclusive() as tail:
        assert tail.set_aside(end) == (torn,)
    assert kept.read_bytes() == b"\x05cut"


def test_no_two_ledgers_share_an_identity(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "copy")
    assert opened(path).identity() != opened(tmp_path / "copy").identity()
    path.rename(tmp_path / "moved")
    assert opened(tmp_path / "moved").identity() != opened(tmp_path / "copy").identity()


def test_a_damaged_compressed_segment_is_a_broken_ledger(path: Path) -> None:
    fill(opened(path), 2)
    plain = path / "segments" / f"{0:020}.cbor"
    packed = gzip.compress(plain.read_bytes())
    plain.unlink()
    for damaged in (packed[:-9], packed[:12] + b"\xff" + packed[13:], b"no gzip"):
        Path(f"{plain}.gz").write_bytes(damaged)
        with pytest.raises(BrokenLedger, match="gzip"):
            list(opened(path).read(ORIGIN))
