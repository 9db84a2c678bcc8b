"""Redaction, archive, prune, restore and compress as a caller has them (spec §15)."""

from __future__ import annotations

import fcntl
import functools
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import verifier
from ledger import Ledger, Opening, Proposal, Refused, assembly
from ledger.archive import ArchiveUnfit, NothingToArchive, sha256
from ledger.errors import BrokenLedger, ProposalInvalid, StoreFailed, UnknownCard
from ledger.pruning import ProfileLost
from ledger.redaction import NotEnded
from ledger.store.files import FileStore
from ledger.view import Redacted

BY = "user:operator-1"
SECRET = "HUSH-4711"
SMALL = 2_000

Issue = Callable[..., str]


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "FileStore", functools.partial(FileStore, segment_bytes=SMALL))


@pytest.fixture
def issue(ledger: Ledger, proposal: Callable[..., Proposal]) -> Issue:
    """Issue a card and give its hash."""

    def make(step: str = "refund", **more: Any) -> str:
        return ledger.issue(
            proposal(step, reasoning=SECRET, **more), presented=Opening(SECRET.encode())
        ).hash

    return make


@pytest.fixture
def over(ledger: Ledger, issue: Issue) -> list[str]:
    """Cards that are rejected, in several segments."""
    cards = [issue(f"over {number}") for number in range(4)]
    for card in cards:
        ledger.resolve(card, "reject", approver="user:approver-1", note=SECRET)
    assert ledger.status().segments > 3
    return cards


def report(path: Path, host: Path, **more: Any) -> verifier.Report:
    (keys,) = host.glob("cardchain/*/keys")
    return verifier.verify([str(path)], [str(keys)], environ={}, **more)


def verdict(path: Path, host: Path, **more: Any) -> str:
    return report(path, host, **more).verdict.value


def prune(ledger: Ledger, file: Path, **more: Any) -> int:
    ledger.archive(file, **more)
    return ledger.prune(file, by=BY, verified=sha256(file)).before


def holding(folder: Path, text: str) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if text.encode() in file.read_bytes()]


# Redaction


def test_a_redacted_card_is_nowhere_on_the_host_and_its_decision_still_verifies(
    ledger: Ledger, issue: Issue, host: Path, tmp_path: Path
) -> None:
    card = issue()
    ledger.resolve(card, "reject", approver="user:approver-1", note=SECRET)
    assert holding(tmp_path, SECRET) != []
    done = ledger.redact(card, by=BY, reason="erasure_request")
    assert holding(tmp_path, SECRET) == []
    named = {(each.body["seq"], *sorted(each.body["openings"])) for each in done.records}
    assert named == {(1, "envelope", "presented"), (2, "envelope", "note")}
    assert {(each.body["by"], each.body["reason"]) for each in done.records} == {
        (BY, "erasure_request")
    }
    assert done.rewritten == 2
    found = report(ledger.path, host)
    assert found.verdict.value == "VERIFIED"
    assert found.logs[0].counts.decisions_ok == 1
    assert [each.seq for each in ledger.redactions(card)] == [3, 4]
    assert [record.kind for record in ledger.events(card)] == ["issued", "resolved"]
    with pytest.raises(Redacted, match=f"redacted by {BY}: erasure_request, seq 3"):
        ledger.card(card)


def test_only_one_opening_is_taken_out_where_it_is_named(
    ledger: Ledger, issue: Issue, host: Path
) -> None:
    card = issue()
    ledger.resolve(card, "reject", approver="user:approver-1", note="a note")
    ledger.redact(card, by=BY, reason="other", openings=["note"])
    assert [sorted(record.openings) for record in ledger.events(card)] == [
        ["envelope", "presented"],
        ["envelope"],
    ]
    assert ledger.card(card).envelope.card_hash.hex() == card
    again = ledger.redact(card, by=BY, reason="other", openings=["note"])
    assert (again.records, again.rewritten) == ((), 0)
    assert verdict(ledger.path, host) == "VERIFIED"


def test_a_card_of_which_something_is_to_come_is_not_redacted(
    ledger: Ledger, issue: Issue, facts: Callable[..., Any]
) -> None:
    card = issue()
    for act in (
        lambda: ledger.resolve(card, "approve", approver="user:approver-1"),
        lambda: ledger.dispatch(card, facts()),
        lambda: ledger.settle(card, "unknown"),
        lambda: ledger.settle(card, "succeeded"),
    ):
        count = ledger.status().count
        with pytest.raises(NotEnded) as caught:
            ledger.redact(card, by=BY, reason="secret")
        assert caught.value.card.hex() == card
        assert ledger.status().count == count
        act()
    seqs = [record.seq for record in ledger.events(card)]
    done = ledger.redact(card, by=BY, reason="secret")
    assert [record.body["seq"] for record in done.records] == seqs
    assert done.rewritten == len(seqs)


def test_a_card_that_is_late_can_be_redacted(
    ledger: Ledger, issue: Issue, clock: Any, host: Path
) -> None:
    card = issue()
    clock.forward(1800)
    assert ledger.redact(card, by=BY, reason="retention").rewritten == 1
    assert verdict(ledger.path, host) == "VERIFIED"


def test_a_proposal_that_was_refused_can_be_redacted(
    ledger: Ledger, proposal: Callable[..., Proposal], issue: Issue, host: Path
) -> None:
    issue()
    with pytest.raises(Refused) as caught:
        ledger.issue(proposal(reasoning="HUSH-other", arguments={"other": 1}))
    refused = caught.value.record
    assert ledger.redact(refused.card, by=BY, reason="secret").rewritten == 1
    assert holding(ledger.path, "HUSH-other") == []
    assert verdict(ledger.path, host) == "VERIFIED"


def test_what_is_not_there_cannot_be_redacted(ledger: Ledger, issue: Issue) -> None:
    with pytest.raises(UnknownCard):
        ledger.redact("0" * 64, by=BY, reason="secret")
    card = issue()
    for wrong in ({"by": " "}, {"reason": "because"}, {"openings": ["profile"]}):
        with pytest.raises(ProposalInvalid):
            ledger.redact(card, **{"by": BY, "reason": "secret", **wrong})


@pytest.mark.parametrize("asked", ["resolve", "withdraw", "dispatch", "settle"])
def test_who_asks_about_a_redacted_card_is_refused_on_record(
    ledger: Ledger, issue: Issue, host: Path, asked: str, facts: Callable[..., Any]
) -> None:
    """The refusal binds the envelope, which is not there; so an event says why (spec §3.4)."""
    card = issue()
    ledger.withdraw(card, by="user:owner-1", reason="cancelled")
    ledger.redact(card, by=BY, reason="secret")
    ask = {
        "resolve": lambda: ledger.resolve(card, "approve", approver="user:approver-1"),
        "withdraw": lambda: ledger.withdraw(card, by="user:owner-1", reason="cancelled"),
        "dispatch": lambda: ledger.dispatch(card, facts()),
        "settle": lambda: ledger.settle(card, "failed"),
    }
    with pytest.raises(Refused) as caught:
        ask[asked]()
    last = list(ledger.records())[-1]
    assert (last.kind, last.body["seq"]) == ("redacted", caught.value.record.seq)
    assert (last.body["by"], last.body["reason"]) == (BY, "secret")
    assert holding(ledger.path, SECRET) == []
    assert verdict(ledger.path, host) == "VERIFIED"


def test_a_card_that_supersedes_a_redacted_one_says_what_it_cannot_show(
    ledger: Ledger, issue: Issue, host: Path
) -> None:
    card = issue()
    ledger.resolve(card, "reject", approver="user:approver-1")
    ledger.redact(card, by=BY, reason="secret")
    new = issue(supersedes=card, purpose="again")
    assert ledger.card(new).text.startswith(
        "changes: not shown, the envelope before is not at hand\n\n"
    )
    assert verdict(ledger.path, host) == "VERIFIED"


def test_another_object_goes_on_with_the_rewritten_files(
    ledger: Ledger, issue: Issue, host: Path, clock: Any
) -> None:
    """It has the old file of the last segment open, and must not append to that."""
    card, other = issue("a"), issue("b")
    ledger.resolve(card, "reject", approver="user:approver-1")
    with Ledger.open(ledger.path, clock=clock) as beside:
        beside.resolve(other, "approve", approver="user:approver-1")
        ledger.redact(card, by=BY, reason="secret")
        beside.withdraw(other, by="user:owner-1", reason="revoked")
        assert [r.kind for r in beside.events(other)] == ["issued", "resolved", "withdrawn"]
        assert [r.seq for r in ledger.records()] == list(range(ledger.status().count))
    assert verdict(ledger.path, host) == "VERIFIED"


def test_torn_bytes_that_hold_what_is_erased_go_too(
    ledger: Ledger, issue: Issue, clock: Any, host: Path
) -> None:
    card = issue()
    ledger.resolve(card, "reject", approver="user:approver-1", note=SECRET * 20)
    raw = next(record.raw for record in ledger.records() if record.kind == "resolved")
    quarantine = ledger.path / "quarantine"
    for torn in (raw[:-1], b"\xd1\x84"):
        ledger.close()
        with max((ledger.path / "segments").iterdir()).open("ab") as file:
            file.write(torn)
        ledger = Ledger.open(ledger.path, clock=clock)
    assert len(list(quarantine.iterdir())) == 2
    ledger.redact(card, by=BY, reason="secret")
    assert [file.read_bytes() for file in quarantine.iterdir()] == [b"\xd1\x84"]
    assert holding(ledger.path, SECRET) == []
    assert verdict(ledger.path, host) == "VERIFIED"
    ledger.close()


def test_a_rewritten_segment_is_found_again_though_the_head_points_into_the_old_one(
    ledger: Ledger, issue: Issue, clock: Any, host: Path
) -> None:
    """The head remembers a place; a crash may come before a record is appended behind it."""
    card = issue()
    ledger.resolve(card, "reject", approver="user:approver-1")
    ledger.redact(card, by=BY, reason="secret")
    ledger.close()
    for file in host.glob("cardchain/*/index.sqlite*"):
        file.unlink()
    with Ledger.open(ledger.path, clock=clock) as again:
        assert again.warnings == ()
        assert again.status().guarded_from == 0


def test_compressed_segments_are_redacted_too(
    ledger: Ledger, over: list[str], host: Path, tmp_path: Path
) -> None:
    ledger.compress()
    for card in over:
        ledger.redact(card, by=BY, reason="retention")
    for file in (ledger.path / "segments").iterdir():
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        assert SECRET.encode() not in data
    assert len(list((ledger.path / "segments").glob("*.gz"))) > 2
    assert verdict(ledger.path, host) == "VERIFIED"


# Archive and prune


def test_an_archive_holds_the_bytes_up_to_the_last_boundary_of_ended_cards(
    ledger: Ledger, over: list[str], issue: Issue, host: Path, tmp_path: Path
) -> None:
    still = issue("open")
    for number in range(3):
        issue(f"later {number}")
    done = ledger.archive(tmp_path / "a.cbor")
    records = list(ledger.records())
    below = [record for record in records if record.seq < done.before]
    assert (tmp_path / "a.cbor").read_bytes() == b"".join(record.raw for record in below)
    assert done.head == below[-1].digest
    assert done.blocked is not None
    assert (done.blocked.card.hex(), done.blocked.state) == (still, "OPEN")
    assert done.before <= done.blocked.seq
    numbers = [int(file.name[:20]) for file in (ledger.path / "segments").iterdir()]
    assert done.before == max(each for each in numbers if each <= done.blocked.seq)
    assert verdict(tmp_path / "a.cbor", host) == "VERIFIED"
    ledger.archive(tmp_path / "a.cbor.gz")
    packed = (tmp_path / "a.cbor.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.cbor").read_bytes()
    assert packed[4:8] == bytes(4)


def test_where_no_boundary_is_fit_the_segment_is_closed_for_the_next_time(
    ledger: Ledger, issue: Issue, tmp_path: Path
) -> None:
    card = issue()
    with pytest.raises(NothingToArchive, match=f"card {card}, issued at seq 1, is OPEN") as caught:
        ledger.archive(tmp_path / "a.cbor")
    assert not (tmp_path / "a.cbor").exists()
    ledger.withdraw(card, by="user:owner-1", reason="cancelled")
    issue("another")
    assert ledger.archive(tmp_path / "a.cbor").before == caught.value.end


def test_a_pruned_ledger_begins_at_its_edge_and_goes_on(
    ledger: Ledger, over: list[str], issue: Issue, host: Path, tmp_path: Path, clock: Any
) -> None:
    before = prune(ledger, tmp_path / "a.cbor")
    assert ledger.status().first == before
    assert next(record.seq for record in ledger.records()) == before
    assert verdict(ledger.path, host) == "VERIFIED"
    for ask in (ledger.card, ledger.events, lambda card: ledger.receipt(card, tmp_path / "r")):
        with pytest.raises(UnknownCard) as caught:
            ask(over[0])
        assert f"below seq {before} was pruned" in caught.value.hint
    new = issue("over 0")  # its step begins anew
    ledger.resolve(new, "approve", approver="user:approver-1")
    with pytest.raises(Refused, match="hash_mismatch"):
        ledger.resolve(over[1], "approve", approver="user:approver-1")
    ledger.close()
    with Ledger.open(ledger.path, clock=clock) as again:
        assert again.warnings == ()
        assert again.card(new).state == "APPROVED"
        assert again.status().name is None
        again.export(tmp_path / "e.cbor")
        with pytest.raises(ProposalInvalid, match=f"from {before} to"):
            again.export_range(tmp_path / "x", before - 1)
        again.export_range(tmp_path / "x", before, before + 1)
    assert verdict(tmp_path / "e.cbor", host) == "VERIFIED"
    assert verdict(tmp_path / "x", host) == "VERIFIED"


def test_the_rules_in_force_are_repeated_before_their_records_go(
    host: Path, tmp_path: Path, clock: Any, proposal: Callable[..., Proposal]
) -> None:
    with Ledger.init(tmp_path / "l", name="n", clock=clock, profile=PROFILE) as ledger:
        ledger.configure(by=BY, vkey="a vkey")
        ledger.configure(by="user:other", vkey="another vkey")
        prune(ledger, tmp_path / "a.cbor")
        (configured,) = (each for each in ledger.records() if each.kind == "configured")
        assert configured.body["vkey"] == "another vkey"
        assert configured.openings == {"profile": PROFILE}
        card = ledger.issue(proposal())
        with pytest.raises(Refused, match="approver_unverified"):
            ledger.resolve(card.hash, "approve", approver="user:approver-1")
        ledger.withdraw(card.hash, by="user:owner-1", reason="cancelled")
        count = ledger.status().count
        prune(ledger, tmp_path / "b.cbor")
        kinds = [record.kind for record in ledger.records()]
        assert kinds[0] == "configured"  # its own record went, so it is repeated again
        assert ledger.status().count == count + len(kinds)
    assert verdict(tmp_path / "l", host) == "VERIFIED"


PROFILE = json.dumps(
    {
        "assurance": "authenticated",
        "basis_drift": "review",
        "critical": [],
        "fixed_parameters": [],
        "format": "cardchain-profile/1",
        "grant_ttl": "optional",
        "minimum": "none",
        "required": [],
        "self_approval": "allow",
    },
    separators=(",", ":"),
).encode()


def test_a_card_keeps_the_profile_that_its_records_would_lose(
    host: Path, tmp_path: Path, clock: Any, proposal: Callable[..., Proposal]
) -> None:
    with Ledger.init(tmp_path / "l", name="n", clock=clock, profile=PROFILE) as ledger:
        ledger.archive(tmp_path / "a.cbor", before=1)  # closes the segment there
        card = ledger.issue(proposal())
        ledger.configure(by=BY, profile=PROFILE.replace(b"authenticated", b"label"))
        with pytest.raises(ProfileLost, match=card.hash):
            ledger.prune(tmp_path / "a.cbor", by=BY, verified=sha256(tmp_path / "a.cbor"))
        clock.forward(1800)
        ledger.prune(tmp_path / "a.cbor", by=BY, verified=sha256(tmp_path / "a.cbor"))
    assert verdict(tmp_path / "l", host) == "VERIFIED"


def test_nothing_is_pruned_while_a_card_below_the_edge_is_not_ended(
    ledger: Ledger, over: list[str], issue: Issue, tmp_path: Path
) -> None:
    card = issue("open")
    for number in range(2):
        issue(f"later {number}")
    ledger.archive(tmp_path / "a.cbor", before=ledger.status().count)
    count = ledger.status().count
    with pytest.raises(NotEnded, match=f"not pruned: card {card} is OPEN"):
        ledger.prune(tmp_path / "a.cbor", by=BY, verified=sha256(tmp_path / "a.cbor"))
    assert (ledger.status().count, ledger.status().first) == (count, 0)


def changed(data: bytes) -> Iterator[tuple[bytes, str]]:
    yield data[:-1], "bytes that are no record"
    yield data + b"x", "bytes that are no record"
    yield b"", "it holds no record"
    yield b"nothing of the kind", "it holds no record"
    middle = data.index(SECRET.encode())
    yield data[:middle] + b"X" + data[middle + 1 :], "seq 1: opening"


def test_an_archive_that_is_another_is_refused(
    ledger: Ledger, over: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.cbor"
    ledger.archive(file)
    data = file.read_bytes()
    for wrong, why in changed(data):
        file.write_bytes(wrong)
        with pytest.raises(ArchiveUnfit, match=why):
            ledger.prune(file, by=BY, verified=sha256(file))
    file.write_bytes(data)
    with pytest.raises(ArchiveUnfit, match="not the file that was verified"):
        ledger.prune(file, by=BY, verified=bytes(32))
    first = next(ledger.records())
    file.write_bytes(data[: len(first.raw)])
    with pytest.raises(ArchiveUnfit, match="no segment begins at seq 1, where it ends"):
        ledger.prune(file, by=BY, verified=sha256(file))
    file.write_bytes(data[len(first.raw) :])
    with pytest.raises(ArchiveUnfit, match="it begins at seq 1, the ledger at seq 0"):
        ledger.prune(file, by=BY, verified=sha256(file))
    assert ledger.status().first == 0


def test_an_archive_from_before_a_redaction_is_refused_and_not_put_back(
    ledger: Ledger, over: list[str], tmp_path: Path, host: Path
) -> None:
    old, new = tmp_path / "old.cbor", tmp_path / "new.cbor"
    ledger.archive(old)
    ledger.redact(over[0], by=BY, reason="erasure_request")
    with pytest.raises(ArchiveUnfit, match="the ledger holds other bytes at seq 1"):
        ledger.prune(old, by=BY, verified=sha256(old))
    prune(ledger, new, before=9)
    assert verdict(ledger.path, host) == "VERIFIED"
    count = ledger.restore(old)
    assert count == ledger.status().count - len(list(ledger.records())) + count
    records = {record.seq: record for record in ledger.records()}
    assert dict(records[1].openings) == {}
    assert records[2].openings.keys() == {"envelope", "presented"}
    assert verdict(ledger.path, host) == "VERIFIED"


def test_pruning_again_and_restoring_both_gives_the_whole_ledger(
    ledger: Ledger, over: list[str], issue: Issue, tmp_path: Path, host: Path
) -> None:
    whole = {record.seq: record.raw for record in ledger.records()}
    first, second = tmp_path / "1.cbor.gz", tmp_path / "2.cbor"
    edge = prune(ledger, first, before=6)
    for number in range(3):
        ledger.withdraw(issue(f"more {number}"), by="user:owner-1", reason="cancelled")
    prune(ledger, second)
    assert verdict(second, host, since=verifier.Edge(*ledger.archive_edge(second))) == "VERIFIED"
    with pytest.raises(ArchiveUnfit, match="it does not hold the record before"):
        ledger.restore(first)
    assert verdict(ledger.path, host) == "VERIFIED"
    ledger.restore(second)
    assert verdict(ledger.path, host) == "VERIFIED"
    ledger.restore(first)
    found = {record.seq: record.raw for record in ledger.records()}
    assert {seq: found[seq] for seq in whole} == whole
    assert verdict(ledger.path, host) == "VERIFIED"
    with pytest.raises(ArchiveUnfit, match="nothing is to be put back"):
        ledger.restore(first)
    count = ledger.status().count
    ledger.prune(first, by=BY, verified=sha256(first))  # what was said before is not said again
    assert (ledger.status().count, ledger.status().first) == (count, edge)
    assert verdict(ledger.path, host) == "VERIFIED"


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_card_in_an_archive_is_erased_by_putting_it_back_first(
    ledger: Ledger, over: list[str], tmp_path: Path, host: Path, clock: Any, rebuilt: bool
) -> None:
    old, new = tmp_path / "old.cbor", tmp_path / "new.cbor"
    prune(ledger, old)
    with pytest.raises(UnknownCard):
        ledger.redact(over[0], by=BY, reason="erasure_request")
    ledger.close()
    if rebuilt:
        for file in host.glob("cardchain/*/index.sqlite*"):
            file.unlink()
    with Ledger.open(ledger.path, clock=clock) as again:
        again.restore(old)
        old.unlink()
        for card in over:
            assert len(again.redact(card, by=BY, reason="erasure_request").records) == 2
        assert verdict(ledger.path, host) == "VERIFIED"
        prune(again, new)
    assert holding(tmp_path, SECRET) == []
    assert verdict(ledger.path, host) == "VERIFIED"


def test_records_that_are_gone_without_a_word_are_a_broken_ledger(
    ledger: Ledger, over: list[str], clock: Any
) -> None:
    ledger.close()
    min((ledger.path / "segments").iterdir()).unlink()
    with pytest.raises(BrokenLedger, match="are gone, and no pruned record says so"):
        Ledger.open(ledger.path, clock=clock)


def test_checkpoints_and_proofs_go_on_after_pruning_without_what_the_signer_kept(
    ledger: Ledger, over: list[str], issue: Issue, tmp_path: Path, host: Path, clock: Any
) -> None:
    vkey = ledger.make_signer(by=BY)
    old = ledger.checkpoint().note
    (tmp_path / "old.note").write_bytes(old)
    prune(ledger, tmp_path / "a.cbor")
    card = issue("new")
    ledger.checkpoint()
    found = report(ledger.path, host, vkeys=[vkey])
    rows = {row.check: row.outcome.value for row in found.logs[0].rows}
    assert found.verdict.value == "VERIFIED"
    assert rows["checkpoint_root"] == "PASS"
    for file in (next(host.glob("cardchain/*/tree")) / "00.hashes",):
        file.unlink()
    (tmp_path / "r").unlink(missing_ok=True)
    ledger.receipt(card, tmp_path / "r")
    assert verdict(tmp_path / "r", host, vkeys=[vkey]) == "VERIFIED"
    next(host.glob("cardchain/*/signer/last.json")).unlink()
    issue("newer")
    assert ledger.checkpoint().checkpoint.size == ledger.status().count
    assert report(ledger.path, host, vkeys=[vkey]).logs[0].findings == ()


def test_a_signer_that_is_made_after_pruning_begins_at_the_frontier(
    ledger: Ledger, over: list[str], tmp_path: Path, host: Path
) -> None:
    whole = list(ledger.records())
    prune(ledger, tmp_path / "a.cbor")
    vkey = ledger.make_signer(by=BY)
    ledger.checkpoint()
    ledger.restore(tmp_path / "a.cbor")
    assert len(list(ledger.records())) > len(whole)
    found = report(ledger.path, host, vkeys=[vkey])  # the root holds over all records
    assert {row.check: row.outcome.value for row in found.logs[0].rows}["checkpoint_root"] == "PASS"
    assert found.verdict.value == "VERIFIED"


# Compression


def test_compressing_changes_no_record_and_is_the_same_each_time(
    ledger: Ledger, over: list[str], issue: Issue, host: Path, clock: Any
) -> None:
    before = [record.raw for record in ledger.records()]
    files = sorted((ledger.path / "segments").iterdir())
    expected = [file.read_bytes() for file in files]
    with Ledger.open(ledger.path, clock=clock) as beside:
        assert ledger.compress() == len(files) - 1
        assert ledger.compress() == 0
        packed = sorted((ledger.path / "segments").iterdir())
        assert [file.name for file in packed] == [
            *(f"{file.name}.gz" for file in files[:-1]),
            files[-1].name,
        ]
        assert [gzip.decompress(file.read_bytes()) for file in packed[:-1]] == expected[:-1]
        assert {file.read_bytes()[4:8] for file in packed[:-1]} == {bytes(4)}
        assert [record.raw for record in beside.records()] == before
        assert beside.card(over[0]).state == "REJECTED"
        beside.withdraw(issue("new"), by="user:owner-1", reason="cancelled")
    assert verdict(ledger.path, host) == "VERIFIED"


def test_a_copy_that_is_tidied_away_before_it_is_locked_is_made_again(
    ledger: Ledger, over: list[str], host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process opens the ledger between the making of the file and its lock."""
    flock = fcntl.flock
    tidied: list[Path] = []

    def late(file: int, how: int) -> None:
        if not tidied:
            tidied.extend(ledger.path.glob(".*.part"))
            for path in tidied:
                path.unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert ledger.compress() > 0
    assert tidied
    assert [*ledger.path.glob(".*.part")] == []
    assert verdict(ledger.path, host) == "VERIFIED"


def test_a_segment_that_was_rewritten_meanwhile_is_not_replaced_by_its_old_copy(
    ledger: Ledger, over: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ledger.store import rewriting

    put = rewriting.put_packed

    def late(*arguments: Any) -> bool:
        monkeypatch.setattr(rewriting, "put_packed", put)
        rewriting.rewrite(arguments[0], 0, assembly.next_length, lambda stored: stored.data)
        return put(*arguments)

    monkeypatch.setattr(rewriting, "put_packed", late)
    segments = ledger.status().segments
    assert ledger.compress() == segments - 2
    assert (ledger.path / "segments" / f"{0:020}.cbor").exists()
    assert not list(ledger.path.glob(".*"))


def test_a_full_disk_leaves_everything_as_it_was(
    ledger: Ledger, over: list[str], monkeypatch: pytest.MonkeyPatch, host: Path, clock: Any
) -> None:
    import os

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        for act in (
            lambda held: held.compress(),
            lambda held: held.redact(over[0], by=BY, reason="secret"),
        ):
            failing = pytest.raises(StoreFailed, match="No space left on device")
            with Ledger.open(ledger.path, clock=clock) as held, failing:
                act(held)
            assert verdict(ledger.path, host) == "VERIFIED"
    ledger.close()
    assert verdict(ledger.path, host) == "VERIFIED"
    with Ledger.open(ledger.path, clock=clock) as again:
        assert not list(ledger.path.glob(".*"))
        assert [record.openings for record in again.events(over[0])] == [{}, {}]
