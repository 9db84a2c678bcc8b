"""Lines, links, HMACs and keys of Bernstein logs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verifier.readers import bernstein
from verifier.report import LogReport, Outcome

OTHER = bytes(range(32, 64)).hex().encode()


def verify(
    log: Any, *, keys: list[str] | None = None, head: str | None = None, count: int | None = None
) -> LogReport:
    files = [log.key_file] if keys is None else keys
    return bernstein.verify_log(str(log.root), files, head, count)


def codes(report: LogReport) -> list[str]:
    return [finding.check.removeprefix("bernstein.") for finding in report.findings]


def lived(log: Any) -> Any:
    """A log of three days with cards, unwritten."""
    for day in range(3):
        log.at = log.at + 86_400 * (day > 0)
        log.append("session.start", {"n": 1, "f": 1e-07, "big": 10**20, "none": None})
        first = log.issue(worktree="wt-1", thread="C1")
        log.resolve(
            first,
            worktree_id="wt-1",
            thread_id="C1",
            issued_worktree_id="wt-1",
            issued_thread_id="C1",
        )
        second = log.issue()
        log.refuse("f" * 64, "hash_mismatch", expected="")
        log.refuse(second, "invalid_decision")
        log.append("task.transition", {"to": "done"})
        log.append("session.end")
    return log


def day_of(log: Any, number: int) -> str:
    return str(sorted(log.days)[number])


def edit(log: Any, day: int, line: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a line without its hmac."""
    lines = log.days[day_of(log, day)]
    entry = json.loads(lines[line])
    change(entry)
    lines[line] = json.dumps(entry, sort_keys=True).encode()


def test_a_lived_log_is_verified(log: Any) -> None:
    report = verify(lived(log).write())
    assert ("VERIFIED", [], 24) == (report.verdict.value, codes(report), report.counts.records)
    assert report.head == log.prev
    assert not report.warnings
    assert {row.outcome for row in report.rows} == {Outcome.PASS, Outcome.NOT_CHECKED}


@pytest.mark.parametrize("at", [1, 3, 4, 6])
@pytest.mark.parametrize("by", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("swapped", [True, False])
def test_lines_swapped_or_moved_are_one_finding(
    log: Any, at: int, by: int, *, swapped: bool
) -> None:
    for _ in range(20):
        log.append()
    (lines,) = log.days.values()
    if swapped:
        lines[at], lines[at + by] = lines[at + by], lines[at]
    else:
        lines.insert(at + by, lines.pop(at))
    assert ["link"] == codes(verify(log.write()))


def test_every_line_dropped_is_one_finding(log: Any) -> None:
    lived(log)
    whole = log.copy()
    for day in range(3):
        for line in range(8):
            if (day, line) == (2, 7):
                continue
            log.days = {name: list(lines) for name, lines in whole.items()}
            del log.days[day_of(log, day)][line]
            assert ["link"] == codes(verify(log.write())), (day, line)


def test_every_line_doubled_is_one_finding(log: Any) -> None:
    lived(log)
    whole = log.copy()
    for line in range(8):
        log.days = {name: list(lines) for name, lines in whole.items()}
        lines = log.days[day_of(log, 1)]
        lines.insert(line, lines[line])
        assert ["link"] == codes(verify(log.write())), line


def test_every_pair_of_lines_swapped_is_one_finding(log: Any) -> None:
    lived(log)
    whole = log.copy()
    for line in range(7):
        log.days = {name: list(lines) for name, lines in whole.items()}
        lines = log.days[day_of(log, 1)]
        lines[line], lines[line + 1] = lines[line + 1], lines[line]
        assert ["link"] == codes(verify(log.write())), line


def test_every_line_edited_is_one_finding(log: Any) -> None:
    lived(log)
    whole = log.copy()
    for day in range(3):
        for line in range(8):
            log.days = {name: list(lines) for name, lines in whole.items()}
            edit(log, day, line, lambda entry: entry["details"].update(extra=1))
            assert ["hmac"] == codes(verify(log.write())), (day, line)


@pytest.mark.parametrize("day", range(3))
def test_day_removed(log: Any, day: int) -> None:
    lived(log).write()
    (log.audit / day_of(log, day)).unlink()
    report = verify(log)
    last = day == 2
    assert ([] if last else ["link"]) == codes(report)
    assert ("VERIFIED" if last else "BROKEN") == report.verdict.value


@pytest.mark.parametrize("new", ["2026-08-31.jsonl", "2026-09-30.jsonl", "2026-09-02.jsonl.bak"])
@pytest.mark.parametrize("day", range(3))
def test_day_renamed_is_one_finding(log: Any, day: int, new: str) -> None:
    lived(log).write()
    path = log.audit / day_of(log, day)
    path.rename(log.audit / new)
    report = verify(log)
    gone = new.endswith(".bak")
    assert ("VERIFIED" if gone and day == 2 else "BROKEN") == report.verdict.value
    assert report.findings_total <= 1


def test_a_name_that_is_no_day_claims_no_day(log: Any) -> None:
    log.append()
    log.write()
    (log.audit / "2026-09-01.jsonl").rename(log.audit / "audit.jsonl")
    assert "VERIFIED" == verify(log).verdict.value


def test_a_record_stamped_just_after_midnight_may_be_in_the_old_file(log: Any) -> None:
    log.at = log.at - log.at % 86_400 + 86_399
    log.append()
    log.append(timestamp="2026-09-02T00:00:00.000001Z")
    log.days = {"2026-09-01.jsonl": [line for lines in log.days.values() for line in lines]}
    assert "VERIFIED" == verify(log.write()).verdict.value


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda line: line.replace(b": ", b":", 1), "canonical"),
        (lambda line: line + b"\r", "canonical"),
        (lambda line: b" " + line, "canonical"),
        (lambda line: line + b" ", "canonical"),
        (lambda line: line.replace(b'"x"', b'"\\u0078"'), "canonical"),
        (lambda line: line.replace(b'"details": {', b'"details": {"x": 1, '), "canonical"),
        (lambda line: line.replace(b"1.5", b"1.50"), "canonical"),
        (lambda line: line.replace(b"1.5", b"1e999"), "canonical"),
        (lambda line: line.replace(b'"x"', '"\u00e9"'.encode()), "canonical"),
        (lambda line: line.replace(b'"x"', b'"\xff"'), "line"),
        (lambda line: b"\xef\xbb\xbf" + line, "line"),
        (lambda line: b"", "line"),
        (lambda line: b"   ", "line"),
        (lambda line: b"[" * 100_000, "line"),
        (lambda line: b'{"a": ' * 100_000, "line"),
        (lambda line: b"1" * 5_000, "line"),
        (lambda line: line.replace(b"1.5", b"1" * 5_000), "line"),
        (lambda line: b"[1]", "line"),
        (lambda line: b"null", "line"),
        (lambda line: b"note to self", "line"),
        (lambda line: b"\0" * 50, "line"),
        (lambda line: line[:-10], "line"),
        (lambda line: line + line, "line"),
        (lambda line: b"{}", "shape"),
        (lambda line: line.replace(b'"actor": "a"', b'"actor": 1'), "shape"),
        (lambda line: line.replace(b'"actor": "a"', b'"Actor": "a"'), "shape"),
        (lambda line: line.replace(b'"scheme": 2', b'"scheme": 2, "sequence": 1'), "shape"),
        (lambda line: line.replace(b'"scheme": 2', b'"scheme": 3'), "scheme"),
        (lambda line: line.replace(b'"scheme": 2', b'"scheme": true'), "scheme"),
        (lambda line: line.replace(b'"scheme": 2', b'"scheme": 2.0'), "scheme"),
        (lambda line: line.replace(b'"scheme": 2', b'"scheme": null'), "scheme"),
        (lambda line: line.replace(b'"scheme": 2', b'"scheme": 0'), "scheme"),
        (lambda line: line.replace(b'"scheme": 2, ', b""), "hmac"),
        (lambda line: line.replace(b'"scheme": 2', b'"scheme": 1'), "hmac"),
        (lambda line: line.replace(b"2026-09-01T09", b"2026-09-01T10"), "hmac"),
        (lambda line: line.replace(b"2026-09-01T09", b"2026-13-01T09"), "shape"),
        (lambda line: line.replace(b"2026-09-01T09", b"2026-09-01T24"), "shape"),
        (lambda line: line.replace(b"000000Z", b"000000+00:00"), "shape"),
    ],
)
def test_changed_line_is_one_finding_of_its_check(
    log: Any, change: Callable[[bytes], bytes], code: str
) -> None:
    log.append()
    log.append("x", {"k": "x", "n": 1.5}, actor="a")
    log.append()
    lines = log.days["2026-09-01.jsonl"]
    before = lines[1]
    lines[1] = change(before)
    assert before != lines[1]
    report = verify(log.write())
    assert ("BROKEN", [code]) == (report.verdict.value, codes(report))


def test_a_scheme_that_is_not_known_is_broken_even_under_the_key(log: Any) -> None:
    log.append()
    log.append(scheme=3)
    log.append()
    assert ["scheme"] == codes(verify(log.write()))


@pytest.mark.parametrize("scheme", [1, 2])
def test_schemes_may_alternate(log: Any, scheme: int) -> None:
    for number in range(6):
        log.scheme = 1 + (number + scheme) % 2
        log.append()
    report = verify(log.write())
    assert "VERIFIED" == report.verdict.value
    assert any("old scheme 1" in warning for warning in report.warnings)


def test_scheme_1_may_be_named(log: Any) -> None:
    log.scheme = 1
    log.append(scheme=1)
    assert "VERIFIED" == verify(log.write()).verdict.value


def test_a_record_of_one_scheme_does_not_hold_in_the_other(log: Any) -> None:
    log.append()
    entry = log.append()
    log.append()
    lines = log.days["2026-09-01.jsonl"]
    bare = {name: value for name, value in entry.items() if name not in ("scheme",)}
    lines[1] = json.dumps(bare, sort_keys=True).encode()
    assert ["hmac"] == codes(verify(log.write()))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_json_is_a_warning(log: Any, value: float) -> None:
    log.append(details={"score": value, "NaN": "Infinity"})
    report = verify(log.write())
    assert "VERIFIED" == report.verdict.value
    assert any("NaN" in warning for warning in report.warnings)


def test_the_word_nan_is_no_warning(log: Any) -> None:
    log.append(details={"text": "NaN Infinity"})
    assert () == verify(log.write()).warnings


def test_integer_names_are_a_defect_of_the_writer(log: Any) -> None:
    log.append()
    log.append(details={"retries": {2: "a", 10: "b"}})
    log.append()
    report = verify(log.write())
    assert ("BROKEN", ["canonical"]) == (report.verdict.value, codes(report))
    assert "the writer made them" in report.findings[0].cause


def test_a_stated_predecessor_is_the_record_before(log: Any) -> None:
    log.append(details={"prev_chain_digest": "0" * 64})
    log.append(details={"prev_chain_digest": "a" * 64})
    log.append(details={"prev_chain_digest": ""})
    log.append("skill.catalog.install", {"prev_chain_digest": "b" * 64})
    log.append("skill.catalog.upgrade", {"prev_chain_digest": "b" * 64})
    report = verify(log.write())
    assert (["predecessor"], 1) == (codes(report), report.findings[0].seq)


def test_fake_members_in_details_do_not_mislead(log: Any) -> None:
    text = '", "hmac": "' + "a" * 64 + '", "prev_hmac": "'
    inner = {"hmac": "b" * 64, "prev_hmac": "c" * 64, "resource_id": text}
    log.append("x", inner, actor=text, id_=text)
    log.append("x", {"z": inner})
    log.append("x", inner, id_='"hmac": "')
    assert "VERIFIED" == verify(log.write()).verdict.value


def test_a_lone_surrogate_in_details_is_kept(log: Any) -> None:
    log.append(details={"text": "\ud800"}, id_="\udfff")
    assert "VERIFIED" == verify(log.write()).verdict.value


def test_clock_that_steps_back_is_a_warning(log: Any) -> None:
    log.append()
    log.at -= 100
    log.append()
    report = verify(log.write())
    assert "VERIFIED" == report.verdict.value
    assert any("earlier time" in warning for warning in report.warnings)


# Ends.


def test_a_line_without_its_end_is_torn(log: Any) -> None:
    log.append()
    log.append()
    log.write()
    path = log.audit / "2026-09-01.jsonl"
    content = path.read_bytes()
    half = len(content) // 2
    for cut in [1, 2, half - 1]:
        path.write_bytes(content[:-cut])
        report = verify(log)
        assert ("BROKEN", ["torn_tail"]) == (report.verdict.value, codes(report)), cut
    path.write_bytes(content[:half])
    assert "VERIFIED" == verify(log).verdict.value


def test_a_torn_file_in_the_middle_is_one_finding(log: Any) -> None:
    lived(log).write()
    path = log.audit / day_of(log, 1)
    path.write_bytes(path.read_bytes()[:-1])
    assert ["torn_tail"] == codes(verify(log))


@pytest.mark.parametrize("acknowledged", [True, False])
@pytest.mark.parametrize("torn", [b'{"actor": "o', b"\x80\xff\0garbage", b'{"a": 1}\nsecond'])
def test_a_sealed_tear_wants_an_acknowledgement(log: Any, torn: bytes, acknowledged: bool) -> None:
    log.append()
    lines = log.days["2026-09-01.jsonl"]
    start = sum(len(line) + 1 for line in lines)
    lines.append(torn)
    details = {
        "segment": "2026-09-01.jsonl",
        "byte_offset": start + len(torn),
        "verified_prefix_offset": start,
        "torn_bytes_sha256": hashlib.sha256(torn).hexdigest(),
        "tear_class": "partial_record",
    }
    log.append("chain.torn_record", details)
    log.append()
    if acknowledged:
        place = {"segment": "2026-09-01.jsonl", "byte_offset": start + len(torn), "reason": "crash"}
        log.append("chain.tear_acknowledged", place)
    report = verify(log.write())
    expected = ("VERIFIED", []) if acknowledged else ("CANNOT VERIFY", ["tear"])
    assert expected == (report.verdict.value, codes(report))
    assert 3 + acknowledged == report.counts.records


@pytest.mark.parametrize("chained", [True, False])
def test_a_whole_record_that_lacked_only_its_end_is_torn_too(log: Any, chained: bool) -> None:
    before = log.append()
    lines = log.days["2026-09-01.jsonl"]
    start = len(lines[0]) + 1
    log.append("some.event")
    torn = lines[1]
    details = {
        "segment": "2026-09-01.jsonl",
        "byte_offset": start + len(torn),
        "verified_prefix_offset": start,
        "torn_bytes_sha256": hashlib.sha256(torn).hexdigest(),
        "tear_class": "unterminated_record",
    }
    if not chained:
        log.prev = before["hmac"]
    log.append("chain.torn_record", details)
    log.append()
    assert ["tear"] == codes(verify(log.write()))


def test_a_seal_that_names_other_bytes_excuses_nothing(log: Any) -> None:
    log.append()
    lines = log.days["2026-09-01.jsonl"]
    start = len(lines[0]) + 1
    lines.append(b"torn")
    details = {
        "segment": "2026-09-01.jsonl",
        "byte_offset": start + 4,
        "verified_prefix_offset": start,
        "torn_bytes_sha256": hashlib.sha256(b"else").hexdigest(),
        "tear_class": "partial_record",
    }
    log.append("chain.torn_record", details)
    assert ["line"] == codes(verify(log.write()))


def test_a_seal_without_its_hmac_excuses_nothing(log: Any) -> None:
    """An outsider tears the tail and writes the seal himself."""
    log.append()
    lines = log.days["2026-09-01.jsonl"]
    start = len(lines[0]) + 1
    lines.append(b"torn")
    details = {
        "segment": "2026-09-01.jsonl",
        "byte_offset": start + 4,
        "verified_prefix_offset": start,
        "torn_bytes_sha256": hashlib.sha256(b"torn").hexdigest(),
        "tear_class": "partial_record",
    }
    log.key = OTHER
    log.append("chain.torn_record", details)
    assert "BROKEN" == verify(log.write()).verdict.value


def ended(report: LogReport) -> list[Any]:
    return [report.verdict.value, report.complete]


def test_expected_head_and_count(log: Any) -> None:
    heads = [log.append()["hmac"] for _ in range(5)]
    log.write()
    assert verify(log, head=heads[4], count=5).complete
    assert verify(log, head=heads[4]).complete
    assert verify(log, count=5).complete
    assert ["VERIFIED", False] == ended(verify(log, head=heads[2], count=3))
    assert ["VERIFIED", False] == ended(verify(log, head=heads[2]))
    assert ["VERIFIED", False] == ended(verify(log, count=4))
    assert ["expected_head"] == codes(verify(log, head=heads[2], count=4))
    assert ["expected_head"] == codes(verify(log, head="a" * 64))
    assert ["expected_count"] == codes(verify(log, count=6))
    assert not verify(log).complete


def test_an_empty_log_is_never_verified(log: Any) -> None:
    log.write()
    assert ["empty"] == codes(verify(log))
    (log.audit / "2026-09-01.jsonl").write_bytes(b"")
    report = verify(log)
    assert ("CANNOT VERIFY", ["empty"]) == (report.verdict.value, codes(report))


def test_a_missing_path_cannot_be_verified(tmp_path: Path) -> None:
    report = bernstein.verify_log(str(tmp_path / "x" / ".sdd" / "audit"), [], None, None)
    assert "CANNOT VERIFY" == report.verdict.value


# Keys.


def test_without_a_key_nothing_is_verified(log: Any) -> None:
    log.append()
    log.write()
    report = verify(log, keys=[str(log.root / "absent.key")])
    assert ("CANNOT VERIFY", ["key"]) == (report.verdict.value, codes(report))
    assert "absent.key" in report.findings[0].found


@pytest.mark.parametrize("content", [b"", b" \n", b"{}", b"x" * 70_000])
def test_a_file_that_is_no_key(log: Any, content: bytes) -> None:
    log.append()
    log.write()
    file = log.root / "other.key"
    file.write_bytes(content)
    assert ["key"] == codes(verify(log, keys=[str(file)]))


def test_a_folder_is_no_key(log: Any) -> None:
    log.append()
    assert ["key"] == codes(verify(log.write(), keys=[str(log.root)]))


def test_a_contradiction_is_broken_without_a_key(log: Any) -> None:
    lived(log)
    del log.days[day_of(log, 1)][3]
    report = verify(log.write(), keys=[str(log.root / "absent.key")])
    assert "BROKEN" == report.verdict.value


@pytest.mark.parametrize("records", [1, 2, 30])
def test_a_wrong_key_is_one_finding_and_accuses_nobody(log: Any, records: int) -> None:
    for _ in range(records):
        log.append()
    log.write()
    Path(log.key_file).write_bytes(OTHER)
    report = verify(log)
    assert ("CANNOT VERIFY", ["key"]) == (report.verdict.value, codes(report))
    assert "not" not in report.findings[0].expected


def test_a_contradiction_is_broken_under_a_wrong_key(log: Any) -> None:
    log.resolve("d" * 64)
    log.write()
    Path(log.key_file).write_bytes(OTHER)
    assert "BROKEN" == verify(log).verdict.value


def test_a_first_record_that_alone_fails_was_changed(log: Any) -> None:
    lived(log)
    edit(log, 0, 0, lambda entry: entry.update(actor="user:other"))
    report = verify(log.write())
    assert ("BROKEN", ["hmac"], 0) == (
        report.verdict.value,
        codes(report),
        report.findings[0].seq,
    )


def test_a_forged_start_is_no_wrong_key(log: Any) -> None:
    """Cards of forged records before the first good one give no findings of their own."""
    log.key = OTHER
    log.resolve("d" * 64)
    log.append()
    log.key = bytes(range(32)).hex().encode()
    log.append()
    report = verify(log.write())
    assert ("BROKEN", ["hmac"]) == (report.verdict.value, codes(report))


def test_a_key_made_anew_needs_both_key_files(log: Any) -> None:
    log.append()
    log.key = OTHER
    log.append()
    log.write()
    other = log.root / "other.key"
    other.write_bytes(b"  " + OTHER + b"\n\n")
    other.chmod(0o600)
    assert "BROKEN" == verify(log).verdict.value
    for keys in [[log.key_file, str(other)], [str(other), log.key_file]]:
        assert "VERIFIED" == verify(log, keys=keys).verdict.value


def test_a_loose_key_is_a_warning(log: Any) -> None:
    log.append()
    log.write()
    Path(log.key_file).chmod(0o644)
    report = verify(log)
    assert ("VERIFIED", 1) == (report.verdict.value, len(report.warnings))
    assert "0644" in report.warnings[0]


def test_the_key_of_the_host_is_used_and_named(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append()
    log.write()
    monkeypatch.setenv("BERNSTEIN_AUDIT_KEY_PATH", log.key_file)
    report = verify(log, keys=[])
    assert "VERIFIED" == report.verdict.value
    assert log.key_file in report.warnings[0]


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "HOME"])
def test_a_key_beside_the_log_is_never_taken(
    log: Any, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    log.append()
    log.write()
    monkeypatch.delenv("BERNSTEIN_AUDIT_KEY_PATH", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv(variable, str(log.root / "nothing"))
    report = verify(log, keys=[])
    assert ("CANNOT VERIFY", ["key"]) == (report.verdict.value, codes(report))


def test_no_finding_holds_the_key_or_an_expected_hmac(log: Any) -> None:
    lived(log)
    good = json.loads(log.days[day_of(log, 1)][3])["hmac"]
    edit(log, 1, 3, lambda entry: entry.update(hmac="a" * 64))
    report = repr(verify(log.write()))
    assert log.key.decode() not in report
    assert f"expected='{good}" not in report
    assert f"expected='hmac {good}" not in report


# Everything.


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_of_any_kind_is_never_verified_and_never_raises(
    new_log: Callable[[], Any], data: st.DataObject
) -> None:
    log = lived(new_log()).write()
    path = log.audit / day_of(log, data.draw(st.integers(0, 1)))
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(start, min(len(content), start + 300)))
    changed = content[:start] + data.draw(st.binary(max_size=40)) + content[end:]
    if changed == content:
        return
    path.write_bytes(changed)
    assert "BROKEN" == verify(log).verdict.value


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    details=st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=4), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=5,
    ).filter(lambda value: "prev_chain_digest" not in value)
)
def test_whatever_the_writer_can_write_is_verified(
    new_log: Callable[[], Any], details: dict[str, Any]
) -> None:
    log = new_log()
    log.append("some.event", details)
    log.append("other.event", {"inner": details})
    assert "VERIFIED" == verify(log.write()).verdict.value
