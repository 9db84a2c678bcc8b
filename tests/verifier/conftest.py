"""A small writer of logs for the tests of the verifier; it imports nothing of the product."""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # modules beside the tests; no package

CHAIN = bytes(range(16))
SECRET = bytes(range(32))
AT = 1767225600000


def head(major: int, value: int) -> bytes:
    if value < 24:
        return bytes([major << 5 | value])
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 1 << 8 * size:
            return bytes([major << 5 | info]) + value.to_bytes(size, "big")
    raise ValueError(value)


def cbor(value: Any) -> bytes:
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    members = sorted((cbor(name), cbor(item)) for name, item in value.items())
    return head(5, len(members)) + b"".join(name + item for name, item in members)


def jcs(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class LogWriter:
    """Writes records one after the other; `records` are their bytes, `prev` the last digest."""

    cbor = staticmethod(cbor)
    jcs = staticmethod(jcs)

    def __init__(self, chain: bytes = CHAIN, secret: bytes = SECRET) -> None:
        self.chain, self.secret = chain, secret
        self.kid = sha256(b"cardchain/kid" + chain + secret)[:8]
        self.prev, self.at = bytes(32), AT
        self.seq = 0
        self.records: list[bytes] = []
        self.bare: list[bytes] = []
        self.digests: list[bytes] = []

    @property
    def data(self) -> bytes:
        return b"".join(self.records)

    def add(
        self,
        kind: str,
        card: bytes | None,
        body: dict[str, Any],
        openings: dict[str, bytes] | None = None,
        **changed: Any,
    ) -> int:
        fields = {
            "v": "cardchain/1",
            "chain": self.chain,
            "seq": self.seq,
            "prev": self.prev,
            "at": self.at,
            "kind": kind,
            "card": card,
            "body": body,
        }
        fields.update(changed)
        payload = cbor(list(fields.values()))
        protected = bytes.fromhex("a201050448") + self.kid
        tag = hmac.digest(self.secret, cbor(["MAC0", protected, b"", payload]), "sha256")
        rest = cbor(payload) + cbor(tag)
        begin = b"\xd1\x84" + cbor(protected)
        self.prev = sha256(b"\x00" + begin + b"\xa0" + rest)
        self.records.append(begin + cbor(openings or {}) + rest)
        self.bare.append(begin + b"\xa0" + rest)
        self.digests.append(self.prev)
        self.seq += 1
        self.at += 1000
        return self.seq - 1

    def open(self) -> int:
        return self.add("opened", None, {"name": "test", "software": "tests"})

    def envelope(self, number: int = 1, **changed: Any) -> dict[str, Any]:
        arguments = changed.pop("arguments", {"amount": "1.00", "order": f"SO-{number:04}"})
        digest = sha256(jcs(arguments)).hex()
        task = {"id": f"run-{number}", "step": "refund"}
        key = {
            "args_digest": digest,
            "capability": None,
            "format": "effect-key/1",
            "task": task,
            "tool_name": "refund.create",
        }
        return {
            "format": "cardchain-card/1",
            "kind": "tool_call",
            "task": task,
            "action": {
                "tool_name": "refund.create",
                "arguments": arguments,
                "args_digest": digest,
            },
            "reasoning": "duplicate payment",
            "issued_at": self.at // 1000,
            "not_after": self.at // 1000 + 1800,
            "effect_key": sha256(jcs(key)).hex(),
            **changed,
        }

    def issue(self, number: int = 1, **changed: Any) -> tuple[bytes, bytes, int]:
        envelope = self.envelope(number, **changed)
        data = jcs(envelope)
        body = {"task": sha256(jcs(envelope["task"])), "not_after": envelope["not_after"]}
        if "grant_ttl" in envelope:
            body["grant_ttl"] = envelope["grant_ttl"]
        if "supersedes" in envelope:
            body["supersedes"] = bytes.fromhex(envelope["supersedes"])
        return sha256(data), data, self.add("issued", sha256(data), body, {"envelope": data})

    def resolve(
        self, card: tuple[bytes, bytes, int], decision: str = "approve", **more: Any
    ) -> int:
        body = {
            "of": card[2],
            "echo": card[0],
            "decision": decision,
            "approver": {"id": "user:approver-1", "assurance": "label"},
            "channel": "web",
            **more,
        }
        return self.add("resolved", card[0], body, {"envelope": card[1]})

    def key_file(self, path: Path, **changed: Any) -> Path:
        members = {
            "format": "cardchain-key/1",
            "chain": self.chain.hex(),
            "kid": self.kid.hex(),
            "secret": self.secret.hex(),
            **changed,
        }
        path.write_text(json.dumps(members))
        path.chmod(0o600)
        return path


@pytest.fixture
def new_log() -> Callable[..., LogWriter]:
    """Give the writer; `new_log()` has no record yet."""
    return LogWriter


@pytest.fixture
def log() -> LogWriter:
    """A log of one card: opened, issued, approved."""
    log = LogWriter()
    log.open()
    log.resolve(log.issue())
    return log


@pytest.fixture
def key(log: LogWriter, tmp_path: Path) -> str:
    """The key file of every log that the writer makes by default."""
    return str(log.key_file(tmp_path / "key.json"))
