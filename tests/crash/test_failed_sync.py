"""After a failed sync a kernel takes bytes for written that no disk has (spec §7.4).

Whoever had the file open is told once; whoever opens it later reads the bytes, and its own sync
succeeds. So what was answered for afterwards must not rest on them.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ledger import Ledger, Proposal, assembly
from ledger.errors import StoreFailed
from ledger.store import directory
from ledger.store.contract import ORIGIN, Position
from ledger.store.files import FileStore

AT = 1_700_000_000_000
SIZE = 40


class Kernel:
    """What this process wrote to segments, and which of it a disk would have."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.fails = False
        self._dirty: dict[int, list[tuple[int, bytes]]] = {}
        self._disk: dict[int, bytearray] = {}
        self.places: list[int] = []
        write, pwrite = os.write, os.pwrite

        def written(descriptor: int, data: Any) -> int:
            at = os.fstat(descriptor).st_size
            done = write(descriptor, data)
            self._note(descriptor, at, bytes(data)[:done])
            return done

        def written_at(descriptor: int, data: Any, at: int) -> int:
            done = pwrite(descriptor, data, at)
            self._note(descriptor, at, bytes(data)[:done])
            return done

        patch.setattr(os, "write", written)
        patch.setattr(os, "pwrite", written_at)

    def _note(self, descriptor: int, at: int, data: bytes) -> None:
        self.places.append(at)
        self._dirty.setdefault(os.fstat(descriptor).st_ino, []).append((at, data))

    def sync(self, descriptor: int) -> None:
        """Bring to the disk what is dirty; a failed one leaves it in memory, and clean."""
        inode = os.fstat(descriptor).st_ino
        dirty = self._dirty.pop(inode, [])
        if self.fails:
            raise OSError(errno.EIO, "the disk did not take it")
        disk = self._disk.setdefault(inode, bytearray())
        for at, data in dirty:
            disk.extend(bytes(max(0, at - len(disk))))
            disk[at : at + len(data)] = data

    def power_cut(self, segments: Path) -> None:
        """Leave of every segment what the disk has."""
        for path in segments.iterdir():
            path.write_bytes(self._disk.get(path.stat().st_ino, b""))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def proposal(step: str) -> Proposal:
    return Proposal.for_tool_call(
        task=("run", step), tool_name="pay", arguments={"n": 1}, reasoning="why", ttl=3600
    )


@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 900])
def test_records_that_a_later_process_believes_are_on_the_disk_too(
    kernel: Kernel,
    environ: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    segment_bytes: int,
    forgotten: bool,
) -> None:
    path = tmp_path / "approvals"

    def store(*arguments: Any, **options: Any) -> FileStore:
        return FileStore(*arguments, segment_bytes=segment_bytes, **options)

    monkeypatch.setattr(assembly, "FileStore", store)
    options: dict[str, Any] = {"clock": lambda: AT, "sync": kernel.sync}
    Ledger.init(path, name="test", **options).close()
    with Ledger.open(path, **options) as ledger:
        ledger.issue(proposal("before"))
        kernel.fails = True
        with pytest.raises(StoreFailed):
            ledger.issue(proposal("failed"))
    kernel.fails = False
    if forgotten:
        for head in Path(environ["CARDCHAIN_STATE"]).rglob("head"):
            head.unlink()
    with Ledger.open(path, **options) as ledger:
        last = ledger.issue(proposal("after")).record.seq
    kernel.power_cut(path / "segments")
    with Ledger.open(path, clock=lambda: AT) as ledger:
        assert [record.seq for record in ledger.records()] == list(range(last + 1))
    keys = [str(file) for file in Path(environ["CARDCHAIN_STATE"]).rglob("keys/*.json")]
    checked = subprocess.run(
        [sys.executable, "-m", "verifier", str(path), "--key", keys[0]],
        env=environ,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "VERIFIED" in checked.stdout.splitlines()[-1], checked


def framing(buffer: bytes, start: int = 0) -> int | None:
    return SIZE if start + SIZE <= len(buffer) else None


def append(store: FileStore, end: Position) -> Position:
    with store.exclusive() as tail:
        end = tail.append(end, bytes([end.seq]) * SIZE).end
        tail.write()
    return end


def stored(path: Path, kernel: Kernel, segment_bytes: int = 1 << 20) -> FileStore:
    return FileStore(path, framing, sync=kernel.sync, segment_bytes=segment_bytes)


def test_a_segment_that_another_writer_began_is_not_believed_either(
    kernel: Kernel, tmp_path: Path
) -> None:
    path = tmp_path / "store"
    directory.make(path)
    reader, writer = stored(path, kernel, SIZE), stored(path, kernel, SIZE)
    first = append(reader, ORIGIN)
    reader.sync(first)
    end = append(writer, first)
    kernel.fails = True
    with pytest.raises(StoreFailed):
        writer.sync(end)
    kernel.fails = False
    reader.answered_to = lambda: first
    reader.sync(end)
    kernel.power_cut(path / "segments")
    assert [record.data for record in stored(path, kernel).read(ORIGIN)] == [
        bytes([0]) * SIZE,
        bytes([1]) * SIZE,
    ]


def test_what_is_durable_is_not_written_again(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "store"
    directory.make(path)
    first = append(stored(path, kernel), ORIGIN)
    second = append(stored(path, kernel), first)
    again = stored(path, kernel)
    again.answered_to = lambda: first
    third = append(again, second)
    again.sync(third)
    end = append(again, third)
    again.sync(end)
    assert kernel.places == [0, SIZE, 2 * SIZE, SIZE, 3 * SIZE]


def test_where_all_is_durable_nothing_is_opened_to_be_written(
    kernel: Kernel, tmp_path: Path
) -> None:
    """Not even where it could not be, as with a segment that its owner has made append-only."""
    path = tmp_path / "store"
    directory.make(path)
    first = append(stored(path, kernel), ORIGIN)
    again = stored(path, kernel)
    again.answered_to = lambda: first
    end = append(again, first)
    segment = path / "segments" / f"{0:020}.cbor"
    segment.rename(path / "away")
    segment.symlink_to(path / "away")
    again.sync(end)
    assert kernel.places == [0, SIZE]


def test_a_segment_that_was_replaced_before_the_sync_is_durable(
    kernel: Kernel, tmp_path: Path
) -> None:
    path = tmp_path / "store"
    directory.make(path)
    first = append(stored(path, kernel), ORIGIN)
    again = stored(path, kernel)
    end = append(again, first)
    segment = path / "segments" / f"{0:020}.cbor"
    segment.rename(path / "away")
    again.sync(end)
    assert kernel.places == [0, SIZE]
