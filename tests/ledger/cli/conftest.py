"""A host with nothing on it, on which the installed commands run as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended; the outputs are bytes decoded strictly."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        document: dict[str, Any] = json.loads(self.out)
        return document


class Host:
    """A folder, an empty home, a state directory, and the commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scripts = SCRIPTS
        self.state = folder / "state"
        self.environment = {
            "PATH": f"{SCRIPTS}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "CARDCHAIN_STATE": str(self.state),
        }

    def run(
        self, *arguments: str | bytes, stdin: bytes = b"", environment: Mapping[str, str] = {}
    ) -> Done:
        """Run `cardchain` with the arguments, in the folder."""
        done = subprocess.run(
            [SCRIPTS / "cardchain", *arguments],
            input=stdin,
            capture_output=True,
            cwd=self.folder,
            env={**self.environment, **environment},
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def shell(self, script: str) -> Done:
        """Run a line of shell, with the commands on its PATH."""
        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            cwd=self.folder,
            env=self.environment,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *arguments: str | bytes, stdin: bytes = b"") -> Done:
        """Run `cardchain`, which must succeed and say nothing on standard error."""
        done = self.run(*arguments, stdin=stdin)
        assert (done.status, done.err) == (0, ""), done
        return done

    def write(self, name: str, document: dict[str, Any]) -> str:
        """Write a JSON file and give its name."""
        (self.folder / name).write_text(json.dumps(document))
        return name

    def count(self) -> int:
        """How many records the ledger holds."""
        count: int = self.ok("status", "approvals", "--json").json["count"]
        return count

    def issue(self, **changes: Any) -> str:
        """Issue a card and give its hash."""
        document = json.dumps(proposal(**changes)).encode()
        card: str = self.ok("issue", "approvals", "-", "--json", stdin=document).json["card_hash"]
        return card


def proposal(**changes: Any) -> dict[str, Any]:
    """A proposal to pay back 199.00, with members changed; `arguments` goes to its place."""
    arguments = changes.pop("arguments", {"order": "SO-1001", "amount": "199.00"})
    return {
        "kind": "tool_call",
        "task": {"id": "refund-run-7", "step": "refund"},
        "action": {"tool_name": "refund.create", "arguments": arguments},
        "reasoning": "paid twice",
        "ttl": 600,
        **changes,
    }


@pytest.fixture
def empty_host(tmp_path: Path) -> Host:
    """A host without a ledger."""
    return Host(tmp_path)


@pytest.fixture
def host(empty_host: Host) -> Host:
    """A host with the ledger `approvals`."""
    empty_host.ok("init", "approvals")
    return empty_host


@pytest.fixture
def facts(host: Host) -> str:
    """The name of a file with the facts that fit the usual proposal."""
    action = {
        "tool_name": "refund.create",
        "arguments": {"order": "SO-1001", "amount": "199.00"},
    }
    return host.write("facts.json", {"action": action})
