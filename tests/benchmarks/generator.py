"""Lawful logs for the benchmarks, made from the spec: of ten records five issue, four resolve.

The tenth is a refusal. Each envelope is a nested document of exactly 1,024 bytes.
A writer of its own, beside `ledger`: it is fast, and the same seed gives the same bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import cbor2

ENVELOPE_SIZE = 1024
CHAIN = bytes(range(16))
SECRET = bytes(range(32))
START = 1_767_225_600_000
TTL = 31_536_000
PROFILE = (
    b'{"assurance":"label","basis_drift":"review","critical":[],"fixed_parameters":[],'
    b'"format":"cardchain-profile/1","grant_ttl":"optional","minimum":"fired_rules",'
    b'"required":["/subject"],"self_approval":"deny"}'
)
APPROVER = {"id": "user:approver-1", "assurance": "label"}


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def jcs(value: Any) -> bytes:
    """RFC 8785 for documents with ASCII names and without floats."""
    return _ENCODER.encode(value).encode()


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def key_id(chain: bytes, secret: bytes) -> bytes:
    return sha256(b"cardchain/kid" + chain + secret)[:8]


@dataclass(slots=True)
class Card:
    """An issued card, and where its last event that is no refusal stands."""

    data: bytes
    hash: bytes
    of: int


@dataclass(slots=True)
class Chain:
    """The end of a chain: what the next record needs. `open` holds the last cards left open."""

    chain: bytes = CHAIN
    secret: bytes = SECRET
    seq: int = 0
    prev: bytes = bytes(32)
    at: int = START
    seed: int = 1
    profile: bytes = b""  # in force from the first record on, and named by every card
    open: list[Card] = field(default_factory=list)

    def records(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` records; the first of a chain is `opened`."""
        source = random.Random(self.seed)
        if self.seq == 0 and count:
            body: dict[str, Any] = {"name": "benchmark", "software": "generator"}
            if self.profile:
                body = {"name": "benchmark", "profile": sha256(self.profile), **body}
            yield self._seal("opened", None, body, self.profile, "profile")
            count -= 1
        while count > 0:
            for record in self._ten(source):
                if count == 0:
                    return
                yield record
                count -= 1

    def _ten(self, source: random.Random) -> Iterator[bytes]:
        cards = []
        for _ in range(5):
            task = {"id": f"run-{self.seq}", "step": "refund"}
            data = self._envelope(source, task)
            card = Card(data, sha256(data), self.seq)
            cards.append(card)
            body = {"task": sha256(jcs(task)), "not_after": self.at // 1000 + TTL}
            yield self._seal("issued", card.hash, body, card.data)
        for number, card in enumerate(cards[:4]):
            decision = "reject" if number == 3 else "approve"
            body = {
                "of": card.of,
                "echo": card.hash,
                "channel": "cli",
                "approver": APPROVER,
                "decision": decision,
            }
            card.of = self.seq
            yield self._seal("resolved", card.hash, body, card.data)
        refused = cards[0]
        body = {
            "of": refused.of,
            "echo": refused.hash,
            "gate": "resolve",
            "count": 1,
            "reason": "already_resolved",
            "channel": "cli",
            "approver": APPROVER,
            "decision": "reject",
        }
        yield self._seal("refused", refused.hash, body, refused.data)
        self.open.append(cards[4])
        del self.open[:-100]

    def _envelope(self, source: random.Random, task: dict[str, str]) -> bytes:
        arguments = {
            "amount": f"{source.randrange(10**6)}.00",
            "items": [{"count": source.randrange(9), "sku": f"{source.getrandbits(64):016x}"}] * 3,
            "order": f"SO-{source.randrange(10**9)}",
        }
        digest = sha256(jcs(arguments)).hex()
        effect = {
            "args_digest": digest,
            "capability": None,
            "format": "effect-key/1",
            "task": task,
            "tool_name": "refund.create",
        }
        document = {
            "action": {"args_digest": digest, "arguments": arguments, "tool_name": "refund.create"},
            "effect_key": sha256(jcs(effect)).hex(),
            "format": "cardchain-card/1",
            "impact": {
                "detector_set": {"digest": "0" * 64, "id": "default"},
                "fired_detectors": [],
                "hard_one_way": False,
                "rationale": "one order is touched",
                "score": source.randrange(100),
            },
            "issued_at": self.at // 1000,
            "kind": "tool_call",
            "not_after": self.at // 1000 + TTL,
            "reasoning": "",
            "rollback": {"irreversible": False, "procedure": "charge the order again"},
            "subject": {"id": "user:customer-1", "source": "session"},
            "task": task,
        }
        if self.profile:
            del document["impact"]
            document["approval_basis"] = self._basis()
        data = jcs(document)
        reasoning = (b"the order was paid twice " * 30)[: ENVELOPE_SIZE - len(data)]
        return data.replace(b'"reasoning":""', b'"reasoning":"%b"' % reasoning, 1)

    def _basis(self) -> dict[str, Any]:
        return {
            "engine": "rules-1",
            "evidence_class": "fired_rules",
            "profile": sha256(self.profile).hex(),
            "rules": [{"id": "refunds", "sha256": "0" * 64}],
            "verdict": "review",
        }

    def _seal(
        self,
        kind: str,
        card: bytes | None,
        body: dict[str, Any],
        opened: bytes,
        name: str = "envelope",
    ) -> bytes:
        """Give the record of an event; maps are written in the order they have."""
        protected = b"\x4d\xa2\x01\x05\x04\x48" + key_id(self.chain, self.secret)
        event = ["cardchain/1", self.chain, self.seq, self.prev, self.at, kind, card, body]
        payload = cbor2.dumps(cbor2.dumps(event))
        tag = hmac.digest(self.secret, b"\x84\x64MAC0" + protected + b"\x40" + payload, "sha256")
        end = payload + b"\x58\x20" + tag
        opening = cbor2.dumps({name: opened}) if opened else b"\xa0"
        self.prev = sha256(b"\0\xd1\x84" + protected + b"\xa0" + end)
        self.seq += 1
        self.at += 1
        return b"\xd1\x84" + protected + opening + end


def key_file() -> bytes:
    """The key file of a generated log, with the pin that `init` gives it."""
    first = Chain()
    assert len(list(first.records(1))) == 1
    return json.dumps(
        {
            "format": "cardchain-key/1",
            "chain": CHAIN.hex(),
            "kid": key_id(CHAIN, SECRET).hex(),
            "secret": SECRET.hex(),
            "pin": {"seq": 0, "digest": first.prev.hex()},
        }
    ).encode()
