"""An independent implementation of C2SP transparency logs reads our notes, checkpoints and proofs.

`aics-tlog` (Apache-2.0) needs Python 3.12: `pip install -e .[dev]` brings it there, and CI of an
older Python shows these tests as skipped.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger import Ledger, Proposal
from ledger.codec import next_length

tlog = pytest.importorskip("aics_tlog", reason="aics-tlog needs Python 3.12 or later")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("CARDCHAIN_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("CARDCHAIN_KEY", raising=False)
    with Ledger.init(tmp_path / "approvals", name="test") as made:
        yield made


@pytest.fixture
def issue(ledger: Ledger) -> Callable[[int], list[str]]:
    numbers = iter(range(10_000))

    def issued(count: int) -> list[str]:
        """Issue cards and give their hashes."""
        asks = [
            Proposal.for_tool_call(
                task=("run", str(next(numbers))),
                tool_name="t",
                arguments={},
                reasoning="r",
                ttl=60,
            )
            for _ in range(count)
        ]
        return [ledger.issue(ask).hash for ask in asks]

    return issued


def bare_records(path: Path) -> list[bytes]:
    """Cut an export without openings into its records: the leaves, but for the leading zero."""
    data, records = path.read_bytes(), []
    while data:
        length = next_length(data)
        assert length
        records.append(data[:length])
        data = data[length:]
    return records


def tree_of(ledger: Ledger, folder: Path) -> object:
    names = ("envelope", "presented", "note", "response", "rebuilt", "profile")
    ledger.export(folder / "bare.cbor", withhold=names, overwrite=True)
    return tlog.MerkleTree(bare_records(folder / "bare.cbor"))


def hashes(text: str) -> tuple[list[str], list[bytes], str]:
    """Give the head line, the hashes and the checkpoint of a proof."""
    head, _, note = text.partition("\n\n")
    first, *lines = head.split("\n")
    if first.startswith("c2sp.org/"):
        first, *lines = lines
    return first.split(" "), [base64.b64decode(each) for each in lines], note


def test_a_vkey_and_a_checkpoint(ledger: Ledger, issue: Callable[[int], list[str]]) -> None:
    vkey = tlog.parse_vkey(ledger.make_signer(by="user:operator-1"))
    issue(4)
    found = tlog.parse_note(ledger.checkpoint().note)
    assert tlog.verify_note(found, [vkey])
    parsed = tlog.parse_checkpoint(found.text)
    assert parsed.origin == f"cardchain/{ledger.chain.hex()}"
    assert parsed.size == 6


def test_roots_and_proofs_of_every_size(
    ledger: Ledger, issue: Callable[[int], list[str]], tmp_path: Path
) -> None:
    ledger.make_signer(by="user:operator-1")
    older: list[tuple[int, bytes, bytes]] = []
    for _ in range(17):
        issue(2)
        signed = ledger.checkpoint()
        older.append((signed.checkpoint.size, signed.checkpoint.root, signed.note))
    tree = tree_of(ledger, tmp_path)
    for size, root, note in older:
        assert tree.root(size) == root  # type: ignore[attr-defined]
        proof, newest = ledger.consistency(note)
        (_, old), path, tail = hashes(proof.decode())
        assert tail.encode() == newest.note
        new = newest.checkpoint
        assert tlog.verify_consistency(int(old), new.size, root, new.root, path)


def test_the_proofs_of_a_receipt(
    ledger: Ledger, issue: Callable[[int], list[str]], tmp_path: Path
) -> None:
    import cbor2

    vkey = tlog.parse_vkey(ledger.make_signer(by="user:operator-1"))
    cards = issue(9)
    ledger.resolve(cards[4], "approve", approver="user:a", note="yes")
    issue(5)
    ledger.receipt(cards[4], tmp_path / "receipt")
    _, _, bares, proofs, _ = cbor2.loads((tmp_path / "receipt").read_bytes())
    assert len(bares) == len(proofs) == 2
    for bare, proof in zip(bares, proofs, strict=True):
        (_, index), path, note = hashes(proof)
        assert tlog.verify_note(tlog.parse_note(note), [vkey])
        checkpoint = tlog.parse_checkpoint(tlog.parse_note(note).text)
        leaf = tlog.leaf_hash(bare)
        assert tlog.verify_inclusion(leaf, int(index), checkpoint.size, path, checkpoint.root)
