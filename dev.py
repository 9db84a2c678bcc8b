"""Sets the project up in `.venv` and runs it: `python3 dev.py demo`, `python3 dev.py test`, …

Needs Python 3.11 or later and nothing else; the first run downloads the dependencies.
The project is installed editable, so that what runs is the working tree.
A stamp in `.venv`, made of `pyproject.toml`, tells later runs that all is in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
STAMP = VENV / "cardchain.stamp"
DEBIAN_WHEELS = Path("/usr/share/python-wheels")
USAGE = """usage: python3 dev.py COMMAND

  demo                the story of an approval in under three seconds
  test [ARGUMENTS]    every test, or what the arguments say to pytest
  soak                the crash tests with their full counts
  bench [ARGUMENTS]   the benchmarks of docs/performance.md
  lint                ruff and mypy
"""
_ARGUMENTS = ("test", "bench")  # the commands that take arguments


class SetUpFailed(Exception):
    """The environment could not be made; the message says what to do."""


def main(arguments: list[str]) -> int:
    """Run one command of USAGE and return its exit status; 2 is a usage error."""
    if sys.version_info < (3, 11):  # noqa: UP036 - an old python reads this line too
        return _fail(f"python {sys.version.split()[0]} is too old: run this with 3.11 or later")
    command, rest = (arguments or [""])[0], arguments[1:]
    if command in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    run = {"demo": _demo, "test": _test, "soak": _soak, "bench": _bench, "lint": _lint}.get(command)
    if run is None or (rest and command not in _ARGUMENTS):
        print(USAGE, end="", file=sys.stderr)
        return 2
    try:
        set_up("demo" if command == "demo" else "dev")
    except SetUpFailed as error:
        return _fail(str(error))
    os.chdir(ROOT)
    return run(rest)


def set_up(level: str) -> None:
    """Make `.venv` hold the project and the dependencies of `level`: `demo` or `dev`.

    A `.venv` that this call made is removed again when it fails, one that was
    there before stays.
    """
    with open(__file__, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once would install over each other
        if _is_set_up(level):
            return
        made = _make_venv()
        try:
            print(f"dev.py: setting up {VENV} (first run only)", file=sys.stderr)
            _install("-e", str(ROOT) if level == "demo" else f"{ROOT}[dev]")
            STAMP.write_text(_stamp(level))
        except BaseException:
            if made:
                shutil.rmtree(VENV, ignore_errors=True)
            raise


def _is_set_up(level: str) -> bool:
    try:
        found = STAMP.read_text()
    except OSError:
        return False
    return (BIN / "python").exists() and found in (_stamp(level), _stamp("dev"))


def _stamp(level: str) -> str:
    """Names what is installed: a changed pyproject or a moved tree is another stamp."""
    facts = f"{level}\n{ROOT}\n".encode() + (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(facts).hexdigest()


def _make_venv() -> bool:
    """Whether `.venv` had to be made; one whose Python is gone is made again."""
    if (BIN / "python").exists():
        STAMP.unlink(missing_ok=True)
        return False
    if VENV.exists() and not STAMP.exists():
        raise SetUpFailed(f"{VENV} has no working python: remove it and run this again")
    try:
        venv.EnvBuilder(with_pip=False, clear=True, symlinks=True).create(VENV)
    except BaseException as error:
        shutil.rmtree(VENV, ignore_errors=True)
        if isinstance(error, (OSError, subprocess.SubprocessError)):
            raise SetUpFailed(f"cannot make {VENV}: {error}") from error
        raise
    return True


def _install(*requirements: str) -> None:
    command = [*_pip(), "install", "--quiet", "--disable-pip-version-check", *requirements]
    if subprocess.call(command) != 0:
        raise SetUpFailed("pip could not install the project (see above); check the network")


def _pip() -> list[str]:
    """The first pip that can install into `.venv`: its own, the host's, Debian's wheel, ensurepip.

    Debian's python3 has neither pip nor ensurepip unless packages bring them.
    """
    python = str(BIN / "python")
    own = [python, "-m", "pip"]
    host = [sys.executable, "-m", "pip", "--python", python]
    wheels = [[python, f"{wheel}/pip"] for wheel in sorted(DEBIAN_WHEELS.glob("pip-*.whl"))]
    for candidate in [own, host, *reversed(wheels)]:
        if _runs([*candidate, "--version"]):
            return candidate
    if find_spec("ensurepip") and _runs([python, "-m", "ensurepip"]):
        return own
    raise SetUpFailed("no pip found: install it (Debian: apt install python3-pip), then run again")


def _runs(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _demo(_: list[str]) -> int:
    return subprocess.call([BIN / "cardchain", "demo"])


def _test(arguments: list[str]) -> int:
    every_test = ["-n", "auto"]  # one process per core; they wait for disks and clocks a lot
    return subprocess.call([str(BIN / "python"), "-m", "pytest", *(arguments or every_test)])


def _soak(_: list[str]) -> int:
    command = [str(BIN / "python"), "-m", "pytest", "-n", "auto", "tests/crash"]
    return subprocess.call(command, env={**os.environ, "CARDCHAIN_SOAK": "1"})


def _bench(arguments: list[str]) -> int:
    return subprocess.call([str(BIN / "python"), "tests/benchmarks/run.py", *arguments])


def _lint(_: list[str]) -> int:
    commands = (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"])
    return max(subprocess.call([str(BIN / program), *rest]) for program, *rest in commands)


def _fail(message: str) -> int:
    print(f"dev.py: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
