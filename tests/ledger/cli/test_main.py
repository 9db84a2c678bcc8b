"""What holds for every command: exit statuses, where text goes, and that nothing is a traceback."""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

import ledger.cli
from ledger.cli import cli

SOURCES = sorted(Path(ledger.cli.__file__).parent.glob("*.py"))


def names() -> list[str]:
    return cli.list_commands(click.Context(cli))


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def leaves() -> list[tuple[str, click.Command]]:
    """Every command that can run, under its full name."""
    found = []
    for name in names():
        top = command(name)
        if isinstance(top, click.Group):
            found += [(f"{name} {sub}", leaf) for sub, leaf in top.commands.items()]
        else:
            found.append((name, top))
    return found


@pytest.mark.parametrize("name", names())
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    formatter = click.HelpFormatter(width=200)
    cli.format_commands(click.Context(cli), formatter)
    listed = dict(re.findall(r"^  (\S+)  +(.+)$", formatter.getvalue(), re.M))
    assert listed[name] == (command(name).help or "").split("\n")[0]


@pytest.mark.parametrize("name", [name for name, _ in leaves()])
def test_every_command_has_json(name: str) -> None:
    options = {option for param in dict(leaves())[name].params for option in param.opts}
    assert "--json" in options


def test_a_command_is_imported_only_when_it_runs() -> None:
    """The import of a module of commands at start would make every command slow."""
    code = "import sys, ledger.cli; print(*[m for m in sys.modules if m.startswith('ledger.cli.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_command_fits_in_15_lines(path: Path) -> None:
    """Lines of code without the docstring: a command parses, calls and prints."""
    long = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and any(
            ".command(" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            body = node.body[1:]
            if body[-1].end_lineno - body[0].lineno + 1 > 15:  # type: ignore[operator]
                long.append(node.name)
    assert long == []


@pytest.mark.parametrize("arguments", [[], ["audit"], ["keys"]])
def test_no_command_is_a_usage_error(empty_host: SimpleNamespace, arguments: list[str]) -> None:
    done = empty_host.run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("cardchain: error: Missing command.\ncardchain: hint: ")


def test_help_is_a_result(empty_host: SimpleNamespace) -> None:
    done = empty_host.ok("--help")
    assert re.findall(r"^ +(\d)  ", done.out, re.M) == ["0", "1", "2", "3"]
    assert set(names()) <= set(re.findall(r"^  ([\w-]+)  +\w", done.out, re.M))


def test_the_version_is_that_of_the_distribution(empty_host: SimpleNamespace) -> None:
    assert re.fullmatch(r"cardchain \d+\.\d+\.\d+\n", empty_host.ok("--version").out)


@pytest.mark.parametrize(
    "arguments",
    [
        ["deploy"],
        ["--deploy"],
        ["show", "approvals"],
        ["status", "no-such-folder"],
        ["status", "approvals", "--deploy"],
        ["log", "approvals", "--kind", "approved"],
        ["withdraw", "approvals", "0" * 64, "--reason", "late", "--by", "user:approver-1"],
        ["settle", "approvals", "0" * 64, "--outcome", "maybe"],
        ["approve", "approvals", "0" * 64],
        ["approve", "approvals", "0" * 64, "--approver", b"\xff"],
        ["hash", "no-such-file", "--issued-at", "0"],
        ["hash", "-", "--issued-at", "now"],
        ["hash", ".", "--issued-at", "0"],
    ],
)
def test_wrong_usage_is_2_with_one_line_and_one_hint(
    host: SimpleNamespace, arguments: list[str]
) -> None:
    done = host.run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert re.fullmatch(
        r"cardchain: error: .+\ncardchain: hint: run: cardchain.* --help\n", done.err
    )
    assert host.count() == 1


NO_HASHES = ["", "0" * 63, "0" * 65, "A" * 64, " " + "0" * 63, "0" * 64 + "\n", "\u0660" * 64]


@pytest.mark.parametrize(
    "command",
    [
        ["approve", "--approver", "user:approver-1"],
        ["reject", "--approver", "user:approver-1"],
        ["withdraw", "--reason", "revoked", "--by", "user:approver-1"],
        ["dispatch", "--facts", "-"],
        ["settle", "--outcome", "failed"],
    ],
    ids=lambda command: command[0],
)
def test_what_is_no_full_hash_is_a_usage_error_and_nothing_is_recorded(
    host: SimpleNamespace, command: list[str]
) -> None:
    name, *options = command
    for card in NO_HASHES:
        done = host.run(name, "approvals", card, *options)
        assert (done.status, done.out) == (2, ""), card
        assert "expected 64 lower-case hexadecimal digits" in done.err
    assert host.count() == 1


def test_hostile_arguments_are_escaped_in_errors(empty_host: SimpleNamespace) -> None:
    done = empty_host.run("status", b"\x1b[31m\xe2\x80\xae\xff\n")
    assert done.status == 2
    assert not re.search(r"[^\n\x20-\x7e\ufffd]", done.err)
    assert len(done.err.splitlines()) == 2


def test_a_bug_is_one_line_and_the_traceback_waits_for_debug(
    empty_host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def crash() -> None:
        raise RuntimeError("bidi \u202e and\nnewline")

    module = importlib.import_module("ledger.cli.documents")
    monkeypatch.setattr(module, "render", crash)
    assert ledger.cli.run(["render"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "cardchain: error: internal error: RuntimeError: bidi \\u{202e} and\\nnewline",
        "cardchain: hint: this is a bug: report it with what CARDCHAIN_DEBUG=1 shows",
    ]
    monkeypatch.setenv("CARDCHAIN_DEBUG", "1")
    with pytest.raises(RuntimeError):
        ledger.cli.run(["render"])


def test_a_reader_that_leaves_is_no_error(host: SimpleNamespace) -> None:
    done = host.shell("cardchain log approvals | true; echo ${PIPESTATUS[0]}")
    assert (done.out.strip() in {"0", "141"}, done.err) == (True, "")


def test_a_full_disk_under_the_output_is_6(host: SimpleNamespace) -> None:
    done = host.shell("cardchain status approvals > /dev/full")
    assert done.status == 6
    assert done.err.startswith("cardchain: error: cannot write standard output: No space left")


def test_a_full_disk_under_the_errors_leaves_the_exit_status(host: SimpleNamespace) -> None:
    for command, status in (("status nowhere", 2), (f"settle approvals {'0' * 64}", 2)):
        assert host.shell(f"cardchain {command} 2> /dev/full").status == status
    assert host.shell("cardchain status approvals > /dev/full 2> /dev/full").status == 6


def test_a_missing_lock_is_told_with_the_way_to_one(host: SimpleNamespace) -> None:
    (host.folder / "approvals" / "lock").unlink()
    done = host.run("pending", "approvals")
    assert (done.status, done.out) == (2, "")
    assert re.fullmatch(
        r"cardchain: error: .+: no ledger: lock does not exist\ncardchain: hint: .+ touch .+\n",
        done.err,
    )


def test_a_closed_output_is_6_before_anything_is_done(empty_host: SimpleNamespace) -> None:
    done = empty_host.shell("cardchain init approvals >&-")
    assert done.status == 6
    assert done.err == "cardchain: error: standard output is closed; nothing was done\n"
    assert not (empty_host.folder / "approvals").exists()


def test_results_are_utf8_whatever_the_locale_says(empty_host: SimpleNamespace) -> None:
    """The text of a card is the same bytes on every host."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    envelope = empty_host.folder / "envelope.json"
    envelope.write_bytes(ENVELOPE)
    done = empty_host.run("render", "envelope.json", environment=plain)
    assert (done.status, done.err) == (0, "")
    assert 'reasoning: "\u00e9"' in done.out


NO_ARGUMENTS = hashlib.sha256(b"{}").hexdigest()
EFFECT_KEY = hashlib.sha256(
    f'{{"args_digest":"{NO_ARGUMENTS}","capability":null,"format":"effect-key/1",'
    '"task":{"id":"a","step":"b"},"tool_name":"page.post"}'.encode()
).hexdigest()
ENVELOPE = (
    f'{{"action":{{"args_digest":"{NO_ARGUMENTS}","arguments":{{}},"tool_name":"page.post"}},'
    f'"effect_key":"{EFFECT_KEY}","format":"cardchain-card/1","issued_at":0,"kind":"tool_call",'
    '"not_after":1,"reasoning":"\u00e9","task":{"id":"a","step":"b"}}'
).encode()
