"""A small writer of Bernstein logs, made from the description of the format alone."""

from __future__ import annotations

import copy
import gzip
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

KEY = bytes(range(32)).hex().encode()
OTHER_KEY = bytes(range(32, 64)).hex().encode()
START = datetime(2026, 9, 1, 9, tzinfo=UTC).timestamp()


def derived(key: bytes) -> bytes:
    """HKDF-SHA-256 of RFC 5869, one block, no salt, info `audit`."""
    extracted = hmac.digest(bytes(32), key, "sha256")
    return hmac.digest(extracted, b"audit\x01", "sha256")


def sign(entry: dict[str, Any], key: bytes = KEY) -> str:
    bare = {name: value for name, value in entry.items() if name != "hmac"}
    text = entry["prev_hmac"] + json.dumps(bare, sort_keys=True)
    if entry.get("scheme") == 2:
        secret, text = derived(key), "bernstein:audit:v2" + text
    else:
        secret = key
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def hash_of(envelope: dict[str, Any]) -> str:
    text = json.dumps(envelope, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Log:
    """A log in memory: day by day its lines. `write` puts it into a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.at = START
        self.scheme = 2
        self.key = KEY
        self.prev = "0" * 64
        self.days: dict[str, list[bytes]] = {}
        self.cards = 0

    @property
    def audit(self) -> Path:
        return self.root / ".sdd" / "audit"

    @property
    def key_file(self) -> str:
        return str(self.root / "audit.key")

    def append(
        self,
        kind: str = "task.transition",
        details: dict[str, Any] | None = None,
        *,
        actor: str = "orchestrator",
        type_: str = "task",
        id_: str = "TASK-1",
        **changes: Any,
    ) -> dict[str, Any]:
        """Append an event; `changes` replace members before it is sealed."""
        entry: dict[str, Any] = {
            "actor": actor,
            "details": {} if details is None else details,
            "event_type": kind,
            "prev_hmac": self.prev,
            "resource_id": id_,
            "resource_type": type_,
            "timestamp": stamp(self.at),
        }
        if self.scheme == 2:
            entry["scheme"] = 2
        entry |= changes
        entry["hmac"] = sign(entry, self.key)
        day = stamp(self.at)[:10] + ".jsonl"
        self.days.setdefault(day, []).append(json.dumps(entry, sort_keys=True).encode())
        self.prev = entry["hmac"]
        self.at += 1
        return entry

    def card_event(
        self, kind: str, card: str, actor: str, details: dict[str, Any], **changes: Any
    ) -> dict[str, Any]:
        details = {
            "card_hash": card,
            "install_id": "",
            "session_id": "",
            "prev_chain_digest": self.prev,
            **details,
        }
        details = {name: value for name, value in details.items() if value is not ...}
        changes = {"actor": actor, "type_": "approval_card", "id_": card, **changes}
        return self.append(f"chat.approval_card.{kind}", details, **changes)

    def envelope(self, *, ttl: float = 600.0) -> dict[str, Any]:
        self.cards += 1
        return {
            "action": {"args_digest": hashlib.sha256(b"{}").hexdigest(), "tool_name": "Edit"},
            "approval_id": f"ap-{self.cards}",
            "card_version": "v2",
            "created_at": self.at,
            "impact": {
                "fired_detectors": [],
                "hard_one_way": False,
                "rationale": "no detectors fired",
                "score": 0.25,
            },
            "not_after": self.at + ttl,
            "reasoning": "\u043f\u0440\u0438\u0447\u0438\u043d\u0430\n\u2028",
            "rollback": {"irreversible": False, "procedure": "git checkout"},
        }

    def issue(
        self,
        envelope: dict[str, Any] | None = None,
        *,
        card: str | None = None,
        worktree: str = "",
        thread: str = "",
        **details: Any,
    ) -> str:
        envelope = self.envelope() if envelope is None else envelope
        card = hash_of(envelope) if card is None else card
        self.card_event(
            "issued",
            card,
            "approval_card",
            {"envelope": envelope, "worktree_id": worktree, "thread_id": thread, **details},
        )
        return card

    def resolve(
        self,
        card: str,
        decision: str = "approve",
        approver: str = "user:approver-1",
        *,
        actor: str | None = None,
        changes: dict[str, Any] | None = None,
        **details: Any,
    ) -> dict[str, Any]:
        base: dict[str, Any] = {
            "decision": decision,
            "approver": approver,
            "worktree_id": "",
            "thread_id": "",
            "issued_worktree_id": "",
            "issued_thread_id": "",
            "resolved_at": self.at,
        }
        actor = approver if actor is None else actor
        return self.card_event("resolved", card, actor, base | details, **(changes or {}))

    def resolve_old(self, card: str, decision: str, approver: str = "", **details: Any) -> None:
        gone = {"thread_id": ..., "issued_worktree_id": ..., "issued_thread_id": ...}
        self.resolve(card, decision, approver, actor=approver or "operator", **(gone | details))

    def refuse(
        self,
        card: str,
        reason: str,
        approver: str = "user:approver-1",
        *,
        actor: str | None = None,
        expected: str | None = None,
        **details: Any,
    ) -> None:
        base = {
            "reason": reason,
            "approver": approver,
            "expected_card_hash": card if expected is None else expected,
            "expected_thread_id": "",
            "expected_worktree_id": "",
            "worktree_id": "",
            "thread_id": "",
        }
        actor = approver or "unattributed" if actor is None else actor
        self.card_event("refused", card, actor, base | details)

    def release(self, card: str, by: str = "user:admin-1", **details: Any) -> None:
        base = {
            "reason": "",
            "released_by": by,
            "released_at": self.at,
            "worktree_id": "",
            "thread_id": "",
        }
        self.card_event("released", card, by, base | details)

    def seal(self, folder: Path, *, extends: bool = True) -> None:
        """Write a checkpoint and an unsigned seal of what was written to disk."""
        leaves = []
        for path in sorted(self.audit.glob("*.jsonl")):
            content = path.read_bytes()
            digest = hashlib.sha256(b"\0" + content).hexdigest()
            leaves.append({"byte_len": len(content), "file": path.name, "hash": digest})
        digests = [leaf["hash"] for leaf in leaves]
        while len(digests) > 1:
            pairs = [digests[at : at + 2] for at in range(0, len(digests), 2)]
            digests = [
                hashlib.sha256(b"\1" + "".join(pair).encode()).hexdigest()
                if len(pair) == 2
                else pair[0]
                for pair in pairs
            ]
        first = json.loads(next(iter(self.days.values()))[0])
        payload = {
            "entry_count": sum(len(lines) for lines in self.days.values()),
            "extends_prev": extends,
            "leaves": leaves,
            "origin": first["hmac"],
            "prev_checkpoint_sha256": self._last_checkpoint(folder),
            "root_hash": digests[0],
            "scheme": 2,
            "version": 1,
        }
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
        tag = hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()
        line = f'{{"hmac":"{tag}","payload":{text}}}\n'
        (folder / "checkpoints").mkdir(exist_ok=True)
        (folder / "merkle").mkdir(exist_ok=True)
        with (folder / "checkpoints" / "checkpoints.jsonl").open("a") as stream:
            stream.write(line)
        (folder / "checkpoints" / "latest.json").write_text(line)
        seal = {name: payload[name] for name in ("entry_count", "leaves", "origin", "root_hash")}
        name = f"seal-{len(list((folder / 'merkle').iterdir()))}.json"
        (folder / "merkle" / name).write_text(json.dumps({**seal, "scheme": 2}))

    def _last_checkpoint(self, folder: Path) -> str:
        path = folder / "checkpoints" / "checkpoints.jsonl"
        if not path.exists():
            return "0" * 64
        return hashlib.sha256(path.read_bytes().splitlines()[-1]).hexdigest()

    def write(self) -> Log:
        self.audit.mkdir(parents=True, exist_ok=True)
        for day, lines in self.days.items():
            (self.audit / day).write_bytes(b"".join(line + b"\n" for line in lines))
        key = self.root / "audit.key"
        key.write_bytes(KEY + b"\n")
        key.chmod(0o600)
        return self

    def archive(self, day: str) -> Path:
        """Move a day to the archive, as its retention does."""
        (self.audit / "archive").mkdir(exist_ok=True)
        target = self.audit / "archive" / f"{day}.gz"
        target.write_bytes(gzip.compress((self.audit / day).read_bytes()))
        (self.audit / day).unlink()
        return target

    def copy(self) -> dict[str, list[bytes]]:
        return copy.deepcopy(self.days)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


@pytest.fixture
def new_log(tmp_path: Path) -> Callable[[], Log]:
    """Give a fresh log in a folder of its own, as often as it is called."""

    def make() -> Log:
        made = len(list(tmp_path.iterdir()))
        root = tmp_path / f"log-{made}"
        root.mkdir()
        return Log(root)

    return make
