"""Reports in files and on terminals: whole or not at all, and in colour only where it is seen."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verifier import PlaceRefused, check_place, cli, save

ROOT = Path(__file__).resolve().parents[2]
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"


@pytest.fixture
def file(log: Any, tmp_path: Path) -> str:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    return str(path)


@pytest.fixture
def broken(log: Any, tmp_path: Path) -> str:
    path = tmp_path / "broken.cbor"
    path.write_bytes(log.data[:-1])
    return str(path)


def on_terminal(*arguments: str, **environ: str) -> tuple[int, str]:
    """Run the command with a terminal as its standard output; give status and what it shows."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "verifier", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", **environ},
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 65_536):
                shown += data
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(ours)
        assert process.stderr is not None
        assert process.stderr.read() == b""
    return process.returncode, shown.decode().replace("\r\n", "\n")


def test_on_a_terminal_the_verdict_is_red_exactly_if_the_status_is_not_0(
    file: str, broken: str, key: str
) -> None:
    for arguments, status, line in (
        ([file, "--key", key], 0, f"{GREEN}VERIFIED{PLAIN}"),
        ([broken, "--key", key], 3, f"{RED}BROKEN{PLAIN}"),
        ([file], 4, f"{RED}CANNOT VERIFY{PLAIN}"),
    ):
        code, shown = on_terminal(*arguments)
        assert (code, shown.splitlines()[-1]) == (status, line)
        assert shown.count("\x1b") == 2


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_user_can_refuse_colour(broken: str, key: str, environ: dict[str, str]) -> None:
    code, shown = on_terminal(broken, "--key", key, **environ)
    assert (code, shown.splitlines()[-1]) == (3, "BROKEN")
    assert "\x1b" not in shown


def test_an_empty_no_color_refuses_nothing(file: str, key: str) -> None:
    assert GREEN in on_terminal(file, "--key", key, NO_COLOR="")[1]


@pytest.mark.parametrize("name", ["json", "junit", "csv"])
def test_other_formats_have_no_colour(broken: str, key: str, name: str) -> None:
    assert "\x1b" not in on_terminal(broken, "--key", key, "--format", name)[1]


def test_a_file_has_no_colour_and_the_terminal_has_the_verdict(
    broken: str, key: str, tmp_path: Path
) -> None:
    report = tmp_path / "report.txt"
    status, shown = on_terminal(broken, "--key", key, "-o", str(report))
    assert (status, shown) == (3, f"{RED}BROKEN{PLAIN}\n")
    assert report.read_text().splitlines()[-1] == "BROKEN"
    assert "\x1b" not in report.read_text()


def test_quiet_with_a_file_prints_nothing(
    file: str, key: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    assert cli.status([file, "--key", key, "-q", "--format", "json", "-o", str(report)]) == 0
    assert capfd.readouterr() == ("", "")
    assert report.read_text().startswith("{")


def test_a_report_replaces_an_earlier_one(file: str, key: str, tmp_path: Path) -> None:
    report = tmp_path / "report.txt"
    report.write_text("earlier")
    assert cli.status([file, "--key", key, "-o", str(report)]) == 0
    assert report.read_text().startswith("cardchain-verify ")
    assert not [*tmp_path.glob("*.part")]


def refusals(folder: Path) -> Iterator[tuple[str, str]]:
    (folder / "ledger" / "segments").mkdir(parents=True)
    (folder / "keys").mkdir()
    (folder / "hard").hardlink_to(folder / "log.cbor")
    (folder / "soft").symlink_to("log.cbor")
    (folder / "to_ledger").symlink_to("ledger/report.txt")
    for name in ("log.cbor", "./log.cbor", "hard", "soft"):
        yield name, "it would change what is read"
    yield "key.json", "it would change what is read"
    yield "keys/report.json", "it would change what is read"
    yield "ledger/report.txt", "it lies in a ledger"
    yield "ledger/segments/00000000000000000009.cbor", "it lies in a ledger"
    yield "to_ledger", "it lies in a ledger"
    yield "missing/report.txt", "its folder is not there"
    yield "keys", "no regular file"
    yield "/dev/null", "no regular file"
    yield "not\0a path", "null byte"


def test_places_that_are_refused(
    file: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = Path(file).read_bytes()
    for place, why in [*refusals(tmp_path)]:
        with pytest.raises(PlaceRefused, match=why):
            check_place(place, ["log.cbor", "key.json", "keys", "-", "nowhere"])
    check_place("report.txt", ["log.cbor", "key.json", "keys", "-", "nowhere"])
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize("place", ["log.cbor", "key.json", "env.json", "profile.json"])
def test_the_command_writes_over_nothing_that_it_reads(
    place: str,
    file: str,
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("env.json", "profile.json"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setenv("CARDCHAIN_KEY", str(tmp_path / "env.json"))
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / place).read_bytes()
    with pytest.raises(SystemExit) as error:
        cli.status([file, "--key", key, "--profile", "profile.json", "-o", place])
    assert error.value.code == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "nothing was read" in err
    assert (tmp_path / place).read_bytes() == before


def test_a_report_that_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "the beginning"
        raise RuntimeError("out of ink")

    report = tmp_path / "report.txt"
    report.write_text("earlier")
    with pytest.raises(RuntimeError, match="out of ink"):
        save(str(report), pieces())
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
    assert report.read_text() == "earlier"


def test_a_file_size_limit_is_one_line_and_no_verdict(file: str, key: str, tmp_path: Path) -> None:
    report = tmp_path / "out" / "report.json"
    report.parent.mkdir()
    run = subprocess.run(
        [
            *("bash", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "bash"),
            *(sys.executable, "-B", "-m", "verifier", file, "--key", key),
            *("--format", "json", "-o", str(report)),
        ],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout) == (6, b"")
    lines = run.stderr.decode().splitlines()
    said = f"cardchain-verify: error: the report cannot be written to {report}: File too"
    assert lines[0].startswith(said)
    assert len(lines) == 2
    assert [*report.parent.iterdir()] == []


@pytest.mark.parametrize("name", ["text", "json", "junit", "csv"])
def test_a_reader_that_went_away_gets_no_verdict_and_no_traceback(
    name: str, file: str, key: str
) -> None:
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, "-m", "verifier", file, "--key", key, "--format", name],
        cwd=ROOT,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(write)
    assert (run.returncode, run.stderr) == (141, b"")
