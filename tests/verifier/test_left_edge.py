"""A log that begins above seq 0 (spec §15.2): a replay from the edge and one from 0 agree."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verifier import LogReport, Outcome, verify
from verifier.evidence import parse
from verifier.state import Edge

CHANNEL = {"channel": "web"}
APPROVER = {"id": "user:approver-1", "assurance": "label"}


def report(path: Path, log: Any, key: str, first: int = 0, since: Edge | None = None) -> LogReport:
    path.write_bytes(b"".join(log.records[first:]))
    return verify([str(path)], [key], environ={}, since=since).logs[0]


def rows(log: LogReport) -> dict[str, tuple[Outcome, str]]:
    return {row.check: (row.outcome, row.detail) for row in log.rows}


def card_of(log: Any, seq: int) -> bytes | None:
    """Give the card of a record, as its payload has it."""
    return parse("log", 0, log.records[seq]).card


def act(log: Any, chance: random.Random, cards: list[list[Any]]) -> None:
    """Append an event of a card, lawful or not; `cards` hold hash, bytes, of and state."""
    card = chance.choice(cards)
    opening = {"envelope": card[1]}
    of = chance.choice((card[2], card[2], card[2], max(card[2] - 1, 0)))
    what = chance.randrange(7)
    if what == 0:
        number = chance.randrange(3)
        more = {"supersedes": card[0].hex()} if chance.random() < 0.5 else {}
        cards.append(list(log.issue(number, reasoning=f"at {log.seq}", **more)))
        return
    if what == 1:
        body = {"of": of, "gate": "resolve", "reason": "missing_approver", "echo": card[0]}
        body |= {"count": chance.choice((1, 1, 2, 3)), "decision": "reject", **CHANNEL}
        log.add("refused", card[0], body, opening)
        return
    if what == 6:
        body = {"gate": "resolve", "reason": "hash_mismatch", "echo": bytes(32), **CHANNEL}
        body |= {"count": chance.choice((1, 1, 2, 3)), "decision": "reject"}
        log.add("refused", None, body)
        return
    if what == 2:
        seq = log.resolve((card[0], card[1], of), chance.choice(("approve", "reject")))
    elif what == 3:
        seq = log.add("dispatched", card[0], {"of": of, "rebuilt": card[0]}, opening)
    elif what == 4:
        outcome = chance.choice(("succeeded", "unknown"))
        seq = log.add("settled", card[0], {"of": of, "outcome": outcome}, opening)
    else:
        body = {"of": of, "echo": card[0], "reason": "revoked", "by": "user:1"}
        seq = log.add("withdrawn", card[0], body, opening)
    card[2] = seq


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.randoms(use_true_random=False))
def test_from_the_pruned_record_on_the_edge_and_the_whole_say_the_same(
    new_log: Callable[..., Any], key: str, tmp_path: Path, chance: random.Random
) -> None:
    log = new_log()
    log.open()
    cards = [list(log.issue(number)) for number in range(2)]
    for _ in range(chance.randrange(12)):
        act(log, chance, cards)
    before = chance.randrange(1, log.seq)
    digest = log.digests[before - 1]
    pruned = log.add("pruned", None, {"before": before, "digest": digest, "by": "user:1"})
    for _ in range(chance.randrange(20)):
        act(log, chance, cards)

    path = tmp_path / "log.cbor"
    both = [report(path, log, key, first).findings for first in (before, 0)]
    assert all(item.check != "left_edge" for item in both[0])
    # a card with an earlier finding has no further ones (spec §10.3, rule 6)
    touched = {
        card_of(log, item.seq)
        for findings in both
        for item in findings
        if item.seq is not None and item.seq <= pruned
    } - {None}
    later = [
        [
            (item.check, item.seq, item.expected, item.found)
            for item in findings
            if item.seq is not None and item.seq > pruned and card_of(log, item.seq) not in touched
        ]
        for findings in both
    ]
    assert later[0] == later[1]


def test_events_of_earlier_cards_are_counted_and_never_pass(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    old = log.issue(1)
    grant = log.resolve(old)
    log.add("dispatched", old[0], {"of": grant, "rebuilt": old[0]}, {"envelope": old[1]})
    log.resolve(log.issue(2))
    edge = Edge(3, log.digests[2])
    shown = report(tmp_path / "log.cbor", log, key, 0, edge)
    assert (shown.verdict.value, shown.counts.records, shown.first_seq) == ("VERIFIED", 3, 3)
    seen = rows(shown)
    said = "events rest on records before the left edge"
    for check in ("approved", "dispatched_once", "rebuilt", "supersedes", "prior_attempt"):
        assert seen[check] == (Outcome.NOT_CHECKED, f"1 {said}"), check
    assert seen["of"] == (Outcome.NOT_CHECKED, f"1 {said}")
    assert seen["decided_once"] == (Outcome.PASS, "")
    assert seen["left_edge"] == (Outcome.PASS, "")
    assert any(
        sentence.startswith("what rests on records before seq 3") for sentence in shown.not_checked
    )


def test_a_profile_before_the_edge_is_unknown_until_the_next_one(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    log.issue(1)
    shown = report(tmp_path / "log.cbor", log, key, 0, Edge(1, log.digests[0]))
    assert shown.verdict.value == "VERIFIED"
    assert rows(shown)["floor"][0] is Outcome.NOT_CHECKED
    assert rows(shown)["floor"][1] != ""


def test_going_on_costs_what_is_new(new_log: Callable[..., Any], key: str, tmp_path: Path) -> None:
    """Segments before the edge are not even opened."""
    log = new_log()
    log.open()
    for number in range(4):
        log.resolve(log.issue(number))
    folder = tmp_path / "ledger" / "segments"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.cbor").write_bytes(b"never read")
    (folder / f"{5:020d}.cbor").write_bytes(b"".join(log.records[5:]))
    edge = Edge(6, log.digests[5])
    shown = verify([str(folder.parent)], [key], environ={}, since=edge).logs[0]
    assert (shown.verdict.value, shown.counts.records) == ("VERIFIED", 3)
    assert [Path(part.file).name for part in shown.inputs] == [f"{5:020d}.cbor"]


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4])
def test_any_record_may_be_the_one_that_the_auditor_kept(
    new_log: Callable[..., Any], key: str, tmp_path: Path, place: int
) -> None:
    log = new_log()
    log.open()
    for number in range(4):
        log.resolve(log.issue(number))
    path = tmp_path / "log.cbor"
    shown = report(path, log, key, 0, Edge(place + 1, log.digests[place]))
    assert (shown.verdict.value, shown.counts.records) == ("VERIFIED", log.seq - place - 1)
    wrong = report(path, log, key, 0, Edge(place + 1, bytes(32)))
    assert [(item.check, item.seq) for item in wrong.findings] == [("link", place + 1)]
