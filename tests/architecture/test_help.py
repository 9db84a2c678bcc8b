"""docs/cli.md holds the help of every command, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from ledger.cli import cli
from verifier.cli import parser

PATH = Path(__file__).parents[2] / "docs" / "cli.md"
PAGE = PATH.read_text("utf-8")


def commands() -> list[str]:
    """The full names of all commands that the program has."""
    context = click.Context(cli)
    found = ["cardchain"]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        subcommands = command.commands if isinstance(command, click.Group) else {"": None}
        found += [f"cardchain {name} {sub}".strip() for sub in subcommands]
    return found


@pytest.mark.parametrize("command", commands())
def test_a_command_has_a_heading_and_its_help(command: str) -> None:
    assert f"\n## {command}\n" in PAGE
    assert f"\n$ {command} --help\n" in PAGE


def test_the_options_of_the_verifier_are_told() -> None:
    section = PAGE.split("\n## cardchain-verify\n")[1].split("\n## ")[0]
    options = [string for action in parser()._actions for string in action.option_strings]
    assert [option for option in options if f"`{option}`" not in section] == []


def test_no_heading_names_a_command_that_is_gone() -> None:
    assert set(re.findall(r"^## (cardchain.*)$", PAGE, re.M)) - {"cardchain-verify"} == set(
        commands()
    )


def test_the_examples_print_what_is_shown(examples: SimpleNamespace) -> None:
    assert len(examples.check(PATH)) >= 2 * len(commands())


def test_a_line_of_prose_holds_one_sentence() -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S)
    ended = re.compile(r"[a-z)`\]]\. +[A-Z`]|[a-z)`]\? +[A-Z]")
    assert [line for line in prose.splitlines() if ended.search(line)] == []
