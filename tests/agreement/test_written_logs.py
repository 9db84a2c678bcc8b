"""What `ledger` writes, `verifier` verifies; what anybody changes in it, it does not (spec §10).

The two packages share no code, so this is where they meet.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import verifier
from ledger import Evidence, Facts, Ledger, Opening, Proposal, Refused
from ledger import assembly as assembly_module
from ledger.store.files import FileStore

SMALL_SEGMENT = 6_000


def no_sync(descriptor: int) -> None:
    """A sync that does nothing: what is tested here is not the disk."""


@dataclass
class Host:
    """A ledger, a clock that can be set, and a caller that tries whatever it is told to."""

    folder: Path
    now: int = 1_700_000_000_000
    hashes: list[str] = field(default_factory=lambda: ["0" * 64])

    def __post_init__(self) -> None:
        self.path = self.folder / "ledger"
        self.ledger = Ledger.init(self.path, name="agreement", clock=self.clock, sync=no_sync)

    def clock(self) -> int:
        return self.now

    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = Ledger.open(self.path, clock=self.clock, sync=no_sync)

    def pick(self, number: int) -> str:
        return self.hashes[number % len(self.hashes)]

    def issue(self, text: str, number: int, named: bool) -> None:
        terms: dict[str, Any] = {}
        latest = self.pick(number)
        if named and latest != "0" * 64:
            status = self.ledger.card(latest)
            terms["supersedes"] = latest
            if status.state in ("DISPATCHED", "SETTLED", "UNKNOWN"):
                outcome = status.card.outcome or "unknown"
                terms["prior_attempt"] = {"card_hash": latest, "outcome": outcome}
        proposal = Proposal.for_tool_call(
            task=("run", "step" + "x" * (number % 2)),
            tool_name="tool",
            arguments={"text": text, "number": number},
            reasoning=text,
            ttl=60,
            grant_ttl=30 if number % 2 else None,
            **terms,
        )
        shown = Opening(text.encode(), "text/plain", "channel/1") if number % 3 == 0 else None
        card = self.ledger.issue(proposal, presented=shown, runtime={"name": "agreement"})
        self.hashes.append(card.hash)

    def decide(self, text: str, number: int, approve: bool) -> None:
        self.ledger.resolve(
            self.pick(number),
            "approve" if approve else "reject",
            approver=("user:approver-1", "user:approver-2", " ", None)[number % 4],
            target=self.pick(number // 7) if number % 5 == 0 else None,
            assurance="authenticated",
            evidence=Evidence("token", bytes(32)),
            note=text,
            response=Opening(text.encode()) if number % 2 else None,
        )

    def withdraw(self, text: str, number: int, approve: bool) -> None:
        who = None if number % 4 == 0 else "user:owner-1"
        self.ledger.withdraw(self.pick(number), by=who, reason="revoked", note=text)

    def dispatch(self, text: str, number: int, same: bool) -> None:
        card = self.pick(number)
        arguments: dict[str, Any] = {"text": text}
        if same and card != "0" * 64:
            arguments = self.ledger.card(card).envelope.document["action"]["arguments"]
        self.ledger.dispatch(card, Facts.for_tool_call("tool", arguments))

    def settle(self, text: str, number: int, approve: bool) -> None:
        outcome = ("succeeded", "failed", "unknown", "unknown")[number % 4]
        self.ledger.settle(self.pick(number), outcome, receipt_digest=bytes(32))

    def wait(self, text: str, number: int, approve: bool) -> None:
        self.now += number * 1_000

    def go_back(self, text: str, number: int, approve: bool) -> None:
        self.now = self.ledger.status().at - 6_000
        self.ledger.clock_reset(by="user:operator-1", reason="other")

    def rotate_key(self, text: str, number: int, approve: bool) -> None:
        self.ledger.rotate()

    def tear(self, text: str, number: int, approve: bool) -> None:
        last = max((self.path / "segments").iterdir())
        first = next(self.ledger.records()).raw
        with last.open("ab") as file:
            file.write(first[: 1 + number % (len(first) - 1)])
        self.reopen()


ACTS = [
    Host.issue,
    Host.issue,
    Host.decide,
    Host.decide,
    Host.dispatch,
    Host.dispatch,
    Host.settle,
    Host.withdraw,
    Host.wait,
    Host.go_back,
    Host.rotate_key,
    Host.tear,
]
Act = tuple[Callable[..., None], str, int, bool]
acts = st.lists(
    st.tuples(
        st.sampled_from(ACTS),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        st.integers(0, 40),
        st.booleans(),
    ),
    max_size=40,
)


@contextlib.contextmanager
def host() -> Iterator[Host]:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", f"{name}/state")
        patch.setattr(
            assembly_module,
            "FileStore",
            functools.partial(FileStore, segment_bytes=SMALL_SEGMENT),
        )
        made = Host(Path(name))
        try:
            yield made
        finally:
            made.ledger.close()


def keys_of(folder: Path) -> list[str]:
    return [str(path) for path in (folder / "state").glob("cardchain/*/keys")]


def verdict(path: Path, keys: list[str], **expected: Any) -> verifier.Report:
    return verifier.verify([str(path)], keys, environ={}, **expected)


LIFE: list[Act] = [
    (Host.issue, "a", 1, False),
    (Host.decide, "yes", 1, True),
    (Host.dispatch, "b", 1, False),
    (Host.dispatch, "a", 1, True),
    (Host.settle, "", 2 * 1 + 1, True),
    (Host.issue, "again", 1, True),
    *[(Host.decide, "nobody", 3, True)] * 40,
    (Host.decide, "no", 5, False),
    (Host.issue, "again", 2, False),
]


@given(program=acts)
@example(program=LIFE)
@settings(max_examples=35, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_written_verifies(program: list[Act]) -> None:
    with host() as made:
        for act, text, number, flag in program:
            with contextlib.suppress(Refused):
                act(made, text, number, flag)
        status = made.ledger.status()
        exported = made.ledger.export(made.folder / "export.cbor")
        assert (exported.count, exported.head) == (status.count, status.head)
        keys = keys_of(made.folder)
        for path in (made.path, made.folder / "export.cbor"):
            report = verdict(path, keys, expect_head=exported.head, expect_count=exported.count)
            assert report.verdict is verifier.Verdict.VERIFIED, verifier.render_text(report)
            (log,) = report.logs
            assert log.counts.records == status.count


@dataclass(frozen=True)
class Written:
    """One log with every kind of record, its keys, and where it may be changed."""

    records: tuple[bytes, ...]
    keys: list[str]
    folder: Path
    head: bytes

    @property
    def content(self) -> bytes:
        return b"".join(self.records)

    def verdict(self, content: bytes, **expected: Any) -> verifier.Verdict:
        path = self.folder / "changed.cbor"
        path.write_bytes(content)
        return verdict(path, self.keys, **expected).verdict


@pytest.fixture(scope="module")
def written() -> Iterator[Written]:
    with host() as made:
        program: list[Act] = [
            *LIFE[:-20],
            (Host.withdraw, "stop", 2, True),
            (Host.go_back, "", 0, True),
            (Host.rotate_key, "", 0, True),
            (Host.tear, "", 9, True),
        ]
        for act, text, number, flag in program:
            with contextlib.suppress(Refused):
                act(made, text, number, flag)
        records = tuple(record.raw for record in made.ledger.records())
        kinds = {record.kind for record in made.ledger.records()}
        assert {"refused", "withdrawn", "settled", "rekeyed", "recovered"} < kinds
        head = made.ledger.status().head
        yield Written(records, keys_of(made.folder), made.folder, head)


def test_an_unchanged_copy_verifies(written: Written) -> None:
    assert written.verdict(written.content) is verifier.Verdict.VERIFIED


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_changed_byte_does_not_verify(written: Written, data: st.DataObject) -> None:
    content = bytearray(written.content)
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    assert written.verdict(bytes(content)) is not verifier.Verdict.VERIFIED


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_an_added_byte_does_not_verify(written: Written, data: st.DataObject) -> None:
    content = written.content
    position = data.draw(st.integers(0, len(content)))
    added = bytes([data.draw(st.integers(0, 255))])
    changed = content[:position] + added + content[position:]
    assert written.verdict(changed) is not verifier.Verdict.VERIFIED


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_removed_stretch_does_not_verify(written: Written, data: st.DataObject) -> None:
    content = written.content
    start = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(start + 1, len(content)))
    whole = {len(b"".join(written.records[:count])) for count in range(len(written.records))}
    if end == len(content) and start in whole:
        start += 1
    changed = content[:start] + content[end:]
    if changed != content:
        assert written.verdict(changed) is not verifier.Verdict.VERIFIED


def test_no_record_can_be_removed_doubled_or_swapped(written: Written) -> None:
    records = list(written.records)
    for number in range(len(records)):
        doubled = [*records[: number + 1], *records[number:]]
        assert written.verdict(b"".join(doubled)) is verifier.Verdict.BROKEN
    for number in range(len(records) - 1):
        removed = [*records[:number], *records[number + 1 :]]
        assert written.verdict(b"".join(removed)) is not verifier.Verdict.VERIFIED
        swapped = [*records]
        swapped[number : number + 2] = reversed(swapped[number : number + 2])
        assert written.verdict(b"".join(swapped)) is not verifier.Verdict.VERIFIED


def test_whole_records_cut_from_the_end_are_seen_by_an_expected_head_only(
    written: Written,
) -> None:
    for count in range(1, len(written.records)):
        content = b"".join(written.records[:count])
        assert written.verdict(content) is verifier.Verdict.VERIFIED
        assert written.verdict(content, expect_head=written.head) is verifier.Verdict.BROKEN
        more = len(written.records)
        assert written.verdict(content, expect_count=more) is verifier.Verdict.BROKEN
    assert written.verdict(b"") is verifier.Verdict.CANNOT_VERIFY


def test_no_key_gives_no_verdict_of_broken(written: Written) -> None:
    path = written.folder / "changed.cbor"
    path.write_bytes(written.content)
    assert verdict(path, []).verdict is verifier.Verdict.CANNOT_VERIFY


def test_verifying_changes_nothing(written: Written) -> None:
    ledger = written.folder / "ledger"
    before = {path: os.stat(path).st_mtime_ns for path in ledger.rglob("*")}
    verdict(ledger, written.keys)
    assert {path: os.stat(path).st_mtime_ns for path in ledger.rglob("*")} == before
