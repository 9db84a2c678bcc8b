"""The fold (spec §6.1, §6.2): the same states from memory and from the index on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.codec import Record
from ledger.errors import Malformed
from ledger.index import Index
from ledger.projection import (
    Card,
    Flood,
    State,
    Step,
    StepState,
    fold,
    lapsed,
    late,
    state_at,
    step_state,
)
from ledger.store.contract import Position, Stored

A, B, TASK = b"a" * 32, b"b" * 32, b"t" * 32


class Memory:
    """Views in dictionaries: the plain twin of the index."""

    def __init__(self) -> None:
        """Begin with nothing issued."""
        self.cards: dict[bytes, Card] = {}
        self.steps: dict[bytes, Step] = {}
        self.floods: dict[Flood, int] = {}
        self.profiles: dict[bytes, bytes] = {}
        self.in_force: bytes | None = None
        self.reset: int | None = None
        self.missing: dict[int, list[str]] = {}
        self.redactions: list[tuple[int, int, list[str]]] = []
        self.forgotten: list[int] = []
        self.begins_above_0 = False

    def card(self, card: bytes) -> Card | None:
        """Give a card by its hash."""
        return self.cards.get(card)

    def step(self, task: bytes) -> Step | None:
        """Give a step by its task digest."""
        return self.steps.get(task)

    def last_reset(self) -> int | None:
        """Give the seq of the last `clock_reset`."""
        return self.reset

    def refusals(self, flood: Flood) -> int:
        """Give the running count of refusals."""
        return self.floods.get(flood, 0)

    def put_card(self, card: Card) -> None:
        """Keep a card."""
        self.cards[card.hash] = card

    def put_step(self, task: bytes, step: Step) -> None:
        """Keep a step."""
        self.steps[task] = step

    def put_reset(self, seq: int) -> None:
        """Keep the seq of the last `clock_reset`."""
        self.reset = seq

    def put_refusals(self, flood: Flood, count: int, seq: int | None = None) -> None:
        """Keep the running count of refusals."""
        self.floods[flood] = count

    def edge(self) -> bool:
        """Tell whether records before the first one may matter."""
        return self.begins_above_0

    def put_missing(self, seq: int, names: list[str]) -> None:
        """Keep which openings are not there."""
        self.missing[seq] = names

    def put_redaction(self, event: int, seq: int, names: list[str]) -> None:
        """Keep what is said to be erased."""
        self.redactions.append((event, seq, names))

    def forget(self, before: int) -> None:
        """Keep what is to be forgotten; the index is tested by itself."""
        self.forgotten.append(before)

    def profile(self) -> bytes | None:
        """Give the digest of the newest chain profile."""
        return self.in_force

    def profile_bytes(self, digest: bytes) -> bytes | None:
        """Give the bytes of a chain profile."""
        return self.profiles.get(digest)

    def put_profile(self, digest: bytes, text: bytes | None, seq: int) -> None:
        """Keep a chain profile."""
        self.in_force = digest
        if text is not None:
            self.profiles[digest] = text


def record(
    seq: int,
    kind: str,
    card: bytes | None,
    at: int = 1_000,
    openings: dict[str, bytes] | None = None,
    **body: object,
) -> Record:
    """A record with the members that the fold looks at; the bytes are of no matter to it."""
    nothing = b""
    return Record(
        raw=nothing,
        kid=bytes(8),
        tag=nothing,
        chain=bytes(16),
        seq=seq,
        prev=bytes(32),
        at=at,
        kind=kind,
        card=card,
        body=body,
        openings={} if openings is None else openings,
        digest=bytes(32),
        bare=nothing,
    )


def issued(seq: int, card: bytes, **more: object) -> Record:
    return record(seq, "issued", card, task=TASK, not_after=100, **more)


def resolved(seq: int, card: bytes, decision: str = "approve", at: int = 5_000) -> Record:
    approver = {"id": "user:approver-1", "assurance": "label"}
    return record(seq, "resolved", card, at, decision=decision, approver=approver)


HISTORY = [
    record(0, "opened", None),
    issued(1, A, grant_ttl=30),
    record(2, "refused", A, gate="resolve", reason="missing_approver", count=1, decision="approve"),
    resolved(3, A),
    record(4, "dispatched", A),
    record(5, "settled", A, outcome="unknown"),
    record(6, "settled", A, outcome="failed"),
    issued(7, B, supersedes=A),
    record(8, "withdrawn", B),
    record(9, "clock_reset", None, at=10),
    record(10, "recovered", None),
]
STATES = {1: "OPEN", 3: "APPROVED", 4: "DISPATCHED", 5: "UNKNOWN", 6: "SETTLED", 8: "SETTLED"}


def test_a_card_goes_through_the_states_of_the_spec() -> None:
    views = Memory()
    for past in HISTORY:
        fold(views, past)
        if past.seq in STATES:
            card = views.card(A)
            assert card is not None
            assert card.state == STATES[past.seq]
    assert views.card(A) == Card(
        hash=A,
        seq=1,
        task=TASK,
        not_after=100,
        grant_ttl=30,
        state=State.SETTLED,
        last=6,
        resolved_seq=3,
        resolved_at=5_000,
        decision="approve",
        approver="user:approver-1",
        outcome="failed",
    )
    step = views.step(TASK)
    assert step is not None
    assert (step.latest, step.dispatched) == (B, A)
    assert views.last_reset() == 9
    assert views.refusals(Flood("resolve", "missing_approver", A)) == 1


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], "SUPERSEDED"),
        ([resolved(2, A)], "SUPERSEDED"),
        ([resolved(2, A, "reject")], "REJECTED"),
        ([record(2, "withdrawn", A)], "WITHDRAWN"),
        ([resolved(2, A), record(3, "dispatched", A)], "DISPATCHED"),
    ],
)
def test_a_new_card_supersedes_what_was_open_or_approved_and_nothing_else(
    events: list[Record], expected: str
) -> None:
    views = Memory()
    for past in [issued(1, A), *events, issued(9, B)]:
        fold(views, past)
    card = views.card(A)
    assert card is not None
    assert card.state == expected


def test_a_refusal_at_issue_is_counted_by_its_task() -> None:
    views = Memory()
    fold(views, record(1, "refused", A, gate="issue", reason="open_exists", count=4, task=TASK))
    assert views.refusals(Flood("issue", "open_exists", TASK)) == 4
    assert views.card(A) is None


@pytest.mark.parametrize("kind", ["resolved", "withdrawn", "dispatched", "settled"])
def test_an_event_of_a_card_that_was_not_issued_is_malformed(kind: str) -> None:
    approver = {"id": "user:approver-1", "assurance": "label"}
    with pytest.raises(Malformed, match="not issued"):
        fold(
            Memory(),
            record(1, kind, A, decision="approve", approver=approver, outcome="failed"),
        )


OPEN = Card(A, 3, TASK, not_after=100, grant_ttl=30, state=State.OPEN, last=3)
GRANT = replace(
    OPEN,
    state=State.APPROVED,
    resolved_seq=5,
    resolved_at=20_000,
    decision="approve",
    approver="user:approver-1",
)


@pytest.mark.parametrize(
    ("at", "reset", "expected"),
    [
        (99_999, None, "OPEN"),
        (100_000, None, "EXPIRED"),
        (100_001, None, "EXPIRED"),
        (0, 2, "OPEN"),
        (0, 4, "EXPIRED"),
    ],
)
def test_an_open_card_expires_at_the_instant_and_by_a_later_reset(
    at: int, reset: int | None, expected: str
) -> None:
    assert state_at(OPEN, at, reset) == expected
    assert late(OPEN, at, reset) == (expected == "EXPIRED")


@pytest.mark.parametrize(
    ("at", "reset", "expected"),
    [
        (49_999, None, "APPROVED"),
        (50_000, None, "LAPSED"),
        (0, 4, "APPROVED"),
        (0, 6, "LAPSED"),
        (49_999, 4, "APPROVED"),
    ],
)
def test_a_grant_lapses_at_the_instant_and_by_a_reset_after_the_decision(
    at: int, reset: int | None, expected: str
) -> None:
    assert state_at(GRANT, at, reset) == expected
    assert lapsed(GRANT, at, reset) == (expected == "LAPSED")


def test_a_grant_without_a_limit_does_not_lapse_by_time() -> None:
    assert state_at(replace(GRANT, grant_ttl=None), 2**60, None) is State.APPROVED


def test_a_rejection_does_not_lapse() -> None:
    assert not lapsed(replace(GRANT, decision="reject"), 2**60, 6)


@given(state=st.sampled_from(State), at=st.integers(0, 2**53), reset=st.integers(0, 9) | st.none())
def test_the_clock_changes_only_what_is_open_or_approved(
    state: State, at: int, reset: int | None
) -> None:
    if state not in (State.OPEN, State.APPROVED):
        assert state_at(replace(GRANT, state=state), at, reset) is state


def test_every_state_of_a_card_gives_one_of_its_step() -> None:
    found = {state: step_state(state) for state in State}
    assert set(found.values()) == set(StepState)
    assert found[State.EXPIRED] is found[State.LAPSED] is StepState.AWAITING_REAPPROVAL


def test_the_index_holds_what_memory_holds(tmp_path: Path) -> None:
    memory, index = Memory(), Index(tmp_path / "index.sqlite")
    for past in HISTORY:
        with index.transaction():
            fold(memory, past)
            fold(index, past)
            place = Position(past.seq, 0, past.seq * 10)
            index.cover(Stored(place, place, b"0123456789"), past, bytes(8))
            for card in (A, B):
                assert index.card(card) == memory.card(card)
            assert index.step(TASK) == memory.step(TASK)
            assert index.last_reset() == memory.last_reset()
            for flood, count in memory.floods.items():
                assert index.refusals(flood) == count
    index.close()


PROFILE = (
    b'{"assurance":"label","basis_drift":"review","critical":[],"fixed_parameters":[],'
    b'"format":"cardchain-profile/1","grant_ttl":"optional","minimum":"none","required":[],'
    b'"self_approval":"allow"}'
)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_card_keeps_the_profile_that_was_in_force_at_its_issue(
    tmp_path: Path, on_disk: bool
) -> None:
    views = Index(tmp_path / "index.sqlite") if on_disk else Memory()
    one, two = b"1" * 32, b"2" * 32
    fold(views, record(0, "opened", None, openings={"profile": PROFILE}, profile=one))
    fold(views, issued(1, A))
    fold(views, record(2, "configured", None, vkey="k", by="user:operator-1"))
    fold(views, record(3, "configured", None, profile=two, by="user:operator-1"))
    fold(views, issued(4, B, supersedes=A))
    found = [views.card(card) for card in (A, B)]
    assert [card.profile for card in found if card] == [one, two]
    assert views.profile() == two
    assert (views.profile_bytes(one), views.profile_bytes(two)) == (PROFILE, None)


def test_a_profile_that_is_none_is_malformed() -> None:
    opened = record(0, "opened", None, openings={"profile": PROFILE + b" "}, profile=b"1" * 32)
    with pytest.raises(Malformed, match="profile"):
        fold(Memory(), opened)


@pytest.mark.parametrize(
    ("envelope", "named", "asks"),
    [
        (b'{"action":{"args_digest":"aa","tool_name":"t"}}', None, True),
        (
            b'{"action":{"args_digest":"aa","tool_name":"t"},"approval_basis":{"profile":"0f"}}',
            b"\x0f",
            True,
        ),
        (b'{"action":{"args_digest":"aa","tool_name":"\\ud800"}}', None, False),
        (b'{"action":{"args_digest":"aa"}}', None, False),
        (b'{"action":[]}', None, False),
        (b"[]", None, False),
        (b"[" * 100_000, None, False),
        (b"\xff", None, False),
        (None, None, False),
    ],
)
def test_what_a_card_asks_for_is_read_from_any_envelope(
    envelope: bytes | None, named: bytes | None, asks: bool
) -> None:
    views = Memory()
    openings = {} if envelope is None else {"envelope": envelope}
    fold(views, record(1, "issued", A, openings=openings, task=TASK, not_after=100))
    found = views.cards[A]
    assert (found.named, found.ask is not None) == (named, asks)
