"""Commands as programs, options and operands."""

from __future__ import annotations

import pytest

from ledger.assess.commands import (
    Carried,
    behind_carrier,
    call,
    carried,
    program_of,
    rule_matches,
    written_files,
)
from ledger.assess.rules import Carrier, CommandRule
from ledger.assess.shell import Command

VALUES = {"git": frozenset({"-C", "-o", "--git-dir"})}
PUSH = CommandRule((("git",), ("push",)), options=("-f", "--force"), unless=("--dry-run", "-n"))


def matched(rule: CommandRule, line: str) -> bool:
    made = call(Command(tuple(line.split())), VALUES)
    assert made is not None
    return rule_matches(rule, made)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("git push -f", True),
        ("git push origin main --force", True),
        ("git push --forc", True),
        ("git push --force=x", True),
        ("git push -uf", True),
        ("git -C push push -f", True),
        ("git --git-dir=x push -f", True),
        ("/usr/bin/GIT push -f", True),
        ("A=b git push -f", True),
        ("git push -f --dry-run", False),
        ("git push -fn", False),
        ("git push -f -- --dry-run", True),
        ("git push -f --dry-run --no-dry-run", True),
        ("git push -f --dry-run --dry-run=false", True),
        ("git push -of", False),
        ("git push -o -f", False),
        ("git push -- -f", False),
        ("git push --follow-tags", False),
        ("git log push -f", False),
        ("gitk push -f", False),
    ],
)
def test_options_count_wherever_and_however_they_are_given(line: str, found: bool) -> None:
    assert found is matched(PUSH, line)


def test_operands_are_compared_behind_the_words_of_the_rule() -> None:
    rule = CommandRule((("git",), ("push",)), operands=("+*", "push"))
    assert matched(rule, "git push origin +main")
    assert not matched(rule, "git push origin main")


@pytest.mark.parametrize(
    ("word", "name"),
    [("/bin/rm", "rm"), ("C:\\bin\\RM.EXE", "rm"), ("rm", "rm"), ("", ""), ("a/", "a")],
)
def test_a_program_is_named_without_its_folder(word: str, name: str) -> None:
    assert name == program_of(word)


@pytest.mark.parametrize(
    ("carrier", "line", "expected"),
    [
        (Carrier((("sudo",),), "command", frozenset({"-u"})), "sudo -u a -H rm x", ("rm", "x")),
        (
            Carrier((("t",),), "command", frozenset({"-k"}), skip=1),
            "t -k 1 5 a",
            ("a",),
        ),
        (Carrier((("k",), ("exec",)), "command", options=("--",)), "k exec p -- a -b", ("a", "-b")),
    ],
)
def test_the_command_behind_a_carrier_is_found(
    carrier: Carrier, line: str, expected: tuple[str, ...]
) -> None:
    command = Command(tuple(line.split()), stdin="fed")
    behind = behind_carrier(carrier, command, {})
    assert behind is not None
    assert [Carried("command", expected, "fed")] == list(carried(carrier, command, behind))


@pytest.mark.parametrize("line", ["sh -c T", "sh -ec T", "sh -c -e T", "sh -cT", "sh -x -c T"])
def test_the_text_of_an_option_is_found_however_it_is_given(line: str) -> None:
    carrier = Carrier((("sh",),), "shell", options=("-c",))
    command = Command(tuple(line.split()))
    behind = behind_carrier(carrier, command, {})
    assert behind is not None
    assert "T" in [part.text for part in carried(carrier, command, behind)]


def test_another_program_is_not_of_the_carrier() -> None:
    carrier = Carrier((("docker",), ("exec",)), "command")
    assert behind_carrier(carrier, Command(("docker", "ps")), {}) is None
    assert behind_carrier(carrier, Command(()), {}) is None


def test_written_files_are_redirections_and_operands_of_writers() -> None:
    writers = {"tee": "all", "cp": "last"}
    tee = Command(("tee", "-a", "x", "y"), writes=("z",))
    assert ["z", "x", "y"] == list(written_files(tee, writers))
    assert ["y"] == list(written_files(Command(("cp", "x", "y")), writers))
    assert [] == list(written_files(Command(("cat", "x")), writers))
