"""What a replay refuses although it was sealed with a key of this host (spec §3, §4.2, §5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import Ledger, Proposal, Record, keys
from ledger.chain import Key, rekey_proof, seal
from ledger.codec import Event
from ledger.errors import BrokenLedger, KeyMissing

NEW = bytes(range(32))


class Forger:
    """Somebody who has the key, and appends what the rules forbid."""

    def __init__(self, ledger: Ledger, host: Path) -> None:
        self.host = host
        self.path = ledger.path
        self.records = list(ledger.records())
        self.key = keys.find_keys(ledger.chain).find(self.records[0].kid)
        ledger.close()

    @property
    def last(self) -> Record:
        return self.records[-1]

    def append(
        self, kind: str, body: dict[str, Any], key: Key | None = None, **changes: Any
    ) -> None:
        event: dict[str, Any] = {
            "chain": self.last.chain,
            "seq": self.last.seq + 1,
            "prev": self.last.digest,
            "at": self.last.at,
            "kind": kind,
            "card": None,
            "body": body,
            **changes,
        }
        self.records.append(seal(Event(**event), key or self.key))

    def rekey(self, secret: bytes, **changes: Any) -> Key:
        new = Key.of(self.last.chain, secret)
        proof = rekey_proof(new, seq=self.last.seq + 1, prev=self.last.digest, old_kid=self.key.kid)
        self.append("rekeyed", {"kid": new.kid, "proof": proof, **changes})
        return new

    def know(self, key: Key) -> None:
        folder = next(self.host.glob("cardchain/*/keys"))
        keys.write(keys.KeyFile(folder / f"{key.kid.hex()}.json", key))

    def open(self) -> Ledger:
        segment = self.path / "segments" / f"{0:020}.cbor"
        segment.write_bytes(b"".join(record.raw for record in self.records))
        for name in ("head", "index.sqlite*"):
            for file in self.host.glob(f"cardchain/*/{name}"):
                file.unlink()
        return Ledger.open(self.path)

    def refused(self, match: str) -> None:
        with pytest.raises(BrokenLedger, match=match) as caught:
            self.open()
        assert caught.value.seq == self.last.seq
        assert caught.value.offset == sum(len(record.raw) for record in self.records[:-1])


@pytest.fixture
def forger(ledger: Ledger, host: Path, proposal: Callable[..., Proposal]) -> Forger:
    ledger.issue(proposal())
    return Forger(ledger, host)


def test_an_honest_record_is_taken(forger: Forger) -> None:
    forger.append("configured", {"by": "user:operator-1", "vkey": "k"})
    with forger.open() as ledger:
        assert ledger.status().count == 3


def test_a_record_of_another_chain(forger: Forger) -> None:
    other = bytes(16)
    key = Key.of(other, forger.key.secret)
    forger.append("configured", {"by": "x", "vkey": "k"}, key, chain=other)
    forger.refused("chain")


@pytest.mark.parametrize("seq", [0, 1, 3])
def test_a_seq_out_of_line(forger: Forger, seq: int) -> None:
    forger.append("configured", {"by": "x", "vkey": "k"}, seq=seq)
    with pytest.raises(BrokenLedger, match=f"seq {seq}, expected 2"):
        forger.open()


def test_a_wrong_link(forger: Forger) -> None:
    forger.append("configured", {"by": "x", "vkey": "k"}, prev=bytes(32))
    forger.refused("prev")


def test_a_kid_that_is_not_in_force(forger: Forger) -> None:
    stranger = Key.of(forger.last.chain, NEW)
    forger.know(stranger)
    forger.append("configured", {"by": "x", "vkey": "k"}, stranger)
    forger.refused("kid")


def test_a_time_that_goes_back(forger: Forger) -> None:
    forger.append("configured", {"by": "x", "vkey": "k"}, at=forger.last.at - 1)
    forger.refused("at is")


@pytest.mark.parametrize("step", [0, 1])
def test_a_clock_reset_that_does_not_go_back(forger: Forger, step: int) -> None:
    at = forger.last.at
    forger.append("clock_reset", {"was": at, "by": "x", "reason": "other"}, at=at + step)
    forger.refused("at is")


def test_a_second_beginning(forger: Forger) -> None:
    forger.append("opened", {"name": "x", "software": "x"})
    forger.refused("opened at seq 2")


def test_a_key_that_returns(forger: Forger) -> None:
    first = forger.key
    forger.key = forger.rekey(NEW)
    forger.know(forger.key)
    forger.rekey(first.secret)
    forger.refused("in force before")


def test_a_key_that_replaces_itself(forger: Forger) -> None:
    forger.rekey(forger.key.secret)
    forger.refused("in force before")


def test_a_new_key_without_its_proof(forger: Forger) -> None:
    forger.know(forger.rekey(NEW, proof=bytes(32)))
    forger.refused("proof")


def test_a_new_key_that_this_host_does_not_have(forger: Forger) -> None:
    kid = forger.rekey(NEW).kid
    with pytest.raises(KeyMissing) as caught:
        forger.open()
    assert caught.value.kid == kid


def test_an_event_of_a_card_that_was_never_issued(forger: Forger) -> None:
    envelope = forger.last.openings["envelope"]
    card = forger.last.card
    del forger.records[1]
    body = {"of": 0, "outcome": "failed"}
    forger.append("settled", body, card=card, openings={"envelope": envelope})
    forger.refused("not issued")
