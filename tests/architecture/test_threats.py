"""The table "Who sees what" of docs/threat-model.md, acted out attack by attack."""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import cbor2
import pytest

from ledger import Facts, Ledger, Proposal
from verifier.report import Verdict
from verifier.verify import verify

ROOT = Path(__file__).parents[2]
NOW = 1_800_000_000_000
SEQ, PREV, AT, KIND, CARD, BODY = range(2, 8)  # places in a payload (spec §3.2)


@dataclass(frozen=True)
class Log:
    """A log as an attacker sees it: its records, and the key if the attacker has it."""

    records: list[bytes]
    secret: bytes

    @property
    def data(self) -> bytes:
        return b"".join(self.records)

    @property
    def head(self) -> str:
        return digest(self.records[-1]).hex()


def parts(record: bytes) -> list[Any]:
    """Protected header, openings, payload and tag of a record."""
    return list(cbor2.loads(record).value)


def joined(values: list[Any]) -> bytes:
    return cbor2.dumps(cbor2.CBORTag(17, values), canonical=True)


def digest(record: bytes) -> bytes:
    protected, _, payload, tag = parts(record)
    return sha256(b"\0" + joined([protected, {}, payload, tag])).digest()


def edited(record: bytes, edit: Callable[[list[Any]], None]) -> bytes:
    """The record with its payload edited and its tag as it was."""
    protected, openings, payload, tag = parts(record)
    fields = cbor2.loads(payload)
    edit(fields)
    return joined([protected, openings, cbor2.dumps(fields, canonical=True), tag])


def relinked(records: list[bytes], secret: bytes | None) -> list[bytes]:
    """The records with every link made anew, and every tag too if there is a secret."""
    done: list[bytes] = []
    previous = bytes(32)
    for record in records:
        protected, openings, payload, tag = parts(record)
        fields = cbor2.loads(payload)
        fields[PREV] = previous
        payload = cbor2.dumps(fields, canonical=True)
        if secret is not None:
            covered = cbor2.dumps(["MAC0", protected, b"", payload], canonical=True)
            tag = hmac.digest(secret, covered, "sha256")
        done.append(joined([protected, openings, payload, tag]))
        previous = digest(done[-1])
    return done


def make(folder: Path, name: str, *, at: int = NOW) -> tuple[Log, Path]:
    """A small log of one card from issue to outcome and one that is open, and its key file."""
    with Ledger.init(folder / name, name=name, clock=lambda: at) as ledger:
        for step in ("refund", "mail"):
            proposal = Proposal.for_tool_call(
                task=("run-1", step),
                tool_name=step,
                arguments={"order": "SO-1"},
                reasoning="",
                ttl=60,
            )
            card = ledger.issue(proposal)
            if step == "refund":
                ledger.resolve(card.hash, "approve", approver="user:approver-1", target=card.hash)
                ledger.dispatch(card.hash, Facts.for_tool_call(step, {"order": "SO-1"}))
                ledger.settle(card.hash, "succeeded")
        chain = ledger.chain.hex()
        records = [record.raw for record in ledger.records()]
    (key,) = (Path(os.environ["CARDCHAIN_STATE"]) / "cardchain" / chain / "keys").glob("*.json")
    secret = bytes.fromhex(json.loads(key.read_text())["secret"])
    return Log(records, secret), key


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CARDCHAIN_STATE", str(tmp_path / "state"))
    log, key = make(tmp_path, "log")
    return World(tmp_path, log, key)


@dataclass(frozen=True)
class World:
    """The true log and its key, and a folder for what attackers make of it."""

    folder: Path
    log: Log
    key: Path

    def verify(self, logs: list[bytes], *, with_key: bool, head: str | None = None) -> Verdict:
        """What the verifier says of the files, with no more than is given here."""
        paths = []
        for number, data in enumerate(logs):
            paths.append(self.folder / f"seen-{number}.cbor")
            paths[-1].write_bytes(data)
        report = verify(
            [str(path) for path in paths],
            [str(self.key)] if with_key else [],
            expect_head=None if head is None else bytes.fromhex(head),
            environ={},
        )
        return report.verdict


Attack = Callable[[World], list[bytes]]


def one(records: list[bytes]) -> list[bytes]:
    return [b"".join(records)]


def later(fields: list[Any]) -> None:
    fields[AT] += 1


def edits_inside(world: World) -> list[bytes]:
    records = list(world.log.records)
    records[2] = edited(records[2], later)
    return one(records)


def deletes_inside(world: World) -> list[bytes]:
    return one([r for n, r in enumerate(world.log.records) if n != 2])


def moves_inside(world: World) -> list[bytes]:
    a, b, c, *rest = world.log.records
    return one([a, c, b, *rest])


def inserts_inside(world: World) -> list[bytes]:
    return one([*world.log.records[:3], *world.log.records[2:]])


def rewrites_without_key(world: World) -> list[bytes]:
    records = [edited(record, later) for record in world.log.records[-1:]]
    return one(relinked([*world.log.records[:-1], *records], None))


def with_openings(record: bytes, openings: dict[str, bytes]) -> bytes:
    protected, _, payload, tag = parts(record)
    return joined([protected, openings, payload, tag])


def changes_opening(world: World) -> list[bytes]:
    records = list(world.log.records)
    records[1] = with_openings(records[1], {"envelope": parts(records[1])[1]["envelope"] + b" "})
    return one(records)


def adds_opening(world: World) -> list[bytes]:
    records = list(world.log.records)
    records[1] = with_openings(records[1], {**parts(records[1])[1], "note": b"yes"})
    return one(records)


def removes_opening(world: World) -> list[bytes]:
    records = list(world.log.records)
    records[1] = with_openings(records[1], {})
    return one(records)


def cuts_at_boundary(world: World) -> list[bytes]:
    return one(world.log.records[:-1])


def fresh_log(world: World) -> list[bytes]:
    return one(make(world.folder, "fresh")[0].records)


def splices(world: World) -> list[bytes]:
    records = list(world.log.records)
    records[2] = make(world.folder, "other")[0].records[2]
    return one(records)


def second_spelling(world: World) -> list[bytes]:
    records = list(world.log.records)
    assert records[0][:2] == bytes.fromhex("d184")
    records[0] = bytes.fromhex("d184580d") + records[0][3:]
    return one(records)


def unknown_member(world: World) -> list[bytes]:
    records = list(world.log.records)
    records[2] = edited(records[2], lambda fields: fields[BODY].update(colour="red"))
    return one(relinked(records, world.log.secret))


def changes_link(world: World) -> list[bytes]:
    def forget(fields: list[Any]) -> None:
        fields[PREV] = bytes(32)

    records = list(world.log.records)
    records[3] = edited(records[3], forget)
    return one(records)


def removes_last_bytes(world: World) -> list[bytes]:
    return [world.log.data[:-1]]


def replays_decision(world: World) -> list[bytes]:
    """The approval of the first card, put under the hash of the second, all links made anew."""
    approval, last = world.log.records[2], world.log.records[-1]

    def replay(fields: list[Any]) -> None:
        fields[SEQ] = len(world.log.records)
        fields[CARD] = cbor2.loads(parts(last)[2])[CARD]
        fields[BODY]["of"] = len(world.log.records) - 1

    replayed = with_openings(edited(approval, replay), parts(last)[1])
    return one(relinked([*world.log.records, replayed], None))


def rewrites_with_key(world: World) -> list[bytes]:
    records = list(world.log.records)
    records[-1] = edited(records[-1], later)
    return one(relinked(records, world.log.secret))


def forges_after_head(world: World) -> list[bytes]:
    def forge(fields: list[Any]) -> None:
        fields[SEQ] += 1
        fields[KIND:] = ["configured", None, {"by": "user:forger", "vkey": "forged"}]

    forged = edited(with_openings(world.log.records[-1], {}), forge)
    return one(relinked([*world.log.records, forged], world.log.secret))


def shows_two_logs(world: World) -> list[bytes]:
    return [world.log.data, *rewrites_with_key(world)]


ATTACKS: dict[str, list[Attack]] = {
    "edits, inserts, deletes or moves records inside": [
        edits_inside,
        deletes_inside,
        moves_inside,
        inserts_inside,
    ],
    "rewrites everything consistently, without the key": [rewrites_without_key],
    "changes or adds an opening": [changes_opening, adds_opening],
    "removes an opening without a `redacted` event": [removes_opening],
    "cuts the log at a record boundary": [cuts_at_boundary],
    "puts back a complete older copy": [cuts_at_boundary],
    "replaces the log by a fresh one of another chain": [fresh_log],
    "splices in a record of another ledger": [splices],
    "writes a record in a second spelling, with a repeated key or an unknown member": [
        second_spelling,
        unknown_member,
    ],
    "changes a link and nothing else": [changes_link],
    "removes the last bytes of a file": [removes_last_bytes],
    "replays a decision for another card": [replays_decision],
    "holds the key and rewrites from seq n, before the expected head": [rewrites_with_key],
    "holds the key and forges records after the expected head": [forges_after_head],
    "holds the key and shows two logs to two readers": [shows_two_logs],
}
# Nothing is there to act out: the log is as it would be otherwise.
UNSEEN = {"sets the clock of the host", "never records an event"}


def rows() -> dict[str, list[str]]:
    """The table: the attacker's action to what each of the three readers sees."""
    page = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
    section = page.split("## Who sees what")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.M)[1:]
    cells = [line.split(" | ") for line in lines if not line.startswith("---")]
    return {action: seen for action, *seen in cells}


def expected(cell: str, *, with_key: bool) -> Verdict:
    if cell.startswith(("D", "d")):
        return Verdict.CANNOT_VERIFY if "no key" in cell else Verdict.BROKEN
    assert cell == "U"
    return Verdict.VERIFIED if with_key else Verdict.CANNOT_VERIFY


def test_every_row_is_acted_out() -> None:
    assert set(rows()) == set(ATTACKS) | UNSEEN


def test_nothing_is_found_in_the_true_log(world: World) -> None:
    logs = [world.log.data]
    assert world.verify(logs, with_key=False) is Verdict.CANNOT_VERIFY
    assert world.verify(logs, with_key=True) is Verdict.VERIFIED
    assert world.verify(logs, with_key=True, head=world.log.head) is Verdict.VERIFIED


CASES = [(action, attack) for action, attacks in ATTACKS.items() for attack in attacks]


@pytest.mark.parametrize(("action", "attack"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_attack_is_seen_as_the_table_says(world: World, action: str, attack: Attack) -> None:
    logs = attack(world)
    without, with_key, with_head = rows()[action]
    assert [
        world.verify(logs, with_key=False),
        world.verify(logs, with_key=True),
        world.verify(logs, with_key=True, head=world.log.head),
    ] == [
        expected(without, with_key=False),
        expected(with_key, with_key=True),
        expected(with_head, with_key=True),
    ]
