"""The worked example of the spec can be made again with a shell, and is what the spec shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "cases" / "worked_example" / "log.cbor"
SCRIPT = ROOT / "fixtures" / "worked_example.sh"
SPEC = (ROOT / "docs" / "spec.md").read_text("utf-8")
SECTION = SPEC.split("\n## 11. ")[1].split("\n## ")[0]
ENVELOPE = re.findall(r"```json\n(.*)\n```", SECTION)[0]
RECORDS = re.findall(r"```text\n(.*?)```", SECTION, re.DOTALL)
TABLE = re.findall(r"^\| ([a-z_ ]+) \| .* \| `([0-9a-f]+)` \|$", SECTION, re.MULTILINE)
TOOLS = ("xxd", "openssl", "cut", "tr")
MISSING = [tool for tool in ("sh", *TOOLS) if not shutil.which(tool)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[str]]:
    """Give the log and the lines that the script makes where no other tool can be found."""
    if MISSING and os.environ.get("CI") != "true":
        pytest.skip(f"the script needs {', '.join(MISSING)}")
    folder = tmp_path_factory.mktemp("example")
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    log = folder / "log.cbor"
    command = [shutil.which("sh") or "sh", str(SCRIPT), str(log)]
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60, env={"PATH": str(folder)}
    )
    return log.read_bytes(), run.stdout.splitlines()


def test_the_script_makes_the_fixture(made: tuple[bytes, list[str]]) -> None:
    assert made[0] == LOG.read_bytes()


def test_the_spec_shows_the_fixture() -> None:
    shown = "".join(re.sub(r";.*|\s", "", block) for block in RECORDS)
    assert len(RECORDS) == 3
    assert LOG.read_bytes().hex() == shown.replace("<envelope>", ENVELOPE.encode().hex())


def test_the_script_prints_the_values_of_the_spec(made: tuple[bytes, list[str]]) -> None:
    printed = [line.split(": ", 1) for line in made[1]]
    names = {"chain", "kid", "protected", "args_digest", "effect_key", "card hash", "task digest"}
    once = {name: value for name, value in printed if name in names}
    assert once == {name: value for name, value in TABLE if name in names}
    for name in ("tag", "chain digest"):
        expected = [value for label, value in TABLE if label == name]
        assert len(expected) == 3
        assert expected == [value for label, value in printed if label.endswith(f" {name}")]


def test_the_script_prints_the_envelope_of_the_spec(made: tuple[bytes, list[str]]) -> None:
    assert f"envelope: {ENVELOPE}" in made[1]
