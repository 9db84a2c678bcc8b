"""Lawful Bernstein logs for the benchmarks: of ten events five issue a card, four resolve one.

The tenth is a refusal; `others` more events of other kinds may stand beside the ten.
A writer of its own, made from the description of the format; the same seed gives the same bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

KEY = bytes(range(32)).hex().encode()
START = 1_788_253_200.0
_LINE = json.JSONEncoder(sort_keys=True)
_CARD = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_PREFIX = b"bernstein:audit:v2"
_PROCEDURE = (
    "Restore the prior contents of `src/module_{0}.py` from version control (for example "
    "`git checkout HEAD -- src/module_{0}.py`), or discard the worktree change before it is "
    "committed."
)
_RATIONALE = (
    "score=0.00 computed from soft signals + file count. No detectors fired. 1 file(s) touched."
)
_OTHERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("task.transition", "task", {"from_status": "open", "to_status": "claimed"}),
    ("gate.check", "task", {"lint": "pass", "list": [1, 2.5, "x"], "n": 12, "none": None}),
    ("agent.heartbeat", "agent", {"cost_usd": 0.0125, "ok": True, "note": "caf\u00e9\nline two"}),
)


@dataclass(slots=True)
class Log:
    """The end of a log: what the next line needs."""

    seed: int = 1
    step: float = 0.25
    prev: str = "0" * 64
    number: int = 0
    at: float = START

    def lines(self, count: int, others: int = 0) -> Iterator[tuple[str, bytes]]:
        """Yield the day and the line of the next `count` events."""
        source = random.Random(self.seed)
        keyed = hmac.new(derived(), digestmod=hashlib.sha256)
        events = self._events(source, others)
        for _ in range(count):
            stamp = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            entry = next(events) | {"prev_hmac": self.prev, "scheme": 2, "timestamp": stamp}
            tag = keyed.copy()
            tag.update(message(entry))
            self.prev = entry["hmac"] = tag.hexdigest()
            yield stamp[:10], _LINE.encode(entry).encode() + b"\n"
            self.at += self.step

    def _events(self, source: random.Random, others: int) -> Iterator[dict[str, Any]]:
        while True:
            cards = []
            for _ in range(5):
                cards.append(self._envelope(source))
                card, envelope = cards[-1]
                yield self._of(card, "issued", "approval_card", {"envelope": envelope})
            for card, _ in cards[:4]:
                origin = {"issued_thread_id": "C42", "issued_worktree_id": "wt-a"}
                decision = {"decision": "approve", "resolved_at": self._clock(source)}
                yield self._of(card, "resolved", "U-reviewer-1", decision | origin, "approver")
            refusal = {"expected_thread_id": "", "expected_worktree_id": "", "reason": "expired"}
            refusal |= {"expected_card_hash": cards[0][0], "reason": "already_settled"}
            yield self._of(cards[0][0], "refused", "U-reviewer-2", refusal, "approver")
            for number in range(others):
                kind, type_, details = _OTHERS[number % len(_OTHERS)]
                yield {
                    "actor": "orchestrator",
                    "details": details,
                    "event_type": kind,
                    "resource_id": f"TASK-{source.randrange(10_000)}",
                    "resource_type": type_,
                }

    def _clock(self, source: random.Random) -> float:
        """A reading of the clock shortly before the record is stamped."""
        return self.at - source.randrange(1, 200) / 4096

    def _envelope(self, source: random.Random) -> tuple[str, dict[str, Any]]:
        self.number += 1
        at = self._clock(source)
        envelope = {
            "action": {
                "args_digest": hashlib.sha256(b"%d" % self.number).hexdigest(),
                "tool_name": source.choice(("Edit", "Bash", "Write")),
            },
            "approval_id": f"ap-{self.number:08d}",
            "card_version": "v2",
            "created_at": at,
            "impact": {
                "fired_detectors": [],
                "hard_one_way": False,
                "rationale": _RATIONALE,
                "score": 0.004,
            },
            "not_after": at + 600.0,
            "reasoning": f"Add the constant that endpoint {self.number} needs, and its test.",
            "rollback": {"irreversible": False, "procedure": _PROCEDURE.format(self.number)},
        }
        return hashlib.sha256(canonical(envelope)).hexdigest(), envelope

    def _of(
        self, card: str, kind: str, actor: str, details: dict[str, Any], *names: str
    ) -> dict[str, Any]:
        """An event about a card; `names` are members of its details that name the actor."""
        common = {
            "card_hash": card,
            "install_id": "inst-1",
            "prev_chain_digest": self.prev,
            "session_id": "sess-1",
            "thread_id": "C42",
            "worktree_id": "wt-a",
        }
        return {
            "actor": actor,
            "details": common | details | dict.fromkeys(names, actor),
            "event_type": f"chat.approval_card.{kind}",
            "resource_id": card,
            "resource_type": "approval_card",
        }


def derived() -> bytes:
    """The key of the tags."""
    extracted = hmac.digest(bytes(32), KEY, "sha256")
    return hmac.digest(extracted, b"audit\x01", "sha256")


def message(entry: dict[str, Any]) -> bytes:
    """What the tag of an entry covers; the entry has no tag yet."""
    return _PREFIX + (entry["prev_hmac"] + _LINE.encode(entry)).encode()


def canonical(envelope: dict[str, Any]) -> bytes:
    """The bytes that the hash of a card is taken of."""
    return _CARD.encode(envelope).encode()


def written(folder: Path, events: int, *, daily: bool, others: int = 0) -> tuple[Path, Path]:
    """Write a log as one file or as daily files; give the path to verify and the key file.

    A daily log of 20,000 events and more spans ten days.
    """
    audit = folder / ".sdd" / "audit"
    audit.mkdir(parents=True)
    log = Log(step=min(43.2, 864_000 / events) if daily else min(0.05, 80_000 / events))
    streams: dict[str, Any] = {}
    for day, line in log.lines(events, others):
        if day not in streams:
            streams[day] = (audit / f"{day}.jsonl").open("wb")
        streams[day].write(line)
    for stream in streams.values():
        stream.close()
    key = folder / "audit.key"
    key.write_bytes(KEY + b"\n")
    key.chmod(0o600)
    return folder, key
