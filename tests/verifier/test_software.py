"""The digest of the verifier's source is what `sha256sum` gives, from wherever it runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import verifier
from verifier import software

FOLDER = Path(verifier.__file__).parent
COMMAND = "find verifier -name '*.py' | LC_ALL=C sort | xargs sha256sum | sha256sum"


def by_shell(parent: Path) -> str:
    run = subprocess.run(
        ["sh", "-c", COMMAND], cwd=parent, capture_output=True, text=True, check=True
    )
    return run.stdout.split()[0]


def copied(folder: Path) -> Path:
    """Give a folder that holds a copy of the package, which nobody edits meanwhile."""
    source = folder / "source"
    shutil.copytree(FOLDER, source / "verifier", ignore=shutil.ignore_patterns("__pycache__"))
    return source


def reported(*command: str, folder: Path) -> str | None:
    run = subprocess.run(
        [*command, "missing.cbor", "--format", "json"], cwd=folder, capture_output=True, timeout=60
    )
    assert run.returncode == 4
    digest: str | None = json.loads(run.stdout)["header"]["source_sha256"]
    return digest


def test_the_command_is_the_one_that_is_told() -> None:
    page = (FOLDER.parent / "docs" / "cli.md").read_text("utf-8")
    assert f"\n{COMMAND}\n" in page
    assert f"`{COMMAND}`" in str(software.source_sha256.__doc__)


def test_a_folder_and_a_zip_file_have_the_digest_of_sha256sum(tmp_path: Path) -> None:
    source = copied(tmp_path)
    archive = tmp_path / "verifier.pyz"
    zipapp.create_archive(source, archive, main="verifier.cli:main")
    expected = by_shell(source)
    assert reported(sys.executable, "-m", "verifier", folder=source) == expected
    assert reported(sys.executable, "-I", str(archive), folder=tmp_path) == expected


def test_a_changed_line_changes_the_digest(tmp_path: Path) -> None:
    source = copied(tmp_path)
    before = reported(sys.executable, "-m", "verifier", folder=source)
    with (source / "verifier" / "checks" / "chain.py").open("a") as stream:
        stream.write("# one line more\n")
    after = reported(sys.executable, "-m", "verifier", folder=source)
    assert before != after == by_shell(source)


def test_compiled_code_alone_has_no_digest(tmp_path: Path) -> None:
    source = copied(tmp_path)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "-b", "verifier"], cwd=source, check=True
    )
    for path in source.rglob("*.py"):
        path.unlink()
    assert reported(sys.executable, "-m", "verifier", folder=source) is None
