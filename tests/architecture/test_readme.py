"""The README is true: its examples run and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_examples_print_what_is_shown(examples: SimpleNamespace) -> None:
    commands = {command.split()[0] for command in examples.check(ROOT / "README.md")}
    assert {"cardchain", "approve.py"} <= commands


def test_a_pass_and_a_fail_are_shown() -> None:
    blocks = re.findall(r"^```console\n(.*?)^```", README, re.M | re.S)
    verdicts = re.findall(r"\b(VERIFIED|BROKEN)\b", "".join(blocks))
    assert {"VERIFIED", "BROKEN"} == set(verdicts)


def test_the_commands_of_dev_py_exist() -> None:
    named = set(re.findall(r"python3 dev\.py (\w+)", README))
    usage = subprocess.run(
        [sys.executable, ROOT / "dev.py", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert {"demo", "test"} <= named
    assert named <= set(re.findall(r"^  (\w+) ", usage, re.M))


def test_the_exit_statuses_are_those_of_the_help() -> None:
    help_ = subprocess.run(
        [Path(sys.executable).parent / "cardchain", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    listed = dict(re.findall(r"(?<!\S)(\d)  (\w+,?(?: \w+,?)*)", help_.split("Exit status:")[1]))
    table = dict(re.findall(r"^\| (\d) \| (.+?) \|", README, re.M))
    assert sorted(listed) == list("0123456")
    assert table == listed


def test_what_is_never_claimed_stands_in_the_readme() -> None:
    table = README.split("## What this proves")[1].split("\n## ")[0]
    cells = " ".join(re.findall(r"^\|[^|]+\|([^|]+)\|$", table, re.M))
    assert "it does not prove" in cells
    for word in ("HMAC", "complete", "identity", "understood", "rollback", "copies", "screen"):
        assert word in cells, word


def test_a_stranger_sees_what_an_approver_saw() -> None:
    """The first commands after the set-up need nothing but the README and the fixtures."""
    section = README.split("## What did the approver see?")[1].split("\n## ")[0]
    assert re.search(r"^\$ cardchain show fixtures/\S+ [0-9a-f]+ --key fixtures/", section, re.M)
    assert README.index("## What did the approver see?") < README.index("## Around")


def test_it_stays_short() -> None:
    assert len(README.splitlines()) <= 125


def test_the_command_for_a_bernstein_folder_works() -> None:
    sample = ROOT.parent / "shared" / "bernstein-sample" / "clean"
    if not sample.exists() and os.environ.get("CI") != "true":
        pytest.skip("the sample logs are not beside the project")
    (line,) = re.findall(r"^cardchain-verify path/to/\.sdd/audit .*$", README, re.M)
    command = line.replace("path/to", str(sample)).split()
    command[0] = str(Path(sys.executable).parent / command[0])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines()[-1], done.returncode) == ("VERIFIED", 0)
