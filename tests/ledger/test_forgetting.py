"""What pruning forgets, the live index and one rebuilt from the left edge forget alike (§15.2)."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import verifier
from ledger import Ledger, Opening, Proposal, assembly
from ledger.archive import sha256
from ledger.codec import Record
from ledger.errors import LedgerError, Malformed
from ledger.index import Index
from ledger.projection import Step, fold
from ledger.proposal import Facts
from ledger.store.files import FileStore

TABLES = (
    "cards",
    "steps",
    "events",
    "profiles",
    "configured",
    "reset",
    "pruned",
    "missing",
    "redactions",
    "covered",
)
BY = "user:operator-1"
PROFILES = [
    json.dumps(
        {
            "assurance": assurance,
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
        sort_keys=True,
    ).encode()
    for assurance in ("label", "authenticated")
]


class Life:
    """A ledger in small segments, a clock that can be set, and whatever may be done to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 1_700_000_000_000
        self.path = folder / "ledger"
        self.ledger = Ledger.init(self.path, name="life", clock=self.clock, profile=PROFILES[0])
        self.cards: list[str] = []
        self.pruned = 0

    def clock(self) -> int:
        return self.now

    def reopen(self, number: int = 0) -> None:
        self.ledger.close()
        self.ledger = Ledger.open(self.path, clock=self.clock)

    def pick(self, number: int) -> str:
        return self.cards[-1 - number % min(len(self.cards), 4)] if self.cards else "0" * 64

    def issue(self, number: int) -> None:
        terms: dict[str, Any] = {}
        if number % 3 == 0 and self.cards:
            latest = self.pick(number)
            with contextlib.suppress(LedgerError):
                status = self.ledger.card(latest)
                terms["supersedes"] = latest
                if status.state in ("DISPATCHED", "SETTLED", "UNKNOWN"):
                    outcome = status.card.outcome or "unknown"
                    terms["prior_attempt"] = {"card_hash": latest, "outcome": outcome}
        proposal = Proposal.for_tool_call(
            task=("run", f"step {number % 3}"),
            tool_name="tool",
            arguments={"number": number},
            reasoning="r",
            ttl=60,
            grant_ttl=30 if number % 2 else None,
            **terms,
        )
        self.cards.append(self.ledger.issue(proposal, presented=Opening(b"shown")).hash)

    def approve(self, number: int) -> None:
        self._resolve(number, "approve")

    def reject(self, number: int) -> None:
        self._resolve(number, "reject")

    def _resolve(self, number: int, decision: str) -> None:
        who = None if number % 5 == 0 else "user:approver-1"
        self.ledger.resolve(
            self.pick(number), decision, approver=who, assurance="authenticated", note="noted"
        )

    def withdraw(self, number: int) -> None:
        self.ledger.withdraw(self.pick(number), by="user:owner-1", reason="revoked")

    def run(self, number: int) -> None:
        card = self.pick(number)
        facts = Facts.for_tool_call(
            "tool", self.ledger.card(card).envelope.document["action"]["arguments"]
        )
        self.ledger.dispatch(card, facts)

    def settle(self, number: int) -> None:
        self.ledger.settle(self.pick(number), ("succeeded", "unknown")[number % 2])

    def wait(self, number: int) -> None:
        self.now += number * 7_000

    def go_back(self, number: int) -> None:
        self.now = self.ledger.status().at - 6_000
        self.ledger.clock_reset(by=BY, reason="other")

    def configure(self, number: int) -> None:
        self.ledger.configure(by=BY, profile=PROFILES[number % 2], vkey=None if number % 3 else "k")

    def rotate(self, number: int) -> None:
        self.ledger.rotate()

    def redact(self, number: int) -> None:
        names = {"openings": ["envelope"]} if number % 2 else {}
        self.ledger.redact(self.pick(number), by=BY, reason="retention", **names)

    def prune(self, number: int) -> None:
        file = self.folder / f"{self.pruned}.cbor"
        self.ledger.archive(file, overwrite=True)
        self.ledger.prune(file, by=BY, verified=sha256(file))
        self.pruned += 1

    def restore(self, number: int) -> None:
        self.ledger.restore(self.folder / f"{self.pruned - 1}.cbor")

    def compress(self, number: int) -> None:
        self.ledger.compress()

    def try_to(self, act: str, number: int) -> None:
        with contextlib.suppress(LedgerError):
            getattr(self, act)(number)

    def index(self) -> dict[str, list[Any]]:
        """Give what the index says; counts of refusals as the last recorded one says."""
        self.ledger.status()
        (file,) = (self.folder / "state").glob("cardchain/*/index.sqlite")
        with contextlib.closing(sqlite3.connect(file)) as database:
            found = {name: list(database.execute(f"SELECT * FROM {name}")) for name in TABLES}
            floods = database.execute("SELECT * FROM floods")
            found["floods"] = [(*row[:3], recorded(row[3]), row[4]) for row in floods]
        return found

    def rebuild(self) -> None:
        self.ledger.close()
        for file in (self.folder / "state").glob("cardchain/*/index.sqlite*"):
            file.unlink()
        self.ledger = Ledger.open(self.path, clock=self.clock)


def recorded(count: int) -> int:
    """The largest recorded count up to one (spec §6.4)."""
    return count if count <= 8 else 1 << count.bit_length() - 1


@contextlib.contextmanager
def life() -> Iterator[Life]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CARDCHAIN_STATE"] = f"{folder}/state"
        made = Life(Path(folder))
        try:
            yield made
        finally:
            made.ledger.close()


@pytest.fixture(autouse=True, scope="module")
def small_segments() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        small = functools.partial(FileStore, segment_bytes=1_600, sync=lambda descriptor: None)
        patch.setattr(assembly, "FileStore", lambda *a, sync, **more: small(*a, **more))
        patch.setenv("CARDCHAIN_STATE", "")
        patch.delenv("CARDCHAIN_KEY", raising=False)
        yield


ACTS = [name for name, act in vars(Life).items() if callable(act) and not name.startswith("_")]
STEPS = [name for name in ACTS if name not in ("clock", "pick", "try_to", "index", "rebuild")]
OFTEN = ["issue", "issue", "approve", "reject", "run", "settle", "wait", "prune", "prune"]
ONE_OF_EACH: list[tuple[str, int]] = [
    ("issue", 1), ("reject", 1), ("issue", 2), ("approve", 1), ("run", 0), ("settle", 0),
    ("issue", 5), ("approve", 5), ("approve", 5), ("redact", 1), ("configure", 1), ("wait", 20),
    ("issue", 4), ("prune", 0), ("redact", 0), ("reject", 1), ("approve", 1), ("prune", 0),
    ("issue", 3), ("compress", 0), ("restore", 0), ("issue", 7), ("configure", 0), ("wait", 20),
    ("prune", 0),
    ("issue", 8), ("reject", 4), ("redact", 0),
]  # fmt: skip


def agree(steps: list[tuple[str, int]], check: Callable[[Life], None] | None = None) -> None:
    with life() as one:
        for act, number in steps:
            one.try_to(act, number)
        live = one.index()
        (keys,) = (one.folder / "state").glob("cardchain/*/keys")
        report = verifier.verify([str(one.path)], [str(keys)], environ={})
        assert report.verdict.value == "VERIFIED", verifier.render_text(report)
        if check is not None:
            check(one)
        one.rebuild()
        assert one.index() == live
        one.try_to("issue", 11)  # refused or not, it is on record
        report = verifier.verify([str(one.path)], [str(keys)], environ={})
        assert report.verdict.value == "VERIFIED", verifier.render_text(report)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@example(steps=ONE_OF_EACH)
@given(steps=st.lists(st.tuples(st.sampled_from(OFTEN + STEPS), st.integers(0, 20)), max_size=40))
def test_an_index_rebuilt_from_the_left_edge_is_the_live_one(steps: list[tuple[str, int]]) -> None:
    agree(steps)


def test_the_history_of_one_of_each_does_prune_and_redact() -> None:
    def check(one: Life) -> None:
        kinds = [record.kind for record in one.ledger.records()]
        assert one.pruned == 3
        assert {"pruned", "configured", "redacted"} <= set(kinds)
        assert one.ledger.status().first > 0

    agree(ONE_OF_EACH, check)


# What each record leaves in the index, one by one

A, B, TASK, ONE, TWO = (letter * 32 for letter in (b"a", b"b", b"t", b"1", b"2"))


def told(seq: int, kind: str, card: bytes | None = None, **body: object) -> Record:
    """A record with the members that the fold looks at."""
    nothing = b""
    return Record(
        nothing, bytes(8), nothing, bytes(16), seq, bytes(32), 1_000, kind, card, body, {},
        bytes(32), nothing,
    )  # fmt: skip


def issued(seq: int, card: bytes) -> Record:
    return told(seq, "issued", card, task=TASK, not_after=100)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with contextlib.closing(Index(tmp_path / "index.sqlite")) as opened:
        yield opened


def folded(index: Index, *records: Record) -> Index:
    for record in records:
        fold(index, record)
    return index


def test_a_step_forgets_what_it_dispatched_and_keeps_what_is_latest(index: Index) -> None:
    decision = {"decision": "approve", "approver": {"id": "u", "assurance": "label"}}
    folded(
        index,
        issued(1, A),
        told(2, "resolved", A, **decision),
        told(3, "dispatched", A, rebuilt=A),
        told(4, "settled", A, outcome="succeeded"),
        issued(5, B),
        told(6, "pruned", before=5, digest=bytes(32)),
    )
    assert index.card(A) is None
    assert index.step(TASK) == Step(B, None)


@pytest.mark.parametrize(("seq", "expected"), [(2, None), (5, 5)])
def test_a_reset_of_the_clock_is_forgotten_below_the_edge(
    index: Index, seq: int, expected: int | None
) -> None:
    folded(index, told(seq, "clock_reset"), told(6, "pruned", before=5, digest=bytes(32)))
    assert index.last_reset() == expected


def test_what_is_missing_is_forgotten_below_the_edge(index: Index) -> None:
    folded(index, issued(1, A), issued(5, B))
    assert index.missing() == [(1, "envelope"), (5, "envelope")]
    folded(index, told(6, "pruned", before=5, digest=bytes(32)))
    assert index.missing() == [(5, "envelope")]


@pytest.mark.parametrize(("configured", "expected"), [([], None), ([4], TWO), ([4, 5], TWO)])
def test_a_card_is_held_to_the_first_profile_that_is_known_from_the_edge_on(
    index: Index, configured: list[int], expected: bytes | None
) -> None:
    rules = [told(seq, "configured", profile=(TWO, ONE)[seq - 4]) for seq in configured]
    folded(index, told(0, "opened", profile=ONE), issued(3, A), *rules)
    assert index.card(A) == replace(index.card(A), profile=ONE)  # type: ignore[type-var]
    folded(index, told(6, "pruned", before=2, digest=bytes(32)))
    assert index.card(A) == replace(index.card(A), profile=expected)  # type: ignore[type-var]


@pytest.mark.parametrize(("before", "named"), [(2, False), (3, True), (4, True)])
def test_what_is_not_issued_passes_until_the_left_edge_is_named(
    index: Index, before: int, named: bool
) -> None:
    index.begin_at(3, bytes(32))
    folded(index, told(3, "settled", A, outcome="failed"))
    assert index.card(A) is None
    folded(index, told(5, "pruned", before=before, digest=bytes(32)))
    late = told(6, "settled", A, outcome="failed")
    if named:
        with pytest.raises(Malformed, match="not issued"):
            folded(index, late)
    else:
        folded(index, late)
