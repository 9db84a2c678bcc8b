"""The fused loop only accepts: with and without it the report is the same."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verifier import fast, verify
from verifier.framing import Frames
from verifier.keys import Key, Ring
from verifier.replay import Replay
from verifier.state import State

CASES = sorted((Path(__file__).parents[2] / "fixtures" / "cases").glob("intact*/log.cbor"))
KEYS = [str(Path(__file__).parents[2] / "fixtures" / "keys" / f"{name}.json") for name in "ab"]


@pytest.fixture
def mixed(new_log: Callable[..., Any]) -> Any:
    """A log of all events that the loop accepts, in several forms."""
    log = new_log()
    log.open()
    for number in range(8):
        card = log.issue(number, **({"grant_ttl": 900} if number % 2 else {}))
        more: dict[str, Any] = {"target": card[0]} if number % 3 else {}
        refusal = {
            "of": card[2],
            "gate": "resolve",
            "reason": "hash_mismatch",
            "count": 1,
            "echo": bytes(32),
            "target": card[0],
            "decision": "approve",
            "channel": "web",
        }
        log.add("refused", card[0], refusal, {"envelope": card[1]})
        log.add("refused", card[0], {**refusal, "count": 2}, {"envelope": card[1]})
        grant = log.resolve(card, "reject" if number == 7 else "approve", **more)
        if number == 7:
            continue
        body = {"of": grant, "rebuilt": card[0]}
        spent = log.add("dispatched", card[0], body, {"envelope": card[1]})
        if number != 6:
            outcome = ("succeeded", "failed", "unknown")[number % 3]
            log.add("settled", card[0], {"of": spent, "outcome": outcome}, {"envelope": card[1]})
    return log


def accepted(data: bytes, key: Key) -> int:
    """Count the records that the loop accepts once the table has judged the first."""
    frames = Frames("log", iter([data]))
    replay = Replay(State(Ring([key])))
    first = frames.next()
    assert first is not None
    replay.take(first)
    assert fast.advance(frames, replay) is False
    assert frames.next() is None
    return replay.tally.records - 1


def test_usual_events_are_accepted_by_the_loop(mixed: Any, key: str) -> None:
    assert accepted(mixed.data, Key(mixed.chain, mixed.secret)) == mixed.seq - 1


def test_without_the_key_the_loop_accepts_all_but_the_first(mixed: Any) -> None:
    frames = Frames("log", iter([mixed.data]))
    replay = Replay(State(Ring()))
    first = frames.next()
    assert first is not None
    replay.take(first)
    assert fast.advance(frames, replay) is False
    assert frames.next() is None
    assert replay.tally.records == mixed.seq
    assert [(finding.check, finding.seq) for finding in replay.findings] == [("key_missing", 0)]


def governed(log: Any, rules: dict[str, Any]) -> None:
    """Open a log under a profile."""
    profile = {
        "format": "cardchain-profile/1",
        "minimum": "none",
        "required": [],
        "grant_ttl": "optional",
        "self_approval": "allow",
        "assurance": "label",
        "fixed_parameters": [],
        "critical": [],
        "basis_drift": "review",
        **rules,
    }
    data = log.jcs(profile)
    log.profile = hashlib.sha256(data).hexdigest()
    body = {"name": "test", "software": "tests", "profile": bytes.fromhex(log.profile)}
    log.add("opened", None, body, {"profile": data})


def issue_with_basis(log: Any, number: int) -> Any:
    basis = {
        "verdict": "ask",
        "engine": "rules-1",
        "evidence_class": "none",
        "profile": log.profile,
        "rules": [],
    }
    subject = {"id": "user:approver-1", "source": "session"}
    return log.issue(number, approval_basis=basis, subject=subject)


@pytest.mark.parametrize(
    ("rules", "check"),
    [
        ({}, None),
        ({"self_approval": "deny"}, "self_approval"),
        ({"assurance": "authenticated"}, "assurance"),
    ],
)
def test_a_decision_under_a_profile_is_accepted_where_the_profile_lets_it(
    new_log: Callable[..., Any], key: str, tmp_path: Path, rules: dict[str, Any], check: str | None
) -> None:
    log = new_log()
    governed(log, rules)
    for number in range(3):
        card = issue_with_basis(log, number)
        other = {"id": "user:approver-2", "assurance": "authenticated"}
        log.resolve(card, **({"approver": other} if number < 2 else {}))
    log.issue(9)
    path = tmp_path / "log.cbor"
    assert_same(path, log.data, [key])
    found = [
        (finding.check, finding.seq) for finding in report_of(path, log.data, [key])[0].findings
    ]
    assert found == ([] if check is None else [(check, 6)])


def report_of(path: Path, data: bytes, keys: list[str]) -> Any:
    path.write_bytes(data)
    return verify([str(path)], keys, environ={}).logs


def assert_same(path: Path, data: bytes, keys: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        with_loop = report_of(path, data, keys)
        patch.setattr(fast, "advance", lambda *_: False)
        assert report_of(path, data, keys) == with_loop


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.randoms(use_true_random=False))
def test_changed_logs_have_the_same_report(
    mixed: Any, key: str, tmp_path: Path, chance: random.Random
) -> None:
    data = bytearray(mixed.data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.randrange(len(data))
        change = chance.randrange(5)
        if change == 0:
            data[place] ^= 1 << chance.randrange(8)
        elif change == 1:
            del data[place : place + chance.choice((1, 9, 700))]
        elif change == 2:
            data[place:place] = chance.randbytes(chance.choice((1, 40)))
        elif change == 3:
            start = chance.randrange(len(data))
            data[place:place] = data[start : start + 700]
        else:
            del data[max(place, 100) :]
    assert_same(tmp_path / "log.cbor", bytes(data), [key] if chance.random() < 0.9 else [])


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.parent.name)
def test_lost_and_repeated_records_have_the_same_report(case: Path, tmp_path: Path) -> None:
    data = case.read_bytes()
    header = data[:8]
    starts = [n for n in range(len(data)) if data.startswith(header, n)] + [len(data)]
    for first, end in pairwise(starts):
        assert_same(tmp_path / "log.cbor", data[:first] + data[end:], KEYS)
        assert_same(tmp_path / "log.cbor", data[:end] + data[first:], KEYS)


def test_a_remembered_decision_holds_for_its_own_bytes_only(
    new_log: Callable[..., Any], key: str, tmp_path: Path
) -> None:
    """A body with a target and one without may end in the same bytes."""
    log = new_log()
    log.open()
    one, two = log.issue(1), log.issue(2)
    log.resolve(one, target=one[0])
    body = {"of": two[2], "echo": two[0], "decision": "approve", "channel": "web"}
    body["approver"] = {"id": "user:approver-1", "assurance": "label"}
    log.add("resolved", two[0], body, {"envelope": two[1]})
    wrong = log.records[-1].replace(b"\xa5\x62of", b"\xa6\x62of")
    assert wrong != log.records[-1]
    report = report_of(tmp_path / "log.cbor", b"".join(log.records[:-1]) + wrong, [key])
    assert [finding.check for finding in report[0].findings] == ["deterministic"]


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_buffer_that_ends_inside_the_openings_breaks_no_rule(
    new_log: Callable[..., Any], tmp_path: Path, cut: int
) -> None:
    log = new_log()
    log.open()
    card, envelope, seq = log.issue()
    response = {"digest": hashlib.sha256(b"yes").digest()}
    body = {"of": seq, "echo": card, "decision": "approve", "channel": "web"}
    body |= {"approver": {"id": "user:approver-1", "assurance": "label"}, "response": response}
    log.add("resolved", card, body, {"envelope": envelope, "response": b"yes"})
    place = log.data.index(b"\x68response") + cut
    frames = Frames("log", iter([log.data[:place], log.data[place:]]))
    replay = Replay(State(Ring([Key(log.chain, log.secret)])))
    while True:
        broke = fast.advance(frames, replay)
        record = frames.next()
        if record is None:
            break
        replay.take(record, broke=broke)
    assert (replay.tally.records, replay.findings) == (3, [])
