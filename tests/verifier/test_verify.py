from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifier import Key, Report, Verdict, verify


def run(paths: list[Path], key: str | None, **more: Any) -> Report:
    return verify([str(path) for path in paths], [key] if key else [], environ={}, **more)


def checks_of(report: Report) -> list[str]:
    return [finding.check for log in report.logs for finding in log.findings]


@pytest.fixture
def file(log: Any, tmp_path: Path) -> Path:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    return path


def make_ledger(folder: Path, log: Any, cuts: tuple[int, ...]) -> Path:
    (folder / "segments").mkdir(parents=True)
    for first, end in zip(cuts, (*cuts[1:], log.seq), strict=True):
        data = b"".join(log.records[first:end])
        (folder / "segments" / f"{first:020}.cbor").write_bytes(data)
    return folder


def test_file_directory_and_gzip_are_one_log(
    log: Any, file: Path, key: str, tmp_path: Path
) -> None:
    packed = tmp_path / "log.cbor.gz"
    packed.write_bytes(gzip.compress(log.data))
    ledger = make_ledger(tmp_path / "ledger", log, (0, 2))
    report = run([file, packed, ledger], key)
    assert report.verdict is Verdict.VERIFIED
    assert {one.head for one in report.logs} == {log.digests[-1].hex()}
    assert [len(one.inputs) for one in report.logs] == [1, 1, 2]


def test_an_extra_key_is_enough(log: Any, file: Path) -> None:
    assert run([file], None, extra_keys=[Key(log.chain, log.secret)]).verdict is Verdict.VERIFIED


def test_the_environment_may_name_the_key(file: Path, key: str) -> None:
    assert verify([str(file)], environ={"CARDCHAIN_KEY": key}).verdict is Verdict.VERIFIED


def test_nothing_is_never_verified(key: str, tmp_path: Path) -> None:
    assert verify([]).verdict is Verdict.CANNOT_VERIFY
    empty = tmp_path / "empty.cbor"
    empty.touch()
    (tmp_path / "ledger" / "segments").mkdir(parents=True)
    (tmp_path / "folder").mkdir()
    paths = [empty, tmp_path / "ledger", tmp_path / "folder", tmp_path / "absent"]
    report = run(paths, key)
    assert [one.verdict for one in report.logs] == [Verdict.CANNOT_VERIFY] * 4
    assert checks_of(report) == ["empty", "empty", "unreadable", "unreadable"]


def test_pipes_and_devices_are_unreadable(key: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert checks_of(run([tmp_path / "pipe", Path("/dev/zero")], key)) == ["unreadable"] * 2


def test_the_worst_verdict_wins(log: Any, file: Path, key: str, tmp_path: Path) -> None:
    empty, broken = tmp_path / "empty.cbor", tmp_path / "broken.cbor"
    empty.touch()
    broken.write_bytes(log.data + b"\n")
    assert run([file, empty], key).verdict is Verdict.CANNOT_VERIFY
    assert run([broken, empty, file], key).verdict is Verdict.BROKEN


def test_expected_head_and_count(log: Any, file: Path, key: str) -> None:
    def outcome(head: bytes | None, count: int | None) -> list[str]:
        return checks_of(run([file], key, expect_head=head, expect_count=count))

    assert outcome(log.digests[2], 3) == []
    assert outcome(log.digests[1], None) == []
    assert outcome(None, 2) == []
    assert outcome(None, 4) == ["expected_count"]
    assert outcome(bytes(32), None) == ["expected_head"]
    assert outcome(log.digests[1], 3) == ["expected_head"]
    assert run([file], key, expect_head=log.digests[2]).logs[0].complete
    assert run([file], key, expect_count=3).logs[0].complete
    assert not run([file], key, expect_head=log.digests[1]).logs[0].complete
    assert not run([file], key).logs[0].complete


def test_two_histories_of_one_chain_are_a_fork(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    paths = []
    for number in (1, 2):
        log = new_log()
        log.open()
        log.issue(number)
        paths.append(tmp_path / f"{number}.cbor")
        paths[-1].write_bytes(log.data)
    report = run(paths, key)
    assert [one.verdict for one in report.logs] == [Verdict.VERIFIED, Verdict.BROKEN]
    assert [(found.check, found.seq) for found in report.logs[1].findings] == [("fork", 1)]
    assert report.logs[1].findings[0].file == str(paths[1])


def test_a_torn_tail_is_a_warning_in_a_live_directory_only(
    log: Any, key: str, tmp_path: Path
) -> None:
    ledger = make_ledger(tmp_path / "ledger", log, (0, 2))
    last = ledger / "segments" / f"{2:020}.cbor"
    whole = last.read_bytes()
    for end in range(0, len(whole), 11):
        last.write_bytes(whole[:end])
        report = run([ledger], key)
        assert report.verdict is Verdict.VERIFIED
        assert len(report.logs[0].warnings) == (1 if end else 0)
    assert checks_of(run([last], key)) != []


def test_a_writer_at_work_never_makes_a_log_broken(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    for number in range(300):
        log.resolve(log.issue(number))
    folder = tmp_path / "ledger"
    (folder / "segments").mkdir(parents=True)
    done = threading.Event()

    def write() -> None:
        for first in range(0, log.seq, 60):
            path = folder / "segments" / f"{first:020}.cbor"
            with path.open("ab", buffering=0) as stream:
                for record in log.records[first : first + 60]:
                    stream.write(record[:300])
                    stream.write(record[300:])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    verdicts = set()
    while not done.is_set():
        report = run([folder], key)
        verdicts.add(report.verdict)
        assert Verdict.BROKEN not in verdicts, report.logs[0].findings
    writer.join()
    assert run([folder], key).logs[0].counts.records == log.seq


def test_verifying_writes_nothing(log: Any, file: Path, key: str, tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path / "ledger", log, (0, 1))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for path in [ledger, ledger / "segments"]:
        path.chmod(0o500)
    run([file, ledger], key)
    for path in [ledger, ledger / "segments"]:
        path.chmod(0o700)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_an_unreadable_segment_accuses_nobody(log: Any, key: str, tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path / "ledger", log, (0, 1, 2))
    middle = ledger / "segments" / f"{1:020}.cbor"
    middle.write_bytes(gzip.compress(log.records[1])[:-9])
    report = run([ledger], key, expect_count=99)
    assert report.verdict is Verdict.CANNOT_VERIFY
    assert checks_of(report) == ["unreadable"]


def test_a_file_that_is_not_there_has_no_digest(file: Path, key: str, tmp_path: Path) -> None:
    there, missing = run([file, tmp_path / "none.cbor"], key).logs
    assert [len(there.inputs), len(missing.inputs)] == [1, 0]


def test_a_key_file_that_is_of_no_use_is_a_warning(file: Path, key: str, tmp_path: Path) -> None:
    report = verify([str(file)], [key, str(tmp_path / "absent")], environ={})
    assert report.verdict is Verdict.VERIFIED
    assert len(report.logs[0].warnings) == 1


def test_a_log_that_ends_before_its_pin_gets_a_warning(
    log: Any, file: Path, tmp_path: Path
) -> None:
    pinned = {"seq": 9, "digest": "ab" * 32}
    report = run([file], str(log.key_file(tmp_path / "k.json", pin=pinned)))
    assert report.verdict is Verdict.VERIFIED
    assert "seq 9" in report.logs[0].warnings[0]
    pinned = {"seq": 1, "digest": "ab" * 32}
    report = run([file], str(log.key_file(tmp_path / "k.json", pin=pinned)))
    assert checks_of(report) == ["pin"]


def test_a_path_with_a_null_byte_is_unreadable() -> None:
    report = verify(["log\0"], ["key\0"], environ={})
    assert [finding.check for finding in report.logs[0].findings] == ["unreadable"]
    assert any("null byte" in warning for warning in report.logs[0].warnings)
