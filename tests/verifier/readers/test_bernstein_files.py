"""The files of a Bernstein log: archives, order, checkpoints, and hostile content."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifier import readers
from verifier.readers import bernstein
from verifier.report import LogReport

ROOT = Path(__file__).parents[3]
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")


def verify(log: Any, path: str | None = None) -> LogReport:
    return bernstein.verify_log(path or str(log.root), [log.key_file], None, None)


def codes(report: LogReport) -> list[str]:
    return [finding.check.removeprefix("bernstein.") for finding in report.findings]


def check(log: Any, *expected: str) -> LogReport:
    report = verify(log)
    assert list(expected) == codes(report)
    assert ("BROKEN" if expected else "VERIFIED") == report.verdict.value
    return report


@pytest.fixture
def days(log: Any) -> Any:
    """A written log of three days."""
    for day in range(3):
        log.at += 86_400 * (day > 0)
        for _ in range(4):
            log.append(details={"filler": "x" * 50})
        log.resolve(log.issue())
    return log.write()


FIRST, SECOND, THIRD = (f"2026-09-0{day}.jsonl" for day in (1, 2, 3))


# What is a log.


def test_the_registry_finds_the_reader(days: Any) -> None:
    assert readers.reader_for(str(days.root)) is bernstein


def test_a_path_is_recognised_by_its_names(days: Any, tmp_path: Path) -> None:
    for path in [days.root, days.root / ".sdd", days.audit, days.audit / FIRST]:
        assert bernstein.recognises(str(path))
    (tmp_path / "ledger" / "segments").mkdir(parents=True)
    (tmp_path / "export.cbor").write_bytes(b"")
    for name in ["ledger", "export.cbor", "absent"]:
        assert not bernstein.recognises(str(tmp_path / name))
    assert bernstein.recognises(str(tmp_path / "gone" / ".sdd" / "audit"))


def test_the_first_day_alone_is_a_log(days: Any) -> None:
    report = verify(days, str(days.audit / FIRST))
    assert ("VERIFIED", 6) == (report.verdict.value, report.counts.records)


def test_a_later_day_alone_has_no_left_edge(days: Any) -> None:
    report = verify(days, str(days.audit / SECOND))
    assert ("CANNOT VERIFY", ["left_edge"]) == (report.verdict.value, codes(report))


def test_inputs_are_named_with_their_digests(days: Any) -> None:
    content = (days.audit / FIRST).read_bytes()
    first = verify(days).inputs[0]
    assert (str(days.audit / FIRST), len(content)) == (first.file, first.bytes)
    assert hashlib.sha256(content).hexdigest() == first.sha256


def test_other_files_beside_the_log_are_not_read(days: Any) -> None:
    (days.audit / ".chain.lock").write_bytes(b"")
    (days.audit / ".segment-index.json").write_bytes(b"{}")
    (days.audit / "2026-09-01.jsonl.tmp").write_bytes(b"junk")
    (days.audit / "grants").mkdir()
    (days.audit / "grants" / "x.jsonl").write_bytes(b"junk")
    check(days)


@pytest.mark.parametrize("path", ["", "\0", "x" * 5_000, "x/" * 3_000, "\udcff", "-"])
def test_a_path_that_is_no_path_cannot_be_verified(path: str) -> None:
    assert not bernstein.recognises(path)
    report = bernstein.verify_log(path, [path], None, None)
    assert "CANNOT VERIFY" == report.verdict.value


# Archives.


@pytest.mark.parametrize("archived", [[FIRST], [FIRST, SECOND], [FIRST, SECOND, THIRD]])
def test_archived_days_are_part_of_the_log(days: Any, archived: list[str]) -> None:
    for day in archived:
        days.archive(day)
    assert 18 == check(days).counts.records


@pytest.mark.parametrize("change", ["missing", "empty", "cut", "garbage", "more", "plain"])
def test_damaged_archive_is_one_finding(days: Any, change: str) -> None:
    path = days.archive(FIRST)
    content = path.read_bytes()
    changed = {
        "missing": None,
        "empty": b"",
        "cut": content[:-5],
        "garbage": b"x" * 100,
        "more": content + b"more",
        "plain": gzip.decompress(content),
    }[change]
    path.unlink()
    if changed is not None:
        path.write_bytes(changed)
    check(days, "link" if change == "missing" else "archive")


def test_no_bit_of_an_archive_can_change_unseen(days: Any) -> None:
    """Bits of the header that do not change the content (time, system, flags) say nothing."""
    path = days.archive(FIRST)
    content = path.read_bytes()
    for at in range(10, len(content), 3):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        report = verify(days)
        assert ("BROKEN", 1) == (report.verdict.value, report.findings_total), at


def test_edited_archive_is_seen_by_the_hmac(days: Any) -> None:
    path = days.archive(FIRST)
    content = gzip.decompress(path.read_bytes()).replace(b"xxx", b"yyy", 1)
    path.write_bytes(gzip.compress(content))
    check(days, "hmac")


def test_a_day_that_is_archived_and_live_is_read_once(days: Any) -> None:
    """A crash between the copy and the removal of the original leaves both."""
    content = (days.audit / FIRST).read_bytes()
    days.archive(FIRST)
    (days.audit / FIRST).write_bytes(content)
    report = check(days)
    assert 18 == report.counts.records
    assert any("repeats" in warning for warning in report.warnings)


def test_two_versions_of_a_day(days: Any) -> None:
    content = (days.audit / FIRST).read_bytes()
    days.archive(FIRST)
    (days.audit / FIRST).write_bytes(content[:-100])
    check(days, "archive")


def test_bomb_is_stopped(days: Any) -> None:
    path = days.archive(FIRST)
    path.write_bytes(gzip.compress(b"x" * 50_000_000))
    check(days, "limits")
    path.write_bytes(gzip.compress(b"\n" * 50_000_000))
    check(days, "limits")


def test_folder_in_place_of_a_file_cannot_be_read(days: Any) -> None:
    (days.audit / THIRD).unlink()
    (days.audit / THIRD).mkdir()
    report = verify(days)
    assert ("CANNOT VERIFY", ["readable"]) == (report.verdict.value, codes(report))


def test_pipe_in_place_of_a_file_does_not_block(days: Any) -> None:
    os.mkfifo(days.audit / "2026-09-04.jsonl")
    report = verify(days)
    assert ("CANNOT VERIFY", ["readable"]) == (report.verdict.value, codes(report))


# Memory.

# The peak of the process itself: ru_maxrss would begin with that of the process that started it.
MEASURE = """
import sys
from verifier.readers import bernstein
report = bernstein.verify_log(sys.argv[1], [sys.argv[2]], None, None)
status = open("/proc/self/status").read()
print(report.verdict.value, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def measure(log: Any) -> tuple[str, int]:
    """Give the verdict and the highest memory in MB of a verification in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(log.root), log.key_file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    verdict, size = done.stdout.rsplit(maxsplit=1)
    return verdict, int(size)


@linux
def test_a_line_over_the_limit_is_not_held_in_memory(days: Any) -> None:
    with (days.audit / "2026-09-04.jsonl").open("wb") as stream:
        for _ in range(300):
            stream.write(b"x" * (1 << 20))
    verdict, size = measure(days)
    assert "BROKEN" == verdict
    assert size < 180


@linux
def test_memory_does_not_grow_with_the_log(log: Any) -> None:
    for _ in range(300):
        log.append(details={"filler": "x" * 100_000})
    log.write()
    verdict, size = measure(log)
    assert "VERIFIED" == verdict
    assert size < 60


# Checkpoints, seals, tiles.


@pytest.fixture
def sealed(days: Any) -> Any:
    days.seal(days.audit)
    days.append()
    days.resolve(days.issue())
    days.write().seal(days.audit)
    return days


def test_a_sealed_log_is_verified(sealed: Any) -> None:
    report = check(sealed)
    assert not report.warnings
    sealed.append()
    sealed.write()
    check(sealed)


def test_a_sealed_log_may_be_archived(sealed: Any) -> None:
    sealed.archive(FIRST)
    check(sealed)


def remove_tail(log: Any, lines: int = 1) -> None:
    path = log.audit / THIRD
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))


def forget(log: Any, *names: str) -> None:
    for name in names:
        for path in (log.audit / name).iterdir():
            path.unlink()


@pytest.mark.parametrize("lines", [1, 2, 3, 4, 5])
def test_tail_cut_below_a_checkpoint(sealed: Any, lines: int) -> None:
    remove_tail(sealed, lines)
    check(sealed, "checkpoint")


def test_newest_file_removed_below_a_checkpoint(sealed: Any) -> None:
    (sealed.audit / THIRD).unlink()
    check(sealed, "checkpoint")


def test_tail_cut_below_a_seal_without_checkpoints(sealed: Any) -> None:
    remove_tail(sealed)
    forget(sealed, "checkpoints")
    check(sealed, "seal")


def test_tail_cut_without_any_mark_is_not_seen(sealed: Any) -> None:
    remove_tail(sealed)
    forget(sealed, "checkpoints", "merkle")
    assert not check(sealed).complete


def test_tail_cut_below_a_tile(days: Any) -> None:
    content = (days.audit / THIRD).read_bytes()
    tile = {
        "algorithm": "sha256",
        "byte_len": len(content),
        "leaf_hash": hashlib.sha256(b"\0" + content).hexdigest(),
        "scheme": 2,
        "segment": THIRD,
    }
    (days.audit / "tiles").mkdir()
    (days.audit / "tiles" / f"{THIRD}.tile").write_text(json.dumps(tile))
    check(days)
    remove_tail(days)
    check(days, "seal")


def test_tail_rewritten_by_the_holder_of_the_key_below_a_checkpoint(sealed: Any) -> None:
    lines = sealed.days[THIRD]
    del lines[-1]
    sealed.prev = json.loads(lines[-1])["hmac"]
    sealed.append("other.event", {"filler": "x" * 900})
    sealed.write()
    check(sealed, "checkpoint")


def test_last_checkpoint_removed(sealed: Any) -> None:
    path = sealed.audit / "checkpoints" / "checkpoints.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    check(sealed, "checkpoint")


def test_first_checkpoint_removed(sealed: Any) -> None:
    path = sealed.audit / "checkpoints" / "checkpoints.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[1])
    check(sealed, "checkpoint")


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"entry_count":2', b'"entry_count":1'),
        lambda line: line.replace(b'"hmac":"', b'"hmac":"0', 1),
        lambda line: line.replace(b",", b", ", 1),
        lambda line: b"{}",
        lambda line: b"junk",
        lambda line: b"[" * 100_000,
    ],
)
def test_checkpoint_changed(sealed: Any, change: Callable[[bytes], bytes]) -> None:
    path = sealed.audit / "checkpoints" / "checkpoints.jsonl"
    first, second = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + change(second) + b"\n")
    check(sealed, "checkpoint")


@pytest.mark.parametrize(
    "change",
    [
        {"entry_count": 99},
        {"origin": "a" * 64},
        {"root_hash": "a" * 64},
        {"leaves": []},
        {"leaves": [{"file": 1}]},
        {"leaves": [{"file": "2026-12-01.jsonl", "byte_len": 1, "hash": "a" * 64}]},
        {"entry_count": "x"},
    ],
)
def test_seal_changed(sealed: Any, change: dict[str, Any]) -> None:
    path = sealed.audit / "merkle" / "seal-0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    check(sealed, "seal")


def test_seal_of_another_scheme_is_a_warning(days: Any) -> None:
    (days.audit / "merkle").mkdir()
    (days.audit / "merkle" / "seal-1.json").write_text('{"root_hash": "x", "leaves": ["y"]}')
    assert 1 == len(check(days).warnings)


def test_an_edit_in_a_sealed_log_is_one_finding(sealed: Any) -> None:
    path = sealed.audit / FIRST
    path.write_bytes(path.read_bytes().replace(b"xxx", b"yyy", 1))
    check(sealed, "hmac")


def test_checkpoints_under_a_wrong_key_accuse_nobody(sealed: Any) -> None:
    Path(sealed.key_file).write_text("f" * 64)
    report = verify(sealed)
    assert ("CANNOT VERIFY", ["key"]) == (report.verdict.value, codes(report))


def test_latest_checkpoint_may_lag_after_a_crash(sealed: Any) -> None:
    first = (sealed.audit / "checkpoints" / "checkpoints.jsonl").read_bytes().splitlines()[0]
    (sealed.audit / "checkpoints" / "latest.json").write_bytes(first + b"\n")
    assert 1 == len(check(sealed).warnings)


def test_what_is_not_read_is_listed(sealed: Any) -> None:
    (sealed.audit / "checkpoints" / "anchors.jsonl").write_text("{}\n")
    (sealed.audit / "_archived").mkdir()
    listed = " ".join(check(sealed).not_checked)
    assert "anchors.jsonl" in listed
    assert "_archived" in listed


def test_verifying_writes_nothing(sealed: Any) -> None:
    before = {path: path.stat() for path in sealed.root.rglob("*")}
    check(sealed)
    after = {path: path.stat() for path in sealed.root.rglob("*")}
    assert before.keys() == after.keys()
    assert [s.st_mtime_ns for s in before.values()] == [s.st_mtime_ns for s in after.values()]


def test_a_mark_over_a_compressed_file_is_a_warning(sealed: Any) -> None:
    path = sealed.audit / "merkle" / "seal-1.json"
    leaf = {"file": "archive/2026-08-01.jsonl.gz", "byte_len": 5, "hash": "a" * 64}
    path.write_text(json.dumps({"scheme": 2, "leaves": [leaf]}))
    assert any("compressed" in warning for warning in check(sealed).warnings)


def test_an_acknowledged_divergence_ends_earlier_marks(sealed: Any) -> None:
    del sealed.days[THIRD][-2:]
    sealed.prev = json.loads(sealed.days[THIRD][-1])["hmac"]
    sealed.append("chain.tear_acknowledged", {"segment": THIRD, "byte_offset": 1, "reason": "x"})
    sealed.write()
    check(sealed, "checkpoint")
    sealed.seal(sealed.audit, extends=False)
    assert any("divergence" in warning for warning in check(sealed).warnings)
    remove_tail(sealed)
    check(sealed, "checkpoint")
