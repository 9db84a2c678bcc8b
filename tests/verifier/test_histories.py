from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifier import History, every_card, fast, verify
from verifier.state import Edge

DAY = 86_400_000


def histories(log: Any, key: str, folder: Path, wanted: Any = every_card) -> list[History]:
    path = folder / "log.cbor"
    path.write_bytes(log.data)
    return [*verify([str(path)], [key], environ={}, wanted=wanted).logs[0].histories]


def test_a_history_holds_every_record_of_its_card(log: Any, key: str, tmp_path: Path) -> None:
    (card,) = histories(log, key, tmp_path)
    assert card.envelope is not None
    assert json.loads(card.envelope)["task"] == {"id": "run-1", "step": "refund"}
    assert [(event.seq, event.kind) for event in card.events] == [(1, "issued"), (2, "resolved")]
    assert [event.at - log.at for event in card.events] == [-2000, -1000]
    assert card.events[1].body["approver"] == {"id": "user:approver-1", "assurance": "label"}
    assert [event.offset for event in card.events] == [
        len(log.records[0]),
        len(log.records[0]) + len(log.records[1]),
    ]
    assert (card.state, card.doubt, card.findings) == ("APPROVED", "", ())


def test_only_the_cards_asked_for_are_kept(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    cards = [log.issue(number) for number in range(1, 50)]
    asked = cards[20][0].hex()
    (card,) = histories(log, key, tmp_path, lambda name: name.startswith(asked[:16]))
    assert (card.card, [event.seq for event in card.events]) == (asked, [cards[20][2]])
    assert histories(log, key, tmp_path, None) == []


@pytest.mark.parametrize("records", [1, 2, 5, 40, 200])
def test_the_fused_loop_and_the_table_give_the_same(
    records: int,
    new_log: Callable[..., Any],
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = new_log()
    log.open()
    for number in range(records):
        log.resolve(log.issue(number), "reject" if number % 3 else "approve")
    spoilt = log.records[-1]
    log.records[-1] = spoilt[:-1] + bytes([spoilt[-1] ^ 1])
    fused = histories(log, key, tmp_path)
    monkeypatch.setattr(fast, "advance", lambda *_: False)
    assert histories(log, key, tmp_path) == fused
    assert len(fused) == records
    assert sum(len(card.events) for card in fused) == 2 * records - 1


def test_places_count_from_the_beginning_of_a_file_that_is_read_in_pieces(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    for number in range(700):
        log.issue(number, reasoning="r" * 2000)
    assert len(log.data) > 1 << 20
    found = histories(log, key, tmp_path)
    places = [sum(map(len, log.records[:seq])) for seq in (1, 350, 700)]
    assert [found[number].events[0].offset for number in (0, 349, 699)] == places
    assert found[699].events[0].seq == 700


def settled(log: Any, card: tuple[bytes, bytes, int], of: int, outcome: str) -> int:
    seq: int = log.add("settled", card[0], {"of": of, "outcome": outcome}, {"envelope": card[1]})
    return seq


def dispatched(log: Any, card: tuple[bytes, bytes, int], of: int) -> int:
    seq: int = log.add("dispatched", card[0], {"of": of, "rebuilt": card[0]}, {"envelope": card[1]})
    return seq


def withdrawn(log: Any, card: tuple[bytes, bytes, int]) -> None:
    body = {"of": card[2], "echo": card[0], "reason": "cancelled", "by": "user:approver-1"}
    log.add("withdrawn", card[0], body, {"envelope": card[1]})


def later(log: Any) -> None:
    log.at += DAY
    log.issue(2)


STATES: dict[str, Callable[[Any, Any], object]] = {
    "OPEN": lambda log, card: None,
    "EXPIRED": lambda log, card: later(log),
    "APPROVED": lambda log, card: log.resolve(card),
    "LAPSED": lambda log, card: (log.resolve(card), later(log)),
    "REJECTED": lambda log, card: log.resolve(card, "reject"),
    "WITHDRAWN": lambda log, card: withdrawn(log, card),
    "SUPERSEDED": lambda log, card: log.issue(1, supersedes=card[0].hex()),
    "DISPATCHED": lambda log, card: dispatched(log, card, log.resolve(card)),
    "UNKNOWN": lambda log, card: settled(
        log, card, dispatched(log, card, log.resolve(card)), "unknown"
    ),
    "SETTLED": lambda log, card: settled(
        log, card, dispatched(log, card, log.resolve(card)), "failed"
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_the_state_is_that_at_the_last_record(
    state: str, new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    card = log.issue(1, grant_ttl=60)
    STATES[state](log, card)
    found = histories(log, key, tmp_path)[0]
    assert (found.card, found.state, found.findings) == (card[0].hex(), state, ())


def test_a_hash_that_was_only_refused_is_not_issued(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    data = log.jcs(log.envelope(1, supersedes="ab" * 32))
    card = hashlib.sha256(data).digest()
    body = {
        "task": hashlib.sha256(log.jcs({"id": "run-1", "step": "refund"})).digest(),
        "gate": "issue",
        "reason": "supersedes_wrong",
        "count": 1,
    }
    log.add("refused", card, body, {"envelope": data})
    (found,) = histories(log, key, tmp_path)
    assert (found.state, found.doubt, found.envelope) == ("NOT ISSUED", "", data)


def test_findings_belong_to_the_card_that_they_are_about(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    good, bad = log.issue(1), log.issue(2)
    log.resolve(good)
    log.resolve(bad)
    log.resolve((bad[0], bad[1], 4))
    first, second = histories(log, key, tmp_path)
    assert (first.card, first.findings) == (good[0].hex(), ())
    assert [found.check for found in second.findings] == ["decided_once"]
    assert [event.seq for event in second.events] == [2, 4, 5]


def test_without_the_key_every_state_is_in_doubt(log: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    report = verify([str(path)], environ={}, wanted=every_card)
    (card,) = report.logs[0].histories
    assert (card.state, card.doubt) == ("APPROVED", "a key is missing")


def pruned(log: Any, before: int) -> None:
    body = {"before": before, "digest": log.digests[before - 1], "by": "user:operator-1"}
    log.add("pruned", None, body)


def test_a_card_that_was_pruned_has_ended(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    log.resolve(log.issue(1), "reject")
    log.add("refused", *refusal_of(log, log.issue(2)))
    pruned(log, 3)
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    (report,) = verify([str(path)], [key], environ={}, wanted=every_card).logs
    assert (report.verdict.value, report.findings) == ("VERIFIED", ())
    assert [(found.state, found.doubt) for found in report.histories] == [
        ("ENDED", ""),
        ("OPEN", ""),
    ]


def refusal_of(log: Any, card: tuple[bytes, bytes, int]) -> tuple[bytes, Any, Any]:
    body = {"of": card[2], "gate": "dispatch", "reason": "not_approved", "count": 1}
    return card[0], body, {"envelope": card[1]}


def test_what_stands_before_the_left_edge_leaves_a_doubt(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    log = new_log()
    log.open()
    card = log.issue(1)
    log.resolve(card)
    log.issue(2)
    path = tmp_path / "log.cbor"
    path.write_bytes(log.data)
    (report,) = verify(
        [str(path)], [key], environ={}, wanted=every_card, since=Edge(2, log.digests[1])
    ).logs
    first, second = report.histories
    assert report.verdict.value == "VERIFIED"
    assert (first.card, [event.seq for event in first.events]) == (card[0].hex(), [2])
    assert (first.state, first.doubt) == ("", "its issue may be lost")
    assert (second.state, second.doubt) == ("OPEN", "")
