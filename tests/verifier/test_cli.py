from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipapp
from pathlib import Path
from typing import Any

import pytest

import verifier
from verifier import cli

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def file(log: Any, tmp_path: Path) -> str:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    return str(path)


def command(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    environ = {"PATH": os.environ["PATH"], **more.pop("environ", {})}
    return subprocess.run(
        [sys.executable, "-m", "verifier", *arguments],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        env=environ,
        **more,
    )


def test_verdicts_are_exit_codes(
    file: str, key: str, log: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.cbor"
    broken.write_bytes(log.data[:-1])
    assert cli.status([file, "--key", key]) == 0
    assert cli.status([str(broken), "--key", key]) == 3
    assert cli.status([file]) == 4
    out = capfd.readouterr()
    assert [line for line in out.out.splitlines() if line.isupper()] == [
        "VERIFIED",
        "BROKEN",
        "CANNOT VERIFY",
    ]
    assert out.err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--expect-head", "AB" * 32, "x"],
        ["--expect-head", "ab" * 31, "x"],
        ["--expect-head", "٣" * 64, "x"],
        ["--expect-count", "0", "x"],
        ["--expect-count", "1_0", "x"],
        ["--format", "xml", "x"],
        ["-q", "-v", "x"],
        ["--expect-h", "ab" * 32, "x"],
    ],
)
def test_wrong_use_is_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        cli.status(arguments)
    assert error.value.code == 2


def test_quiet_prints_nothing(file: str, key: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.status([file, "--key", key, "-q"]) == 0
    assert capfd.readouterr() == ("", "")


def test_json_is_one_document(file: str, key: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.status([file, file, "--key", key, "--format", "json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert len(document["logs"]) == 2


def test_standard_input(log: Any, key: str) -> None:
    run = command("-", "--key", key, input=log.data)
    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, b"VERIFIED")


@pytest.mark.parametrize(
    "environ",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "utf-16"},
    ],
)
def test_any_output_encoding(file: str, key: str, environ: dict[str, str]) -> None:
    run = command(file, "--key", key, "-v", environ=environ)
    assert (run.returncode, run.stderr) == (0, b"")
    encoding = environ.get("PYTHONIOENCODING", "ascii")
    assert run.stdout.decode(encoding).splitlines()[-1] == "VERIFIED"


def test_file_names_that_are_no_text(log: Any, key: str, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\x1b[2J\n.cbor"
    with open(name, "wb") as stream:
        stream.write(log.data)
    run = command(os.fsdecode(name), "--key", key)
    assert run.returncode == 0
    assert b"\\u{dcff}\\u{1b}[2J\\n.cbor" in run.stdout


def test_runs_isolated_from_a_zip_file(file: str, key: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for path in Path(verifier.__file__).parent.rglob("*.py"):
        target = source / "verifier" / path.relative_to(Path(verifier.__file__).parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    archive = tmp_path / "verifier.pyz"
    zipapp.create_archive(source, archive, main="verifier.cli:main")
    for arguments, code, line in (
        ([file, "--key", key], 0, b"VERIFIED"),
        ([file], 4, b"CANNOT VERIFY"),
    ):
        run = subprocess.run(
            [sys.executable, "-I", str(archive), *arguments],
            capture_output=True,
            cwd=tmp_path,
            timeout=60,
        )
        assert (run.returncode, run.stdout.splitlines()[-1]) == (code, line)


def test_a_closed_pipe_is_no_traceback(file: str, key: str) -> None:
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, "-m", "verifier", file, "--key", key],
        cwd=ROOT,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(write)
    assert run.stderr == b""
    assert run.returncode == 141


def test_an_interrupt_gives_no_verdict(key: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "verifier", "-", "--key", key],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"\xd1\x84")
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_crash_is_one_line_and_exit_code_1(
    file: str, key: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of step\x1b")

    monkeypatch.setattr(cli, "verify", fail)
    assert cli.status([file, "--key", key]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines()[0] == (
        "cardchain-verify: error: internal error: RuntimeError: out of step\\u{1b}"
    )


def test_a_file_name_that_looks_like_an_option_is_shown_escaped(file: str) -> None:
    run = command(file, "--\x1b[31mVERIFIED")
    assert run.returncode == 2
    assert b"\x1b" not in run.stderr
    assert b"--\\u{1b}[31mVERIFIED" in run.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_report_that_cannot_be_written_is_no_verdict(file: str, key: str) -> None:
    with open("/dev/full", "wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "verifier", file, "--key", key],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert run.returncode == 6
    assert run.stderr.startswith(b"cardchain-verify: error: the report cannot be written")
    assert b"Exception" not in run.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes files")
@pytest.mark.parametrize(
    ("shell", "status", "said"),
    [
        ('"$@" - <&-', 4, b"standard input is closed"),
        ('"$@" "$LOG" >&-', 6, b"standard output is closed"),
    ],
)
def test_closed_standard_files_are_named(file: str, shell: str, status: int, said: bytes) -> None:
    run = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-m", "verifier"],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        env={"PATH": os.environ["PATH"], "LOG": file},
    )
    assert run.returncode == status
    assert said in run.stdout + run.stderr


@pytest.mark.parametrize("number", ["0", "100", "-1", "two"])
def test_a_number_of_jobs_that_nobody_means_is_refused(number: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.status(["log.cbor", "--jobs", number])
    assert ended.value.code == 2
