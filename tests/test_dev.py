"""`dev.py` sets up `.venv` by each of its routes to pip, offline, on a project of one file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

DEV = Path(__file__).parents[1] / "dev.py"
HOST_PYTHON = getattr(sys, "_base_executable", sys.executable)  # that of a venv may lack pip

BACKEND = """
import base64, hashlib, zipfile

def build_editable(directory, config_settings=None, metadata_directory=None):
    name = "cardchain-1-py3-none-any.whl"
    info = "cardchain-1.dist-info/"
    files = {
        "story.py": "def tell():\\n    print('told')\\n    return 5\\n",
        info + "METADATA": "Metadata-Version: 2.1\\nName: cardchain\\nVersion: 1\\n"
                           "Provides-Extra: dev\\n",
        info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\n"
                        "Tag: py3-none-any\\n",
        info + "entry_points.txt": "[console_scripts]\\ncardchain = story:tell\\n",
    }
    record = "".join(f"{name},,\\n" for name in files) + info + "RECORD,,\\n"
    with zipfile.ZipFile(directory + "/" + name, "w") as wheel:
        for path, text in {**files, info + "RECORD": record}.items():
            wheel.writestr(path, text)
    return name
"""

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

WHEEL_ROUTE = """
import sys; sys.path.insert(0, {root!r})
import dev; from pathlib import Path
dev.DEBIAN_WHEELS = Path({wheels!r})
sys.exit(dev.main(["demo"]))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose build needs no network, with a copy of dev.py."""
    root = tmp_path / "project"
    root.mkdir()
    shutil.copy(DEV, root)
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(PYPROJECT)
    return root


@pytest.fixture
def without_pip(tmp_path: Path) -> dict[str, str]:
    """The environment of a host whose Python has neither pip nor ensurepip."""
    broken = tmp_path / "broken"
    broken.mkdir()
    for module in ("pip", "ensurepip"):
        (broken / f"{module}.py").write_text("raise ImportError('not on this host')\n")
    return {**os.environ, "PYTHONPATH": str(broken)}


def run(
    project: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the copy of dev.py as a user does, or `-c CODE` in its place."""
    command = arguments if arguments[:1] == ("-c",) else (str(project / "dev.py"), *arguments)
    return subprocess.run(
        [HOST_PYTHON, *command],
        capture_output=True,
        text=True,
        env=environment,
        cwd=project.parent,
        check=False,
    )


def wheels() -> Path:
    """Where this host keeps a wheel of pip: Debian's place, or inside ensurepip."""
    bundled = Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled"
    for folder in (Path("/usr/share/python-wheels"), bundled):
        if list(folder.glob("pip-*.whl")):
            return folder
    pytest.skip("no wheel of pip on this host")


def test_the_first_run_installs_and_the_second_only_runs(project: Path) -> None:
    first = run(project, "demo")
    assert ("told\n", 5) == (first.stdout, first.returncode), first.stderr
    assert "setting up" in first.stderr
    second = run(project, "demo")
    assert ("told\n", "", 5) == (second.stdout, second.stderr, second.returncode)


def test_a_changed_pyproject_is_installed_again(project: Path) -> None:
    run(project, "demo")
    (project / "pyproject.toml").write_text(PYPROJECT + "# changed\n")
    again = run(project, "demo")
    assert 5 == again.returncode, again.stderr
    assert "setting up" in again.stderr


def test_a_wheel_of_pip_serves_where_python_has_no_pip(
    project: Path, without_pip: dict[str, str]
) -> None:
    code = WHEEL_ROUTE.format(root=str(project), wheels=str(wheels()))
    done = run(project, "-c", code, environment=without_pip)
    assert ("told\n", 5) == (done.stdout, done.returncode), done.stderr


def test_without_any_pip_one_line_says_what_to_install_and_nothing_stays(
    project: Path, without_pip: dict[str, str]
) -> None:
    code = WHEEL_ROUTE.format(root=str(project), wheels=str(project / "none"))
    done = run(project, "-c", code, environment=without_pip)
    assert 1 == done.returncode
    assert "" == done.stdout
    assert (
        "dev.py: no pip found: install it (Debian: apt install python3-pip), then run again"
        == (done.stderr.splitlines()[-1])
    )
    assert not (project / ".venv").exists()


def test_a_failed_installation_leaves_nothing_behind(project: Path) -> None:
    (project / "backend.py").write_text("raise RuntimeError('no')\n")
    done = run(project, "demo")
    assert 1 == done.returncode
    assert done.stderr.splitlines()[-1].startswith("dev.py: pip could not install the project")
    assert not (project / ".venv").exists()


def test_a_venv_of_somebody_else_is_never_removed(project: Path) -> None:
    (project / ".venv").mkdir()
    (project / ".venv" / "notes.txt").write_text("mine")
    done = run(project, "demo")
    assert 1 == done.returncode
    assert "has no working python: remove it and run this again" in done.stderr
    assert "mine" == (project / ".venv" / "notes.txt").read_text()


@pytest.mark.parametrize(
    "arguments", [[], ["deploy"], ["demo", "extra"], ["lint", "-x"], ["soak", "-x"]]
)
def test_a_wrong_command_is_a_usage_error_and_sets_nothing_up(
    project: Path, arguments: list[str]
) -> None:
    done = run(project, *arguments)
    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("usage: python3 dev.py COMMAND\n")
    assert not (project / ".venv").exists()
