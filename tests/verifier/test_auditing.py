"""Logs held against checkpoints, pins and what an auditor asks for, beside the fixtures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trees import Excerpt, Signer, base64, consistency, root, signed

from verifier import Report, Verdict, render_json, render_text, verify
from verifier.pinfile import PinRefused
from verifier.report import Outcome

ROOT = Path(__file__).parents[2]


@pytest.fixture
def long(new_log: Callable[..., Any]) -> Any:
    log = new_log()
    log.open()
    for number in range(6):
        log.resolve(log.issue(number), "reject" if number % 2 else "approve")
    return log


def vkey(log: Any) -> str:
    return Signer(f"cardchain/{log.chain.hex()}").vkey


def write(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def run(log: Any, folder: Path, *notes: str, data: bytes | None = None, **more: Any) -> Report:
    path = write(folder, "log.cbor", log.data if data is None else data)
    files = [write(folder, f"{place}.note", note) for place, note in enumerate(notes)]
    given_ = {"vkeys": [vkey(log)], "environ": {}, "checkpoint_files": files, **more}
    return verify([path], **given_)


def found(report: Report) -> list[tuple[str, int | None]]:
    return [(one.check, one.seq) for log in report.logs for one in log.findings]


def row(report: Report, check: str) -> tuple[Outcome, str]:
    (one,) = [row for row in report.logs[0].rows if row.check == check]
    return one.outcome, one.detail


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sets(st.integers(1, 13), min_size=1, max_size=5))
def test_a_key_is_missing_from_the_largest_checkpoint_on(
    long: Any, tmp_path: Path, sizes: set[int]
) -> None:
    report = run(long, tmp_path, *(signed(long, size) for size in sizes))
    missing = [("key_missing", max(sizes))] if max(sizes) < 13 else []
    assert found(report) == missing
    assert report.logs[0].signed_to == (12 if not missing else None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_flipped_bit_below_a_checkpoint_is_verified(
    long: Any, tmp_path: Path, data: st.DataObject
) -> None:
    """Without any secret: a tag, which only the root covers, is not passed over either."""
    bit = data.draw(st.integers(0, 8 * len(long.data) - 1))
    changed = bytearray(long.data)
    changed[bit // 8] ^= 1 << bit % 8
    report = run(long, tmp_path, signed(long), data=bytes(changed))
    assert report.verdict is Verdict.BROKEN


def test_a_later_version_is_covered_and_an_edited_one_is_not(
    new_log: Callable[..., Any], tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    log.add("configured", None, {"by": "user:operator-1", "vkey": "fixture"}, v="cardchain/2")
    log.add("configured", None, {"by": "user:operator-1", "vkey": "fixture"})
    report = run(log, tmp_path, signed(log))
    assert (report.verdict, found(report)) == (Verdict.CANNOT_VERIFY, [("version", None)])
    data = log.data.replace(b"cardchain/2", b"cardchain/3")
    report = run(log, tmp_path, signed(log), data=data)
    assert report.verdict is Verdict.BROKEN
    assert ("checkpoint_root", None) in found(report)


def test_a_wrong_root_below_a_right_one_covers_nothing_more(long: Any, tmp_path: Path) -> None:
    false = signed(long, 5).replace(base64(root(long.digests[:5])), base64(bytes(32)))
    signer = Signer(f"cardchain/{long.chain.hex()}")
    text = false.split("\n\n")[0] + "\n"
    report = run(long, tmp_path, f"{text}\n{signer.line(text)}", signed(long))
    assert found(report) == [("checkpoint_root", None)]
    assert report.logs[0].findings[0].file.endswith("0.note")


def test_of_many_checkpoints_that_fail_the_smallest_is_told(long: Any, tmp_path: Path) -> None:
    short = b"".join(long.records[:4])
    notes = [signed(long, size) for size in (9, 3, 7, 13)]
    report = run(long, tmp_path, *notes, data=short)
    assert found(report) == [("key_missing", 3), ("checkpoint_size", None)]
    assert report.logs[0].findings[-1].file.endswith("2.note")


def test_a_wrong_root_explains_a_size_that_is_not_reached(long: Any, tmp_path: Path) -> None:
    signer = Signer(f"cardchain/{long.chain.hex()}")
    text = f"{signer.name}\n3\n{base64(bytes(32))}\n"
    short = b"".join(long.records[:4])
    report = run(long, tmp_path, signed(long), f"{text}\n{signer.line(text)}", data=short)
    assert found(report) == [("key_missing", 0), ("checkpoint_root", None)]


def test_a_root_that_nobody_signed_is_not_compared(long: Any, key: str, tmp_path: Path) -> None:
    note = signed(long, 5, Signer(f"cardchain/{long.chain.hex()}", 1))
    report = run(long, tmp_path, note, key_files=[key])
    assert found(report) == [("checkpoint_key", None)]
    assert row(report, "checkpoint_root")[0] is Outcome.NOT_CHECKED


def test_a_consistency_proof_is_held_against_the_log(long: Any, tmp_path: Path) -> None:
    proof = consistency(long, 5, signed(long, 9), 9)
    report = run(long, tmp_path, signed(long), proof)
    assert (report.verdict, row(report, "consistency")) == (Verdict.VERIFIED, (Outcome.PASS, ""))
    lines = proof.splitlines(keepends=True)
    bad = "".join([lines[0], lines[2], lines[1], *lines[3:]])
    report = run(long, tmp_path, signed(long), bad)
    assert found(report) == [("consistency", None)]


def test_a_proof_alone_signs_and_pins_nothing(long: Any, tmp_path: Path) -> None:
    """Its newer checkpoint may come from who made the log, not from what the auditor kept."""
    report = run(long, tmp_path, consistency(long, 5, signed(long)))
    assert report.logs[0].assurance == ("signed",)


def test_a_checkpoint_that_cannot_be_read_is_not_passed_over(
    long: Any, key: str, tmp_path: Path
) -> None:
    files = [str(tmp_path / "absent.note")]
    report = run(long, tmp_path, key_files=[key], checkpoint_files=files)
    assert (report.verdict, found(report)) == (Verdict.CANNOT_VERIFY, [("unreadable", None)])
    assert report.logs[0].findings[0].file == files[0]


def test_damage_at_the_end_explains_a_missing_record(long: Any, key: str, tmp_path: Path) -> None:
    data = b"".join(long.records[:-1]) + b"\xff" * 40
    report = run(long, tmp_path, signed(long), data=data, key_files=[key])
    assert [check for check, _ in found(report)] == ["framing"]


def test_a_log_goes_on_from_its_frontier(long: Any, key: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    write(ledger, f"segments/{4:020}.cbor", b"".join(long.records[4:]))
    write(ledger, f"checkpoints/{13:020}.note", signed(long))
    report = verify([str(ledger)], [key], vkeys=[vkey(long)], environ={})
    assert row(report, "checkpoint_root")[0] is Outcome.NOT_CHECKED
    frontier = base64(root(long.digests[:4])) + "\n"
    write(ledger, f"checkpoints/{4:020}.frontier", frontier)
    report = verify([str(ledger)], [key], vkeys=[vkey(long)], environ={})
    assert row(report, "checkpoint_root") == (Outcome.PASS, "")
    write(ledger, f"checkpoints/{4:020}.frontier", base64(bytes(32)) + "\n")
    report = verify([str(ledger)], [key], vkeys=[vkey(long)], environ={})
    assert ("checkpoint_root", None) in found(report)
    (root_,) = [one for one in report.logs[0].findings if one.check == "checkpoint_root"]
    assert root_.cause.startswith("the frontier file at the left edge was changed, or the log")
    assert "cat ARCHIVE.cbor" in root_.next_command


def test_the_note_beside_an_export_is_not_read(long: Any, key: str, tmp_path: Path) -> None:
    write(tmp_path, "log.cbor.note", signed(long))
    report = run(long, tmp_path, key_files=[key])
    assert report.logs[0].assurance == ("integrity only",)


def test_an_announced_vkey_is_no_vkey(long: Any, tmp_path: Path) -> None:
    long.add("configured", None, {"by": "user:operator-1", "vkey": vkey(long)})
    report = run(long, tmp_path, signed(long), vkeys=())
    assert [check for check, _ in found(report)] == ["key_missing", "checkpoint_key"]


def test_a_report_says_up_to_where_it_is_signed_and_pinned(
    long: Any, key: str, tmp_path: Path
) -> None:
    report = run(long, tmp_path, signed(long, 5), key_files=[key], expect_head=long.digests[7])
    (log,) = report.logs
    assert (log.assurance, log.signed_to, log.pinned_to) == (("pinned", "signed"), 4, 7)
    lines = render_text(report).splitlines()
    assert "assurance: pinned and signed" in lines
    assert {"signed up to seq: 4", "pinned up to seq: 7"} <= set(lines)
    (document,) = json.loads(render_json(report))["logs"]
    assert [document[name] for name in ("assurance", "signed_to", "pinned_to")] == [
        ["pinned", "signed"],
        4,
        7,
    ]


def test_a_report_says_who_is_to_be_believed(long: Any, key: str, tmp_path: Path) -> None:
    def said(*notes: str, **more: Any) -> list[bool]:
        (log,) = run(long, tmp_path, *notes, key_files=[key], **more).logs
        begins = ("who made the log: ", "that the signer of the checkpoint tells everybody")
        return [any(line.startswith(one) for line in log.not_checked) for one in begins]

    assert said() == said(signed(long, 12)) == said(signed(long), vkeys=()) == [True, False]
    assert said(signed(long)) == said(signed(long, 5), signed(long)) == [False, True]
    assert said(consistency(long, 5, signed(long)), required=["pinned"]) == [True, False]


def test_what_is_not_verified_has_no_assurance(long: Any, tmp_path: Path) -> None:
    (log,) = run(long, tmp_path, signed(long, 5)).logs
    assert (log.verdict, log.assurance, log.signed_to) == (Verdict.CANNOT_VERIFY, (), None)


# After a kept checkpoint.


def test_with_more_processes_the_rest_is_the_same(long: Any, key: str, tmp_path: Path) -> None:
    note = write(tmp_path, "kept.note", signed(long, 5))
    reports = [run(long, tmp_path, key_files=[key], since=note, jobs=jobs) for jobs in (1, 2)]
    assert [one.logs[0] for one in reports] == [reports[0].logs[0]] * 2
    log = reports[0].logs[0]
    assert (log.verdict, log.first_seq, log.signed_to) == (Verdict.VERIFIED, 5, 4)


def test_a_pin_below_the_kept_checkpoint_is_held(long: Any, key: str, tmp_path: Path) -> None:
    note = write(tmp_path, "kept.note", signed(long, 9))
    pin = write(tmp_path, "pin.json", pinned(long, 3))
    report = run(long, tmp_path, key_files=[key], since=note, pin_file=pin)
    assert row(report, "pinned_head") == (Outcome.PASS, "")
    write(tmp_path, "pin.json", pinned(long, 3).replace(long.digests[3].hex(), "00" * 32))
    report = run(long, tmp_path, key_files=[key], since=note, pin_file=pin)
    assert found(report) == [("pinned_head", None)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_flipped_bit_of_what_is_covered_is_passed_over(
    long: Any, key: str, tmp_path: Path, data: st.DataObject
) -> None:
    """But in an opening, and in a length before one: nobody looks at them there."""
    seq = data.draw(st.integers(0, 8))
    start = sum(map(len, long.records[:seq]))
    payload = long.records[seq].rindex(b"cardchain/1") - 1
    bit = data.draw(st.integers(8 * payload, 8 * len(long.records[seq]) - 1))
    changed = bytearray(long.data)
    changed[start + bit // 8] ^= 1 << bit % 8
    note = write(tmp_path, "kept.note", signed(long, 9))
    report = run(long, tmp_path, key_files=[key], since=note, data=bytes(changed))
    assert report.verdict is Verdict.BROKEN


def test_a_long_log_is_hashed_in_batches(
    long: Any, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = write(tmp_path, "kept.note", signed(long, 9))
    for size in (1, 2, 4, 9, 10):
        monkeypatch.setattr("verifier.since._BATCH", size)
        report = run(long, tmp_path, signed(long, 3), key_files=[key], since=note)
        assert (report.verdict, report.logs[0].first_seq) == (Verdict.VERIFIED, 9)


def test_a_file_that_looks_like_a_digest_is_named_with_its_folder(
    long: Any, tmp_path: Path
) -> None:
    path = write(tmp_path, "log.cbor", long.data)
    assert command(path, "--since", "5:beef").returncode == 2
    done = command(path, "--since", "./5:beef", "--format", "json")
    checks = [one["check"] for one in json.loads(done.stdout)["logs"][0]["findings"]]
    assert (done.returncode, checks) == (4, ["key_missing", "unreadable"])


def test_a_report_does_not_replace_the_kept_checkpoint(long: Any, key: str, tmp_path: Path) -> None:
    path, note = write(tmp_path, "log.cbor", long.data), write(tmp_path, "note", signed(long, 5))
    for option in ("-o", "--pin"):
        assert command(path, "--key", key, "--since", note, option, note).returncode == 2
    assert Path(note).read_text() == signed(long, 5)


# Pins.


def pinned(log: Any, seq: int) -> str:
    members = {"format": "cardchain-pin/1", "chain": log.chain.hex(), "seq": seq}
    return json.dumps({**members, "digest": log.digests[seq].hex()})


def test_a_pin_never_goes_back(long: Any, key: str, tmp_path: Path) -> None:
    pin = write(tmp_path, "pin.json", pinned(long, 12))
    before = Path(pin).read_bytes()
    report = run(long, tmp_path, key_files=[key], pin_file=pin)
    assert (report.verdict, report.logs[0].assurance) == (Verdict.VERIFIED, ("pinned",))
    assert Path(pin).read_bytes() == before
    short = b"".join(long.records[:9])
    report = run(long, tmp_path, key_files=[key], pin_file=pin, data=short)
    assert found(report) == [("pinned_head", None)]
    assert Path(pin).read_bytes() == before


def test_a_first_look_is_said_and_pinned_from_then_on(long: Any, key: str, tmp_path: Path) -> None:
    pin = str(tmp_path / "pin.json")
    (log,) = run(long, tmp_path, key_files=[key], pin_file=pin).logs
    assert log.assurance == ("integrity only",)
    assert any("first look" in sentence for sentence in log.not_checked)
    (log,) = run(long, tmp_path, key_files=[key], pin_file=pin).logs
    assert (log.assurance, log.pinned_to) == (("pinned",), 12)


def test_inputs_that_disagree_leave_a_pin_alone(long: Any, key: str, tmp_path: Path) -> None:
    pin = write(tmp_path, "pin.json", pinned(long, 5))
    before = Path(pin).read_bytes()
    short = write(tmp_path, "short.cbor", b"".join(long.records[:9]))
    whole = write(tmp_path, "whole.cbor", long.data)
    report = verify([short, whole], [key], pin_file=pin, environ={})
    assert report.verdict is Verdict.VERIFIED
    assert row(report, "pinned_head") == (Outcome.PASS, "")
    assert Path(pin).read_bytes() == before
    report = verify([whole, whole], [key], pin_file=pin, environ={})
    assert row(report, "pinned_head") == (Outcome.PASS, "")
    assert json.loads(Path(pin).read_bytes())["seq"] == 12


def test_a_pin_that_cannot_be_moved_on_is_a_warning(long: Any, key: str, tmp_path: Path) -> None:
    pin = str(tmp_path / "absent" / "pin.json")
    (log,) = run(long, tmp_path, key_files=[key], pin_file=pin).logs
    assert (log.verdict, len(log.warnings)) == (Verdict.VERIFIED, 1)


NO_FILES = (
    "import resource; from verifier.cli import main;"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); main()"
)
"""The command where no file can grow; standard output, which is a pipe, is none."""


def test_a_pin_moves_after_the_report_is_written(long: Any, key: str, tmp_path: Path) -> None:
    path = write(tmp_path, "log.cbor", long.data)
    pin = write(tmp_path, "pin.json", pinned(long, 5))
    before = Path(pin).read_bytes()
    options = (path, "--key", key, "--pin", pin, "-o", str(tmp_path / "report.txt"))
    done = command(*options, prefix=("-c", NO_FILES))
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.startswith("cardchain-verify: error: the report cannot be written to")
    assert Path(pin).read_bytes() == before
    assert command(*options).returncode == 0
    assert json.loads(Path(pin).read_bytes())["seq"] == 12


def test_a_report_stands_where_the_pin_cannot_be_moved(long: Any, key: str, tmp_path: Path) -> None:
    path, pin = write(tmp_path, "log.cbor", long.data), str(tmp_path / "pin.json")
    done = command(path, "--key", key, "--pin", pin, prefix=("-c", NO_FILES))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "VERIFIED")
    assert done.stderr.startswith("cardchain-verify: warning: the pin file")
    assert not Path(pin).exists()


def test_a_malformed_pin_is_wrong_usage_and_left_alone(long: Any, key: str, tmp_path: Path) -> None:
    pin = write(tmp_path, "pin.json", pinned(long, 5).replace("seq", "Seq"))
    before = Path(pin).read_bytes()
    with pytest.raises(PinRefused):
        run(long, tmp_path, key_files=[key], pin_file=pin)
    done = command(str(tmp_path / "log.cbor"), "--key", key, "--pin", pin)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cardchain-verify: error: argument --pin")
    assert Path(pin).read_bytes() == before


def test_a_pin_may_not_be_what_is_read(long: Any, key: str, tmp_path: Path) -> None:
    path = write(tmp_path, "log.cbor", long.data)
    for place in (path, key, str(tmp_path)):
        assert command(path, "--key", key, "--pin", place).returncode == 2
    assert Path(path).read_bytes() == long.data


# The command, and its libraries.


def command(*arguments: str, prefix: tuple[str, ...] = ("-m", "verifier")) -> Any:
    return subprocess.run(
        [sys.executable, *prefix, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
        check=False,
    )


@pytest.fixture
def package(tmp_path: Path) -> str:
    """A zip of the package, as an auditor carries it."""
    file = tmp_path / "verifier.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted((ROOT / "verifier").rglob("*.py")):
            archive.write(path, path.relative_to(ROOT))
        archive.writestr("__main__.py", "from verifier.cli import main\nmain()\n")
    return str(file)


def test_a_zip_of_the_package_checks_signatures(long: Any, package: str, tmp_path: Path) -> None:
    path, note = write(tmp_path, "log.cbor", long.data), write(tmp_path, "note", signed(long))
    options = ("--vkey", vkey(long), "--checkpoint", note, "--require", "signed")
    done = command(path, *options, prefix=("-I", package))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\nVERIFIED\n")


def test_without_the_library_only_signatures_are_lost(
    long: Any, key: str, package: str, tmp_path: Path
) -> None:
    """`-S` leaves nothing but the standard library on the path."""
    path = write(tmp_path, "log.cbor", long.data)
    notes = [write(tmp_path, f"{size}.note", signed(long, size)) for size in (5, 13)]
    options = ["--vkey", vkey(long)]
    for note in notes:
        options += ["--checkpoint", note]
    for more in ((), ("--key", key)):
        done = command(path, *options, *more, "--format", "json", prefix=("-I", "-S", package))
        assert (done.returncode, done.stderr) == (4, "")
        (log,) = json.loads(done.stdout)["logs"]
        (only,) = log["findings"]
        assert only["check"] == "checkpoint_key"
        assert "pip install cryptography" in only["next_command"]
        assert log["counts"]["decisions_ok"] == 6
    assert command(path, "--key", key, prefix=("-I", "-S", package)).returncode == 0


def test_an_excerpt_without_the_library_is_one_finding(
    long: Any, package: str, tmp_path: Path
) -> None:
    card, envelope, _ = long.issue(99)
    file = write(
        tmp_path, "r.excerpt", Excerpt(long, {"card": card}, [long.seq - 1], [envelope]).data
    )
    prefix = ("-I", "-S", package)
    done = command(file, "--vkey", vkey(long), "--format", "json", prefix=prefix)
    (log,) = json.loads(done.stdout)["logs"]
    assert [one["check"] for one in log["findings"]] == ["checkpoint_key"]


def test_a_foreign_log_is_held_against_no_checkpoint_and_that_is_said(
    long: Any, tmp_path: Path
) -> None:
    note, path = write(tmp_path, "note", signed(long)), write(tmp_path, "other.jsonl", "{}\n")
    for files in ([], [note]):
        (log,) = verify([path], checkpoint_files=files, environ={}).logs
        said = [one for one in log.not_checked if one.startswith("the checkpoints and the pinned")]
        assert len(said) == len(files)
        assert log.verdict is not Verdict.VERIFIED


def test_withheld_openings_are_listed(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    card = log.issue()
    log.resolve(card, note={"digest": bytes(32)})
    report = run(log, tmp_path, key_files=[key], allow_withheld=True)
    assert report.verdict is Verdict.VERIFIED
    assert "withheld at seq 2: note" in render_text(report).splitlines()
    (document,) = json.loads(render_json(report))["logs"]
    assert document["withheld"] == [{"seq": 2, "openings": ["note"]}]
    assert document["withheld_total"] == 1
    assert run(log, tmp_path, key_files=[key]).verdict is Verdict.BROKEN


@pytest.mark.parametrize(
    "option",
    [("--require", "witnessed"), ("--require",), ("--checkpoint",), ("--pin",), ("--vkey",)],
)
def test_wrong_usage_is_said(option: tuple[str, ...], long: Any, tmp_path: Path) -> None:
    path = write(tmp_path, "log.cbor", long.data)
    done = command(path, *option)
    assert (done.returncode, done.stdout) == (2, "")


def test_hostile_text_of_a_note_stays_escaped(long: Any, key: str, tmp_path: Path) -> None:
    evil = "\u202eevil\u200b"
    note = signed(long).replace("cardchain/", f"cardchain{evil}/", 1)
    report = run(long, tmp_path, note, f"old {evil}\n\n{note}", key_files=[key])
    assert [check for check, _ in found(report)] == ["checkpoint", "consistency"]
    for text in (render_text(report), render_json(report)):
        assert not {"\u202e", "\u200b"} & set(text)
