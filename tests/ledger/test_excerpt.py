"""Excerpts hold what spec §14.2 asks for, in the one form of §14.1."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cbor2
import pytest

from ledger import Facts, IssuedCard, Ledger, Opening, Proposal, Refused
from ledger.codec import Record, decode, digest_of, with_openings
from ledger.errors import ProposalInvalid, SignerMissing, UnknownCard
from ledger.excerpt import ExcerptTooLarge, Selection, encode
from ledger.export import InsideLedger
from ledger.store.contract import AlreadyThere


@pytest.fixture
def life(
    ledger: Ledger, proposal: Callable[..., Proposal], facts: Callable[..., Facts], clock: Any
) -> list[IssuedCard]:
    """Give a ledger three cards; of the second each step of its life, between other records."""
    ledger.make_signer(by="user:operator-1")
    cards = [ledger.issue(proposal(step)) for step in ("a", "b", "c")]
    first, second, third = cards
    with pytest.raises(Refused):
        ledger.resolve(second.hash, "approve", approver=None)
    ledger.resolve(first.hash, "approve", approver="user:a", target=first.hash, note="note of a")
    ledger.rotate()
    ledger.resolve(
        second.hash,
        "approve",
        approver="user:b",
        note="note of b",
        presented=Opening(b"what stood there"),
    )
    with pytest.raises(Refused):
        ledger.dispatch(second.hash, facts("1.00"))
    ledger.dispatch(second.hash, facts())
    ledger.resolve(third.hash, "reject", approver="user:c")
    ledger.settle(second.hash, "succeeded")
    return cards


def kinds(ledger: Ledger) -> list[str]:
    return [record.kind for record in ledger.records()]


class Excerpt:
    """An excerpt as spec §14.1 describes it, read without the code that wrote it."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self.items = cbor2.loads(data)
        assert cbor2.dumps(self.items, canonical=True) == data
        assert data.startswith(b"\x85\x73cardchain-excerpt/1")
        self.format, self.scope, self.bares, self.proofs, self.openings = self.items

    def seqs(self) -> list[int]:
        return [cbor2.loads(cbor2.loads(bare).value[2])[2] for bare in self.bares]

    def records(self) -> list[Record]:
        """Put each opening into the records that bind it."""
        by_digest = {hashlib.sha256(each).digest(): each for each in self.openings}
        found = []
        for bare in self.bares:
            record = decode(bare)
            body = record.body
            bound = {"envelope": record.card, "rebuilt": body.get("rebuilt")}
            for name in ("presented", "note", "response"):
                if isinstance(body.get(name), dict):
                    bound[name] = body[name]["digest"]
            if record.kind in ("opened", "configured"):
                bound["profile"] = body.get("profile")
            if record.kind == "dispatched" and body["rebuilt"] == record.card:
                bound.pop("rebuilt")
            kept = {name: by_digest[d] for name, d in bound.items() if d in by_digest}
            found.append(decode(with_openings(bare, kept)))
        return found

    def covered(self, root: bytes, size: int) -> set[int]:
        """Give the seqs whose proof leads to a root, by the definition of RFC 6962 §2.1.1."""
        leaves = dict(zip(self.seqs(), map(digest_of, self.bares), strict=True))
        found = set()
        for proof in self.proofs:
            head, *lines = proof.split("\n\n")[0].split("\n")
            assert head == "c2sp.org/tlog-proof@v1"
            index = int(lines[0].removeprefix("index "))
            hashes = [base64.b64decode(line) for line in lines[1:]]
            assert climbed(index, size, leaves[index], hashes) == root
            found.add(index)
        return found


def climbed(index: int, size: int, leaf: bytes, path: list[bytes]) -> bytes:
    """Undo PATH of RFC 6962 §2.1.1, from the outside in."""
    if size == 1:
        assert path == []
        return leaf
    k = 1 << (size - 1).bit_length() - 1
    if index < k:
        inner = climbed(index, k, leaf, path[:-1])
        return hashlib.sha256(b"\x01" + inner + path[-1]).digest()
    inner = climbed(index - k, size - k, leaf, path[:-1])
    return hashlib.sha256(b"\x01" + path[-1] + inner).digest()


def test_a_receipt_is_every_record_of_the_card(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    card = life[1]
    done = ledger.receipt(card.hash, tmp_path / "receipt")
    found = Excerpt(tmp_path / "receipt")
    assert found.scope == {"card": bytes.fromhex(card.hash)}
    assert found.records() == list(ledger.events(card.hash))
    assert [record.kind for record in found.records()] == [
        *("issued", "refused", "resolved", "refused", "dispatched", "settled")
    ]
    assert (done.count, done.size) == (6, (tmp_path / "receipt").stat().st_size)


def test_each_record_without_its_successor_is_proved_under_one_checkpoint(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    ledger.receipt(life[1].hash, tmp_path / "receipt")
    found = Excerpt(tmp_path / "receipt")
    signed = ledger.checkpoint()
    assert {proof.split("\n\n", 1)[1] for proof in found.proofs} == {signed.note.decode()}
    seqs = found.seqs()
    lonely = {seq for seq in seqs if seq + 1 not in seqs}
    assert found.covered(signed.checkpoint.root, signed.checkpoint.size) == lonely
    assert [int(p.split("index ")[1].split("\n")[0]) for p in found.proofs] == sorted(lonely)


def test_openings_stand_once_in_the_order_of_their_digests(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    ledger.receipt(life[1].hash, tmp_path / "receipt")
    openings = Excerpt(tmp_path / "receipt").openings
    digests = [hashlib.sha256(each).digest() for each in openings]
    assert digests == sorted(set(digests))
    assert {b"note of b", b"what stood there", life[1].envelope.bytes} <= set(openings)
    assert b"note of a" not in openings


def test_a_checkpoint_that_covers_the_card_is_used_again(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path, proposal: Callable[..., Proposal]
) -> None:
    signed = ledger.checkpoint()
    ledger.issue(proposal("later"))
    ledger.receipt(life[1].hash, tmp_path / "receipt")
    assert Excerpt(tmp_path / "receipt").proofs[0].endswith(signed.note.decode())
    later = ledger.issue(proposal("latest"))
    ledger.receipt(later.hash, tmp_path / "later")
    (proof,) = Excerpt(tmp_path / "later").proofs
    assert f"\n{signed.checkpoint.size + 2}\n" in proof


def test_a_reset_of_the_clock_in_the_life_of_a_card_belongs_to_it(
    ledger: Ledger, proposal: Callable[..., Proposal], clock: Any, tmp_path: Path
) -> None:
    ledger.make_signer(by="user:operator-1")
    clock.now -= 10_000
    ledger.clock_reset(by="user:operator-1", reason="clock_fixed")
    card = ledger.issue(proposal())
    clock.now -= 10_000
    ledger.clock_reset(by="user:operator-1", reason="clock_fixed")
    with pytest.raises(Refused):
        ledger.resolve(card.hash, "approve", approver="user:a")
    clock.now -= 10_000
    ledger.clock_reset(by="user:operator-1", reason="clock_fixed")
    ledger.receipt(card.hash, tmp_path / "receipt")
    found = Excerpt(tmp_path / "receipt").records()
    assert [(record.seq, record.kind) for record in found] == [
        (3, "issued"),
        (4, "clock_reset"),
        (5, "refused"),
    ]


def test_a_redaction_of_a_record_of_the_card_belongs_to_it(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    resolved = next(r for r in ledger.events(life[1].hash) if r.kind == "resolved")
    other = next(r for r in ledger.events(life[0].hash) if r.kind == "resolved")
    for record in (resolved, other):
        body = {
            "seq": record.seq,
            "target": record.digest,
            "openings": ["note"],
            "by": "user:operator-1",
            "reason": "erasure_request",
        }
        ledger._log.run(lambda turn, body=body: turn.append("redacted", None, body))  # type: ignore[misc]
    ledger.receipt(life[1].hash, tmp_path / "receipt")
    redacted = [r for r in Excerpt(tmp_path / "receipt").records() if r.kind == "redacted"]
    assert [record.body["seq"] for record in redacted] == [resolved.seq]
    ledger.export_range(tmp_path / "range", 2, 4)
    ranged = [r for r in Excerpt(tmp_path / "range").records() if r.kind == "redacted"]
    assert ranged == []
    ledger.export_range(tmp_path / "wider", 2, resolved.seq)
    ranged = [r for r in Excerpt(tmp_path / "wider").records() if r.kind == "redacted"]
    assert {record.body["seq"] for record in ranged} == {resolved.seq, other.seq}


def test_a_receipt_begins_with_the_record_that_issued_the_card(
    ledger: Ledger,
    proposal: Callable[..., Proposal],
    facts: Callable[..., Facts],
    tmp_path: Path,
) -> None:
    """The same ask can be refused and then issued within a second, as one card."""
    ledger.make_signer(by="user:operator-1")
    first = ledger.issue(proposal())
    ledger.resolve(first.hash, "approve", approver="user:a")
    ticket = ledger.dispatch(first.hash, facts())
    attempt = {"card_hash": first.hash, "outcome": "succeeded"}
    again = proposal(supersedes=first.hash, prior_attempt=attempt)
    with pytest.raises(Refused) as caught:
        ledger.issue(again)
    ledger.settle(ticket, "succeeded")
    card = ledger.issue(again)
    assert caught.value.record.card.hex() == card.hash
    ledger.receipt(card.hash, tmp_path / "receipt")
    (record,) = Excerpt(tmp_path / "receipt").records()
    assert record == card.record


def test_a_card_that_was_never_issued_has_no_receipt(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(UnknownCard):
        ledger.receipt("00" * 32, tmp_path / "receipt")
    assert not (tmp_path / "receipt").exists()


def test_a_receipt_needs_a_signer_and_a_range_does_not(
    ledger: Ledger, proposal: Callable[..., Proposal], tmp_path: Path
) -> None:
    card = ledger.issue(proposal())
    with pytest.raises(SignerMissing):
        ledger.receipt(card.hash, tmp_path / "receipt")
    assert not (tmp_path / "receipt").exists()
    ledger.export_range(tmp_path / "range", 0)
    assert Excerpt(tmp_path / "range").proofs == []


def test_a_range_is_its_records_and_what_they_rest_on(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    everything = list(ledger.records())
    dispatched = next(r.seq for r in everything if r.kind == "dispatched")
    ledger.export_range(tmp_path / "range", dispatched, dispatched + 1)
    found = Excerpt(tmp_path / "range")
    third, second = life[2].record.card, life[1].record.card
    footing = ("opened", "configured", "rekeyed")
    expected = [
        r.seq
        for r in everything
        if r.seq in (dispatched, dispatched + 1)
        or (r.seq < dispatched and (r.card in (second, third) or r.kind in footing))
    ]
    assert found.scope == {"from": dispatched, "to": dispatched + 1}
    assert found.seqs() == expected
    assert [r.raw for r in found.records()] == [everything[seq].raw for seq in expected]
    signed = ledger.checkpoint()
    covered = found.covered(signed.checkpoint.root, signed.checkpoint.size)
    assert covered == {seq for seq in expected if seq + 1 not in expected}


def test_the_whole_log_as_a_range_has_one_proof(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    ledger.export_range(tmp_path / "range", 0)
    found = Excerpt(tmp_path / "range")
    assert found.records() == list(ledger.records())
    assert len(found.proofs) == 1


@pytest.mark.parametrize(("first", "last"), [(-1, 3), (4, 3), (0, 10_000), (10_000, None)])
def test_a_range_that_is_not_there_is_said(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path, first: int, last: int | None
) -> None:
    with pytest.raises(ProposalInvalid):
        ledger.export_range(tmp_path / "range", first, last)
    assert not (tmp_path / "range").exists()


# What is withheld (spec §15.4).


def test_openings_are_withheld_and_the_digests_stay(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    withhold = ["note", "presented"]
    ledger.receipt(life[1].hash, tmp_path / "receipt", withhold=withhold)
    ledger.export_range(tmp_path / "range", 0, withhold=withhold)
    ledger.export(tmp_path / "export.cbor", withhold=withhold)
    for name in ("receipt", "range", "export.cbor"):
        content = (tmp_path / name).read_bytes()
        assert b"note of" not in content
        assert b"what stood there" not in content
        assert life[1].envelope.bytes in content
    whole = list(ledger.records())
    data, left = (tmp_path / "export.cbor").read_bytes(), []
    for record in whole:
        openings = {n: d for n, d in record.openings.items() if n not in withhold}
        raw = with_openings(record.bare, openings)
        assert data.startswith(raw)
        data = data[len(raw) :]
        left.append(decode(raw))
    assert data == b""
    assert [record.digest for record in left] == [record.digest for record in whole]
    assert [record.tag for record in left] == [record.tag for record in whole]
    found = Excerpt(tmp_path / "range")
    assert [record.raw for record in found.records()] == [record.raw for record in left]


def test_an_opening_that_no_record_can_have_is_said(ledger: Ledger, tmp_path: Path) -> None:
    for act in (ledger.export, lambda path, **more: ledger.export_range(path, 0, **more)):
        with pytest.raises(ProposalInvalid):
            act(tmp_path / "file", withhold=["notes"])
    assert not (tmp_path / "file").exists()


# The files.


def test_an_export_has_the_checkpoint_at_its_size_beside_it(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    done = ledger.export(tmp_path / "export.cbor")
    beside = tmp_path / "export.cbor.note"
    assert done.note == str(beside)
    assert f"\n{done.count}\n".encode() in beside.read_bytes()
    assert ledger.checkpoint().note == beside.read_bytes()


def test_an_export_without_a_signer_has_none(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.export(tmp_path / "export.cbor").note is None
    assert not (tmp_path / "export.cbor.note").exists()


def test_a_note_that_is_in_the_way_is_seen_before_anything_is_written(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    (tmp_path / "export.cbor.note").write_text("mine")
    with pytest.raises(AlreadyThere):
        ledger.export(tmp_path / "export.cbor")
    assert not (tmp_path / "export.cbor").exists()
    ledger.export(tmp_path / "export.cbor", overwrite=True)
    assert (tmp_path / "export.cbor.note").read_text().startswith("cardchain/")


def test_no_excerpt_among_the_files_of_the_ledger_or_over_another_file(
    ledger: Ledger, life: list[IssuedCard], tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("mine")
    for act in (
        lambda path: ledger.receipt(life[1].hash, path),
        lambda path: ledger.export_range(path, 0),
    ):
        with pytest.raises(InsideLedger):
            act(ledger.path / "checkpoints" / "excerpt")
        with pytest.raises(AlreadyThere):
            act(tmp_path / "there")
    assert (tmp_path / "there").read_text() == "mine"
    assert "excerpt" not in os.listdir(ledger.path / "checkpoints")


def test_an_excerpt_over_its_limit_is_not_written(
    ledger: Ledger, proposal: Callable[..., Proposal], tmp_path: Path
) -> None:
    presented = [Opening(bytes([number]) * 1_048_576) for number in range(65)]
    for number, opening in enumerate(presented):
        ledger.issue(proposal(f"step-{number}"), presented=opening)
    with pytest.raises(ExcerptTooLarge):
        ledger.export_range(tmp_path / "range", 0)
    assert not (tmp_path / "range").exists()
    ledger.export_range(tmp_path / "range", 0, withhold=["presented"])
    assert len(Excerpt(tmp_path / "range").bares) == 66


@pytest.mark.parametrize(("count", "fits"), [(1_023, True), (1_024, False)])
def test_openings_count_for_every_record_that_binds_them(
    ledger: Ledger, proposal: Callable[..., Proposal], count: int, fits: bool
) -> None:
    """A small file must not ask for much work: 1 GiB is the most it may unfold to."""
    record = ledger.issue(proposal(), presented=Opening(bytes(1_048_576))).record
    selection = Selection({"to": 1, "from": 1}, (record,) * count)
    if fits:
        assert len(encode(selection, [], frozenset())) < 2_000_000
    else:
        with pytest.raises(ExcerptTooLarge, match="1073741824"):
            encode(selection, [], frozenset())
    assert len(encode(selection, [], frozenset({"presented"}))) < 1_000_000
