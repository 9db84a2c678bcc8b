"""doctor: it says which footing of a ledger is gone and what to do, and changes nothing."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ledger import Ledger

CHECKS = [
    "directory",
    "segments",
    "state",
    "keys",
    "space",
    "file system",
    "lock",
    "chain",
    "key in force",
    "rollback",
    "clock",
    "index",
    "signer",
    "checkpoint",
    "tree",
    "recoveries",
    "pending",
    "grants",
    "outcomes",
    "openings",
]


class Patient:
    """A host whose ledger is examined; every examination must leave all files as they were."""

    def __init__(self, host: SimpleNamespace) -> None:
        self.host = host
        self.ledger: Path = host.folder / "approvals"

    def rows(self, *options: str, status: int = 0, **more: Any) -> dict[str, dict[str, Any]]:
        """The rows of `doctor --json` by check."""
        before = listing(self.host.folder)
        done = self.host.run("doctor", "approvals", "--json", *options, **more)
        assert listing(self.host.folder) == before
        assert (done.status, done.err) == (status, ""), done
        return {row["check"]: row for row in done.json["checks"]}

    def state(self) -> Path:
        """The state directory of the ledger."""
        (folder,) = (self.host.state / "cardchain").iterdir()
        return Path(folder)


def listing(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """Every name below a folder, with its inode, mode, size and time of change.

    Without the memory by which SQLite keeps readers and a writer at work apart.
    """
    found = {}
    for path in sorted(path for path in folder.rglob("*") if not path.name.endswith("-shm")):
        stat = path.lstat()
        found[str(path)] = (stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns)
    return found


@pytest.fixture
def patient(host: SimpleNamespace) -> Patient:
    """A host with a new ledger."""
    return Patient(host)


@pytest.fixture
def signing(patient: Patient) -> Patient:
    """A host with a signer and a checkpoint."""
    patient.host.ok("keys", "signer", "approvals", "--by", "user:operator")
    patient.host.ok("checkpoint", "approvals")
    return patient


def test_a_sound_ledger_passes_every_check(signing: Patient) -> None:
    rows = signing.rows()
    assert list(rows) == CHECKS
    assert {row["mark"] for row in rows.values()} == {"ok"}
    lines = signing.host.ok("doctor", "approvals").out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"ok   {check}" for check in CHECKS]
    assert rows["chain"]["detail"] == "2 records, the last one whole, linked and authentic"
    assert rows["rollback"]["detail"] == "guarded from seq 0, seq 1 is there"
    assert rows["checkpoint"]["detail"].startswith("of 2 records, 0 behind, made ")
    assert rows["tree"]["detail"] == "the hashes of 2 records"


def test_without_a_signer_the_way_to_one_is_told(patient: Patient) -> None:
    row = patient.rows()["signer"]
    assert (row["mark"], row["hint"]) == ("note", "cardchain keys signer approvals --by ID")


def loose(path: str, mode: int) -> Callable[[Patient], None]:
    def harm(patient: Patient) -> None:
        (patient.host.folder / path).chmod(mode)

    return harm


def loose_key(patient: Patient) -> None:
    next((patient.state() / "keys").iterdir()).chmod(0o640)


def lost_key(patient: Patient) -> None:
    shutil.rmtree(patient.state() / "keys")


def lost_head(patient: Patient) -> None:
    (patient.state() / "head").unlink()


def lost_lock(patient: Patient) -> None:
    (patient.ledger / "lock").unlink()


def foreign_name(patient: Patient) -> None:
    (patient.ledger / "segments" / "notes.txt").write_text("")
    (patient.ledger / "segments" / "notes.txt").chmod(0o600)


def cut_off(patient: Patient) -> None:
    (segment,) = (patient.ledger / "segments").iterdir()
    with segment.open("r+b") as file:
        file.truncate(patient.before)


def changed_byte(patient: Patient) -> None:
    (segment,) = (patient.ledger / "segments").iterdir()
    data = segment.read_bytes()
    segment.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def copied(patient: Patient) -> None:
    shutil.move(patient.ledger, patient.host.folder / "old")
    shutil.copytree(patient.host.folder / "old", patient.ledger)


def other_signer(patient: Patient) -> None:
    patient.host.ok("keys", "signer", "approvals", "--by", "user:operator")
    patient.host.ok("configure", "approvals", "--by", "user:operator", "--vkey", "another+key")


def loose_signer(patient: Patient) -> None:
    patient.host.ok("keys", "signer", "approvals", "--by", "user:operator")
    (patient.state() / "signer" / "key.pem").chmod(0o644)


def lost_opening(patient: Patient) -> None:
    """Take the bytes of a note out of a copy whose index is made anew by a reader of it."""
    card = patient.host.issue(task={"id": "noted", "step": "refund"})
    patient.host.ok("reject", "approvals", card, "--approver", "user:a", "--note", "N" * 40)
    patient.host.ok("export", "approvals", "-o", "less.cbor", "--withhold", "note")
    (segment,) = (patient.ledger / "segments").iterdir()
    segment.write_bytes((patient.host.folder / "less.cbor").read_bytes())
    (patient.state() / "index.sqlite").unlink()
    patient.host.run("status", "approvals")


def far_checkpoint(patient: Patient) -> None:
    note = patient.ledger / "checkpoints" / f"{99:020}.note"
    note.write_text("")
    note.chmod(0o600)


HARMS = [
    (loose("approvals", 0o750), "directory", 6, "mode 0750, expected 0700", "chmod 700 approvals"),
    (loose("approvals/lock", 0o644), "directory", 6, "mode 0644, expected 0600", "chmod 600 "),
    (loose_key, "keys", 6, "mode 0640, expected 0600", "run: chmod 600 "),
    (lost_key, "keys", 6, "none for chain ", "--key FILE"),
    (lost_lock, "lock", 2, "lock does not exist", "touch approvals/lock"),
    (lost_head, "rollback", 6, "remembers no record", "cardchain audit verify approvals"),
    (foreign_name, "segments", 3, "not the name of a segment", "cardchain audit verify DIR"),
    (
        cut_off,
        "rollback",
        6,
        "answered for seq 1: it is not there",
        "adopt approvals --rolled-back",
    ),
    (changed_byte, "chain", 3, "does not hold under the key", "cardchain audit verify DIR"),
    (copied, "rollback", 6, "but a copy", "cardchain adopt approvals"),
    (other_signer, "signer", 6, "the log announces another+key", "cardchain keys signer approvals"),
    (loose_signer, "signer", 6, "mode 0644, expected 0600", "run: chmod 600 "),
    (lost_opening, "openings", 3, "its note is gone", "cardchain audit verify approvals"),
    (far_checkpoint, "checkpoint", 3, "the ledger holds only 2", "restore the ledger"),
]


@pytest.mark.parametrize(
    ("harm", "check", "status", "detail", "hint"),
    HARMS,
    ids=lambda each: str(getattr(each, "__name__", "")),
)
def test_each_harm_is_found_by_its_check(
    patient: Patient,
    harm: Callable[[Patient], None],
    check: str,
    status: int,
    detail: str,
    hint: str,
) -> None:
    (segment,) = (patient.ledger / "segments").iterdir()
    patient.before = segment.stat().st_size
    patient.host.issue()
    harm(patient)
    rows = patient.rows(status=status)
    failed = [name for name, row in rows.items() if row["mark"] == "FAIL"]
    assert failed[0] == check
    assert detail in rows[check]["detail"]
    assert hint in rows[check]["hint"]
    text = patient.host.run("doctor", "approvals").out
    assert f"FAIL {check}: {rows[check]['detail']}\n     hint: {rows[check]['hint']}\n" in text


def test_without_its_state_as_much_is_said_as_can_be(patient: Patient, tmp_path: Path) -> None:
    patient.host.issue()
    (key,) = patient.host.state.rglob("keys/*.json")
    elsewhere = {"CARDCHAIN_STATE": str(tmp_path / "nowhere")}
    rows = patient.rows("--key", str(key), status=6, environment=elsewhere)
    assert [name for name, row in rows.items() if row["mark"] == "FAIL"] == ["state", "rollback"]
    assert rows["chain"]["detail"].startswith("2 records, 2 of them read again, ")
    assert rows["index"]["detail"] == "there is no index; the next command makes it anew"
    assert rows["pending"]["detail"] == "not known, for the reason above"
    assert not (tmp_path / "nowhere").exists()


def test_what_is_no_ledger_is_said_once(empty_host: SimpleNamespace) -> None:
    (empty_host.folder / "plain").mkdir()
    done = empty_host.run("doctor", "plain")
    assert (done.status, done.err) == (2, "")
    first, hint = done.out.splitlines()
    assert first == "FAIL directory: plain: no ledger: segments does not exist"
    assert hint == "     hint: make one with: cardchain init plain"


def test_a_lock_that_is_held_is_told_with_its_holder(patient: Patient) -> None:
    with (patient.ledger / "lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        row = patient.rows(status=6)["lock"]
    assert row["mark"] == "FAIL"
    assert "still locked after 2 seconds" in row["detail"]
    assert row["hint"].startswith(f"held by process {os.getpid()} (")
    assert patient.rows()["lock"]["mark"] == "ok"


def test_torn_bytes_are_told_before_and_after_they_are_moved(patient: Patient) -> None:
    patient.host.issue()
    (segment,) = (patient.ledger / "segments").iterdir()
    with segment.open("ab") as file:
        file.write(segment.read_bytes()[:20])
    row = patient.rows()["chain"]
    assert (row["mark"], "; 20 torn bytes behind it" in row["detail"]) == ("note", True)
    patient.host.issue(task={"id": "other", "step": "refund"})
    row = patient.rows()["recoveries"]
    assert (row["mark"], row["detail"]) == ("note", "1 recoveries, 20 torn bytes kept in 1 files")
    assert row["hint"] == "cardchain log approvals --kind recovered"


def test_a_lost_and_a_damaged_index_are_told(patient: Patient) -> None:
    patient.host.issue()
    index = patient.state() / "index.sqlite"
    patient.host.ok("init", "another")
    (other,) = set((patient.host.state / "cardchain").iterdir()) - {index.parent}
    good = index.read_bytes()
    index.write_bytes(b"no index".ljust(4096))
    row = patient.rows()["index"]
    assert (row["mark"], row["hint"].endswith(f"by hand: rm {index}*")) == ("note", True)
    index.write_bytes((other / "index.sqlite").read_bytes())
    rows = patient.rows()
    assert rows["index"]["detail"] == "it is not of this chain"
    assert rows["pending"]["detail"] == "not known, for the reason above"
    index.unlink()
    rows = patient.rows()
    assert rows["index"]["detail"] == "there is no index; the next command makes it anew"
    assert rows["chain"]["detail"].startswith("2 records, 2 of them read again, ")
    index.write_bytes(good)
    assert patient.rows()["index"]["mark"] == "ok"


def test_an_index_that_is_behind_is_told(patient: Patient) -> None:
    index = patient.state() / "index.sqlite"
    old = index.read_bytes()
    patient.host.issue()
    index.write_bytes(old)
    rows = patient.rows()
    assert rows["index"]["detail"].startswith("1 records behind, ")
    assert rows["chain"]["detail"].startswith("2 records, 1 of them read again, ")


def clocked(patient: Patient, at: int, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("CARDCHAIN_STATE", str(patient.host.state))
    return Ledger.open(patient.ledger, clock=lambda: at)


def test_a_clock_that_is_wrong_is_told(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    hour = 3_600_000
    now = time.time_ns() // 1_000_000
    with clocked(patient, now + hour, monkeypatch) as ledger:
        ledger.configure(by="user:operator", vkey="a+vkey")
    row = patient.rows(status=6)["clock"]
    assert row["mark"] == "FAIL"
    assert "cardchain clock-reset approvals --by ID --reason clock_fixed" in row["hint"]


def test_a_long_time_without_a_record_is_noted(empty_host: SimpleNamespace) -> None:
    code = (
        "from ledger import Ledger\n"
        "Ledger.init('approvals', name='old', clock=lambda: 1767225600000).close()\n"
    )
    python = empty_host.scripts / "python"
    subprocess.run(
        [python, "-c", code], cwd=empty_host.folder, env=empty_host.environment, check=True
    )
    row = Patient(empty_host).rows()["clock"]
    assert row["mark"] == "note"
    assert "an idle ledger, or a clock that went ahead" in row["detail"]


def test_what_waits_is_told(patient: Patient) -> None:
    host = patient.host
    host.issue(task={"id": "late", "step": "refund"}, ttl=1)
    host.issue(task={"id": "open", "step": "refund"})
    granted = host.issue(task={"id": "granted", "step": "refund"}, grant_ttl=600)
    host.ok("approve", "approvals", granted, "--approver", "user:a")
    run = host.issue()
    host.ok("approve", "approvals", run, "--approver", "user:a")
    action = {"tool_name": "refund.create", "arguments": {"order": "SO-1001", "amount": "199.00"}}
    host.write("facts.json", {"action": action})
    host.ok("dispatch", "approvals", run, "--facts", "facts.json")
    rows = patient.rows()
    told = {name: rows[name]["detail"] for name in ("pending", "grants", "outcomes")}
    assert told["pending"] == "1 cards wait for a decision, 1 expired without one"
    assert re.fullmatch(r"1 not spent, 1 lapse soon, the first in \d+ min \d+ s", told["grants"])
    assert told["outcomes"] == "1 dispatched cards have none, or an unknown one"
    assert rows["grants"]["hint"] == f"cardchain show approvals {granted}"
    assert f"cardchain settle approvals {run} --outcome OUTCOME" in rows["outcomes"]["hint"]
    host.ok("settle", "approvals", run, "--outcome", "failed")
    assert patient.rows()["outcomes"]["detail"] == "every dispatched card has one"


def test_a_checkpoint_that_is_old_and_behind_is_noted(signing: Patient) -> None:
    signing.host.issue()
    (note,) = (signing.ledger / "checkpoints").iterdir()
    old = time.time() - 3 * 86_400
    os.utime(note, (old, old))
    row = signing.rows()["checkpoint"]
    assert (row["mark"], row["hint"]) == ("note", "cardchain checkpoint approvals")
    assert row["detail"] == "of 2 records, 1 behind, made 3 d 0 h ago"
    (signing.state() / "tree" / "00.hashes").unlink()
    assert signing.rows()["tree"]["mark"] == "note"


def test_a_writer_at_work_is_no_hindrance(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it has the index open, its latest changes stand beside the file."""
    now = time.time_ns() // 1_000_000
    with clocked(patient, now, monkeypatch) as ledger:
        ledger.configure(by="user:operator", vkey="a+vkey")
        rows = patient.rows()
        assert rows["chain"]["detail"].startswith("2 records, the last one ")
        assert rows["index"]["detail"].startswith("covers all 2 records")


def test_operations_answers_every_line() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text("utf-8")
    section = page.split("\n## Doctor\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([a-z ]+)` \|", section, re.M) == CHECKS
