from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trees import Excerpt, Signer, consistency, inclusion, path, signed

from verifier import Report, Verdict, verify
from verifier.excerpt import ExcerptRefused, parse_excerpt
from verifier.report import Outcome

RECEIPT = [1, 2, 5]


@pytest.fixture
def days(new_log: Callable[..., Any]) -> Any:
    """Two cards: 1 2 5 with a dispatch, 3 4 without; then another record."""
    log = new_log()
    log.open()
    log.one = log.issue(1, grant_ttl=900)
    grant = log.resolve(log.one)
    log.two = log.issue(2)
    log.resolve(log.two, "reject")
    body = {"of": grant, "rebuilt": log.one[0]}
    log.add("dispatched", log.one[0], body, {"envelope": log.one[1]})
    log.add("configured", None, {"by": "user:operator-1", "vkey": vkey(log)})
    return log


def vkey(log: Any) -> str:
    return Signer(f"cardchain/{log.chain.hex()}").vkey


def receipt(log: Any, **more: Any) -> Excerpt:
    return Excerpt(log, {"card": log.one[0]}, RECEIPT, [log.one[1]], **more)


def whole(log: Any, **more: Any) -> Excerpt:
    """The range of records 2 to 5, with the earlier ones of their cards and of the chain."""
    return Excerpt(log, {"from": 2, "to": 5}, range(6), [log.one[1], log.two[1]], **more)


def run(log: Any, excerpt: Excerpt | bytes, folder: Path, **more: Any) -> Report:
    file = folder / "some.excerpt"
    file.write_bytes(excerpt if isinstance(excerpt, bytes) else excerpt.data)
    given_ = {"vkeys": [vkey(log)], "environ": {}, **more}
    return verify([str(file)], **given_)


def checks_of(report: Report) -> list[tuple[str, int | None]]:
    return [(found.check, found.seq) for found in report.logs[0].findings]


def refused(data: bytes) -> bool:
    try:
        parse_excerpt("file", data)
    except ExcerptRefused:
        return True
    return False


def test_a_receipt_needs_the_vkey_alone(days: Any, tmp_path: Path) -> None:
    (log,) = run(days, receipt(days), tmp_path).logs
    assert (log.verdict, log.assurance, log.signed_to) == (Verdict.VERIFIED, ("signed",), 6)
    assert log.scope.startswith(f"receipt of card {days.one[0].hex()}; 3 of its 3 records")
    assert "that the log was complete" in log.not_checked
    assert log.format == "cardchain-excerpt/1"
    assert (log.counts.records, log.counts.decisions_ok) == (3, 1)


def test_a_range_is_read_from_a_file_a_gzip_and_standard_input(days: Any, tmp_path: Path) -> None:
    report = run(days, gzip.compress(whole(days).data), tmp_path)
    assert report.verdict is Verdict.VERIFIED
    assert report.logs[0].scope.startswith("range from seq 2 to seq 5; 6 of its 6 records")
    done = subprocess.run(
        [sys.executable, "-m", "verifier", "-", "--vkey", vkey(days)],
        input=whole(days).data,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\nscope: range from seq 2 to seq 5" in done.stdout


def test_without_vkey_and_key_nothing_is_verified(days: Any, key: str, tmp_path: Path) -> None:
    for excerpt in (receipt(days), whole(days)):
        report = run(days, excerpt, tmp_path, vkeys=())
        assert report.verdict is Verdict.CANNOT_VERIFY
        assert [check for check, _ in checks_of(report)] == ["key_missing"]
        assert run(days, excerpt, tmp_path, vkeys=(), key_files=[key]).verdict is Verdict.VERIFIED


def test_what_was_not_checked_is_said(days: Any, tmp_path: Path) -> None:
    in_all = {"supersedes", "prior_attempt", "latest", "refusal_reason", "refusal_count"}
    in_all |= {"recovered", "expected_count", "not_issued", "left_edge"}
    for excerpt, more in ((receipt(days), {"kid", "rekey", "sequence"}), (whole(days), set())):
        (log,) = run(days, excerpt, tmp_path, expect_count=99).logs
        open_ = {row.check for row in log.rows if row.outcome is Outcome.NOT_CHECKED}
        assert open_ >= in_all | more
        assert log.verdict is Verdict.VERIFIED


@pytest.mark.parametrize("size", [6, 7])
def test_a_record_is_covered_by_its_proof_or_by_the_next_one(
    days: Any, size: int, tmp_path: Path
) -> None:
    excerpt = receipt(days, size=size)
    del excerpt.proofs[0]
    report = run(days, excerpt, tmp_path)
    assert checks_of(report) == [("key_missing", 1)]
    excerpt = receipt(days, size=size)
    del excerpt.proofs[1]
    assert checks_of(run(days, excerpt, tmp_path)) == [("key_missing", 5)]


def test_a_changed_record_is_found_by_its_proof_or_by_the_next_link(
    days: Any, tmp_path: Path
) -> None:
    for place, found in ((0, ("link", 2)), (1, ("inclusion", 2)), (2, ("inclusion", 5))):
        excerpt = receipt(days)
        record = excerpt.records[place]
        excerpt.records[place] = record[:-1] + bytes([record[-1] ^ 1])
        report = run(days, excerpt, tmp_path)
        assert report.verdict is Verdict.BROKEN
        assert checks_of(report)[-1] == found
        assert checks_of(report)[0][0] == "key_missing"


def test_with_the_key_one_edit_is_one_finding(days: Any, key: str, tmp_path: Path) -> None:
    for place in range(3):
        excerpt = receipt(days)
        record = excerpt.records[place]
        excerpt.records[place] = record[:-1] + bytes([record[-1] ^ 1])
        report = run(days, excerpt, tmp_path, key_files=[key])
        assert checks_of(report) == [("tag", RECEIPT[place])]


def test_a_proof_of_another_record_does_not_hold(days: Any, tmp_path: Path) -> None:
    note = signed(days)
    excerpt = receipt(days)
    excerpt.proofs[1] = inclusion(days, 4, note).replace("index 4\n", "index 5\n")
    assert checks_of(run(days, excerpt, tmp_path))[-1] == ("inclusion", 5)
    excerpt.proofs[1] = inclusion(days, 6, note)
    assert checks_of(run(days, excerpt, tmp_path)) == [("excerpt", None)]


def test_proofs_of_other_signers_cover_nothing(days: Any, key: str, tmp_path: Path) -> None:
    excerpt = receipt(days)
    other = signed(days, None, Signer("other.example", 96))
    excerpt.proofs = [proof.replace(signed(days), other) for proof in excerpt.proofs]
    assert checks_of(run(days, excerpt, tmp_path)) == [("key_missing", 1)]
    report = run(days, excerpt, tmp_path, key_files=[key])
    assert (report.verdict, len(report.logs[0].warnings)) == (Verdict.VERIFIED, 1)
    assert report.logs[0].assurance == ("integrity only",)


def test_a_range_without_a_record_is_broken(days: Any, tmp_path: Path) -> None:
    for seq, at in ((2, 3), (3, 4), (4, 5), (5, None)):
        kept = [one for one in range(6) if one != seq]
        excerpt = Excerpt(days, {"from": 2, "to": 5}, kept, [days.one[1], days.two[1]])
        assert checks_of(run(days, excerpt, tmp_path)) == [("sequence", at)]


def test_what_stands_before_a_range_may_be_left_out(days: Any, tmp_path: Path) -> None:
    excerpt = Excerpt(days, {"from": 3, "to": 4}, [0, 3, 4], [days.two[1]])
    assert run(days, excerpt, tmp_path).verdict is Verdict.VERIFIED


def test_an_expected_head_that_is_not_there_accuses_nobody(days: Any, tmp_path: Path) -> None:
    (log,) = run(days, receipt(days), tmp_path, expect_head=days.digests[6]).logs
    assert (log.verdict, log.assurance) == (Verdict.VERIFIED, ("signed",))
    (log,) = run(days, receipt(days), tmp_path, expect_head=days.digests[5]).logs
    assert (log.assurance, log.pinned_to) == (("pinned", "signed"), 5)
    report = run(days, receipt(days), tmp_path, expect_head=days.digests[5], expect_count=5)
    assert [check for check, _ in checks_of(report)] == ["expected_head"]


def test_a_kept_checkpoint_is_joined_by_a_proof(days: Any, tmp_path: Path) -> None:
    for kept, of in ((2, 6), (6, 2), (4, 7), (6, 6)):
        excerpt = whole(days) if of == 7 else receipt(days, size=6) if of == 6 else None
        if excerpt is None:
            excerpt = Excerpt(days, {"card": days.one[0]}, [1], [days.one[1]], size=2)
        note, proof = tmp_path / "kept.note", tmp_path / "proof"
        note.write_text(signed(days, kept))
        old, new = sorted((kept, of))
        proof.write_text(consistency(days, old, signed(days, new), new))
        files = [str(note), str(proof)]
        (log,) = run(days, excerpt, tmp_path, checkpoint_files=files).logs
        assert (log.verdict, log.assurance) == (Verdict.VERIFIED, ("pinned", "signed"))
        assert log.pinned_to == old - 1
        (log,) = run(days, excerpt, tmp_path, checkpoint_files=files[:1]).logs
        assert log.assurance == (("pinned", "signed") if kept == of else ("signed",))
        (log,) = run(days, excerpt, tmp_path, checkpoint_files=files[1:]).logs
        assert log.assurance == ("signed",)


def test_a_fork_between_an_excerpt_and_a_log_is_found(
    days: Any, new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    other = new_log()
    other.open()
    other.issue(9)
    file, log = tmp_path / "receipt", tmp_path / "log.cbor"
    file.write_bytes(receipt(days).data)
    log.write_bytes(other.data)
    report = verify([str(file), str(log)], [key], environ={})
    assert [found.check for found in report.logs[1].findings] == ["fork"]


Edit = Callable[[Excerpt, Any], object]
EDITS: dict[str, Edit] = {
    "format": lambda one, _: setattr(one, "format", "cardchain-excerpt/2"),
    "no scope": lambda one, _: one.scope.clear(),
    "short card": lambda one, _: one.scope.update(card=bytes(31)),
    "card as text": lambda one, _: one.scope.update(card="0" * 32),
    "two scopes": lambda one, _: one.scope.update({"from": 1, "to": 2}),
    "scope of from alone": lambda one, _: setattr(one, "scope", {"from": 1}),
    "backwards": lambda one, _: setattr(one, "scope", {"from": 5, "to": 1}),
    "too far": lambda one, _: setattr(one, "scope", {"from": 1, "to": 2**53}),
    "scope as array": lambda one, _: setattr(one, "scope", [1, 5]),
    "no record": lambda one, _: one.records.clear(),
    "record as text": lambda one, _: one.records.append("x"),
    "empty record": lambda one, _: one.records.append(b""),
    "half a record": lambda one, _: one.records.append(one.records.pop()[:-1]),
    "two in one": lambda one, _: one.records.append(one.records.pop() + one.records.pop()),
    "not bare": lambda one, log: one.records.__setitem__(0, log.records[1]),
    "another order": lambda one, _: one.records.reverse(),
    "record twice": lambda one, _: one.records.insert(0, one.records[0]),
    "another card": lambda one, log: one.records.insert(2, log.bare[3]),
    "not issued first": lambda one, _: one.records.pop(0),
    "opened in a receipt": lambda one, log: one.records.insert(0, log.bare[0]),
    "proof as bytes": lambda one, _: one.proofs.append(b"x"),
    "proof of nothing": lambda one, _: one.proofs.append(""),
    "proofs reversed": lambda one, _: one.proofs.reverse(),
    "proof twice": lambda one, _: one.proofs.append(one.proofs[-1]),
    "two checkpoints": lambda one, log: one.proofs.__setitem__(
        0, inclusion(log, 2, signed(log, 6), 6)
    ),
    "extra line": lambda one, _: one.proofs.__setitem__(
        0, one.proofs[0].replace("@v1\n", "@v1\nextra YQ==\n")
    ),
    "unbound opening": lambda one, _: one.openings.append(b"\x00" * 3),
    "opening twice": lambda one, _: one.openings.append(one.openings[0]),
    "opening as text": lambda one, _: one.openings.append("x"),
    "openings as map": lambda one, _: setattr(one, "openings", {}),
    "records as map": lambda one, _: setattr(one, "records", {}),
    "null proofs": lambda one, _: setattr(one, "proofs", None),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_excerpt_has_one_form(name: str, days: Any) -> None:
    excerpt = receipt(days)
    assert not refused(excerpt.data)
    EDITS[name](excerpt, days)
    assert refused(excerpt.data)


def test_openings_ascend_by_their_digests(days: Any) -> None:
    excerpt = whole(days)
    assert not refused(excerpt.data)
    excerpt.openings.reverse()
    assert refused(excerpt.data)


def test_a_form_that_is_not_the_one_is_one_finding(days: Any, key: str, tmp_path: Path) -> None:
    data = receipt(days).data
    for bad in (data + b"\0", data[:-1], data[:30], data[:21] + b"\xff" * 40):
        report = run(days, bad, tmp_path, key_files=[key])
        assert checks_of(report) == [("excerpt", None)]
        assert report.verdict is Verdict.BROKEN
        assert [one.bytes for log in report.logs for one in log.inputs] == [len(bad)]


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"\x9b" + b"\xff" * 8,
        b"\x81" * 100_000,
        b"\xa1" * 100_000,
        b"\xa1\x64card\x58\x20" + bytes(32) + b"\x9b" + b"\x7f" * 8 + b"\x40" * 10,
        b"\xa1\x64card\x58\x20" + bytes(32) + b"\x9a\xff\xff\xff\xff" + b"\x81" * 1000,
        b"\xa1\x64card\x58\x20" + bytes(32) + b"\x81\x5b" + b"\x7f" * 8,
        b"\xa1\x64card\x5f\x41\x00\xff",
        b"\xbf\xff",
        b"\xc1" * 1000,
    ],
)
def test_bombs_are_refused(rest: bytes) -> None:
    assert refused(b"\x85\x73cardchain-excerpt/1" + rest)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_flipped_bit_is_verified(days: Any, tmp_path: Path, data: st.DataObject) -> None:
    excerpt = receipt(days).data
    bit = data.draw(st.integers(0, 8 * len(excerpt) - 1))
    changed = bytearray(excerpt)
    changed[bit // 8] ^= 1 << bit % 8
    report = run(days, bytes(changed), tmp_path)
    assert report.verdict is not Verdict.VERIFIED


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 10_000))
def test_no_part_of_an_excerpt_is_one(days: Any, length: int) -> None:
    data = whole(days).data
    assert refused(data[: length % len(data)])


def test_every_size_and_place_of_a_tree_is_proven(days: Any, tmp_path: Path) -> None:
    for more in range(1, 40):
        days.add("configured", None, {"by": "user:operator-1", "vkey": "fixture"})
        size = days.seq
        excerpt = receipt(days, size=size)
        (log,) = run(days, excerpt, tmp_path).logs
        assert (log.verdict, log.signed_to) == (Verdict.VERIFIED, size - 1), more
    assert len(path(5, days.digests)) > 4


def test_a_small_file_does_not_ask_for_much_work(new_log: Callable[..., Any]) -> None:
    log = new_log()
    log.open()
    card = log.issue(1, arguments={"text": "x" * 900_000})
    for count in range(1, 1200):
        body = {"of": 1, "echo": card[0], "reason": "revoked", "by": "user:operator-1"}
        log.add("withdrawn", card[0], {**body, "of": count}, {"envelope": card[1]})
    scope = {"card": card[0]}
    assert not refused(Excerpt(log, scope, range(1, 100), [card[1]], size=200).data)
    assert refused(Excerpt(log, scope, range(1, 1200), [card[1]], size=200).data)
