"""The command `demo`: a story told by the installed commands, run as separate processes."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from ledger.cli.output import put, to_json
from ledger.cli.parameters import json_option

_APPROVER: Final = ("--approver", "user:approver-1")


@click.command()
@json_option
def demo(json_: bool) -> None:
    """Tell the story of an approval, with a ledger in a temporary folder.

    Every line under a `$` is the output of that command, run as a process of its own.
    The exit status is 0 if every command ended as the story says, else 1.
    """
    with TemporaryDirectory(prefix="cardchain-demo-") as folder:
        story = _Story(Path(folder), _nothing if json_ else put)
        passed = _told(story)
    if json_:
        put(to_json({"passed": passed, "commands": story.commands}))
    if not passed:
        sys.exit(1)


class _Unexpected(Exception):
    """A command ended in another way than the story says."""


class _Story:
    """Runs commands in a folder of their own and keeps what they answered."""

    def __init__(self, folder: Path, print_: Callable[[str], None]) -> None:
        self.folder = folder
        self.commands: list[dict[str, Any]] = []
        self._print = print_
        self._environment = {**os.environ, "CARDCHAIN_STATE": str(folder / "state")}
        self._environment.pop("CARDCHAIN_KEY", None)

    def say(self, sentence: str) -> None:
        """Print a sentence between commands."""
        self._print(f"\n# {sentence}")

    def write(self, name: str, document: dict[str, Any]) -> str:
        """Write a JSON file and give its name."""
        (self.folder / name).write_text(json.dumps(document))
        return name

    def run(self, *command: str, status: int = 0) -> str:
        """Run an installed command, print what it answers, and expect an exit status."""
        done = subprocess.run(
            [_installed(command[0]), *command[1:]],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        answer = done.stdout.decode()
        told = "" if done.returncode == 0 else f"[exit status {done.returncode}]\n"
        self._print(f"$ {shlex.join(command)}\n{answer}{told}".rstrip("\n"))
        self.commands.append(
            {"command": command, "expected": status, "status": done.returncode, "output": answer}
        )
        if done.returncode != status:
            raise _Unexpected(
                f"{shlex.join(command)}: expected exit status {status}, found {done.returncode}:\n"
                f"{answer}"
            )
        return answer

    def aside(self, part: Callable[[_Story], None]) -> Callable[[], None]:
        """Run a part whose output waits; what is returned prints it."""
        lines: list[str] = []
        story = _Story(self.folder, lines.append)
        part(story)

        def join() -> None:
            self.commands += story.commands
            self._print("\n".join(lines))

        return join


def _installed(name: str) -> str:
    """Find a command beside the one that runs, else beside its Python, else on PATH."""
    places = [Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent]
    return shutil.which(name, path=os.pathsep.join(map(str, places))) or name


def _nothing(_: str) -> None:
    """Print nothing: with --json the one document holds it all."""


def _told(story: _Story) -> bool:
    try:
        _tell(story)
    except _Unexpected as error:
        click.echo(f"cardchain: error: the demo stopped: {error}", err=True)
        return False
    return True


def _tell(story: _Story) -> None:
    started = time.monotonic()
    story.say("A ledger. Its key stands outside it, in the state directory of this host.")
    answer = story.run("cardchain", "init", "approvals")
    made = dict(line.split(" ", 1) for line in answer.splitlines())
    with ThreadPoolExecutor() as pool:  # several agents use one ledger at the same time
        others = [pool.submit(story.aside, part) for part in (_rejected, _superseded, _late)]
        _approved_and_run(story)
        for other in others:
            other.result()()
    _verified(story, f"state/cardchain/{made['chain']}/keys/{made['kid']}.json")
    story.say(f"{len(story.commands)} commands in {time.monotonic() - started:.1f} seconds.")


def _approved_and_run(story: _Story) -> None:
    story.say("An agent asks for a refund. The card is the whole question, and its hash names it.")
    refund = {"order": "SO-1001", "amount": "199.00"}
    card = _issue(story, "refund-run-7", "refund", "refund.create", refund, ttl=600, grant_ttl=60)
    story.run("cardchain", "show", "approvals", card[:12])
    story.say("A yes to any other hash is no yes.")
    other = hashlib.sha256(b"another text on the screen").hexdigest()
    story.run("cardchain", "approve", "approvals", other, *_APPROVER, status=5)
    story.run("cardchain", "approve", "approvals", card, *_APPROVER)
    story.say("Between the yes and the call, the amount drifts. The call is not what was approved.")
    drifted = story.write("drifted.json", _facts("refund.create", {**refund, "amount": "999.00"}))
    story.run("cardchain", "dispatch", "approvals", card, "--facts", drifted, status=5)
    story.say("What was approved runs, once.")
    facts = story.write("facts.json", _facts("refund.create", refund))
    story.run("cardchain", "dispatch", "approvals", card, "--facts", facts)
    story.run("cardchain", "dispatch", "approvals", card, "--facts", facts, status=5)
    story.run("cardchain", "settle", "approvals", card, "--outcome", "succeeded")


def _rejected(story: _Story) -> None:
    story.say(
        "Another agent, at the same time. Its card is rejected; a second decision does not count."
    )
    card = _issue(story, "cleanup-3", "drop", "table.drop", {"table": "orders"})
    story.run("cardchain", "reject", "approvals", card, *_APPROVER, "--note", "not in a release")
    story.run("cardchain", "approve", "approvals", card, "--approver", "user:approver-2", status=5)


def _superseded(story: _Story) -> None:
    story.say("A third agent. A new card replaces an open one; the old one on a screen is stale.")
    old = _issue(story, "mail-5", "send", "mail.send", {"to": "list-a"})
    _issue(story, "mail-5", "send", "mail.send", {"to": "list-b"}, supersedes=old)
    story.run("cardchain", "approve", "approvals", old, *_APPROVER, status=5)


def _late(story: _Story) -> None:
    story.say("A card that is open for one second. A decision after that is refused.")
    card = _issue(story, "page-9", "post", "page.post", {"text": "all is well"}, ttl=1)
    time.sleep(1)
    story.run("cardchain", "approve", "approvals", card, *_APPROVER, status=5)


def _verified(story: _Story, key: str) -> None:
    story.say("Offline, an auditor has the export, the key file and the standard library.")
    story.run("cardchain", "export", "approvals", "-o", "export.cbor")
    story.run("cardchain-verify", "export.cbor", "--key", key)
    story.say("In a copy, somebody makes the approval one of 999.00.")
    export = (story.folder / "export.cbor").read_bytes()
    issued = export.index(b'"199.00"')
    approved = export.index(b'"199.00"', issued + 1)
    tampered = export[:approved] + export[approved:].replace(b'"199.00"', b'"999.00"', 1)
    (story.folder / "tampered.cbor").write_bytes(tampered)
    story.run("cardchain-verify", "tampered.cbor", "--key", key, status=3)


def _issue(
    story: _Story, task: str, step: str, tool: str, arguments: dict[str, Any], **terms: Any
) -> str:
    name = f"{task}-again.json" if "supersedes" in terms else f"{task}.json"
    proposal = story.write(name, _proposal(task, step, tool, arguments, **terms))
    answer = story.run("cardchain", "issue", "approvals", proposal)
    return answer.split()[1]


def _proposal(
    task: str, step: str, tool: str, arguments: dict[str, Any], **terms: Any
) -> dict[str, Any]:
    return {
        "kind": "tool_call",
        "task": {"id": task, "step": step},
        "action": {"tool_name": tool, "arguments": arguments},
        "reasoning": "see the ticket",
        "ttl": 600,
        **terms,
    }


def _facts(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"action": {"tool_name": tool, "arguments": arguments}}
