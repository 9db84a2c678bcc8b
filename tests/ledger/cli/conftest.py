"""A host with nothing on it, on which the installed commands run as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger import Facts, Ledger, Opening, Proposal, Refused

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


HOSTILE = '\x1b[2J\u202e\u200b\x7f"quote\\\n=1+1'
STORY_BEGAN = 1767225600000  # 2026-01-01T00:00:00Z


@dataclass(frozen=True, slots=True)
class Story:
    """A host with the ledger `approvals` of records whose times are known, one second apart."""

    host: Host
    refund: str
    mail: str
    hostile: str
    open: str


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A ledger in which every filter has something to find and something to leave out."""
    host = Host(tmp_path_factory.mktemp("story"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", str(host.state))
        return _told(host)


def _told(host: Host) -> Story:
    at = STORY_BEGAN
    ledger = Ledger.init(host.folder / "approvals", name=HOSTILE, clock=lambda: at)

    def then() -> Ledger:
        nonlocal at
        at += 1000
        return ledger

    with ledger:
        seen = Opening(b"pay 199.00 back?\n" + HOSTILE.encode(), "text/plain", "form/1", True)
        refund = then().issue(asked(grant_ttl=600), presented=seen).hash
        how = {"channel": "web", "assurance": "authenticated", "note": "paid twice, I looked"}
        then().resolve(refund, "approve", approver="user:ann", **how)
        with suppress(Refused):
            then().resolve(refund, "reject", approver="user:bob")
        facts = Facts.from_json(json.dumps({"action": proposal()["action"]}).encode())
        then().dispatch(refund, facts, policy_outcome="allow", approver_check="directory")
        then().settle(refund, "succeeded", by="user:worker", receipt_digest=bytes(range(32)))
        mail = then().issue(asked("mail.send", task={"id": "mail-2", "step": "send"})).hash
        then().resolve(mail, "reject", approver="user:bob")
        hostile = then().issue(
            asked(
                HOSTILE,
                task={"id": HOSTILE, "step": HOSTILE},
                arguments={HOSTILE: HOSTILE},
                reasoning=HOSTILE,
                purpose=HOSTILE,
            ),
            runtime={"name": HOSTILE},
        )
        then().withdraw(hostile.hash, by=HOSTILE, reason="cancelled", note=HOSTILE)
        again = then().issue(asked("mail.send", task={"id": "mail-2", "step": "again"}))
    return Story(host, refund, mail, hostile.hash, again.hash)


def asked(tool: str = "refund.create", **changes: Any) -> Proposal:
    """A proposal of the Python interface."""
    document = proposal(**changes)
    document["action"]["tool_name"] = tool
    return Proposal.from_json(json.dumps(document).encode())
