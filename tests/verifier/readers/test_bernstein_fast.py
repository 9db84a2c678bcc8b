"""The fast way only accepts: with and without it the report on a log is the same."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shutil
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


def both(root: Path, head: str | None = None, key: str = "audit.key") -> LogReport:
    """Give the report, which is the same without the fast way."""
    keys = [str(root / key)]
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
    "escape that is needless beside that of delete": (b"Add a", b"\\u0070 a"),
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
    "no such minute": (b"T09:0", b"T09:6"),
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
    "a kind of the same end": (b"approval_card.", b"approval-card."),
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


def compact(envelope: dict[str, Any], created: str, expiry: str) -> tuple[str, str]:
    """Give the two forms of an envelope with its times as spelled: in a line, and hashed."""
    marked = envelope | {"created_at": "<c>", "not_after": "<e>"}
    spelled = [json.dumps(marked, sort_keys=True)]
    spelled.append(json.dumps(marked, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    line, form = (each.replace('"<c>"', created).replace('"<e>"', expiry) for each in spelled)
    return line, form


def issued_as(log: Any, created: str, expiry: str) -> LogReport:
    """Give the report on a log whose third and last event is a card with times spelled so."""
    log.append()
    log.issue()
    log.issue()
    lines = [line for day in log.days.values() for line in day]
    line, form = compact(log.envelope(), created, expiry)
    found = re.search(rb'"card_hash": "([0-9a-f]{64})", "envelope": (.*), "install_id"', lines[-1])
    assert found is not None
    last = lines[-1].replace(found[2], line.encode())
    last = last.replace(found[1], hashlib.sha256(form.encode()).hexdigest().encode())
    log.days = {"all.jsonl": resealed([*lines[:-1], last])}
    return both(log.write().root)


@pytest.mark.parametrize(
    ("at", "created", "expiry", "canonical"),
    [
        (1_788_253_200, "1788253200.0521483", "1788253800.0521483", True),
        (1_788_253_200, "1788253200.0521483", "1788253800.0521486", True),
        (1_788_253_200, "1788253200.0521483", "1788253800.0521484", False),
        (1_788_253_200, "1788253200.0521483", "1788253800.05214830", False),
        # where floats come to lie half as close, and twice
        (2**30 - 2, "1073741823.9999999", "1073741824.9999999", False),
        (2**31 - 2, "2147483647.0000002", "2147483648.0000002", False),
        (2**31 - 2, "2147483647.0000002", "2147483647.0000002", True),
        # too short to have the point at its place
        (1_788_253_200, "1000.5", "1000.50", False),
        (1_788_253_200, "1000.5", "2000.5", True),
    ],
)
def test_times_are_spelled_as_python_does(
    log: Any, at: int, created: str, expiry: str, canonical: bool
) -> None:
    log.at = float(at)
    report = issued_as(log, created, expiry)
    checks = [finding.check for finding in report.findings]
    assert checks == ([] if canonical else ["bernstein.canonical"])


def test_a_card_that_ends_before_it_was_made_is_unlawful(log: Any) -> None:
    log.at = 1_788_253_200.0
    report = issued_as(log, "1788253201.5", "1788253200.5")
    assert ["bernstein.envelope"] == [finding.check for finding in report.findings]


@pytest.mark.parametrize(("created", "early"), [("1788253204.0", 0), ("1788253204.5", 1)])
def test_a_card_made_over_two_seconds_after_its_record_is_noted(
    log: Any, created: str, early: int
) -> None:
    log.at = 1_788_253_200.0
    report = issued_as(log, created, "1788253800.5")
    assert report.verdict.value == "VERIFIED"
    assert early == sum("cards created after" in warning for warning in report.warnings)


@FIXED
@given(
    created=st.floats(2.0**30 - 3, 2.0**30 + 3)
    | st.floats(2.0**31 - 6, 2.0**31 + 3)
    | st.floats(2.0**30, 2.0**31 - 3),
    later=st.integers(0, 4),
)
def test_whole_seconds_later_any_time_gives_the_same_report(
    new_log: Callable[[], Any], created: float, later: int
) -> None:
    log = new_log()
    log.at = created // 1
    whole, fraction = repr(created).split(".")
    issued_as(log, repr(created), f"{int(whole) + later}.{fraction}")


def test_without_a_key_nothing_is_accepted(log: Any) -> None:
    usual(log).write()
    assert both(log.root, key="none").verdict.value == "CANNOT VERIFY"


def test_a_later_file_may_be_the_origin_of_a_seal(log: Any) -> None:
    usual(log)
    log.at += 86_400
    usual(log).write()
    log.seal(log.audit)
    second = json.loads(list(log.days.values())[1][0])["hmac"]
    path = log.audit / "merkle" / "seal-0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"origin": second}))
    shutil.rmtree(log.audit / "checkpoints")
    assert both(log.root).verdict.value == "VERIFIED"


@pytest.mark.parametrize("chained", [True, False])
def test_a_torn_record_is_none_in_either(log: Any, chained: bool) -> None:
    """A whole record that only lacked its LF, named by the seal behind it."""
    day, lines = only_day(usual(log))
    before, start = log.prev, sum(len(line) + 1 for line in lines)
    log.append()
    details = {
        "segment": day,
        "byte_offset": start + len(lines[-1]),
        "verified_prefix_offset": start,
        "torn_bytes_sha256": hashlib.sha256(lines[-1]).hexdigest(),
        "tear_class": "unterminated_record",
    }
    if not chained:
        log.prev = before
    log.append("chain.torn_record", details)
    log.append()
    assert both(log.write().root).counts.records == 18
    log.at += 86_400
    log.append()
    for offset in (0, 1, details["byte_offset"]):
        log.append("chain.tear_acknowledged", {"segment": day, "byte_offset": offset})
    assert both(log.write().root).verdict.value == "VERIFIED"


def test_a_last_line_without_its_end_is_no_record(log: Any) -> None:
    day, lines = only_day(usual(log))
    log.write()
    (log.audit / day).write_bytes(b"\n".join(lines))
    assert ["bernstein.torn_tail"] == [finding.check for finding in both(log.root).findings]


def test_kinds_with_very_long_names_are_not_counted(log: Any) -> None:
    for _ in range(3):
        usual(log).append("k" * 257)
    kinds = both(log.write().root).counts.kinds
    assert {"k" * 257} & {name for name, _ in kinds} == set()


def test_details_are_an_object(log: Any) -> None:
    usual(log).append(details=[1])
    checks = [finding.check for finding in both(log.write().root).findings]
    assert checks == ["bernstein.shape"]


def test_only_the_line_with_nan_is_left_for_it(log: Any) -> None:
    usual(log).append(details={"n": float("nan")})
    log.append()
    both(log.write().root)
    assert lines_left(log.root) == 5


def test_the_old_scheme_after_the_new_is_noted_in_either(log: Any) -> None:
    for log.scheme in (1, 2, 2, 1):
        log.append()
    warnings = both(log.write().root).warnings
    assert any("old scheme 1 after" in warning for warning in warnings)


def test_a_clock_set_back_does_not_make_a_decision_timely(log: Any) -> None:
    card = usual(log).issue(worktree="wt-1", thread="C1")
    log.at += 700
    log.append()
    log.at -= 400
    log.resolve(card, **PINS)
    checks = [finding.check for finding in both(log.write().root).findings]
    assert checks == ["bernstein.in_time"]


def test_damage_excuses_only_the_next_record(log: Any) -> None:
    day, lines = only_day(usual(log))
    log.days[day] = [*lines[:9], b"damage", *lines[9:11], *lines[12:]]
    checks = [finding.check for finding in both(log.write().root).findings]
    assert checks == ["bernstein.line", "bernstein.link"]


@pytest.mark.parametrize(("size", "left"), [(65_536, 4), (65_537, 5)])
def test_a_line_over_64_kib_is_left_to_the_named_checks(log: Any, size: int, left: int) -> None:
    _, lines = only_day(usual(log))
    log.append(details={"text": ""})
    empty = len(lines.pop())
    log.prev = json.loads(lines[-1])["hmac"]
    log.append(details={"text": "x" * (size - empty)})
    assert len(lines[-1]) == size
    assert both(log.write().root).verdict.value == "VERIFIED"
    assert lines_left(log.root) == left


@pytest.mark.parametrize("member", [b"hmac", b"prev_hmac"])
def test_no_stored_hmac_is_taken_for_the_right_one(log: Any, member: bytes) -> None:
    day, lines = only_day(usual(log))
    for number in range(1, len(lines)):
        start, digit, end = re.split(rb'(?<="%b": ")([0-9a-f])' % member, lines[number], maxsplit=1)
        other = start + (b"0" if digit != b"0" else b"1") + end
        log.days[day] = [*lines[:number], other, *lines[number + 1 :]]
        checks = {finding.check for finding in both(log.write().root).findings}
        assert checks & {"bernstein.hmac", "bernstein.link"}


@pytest.mark.parametrize("kind", [b"issued", b"resolved", b"refused"])
@pytest.mark.parametrize(
    ("member", "check"),
    [(b"prev_chain_digest", "predecessor"), (b"resource_id", "card_event"), (b"prev_hmac", "link")],
)
def test_an_event_about_a_card_repeats_what_it_is_about(
    log: Any, kind: bytes, member: bytes, check: str
) -> None:
    day, lines = only_day(usual(log))
    number = max(at for at, line in enumerate(lines) if b"card." + kind in line)
    found = re.search(rb'"%b": "([0-9a-f])' % member, lines[number])
    assert found is not None
    digit = b"0" if found[1] != b"0" else b"1"
    lines[number] = lines[number][: found.start(1)] + digit + lines[number][found.end(1) :]
    log.days[day] = resealed(lines)
    checks = [finding.check for finding in both(log.write().root).findings]
    assert checks[0] == f"bernstein.{check}"


def refused(reason: str, **facts: Any) -> Callable[[Any, str], None]:
    return lambda log, card: log.refuse(card, reason, **facts)


def decided(late: float, stated: float = 0.0, **facts: Any) -> Callable[[Any, str], None]:
    """A decision written `late` after the card was made, `stated` after that by its own time."""

    def step(log: Any, card: str) -> None:
        made = log.at - 1
        log.at = made + late
        log.resolve(card, resolved_at=made + late + stated, **PINS | facts)

    return step


def later(seconds: float, step: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
    """A step `seconds` after the card was made."""

    def step_later(log: Any, card: str) -> None:
        log.at += seconds - 1
        step(log, card)

    return step_later


def again(log: Any, card: str) -> None:
    """The same card is issued again."""
    log.at -= 1
    log.cards -= 1
    log.issue(worktree="wt-1", thread="C1")


PINS = {
    "worktree_id": "wt-1",
    "thread_id": "C1",
    "issued_worktree_id": "wt-1",
    "issued_thread_id": "C1",
}
# of a card that expires after 600 seconds
LIVES: dict[str, tuple[str, list[Callable[[Any, str], None]]]] = {
    "issued again": ("issued_once", [again]),
    "decided": ("", [decided(9)]),
    "decided twice": ("decided_once", [decided(9), decided(9)]),
    "decided at the end": ("in_time", [decided(600)]),
    "decided just before the end": ("", [decided(599.5)]),
    "stated for the end": ("in_time", [decided(599, 1)]),
    "stated for after the end": ("in_time", [decided(599, 2)]),
    "stated before the card": ("in_time", [decided(9, -10)]),
    "stated before the end, written behind": ("in_time", [decided(601, -10)]),
    "stated long ago": ("clock", [decided(400, -301)]),
    "stated at most 300 seconds ago": ("", [decided(400, -300)]),
    "stated for later": ("clock", [decided(9, 3)]),
    "stated up to 2 seconds ahead": ("", [decided(9, 2)]),
    "from another worktree": ("pin", [decided(9, worktree_id="wt-2")]),
    "from another conversation": ("pin", [decided(9, thread_id="C2")]),
    "as if for another worktree": ("pin", [decided(9, issued_worktree_id="wt-2")]),
    "as if for another conversation": ("pin", [decided(9, issued_thread_id="C2")]),
    "neither approved nor rejected": ("decision", [decided(9, decision="maybe")]),
    "decided by nobody": ("approver", [decided(9, approver="  ")]),
    "decided by another": ("approver", [decided(9, actor="user:other")]),
    "settled while open": ("refusal", [refused("already_settled")]),
    "settled": ("", [decided(9), refused("already_settled")]),
    "settled as another": ("refusal", [decided(9), refused("already_settled", expected="e" * 64)]),
    "settled by nobody": ("", [decided(9), refused("already_settled", approver="  ")]),
    "settled by another": ("approver", [decided(9), refused("already_settled", actor="user:x")]),
    "unknown while open": ("refusal", [refused("hash_mismatch")]),
    "unknown after its end": ("refusal", [decided(9), refused("hash_mismatch")]),
    "for a reason of no known kind": ("", [refused("forgotten")]),
    "another reason, then expired": ("", [later(601, refused("forgotten")), refused("expired")]),
    "expired too early": ("refusal", [later(597.5, refused("expired"))]),
    "expired by a clock 2 seconds ahead": ("", [later(598, refused("expired"))]),
    "expired twice": ("refusal", [later(601, refused("expired")), refused("expired")]),
    "expired, then settled": ("", [later(601, refused("expired")), refused("already_settled")]),
    "expired, then decided": ("decided_once", [later(601, refused("expired")), decided(9)]),
    "decided, then expired": ("refusal", [decided(9), later(601, refused("expired"))]),
}


@pytest.mark.parametrize("life", LIVES)
def test_any_life_of_a_card_gives_the_same_report(log: Any, life: str) -> None:
    found, steps = LIVES[life]
    card = usual(log).issue(worktree="wt-1", thread="C1")
    for step in steps:
        step(log, card)
    checks = [finding.check for finding in both(log.write().root).findings]
    assert checks == ([f"bernstein.{found}"] if found else [])


@pytest.mark.parametrize("reason", ["expired", "already_settled"])
def test_a_refusal_of_a_card_that_was_not_issued_gives_the_same_report(
    log: Any, reason: str
) -> None:
    usual(log).refuse("e" * 64, reason)
    checks = [finding.check for finding in both(log.write().root).findings]
    assert checks == ["bernstein.refusal"]


def test_a_decision_at_the_start_of_time_is_not_taken(log: Any) -> None:
    log.at = 0.0
    for _ in range(2):
        card = log.issue(log.envelope() | {"created_at": 0.0})
        log.resolve(card, resolved_at=0.0)
    checks = [finding.check for finding in both(log.write().root).findings]
    assert checks == ["bernstein.in_time", "bernstein.in_time"]


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
