"""An export is the same bytes, whole or not there (spec §7.2)."""

from __future__ import annotations

import errno
import gzip
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import Exported, Ledger, Proposal
from ledger.errors import BrokenLedger, StoreFailed
from ledger.export import InsideLedger
from ledger.store.contract import AlreadyThere


@pytest.fixture
def filled(ledger: Ledger, proposal: Callable[..., Proposal]) -> Ledger:
    for step in ("a", "b", "c"):
        ledger.issue(proposal(step))
    return ledger


def segment(ledger: Ledger) -> Path:
    return ledger.path / "segments" / f"{0:020}.cbor"


def test_an_export_is_the_bytes_of_the_ledger(filled: Ledger, tmp_path: Path) -> None:
    exported = filled.export(tmp_path / "export.cbor")
    content = segment(filled).read_bytes()
    assert (tmp_path / "export.cbor").read_bytes() == content
    status = filled.status()
    assert exported == Exported(status.count, len(content), status.head)
    assert stat.S_IMODE((tmp_path / "export.cbor").stat().st_mode) == 0o600


def test_compressed_segments_are_exported_as_they_were(filled: Ledger, tmp_path: Path) -> None:
    content = segment(filled).read_bytes()
    filled.close()
    Path(f"{segment(filled)}.gz").write_bytes(gzip.compress(content))
    segment(filled).unlink()
    with Ledger.open(filled.path) as ledger:
        ledger.export(tmp_path / "export.cbor")
    assert (tmp_path / "export.cbor").read_bytes() == content


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_what_is_there_is_left_alone(
    filled: Ledger, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    target = tmp_path / "export.cbor"
    make(target)
    before = os.lstat(target)
    with pytest.raises(AlreadyThere):
        filled.export(target)
    assert os.lstat(target) == before


def test_a_file_is_replaced_only_when_asked(filled: Ledger, tmp_path: Path) -> None:
    target = tmp_path / "export.cbor"
    target.write_text("old")
    filled.export(target, overwrite=True)
    assert target.read_bytes() == segment(filled).read_bytes()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failed_export_leaves_no_file_and_no_part_of_one(
    filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    if overwrite:
        (folder / "export.cbor").write_text("old")
    filled.status()

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "injected")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreFailed):
        filled.export(folder / "export.cbor", overwrite=overwrite)
    assert [file.name for file in folder.iterdir()] == ["export.cbor"] * overwrite
    assert not overwrite or (folder / "export.cbor").read_text() == "old"


def test_a_broken_ledger_is_not_exported(filled: Ledger, tmp_path: Path) -> None:
    content = bytearray(segment(filled).read_bytes())
    content[600] ^= 1
    segment(filled).write_bytes(content)
    with pytest.raises(BrokenLedger):
        filled.export(tmp_path / "export.cbor")
    assert list(tmp_path.glob("*export*")) == []


def test_a_folder_that_is_not_there_is_said(filled: Ledger, tmp_path: Path) -> None:
    with pytest.raises(StoreFailed):
        filled.export(tmp_path / "nowhere" / "export.cbor")


@pytest.mark.parametrize("name", ["e.cbor", "segments/e.cbor", f"segments/{9:020}.cbor"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_no_export_among_the_files_of_the_ledger(
    filled: Ledger, tmp_path: Path, name: str, overwrite: bool
) -> None:
    (tmp_path / "link").symlink_to(filled.path)
    before = sorted(filled.path.rglob("*"))
    for ledger in (filled.path, tmp_path / "link"):
        with pytest.raises(InsideLedger):
            filled.export(ledger / name, overwrite=overwrite)
    assert sorted(filled.path.rglob("*")) == before


def test_a_name_of_the_greatest_length_is_taken_and_a_longer_one_is_said(
    filled: Ledger, tmp_path: Path
) -> None:
    filled.export(tmp_path / ("e" * 255))
    with pytest.raises(StoreFailed):
        filled.export(tmp_path / ("e" * 256))
    assert [len(path.name) for path in tmp_path.glob("e*")] == [255]
