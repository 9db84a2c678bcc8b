"""The fast way only accepts: with and without it the report on a log is the same."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.verifier.readers.conftest import KEY, derived, hash_of
from verifier.readers import bernstein
from verifier.readers.bernstein.fast import Fast
from verifier.report import LogReport

SAMPLES = Path(__file__).parents[4] / "shared" / "bernstein-sample"
FOLDERS = sorted(path.parent for path in SAMPLES.glob("**/audit.key"))
TAG = re.compile(rb'"hmac": "([0-9a-f]{64})", ')
FIXED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def every_line(_fast: Fast, lines: Iterator[tuple[bytes, bool]], at: Any, *, ready: bool) -> Any:
    """The naive twin of `Fast.left`: it accepts nothing."""
    line = next(lines, None)
    if line is not None:
        at.advance(1, len(line[0]) + 1, line[0])
    return line


def both(root: Path, head: str | None = None) -> LogReport:
    """Give the report, which is the same without the fast way."""
    keys = [str(root / "audit.key")]
    report = bernstein.verify_log(str(root), keys, head, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fast, "left", every_line)
        assert bernstein.verify_log(str(root), keys, head, None) == report
    return report


def lines_left(root: Path) -> int:
    """Count the lines that the fast way leaves to the named checks."""
    left, count = Fast.left, 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        line = left(*arguments, **named)
        count += line is not None
        return line

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fast, "left", counted)
        bernstein.verify_log(str(root), [str(root / "audit.key")], None, None)
    return count


def resealed(lines: list[bytes], key: bytes = KEY) -> list[bytes]:
    """Chain and seal lines again as whoever holds the key could, whatever is in them."""
    secret, prev = derived(key), b"0" * 64
    old, made = prev, []
    for line in lines:
        line = line.replace(old, prev)
        found = TAG.search(line)
        if found:
            body = line[: found.start()] + line[found.end() :]
            text = b"bernstein:audit:v2" + prev + body
            old, prev = found[1], hmac.new(secret, text, hashlib.sha256).hexdigest().encode()
            line = line[: found.start(1)] + prev + line[found.end(1) :]
        made.append(line)
    return made


def usual(log: Any) -> Any:
    """A log of one day of all events that the fast way accepts, each after one of its kind."""
    for text in ("Add a constant.", 'Two\nlines, "quoted" \\ caf\u00e9 \U0001f600 \x7f \x01'):
        log.append("task.transition", {"n": 1, "f": 1e-07, "text": text, "list": [None, True]})
        envelope = log.envelope() | {"reasoning": text}
        envelope["impact"] = envelope["impact"] | {"fired_detectors": ["shell_rm_rf", "push"]}
        card = log.issue(envelope, worktree="wt-1", thread="C1")
        here = {"worktree_id": "wt-1", "thread_id": "C1"}
        pins = {"issued_worktree_id": "wt-1", "issued_thread_id": "C1"}
        log.resolve(card, **here, **pins)
        log.refuse(card, "already_settled")
        log.refuse("f" * 64, "hash_mismatch", expected="")
        log.issue(log.envelope() | {"reasoning": text})
        late = log.issue(log.envelope(ttl=1.0))
        log.at += 10
        log.refuse(late, "expired")
        log.at += 3600
    return log


def only_day(log: Any) -> tuple[str, list[bytes]]:
    ((day, lines),) = log.days.items()
    return day, lines


def test_usual_events_are_accepted(log: Any) -> None:
    usual(log).write()
    report = both(log.root)
    assert ("VERIFIED", 16) == (report.verdict.value, report.counts.records)
    # the first line, and the first event of each of the other kinds
    assert lines_left(log.root) == 4


@pytest.mark.skipif(not FOLDERS, reason=f"{SAMPLES} is missing")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_samples_give_the_same_report(folder: Path) -> None:
    both(folder)


def test_every_byte_can_change_with_the_same_report(log: Any) -> None:
    """One bit of each byte in turn, sealed again, so that only the other checks can see it."""
    log.at = log.at // 60 * 60
    day, lines = only_day(usual(log))
    log.write()
    whole = resealed(lines)
    assert whole == lines
    path, last = log.audit / day, len(lines) // 2
    found = set()
    for number in range(last, len(lines)):
        for at in range(number % 2, len(lines[number]), 2):
            line = bytearray(lines[number])
            line[at] ^= 1 << at % 7
            if line[at] == 10:
                continue
            path.write_bytes(b"\n".join(resealed([*lines[:number], bytes(line)])) + b"\n")
            found |= {finding.check for finding in both(log.root).findings}
    assert found >= {f"bernstein.{name}" for name in ("line", "canonical", "shape", "card_hash")}


SPELLINGS = {
    "another text": (b"Add a", b"Add b"),
    "a predecessor": (b'"n": 1', b'"n": 1, "prev_chain_digest": "x"'),
    "other escape": (b"Add a", b"\\u0041dd a"),
    "upper case escape": (b"caf\\u00e9", b"caf\\u00E9"),
    "needless escape": (b"Add a", b"Add\\/a"),
    "long escape": (b"Two\\n", b"Two\\u000a"),
    "lone surrogate": (b"Add a", b"\\ud800 a"),
    "raw control": (b"Add a", b"Add\ta"),
    "raw delete": (b"Add a", b"Add\x7fa"),
    "raw letter": (b"caf\\u00e9", "caf\u00e9".encode()),
    "no UTF-8": (b"Add a", b"Add\xffa"),
    "blank": (b', "resource_id"', b',  "resource_id"'),
    "no blank": (b'": "Add', b'":"Add'),
    "tab at the end": (b'Z"}', b'Z"}\t'),
    "carriage return": (b'Z"}', b'Z"}\r'),
    "zeros": (b'"score": 0.25', b'"score": 0.250'),
    "exponent": (b'"score": 0.25', b'"score": 25e-2'),
    "whole number": (b'"score": 0.25', b'"score": 1'),
    "over one": (b'"score": 0.25', b'"score": 1.5'),
    "minus zero": (b'"score": 0.25', b'"score": -0.0'),
    "long number": (b'"score": 0.25', b'"score": 0.25000000000000001'),
    "created": (b'.0, "impact"', b'.00, "impact"'),
    "created later": (b'"created_at": 178825320', b'"created_at": 178825340'),
    "expires": (b'.0, "reasoning"', b'.00, "reasoning"'),
    "expires before": (b'"not_after": 1', b'"not_after": 0.1'),
    "expires late": (b'"not_after": 17', b'"not_after": 20000017'),
    "decided": (b'.0, "session_id"', b'.00, "session_id"'),
    "one way": (b'"hard_one_way": false', b'"hard_one_way": true'),
    "irreversible": (b'"irreversible": false', b'"irreversible": true'),
    "no number": (b'"score": 0.25', b'"score": NaN'),
    "two points": (b'"score": 0.25', b'"score": 0.2.5'),
    "large": (b'"score": 0.25', b'"score": 1e400'),
    "digits": (b'"n": 1', b'"n": 01'),
    "infinity": (b'"n": 1', b'"n": Infinity'),
    "repeated name": (b'"n": 1', b'"n": 1, "n": 1'),
    "repeated member": (b'"session_id": ""', b'"session_id": "", "session_id": ""'),
    "repeated scheme": (b'"scheme": 2', b'"scheme": 2, "scheme": 2'),
    "another scheme": (b'"scheme": 2', b'"scheme": 3'),
    "old scheme": (b', "scheme": 2', b""),
    "order": (b'"n": 1, "text"', b'"text": 1, "n"'),
    "names": (b'["shell_rm_rf", "push"]', b'[", ", "\\", "]'),
    "no list": (b'["shell_rm_rf", "push"]', b'"push"'),
    "predecessor": (b'"prev_chain_digest": "', b'"prev_chain_digest": "0'),
    "minute": (b"T09:", b"T9::"),
    "leap second": (b':00.000000Z"', b':60.000000Z"'),
    "another day": (b'"timestamp": "2026-09-01', b'"timestamp": "2026-09-02'),
    "no such day": (b'"timestamp": "2026-09-01', b'"timestamp": "2026-02-30'),
    "earlier": (b'"timestamp": "2026-09-01T09', b'"timestamp": "2026-09-01T08'),
    "two minutes": (b"2026-09-01T09:00:", b'2026-09-01T09:00:", "z": "2026-09-01T09:00:'),
    "nobody": (b"user:approver-1", b"  "),
    "another decision": (b'"approve"', b'"reject"'),
    "no decision": (b'"approve"', b'"maybe"'),
    "another reason": (b'"already_settled"', b'"expired"'),
    "another resource": (b'"resource_type": "approval_card"', b'"resource_type": "card"'),
    "another pin": (b'"issued_worktree_id": "wt-1"', b'"issued_worktree_id": "wt-2"'),
    "another place": (b'"worktree_id": "wt-1"', b'"worktree_id": "wt-2"'),
    "an acknowledgement": (b'"task.transition"', b'"chain.tear_acknowledged"'),
    "another kind": (b"card.refused", b"card.forgotten"),
}


def rehashed(line: bytes) -> bytes:
    """Give a line whose card hash is that of the envelope it holds, where there is one."""
    try:
        record = json.loads(line)
        old, envelope = record["details"]["card_hash"], record["details"]["envelope"]
        return line.replace(old.encode(), hash_of(envelope).encode())
    except (ValueError, KeyError, TypeError):
        return line


def hashed_as_spelled(line: bytes) -> bytes:
    """Give a line whose card hash is that of the spelling of its envelope, only without blanks."""
    found = re.search(rb'"card_hash": "([0-9a-f]{64})", "envelope": (.*), "install_id"', line)
    if found is None:
        return line
    compact = found[2].replace(b'": ', b'":').replace(b', "', b',"')
    return line.replace(found[1], hashlib.sha256(compact).hexdigest().encode())


@pytest.mark.parametrize("hashed", [rehashed, hashed_as_spelled, bytes])
@pytest.mark.parametrize("name", SPELLINGS)
def test_another_spelling_gives_the_same_report(
    log: Any, name: str, hashed: Callable[[bytes], bytes]
) -> None:
    day, lines = only_day(usual(log))
    log.write()
    old, new = SPELLINGS[name]
    changed = 0
    for number, line in enumerate(lines):
        if old in line:
            changed += 1
            other = hashed(line.replace(old, new, 1))
            text = b"\n".join(resealed([*lines[:number], other, *lines[number + 1 :]]))
            (log.audit / day).write_bytes(text + b"\n")
            both(log.root)
    assert changed


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize(("length", "verdict"), [(600, "VERIFIED"), (601, "BROKEN")])
def test_the_longest_reasoning_is_counted_in_characters(
    log: Any, length: int, verdict: str, escaped: bool
) -> None:
    usual(log)
    log.issue(log.envelope() | {"reasoning": ("\u00e9" if escaped else "e") * length})
    assert both(log.write().root).verdict.value == verdict


@pytest.mark.parametrize("names", ['", "', "a, b", 'a", "b', "caf\u00e9", ""])
def test_odd_names_of_detectors_are_hashed_as_they_are(log: Any, names: str) -> None:
    usual(log)
    envelope = log.envelope()
    envelope["impact"] = envelope["impact"] | {"fired_detectors": [names, names]}
    log.issue(envelope)
    assert both(log.write().root).verdict.value == "VERIFIED"
    text = log.envelope()
    text["impact"] = text["impact"] | {"fired_detectors": [", ", ", "]}
    compact = json.dumps(text, sort_keys=True, separators=(",", ":")).replace(", ", ",")
    log.issue(text, card=hashlib.sha256(compact.encode()).hexdigest())
    report = both(log.write().root)
    assert ["bernstein.card_hash"] == [finding.check for finding in report.findings]


def test_an_expected_head_is_found_by_either(log: Any) -> None:
    _, lines = only_day(usual(log))
    log.write()
    for line in lines:
        report = both(log.root, json.loads(line)["hmac"])
        assert report.verdict.value == "VERIFIED"


TEXT = st.text(max_size=12) | st.sampled_from(["", " ", "user:approver-1", '"', "\\u0041", "\x7f"])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("issue"), TEXT, TEXT, st.floats(0, 2)),
        st.tuples(st.just("again"), st.integers(0, 3)),
        st.tuples(st.just("resolve"), st.integers(0, 3), TEXT, TEXT, st.floats(-5, 700)),
        st.tuples(
            st.just("refuse"),
            st.integers(0, 3),
            st.sampled_from(["expired", "already_settled", "hash_mismatch", "invalid_decision"]),
            TEXT,
            st.booleans(),
        ),
        st.tuples(st.just("release"), st.integers(0, 3)),
        st.tuples(st.just("other"), TEXT, VALUE),
        st.tuples(st.just("wait"), st.sampled_from([-3.0, 0.0, 30.5, 601.0])),
    ),
    max_size=14,
)


@FIXED
@given(steps=STEPS, scheme=st.sampled_from([2, 2, 2, 1]))
def test_any_log_gives_the_same_report(
    new_log: Callable[[], Any], steps: list[Any], scheme: int
) -> None:
    log = usual(new_log())
    log.scheme = scheme
    cards = [(log.issue(), "")]
    for name, *facts in steps:
        card, place = cards[facts[0] % len(cards)] if isinstance(facts[0], int) else cards[-1]
        if name == "issue":
            text, place, score = facts
            envelope = log.envelope() | {"reasoning": text}
            envelope["impact"] = envelope["impact"] | {"score": score, "rationale": text}
            cards.append((log.issue(envelope, worktree=place), place))
        elif name == "again":
            log.card_event("issued", card, "approval_card", {"envelope": {}, "thread_id": ""})
        elif name == "resolve":
            _, approver, where, late = facts
            log.at += max(late, 0.0)
            pins = {"issued_worktree_id": place, "worktree_id": where or place}
            log.resolve(card, approver=approver, **pins, resolved_at=log.at - late % 7)
        elif name == "refuse":
            _, reason, approver, known = facts
            log.refuse(card, reason, approver, expected=None if known else "e" * 64)
        elif name == "release":
            log.release(card)
        elif name == "other":
            kind, value = facts
            log.append(kind, {"value": value}, actor=kind, id_=kind)
        else:
            log.at += facts[0]
    both(log.write().root)
