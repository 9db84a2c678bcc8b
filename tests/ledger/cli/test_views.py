"""log and status: every option, and the same lines whoever reads the log; the verdict last."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.cli.entries import Entry, Filter

FIXTURES = Path(__file__).parents[3] / "fixtures"

SAMPLES = Path(__file__).parents[4] / "shared" / "bernstein-sample"
VERIFIED = ["cardchain: seq 0 to 10, assurance: integrity only", "cardchain: VERIFIED"]

# what each option leaves of the story, by seq; 0 opened, 1 to 5 refund, 6 7 mail, 8 9 hostile, 10
CHOSEN = [
    ((), range(11)),
    (("--kind", "issued"), (1, 6, 8, 10)),
    (("--kind", "chat.approval_card.resolved", "--kind", "refused"), (2, 3, 7)),
    (("--task", "mail-2"), (6, 7, 10)),
    (("--step", "send"), (6, 7)),
    (("--tool", "refund.create"), (1, 2, 3, 4, 5)),
    (("--approver", "user:bob"), (3, 7)),
    (("--outcome", "approve"), (2,)),
    (("--outcome", "reject"), (7,)),
    (("--outcome", "cancelled"), (9,)),
    (("--outcome", "succeeded"), (5,)),
    (("--after", "2026-01-01T00:00:06Z"), (6, 7, 8, 9, 10)),
    (("--before", "2026-01-01T00:00:02"), (0, 1)),
    (("--after", "2026-01-01T01:00:03+01:00", "--before", "2026-01-01T00:00:05Z"), (3, 4)),
    (
        ("--task", "mail-2", "--approver", "user:bob", "--outcome", "reject", "--kind", "resolved"),
        (7,),
    ),
    (("--task", "mail-2", "--tool", "refund.create"), ()),
]


@pytest.fixture(scope="module")
def exported(story: SimpleNamespace) -> SimpleNamespace:
    """The story, and an export of it."""
    story.host.ok("export", "approvals", "-o", "export.cbor")
    return story


def seqs(text: str) -> list[int]:
    return [int(line.split()[0]) for line in text.splitlines()]


@pytest.mark.parametrize(("options", "expected"), CHOSEN, ids=lambda each: " ".join(map(str, each)))
def test_log_chooses_alike_in_a_ledger_and_in_its_export(
    exported: SimpleNamespace, options: tuple[str, ...], expected: tuple[int, ...]
) -> None:
    live = exported.host.ok("log", "approvals", *options)
    assert seqs(live.out) == list(expected)
    read = exported.host.run("log", "export.cbor", *options)
    assert (read.status, read.out, read.err.splitlines()) == (0, live.out, VERIFIED)


def entry(seq: int) -> Entry:
    """An event that differs from its neighbours in everything that an option asks for."""
    envelope = {
        "task": {"id": f"t{seq % 2}", "step": f"s{seq % 3}"},
        "action": {"tool_name": f"tool{seq % 4}"},
    }
    kind = ("issued", "resolved", "refused", "withdrawn")[seq % 4]
    decision = ("approve", "reject")[seq // 4 % 2]
    body = {"approver": {"id": f"u{seq % 5}"}, "decision": decision}
    openings = {"envelope": json.dumps(envelope).encode()}
    return Entry(seq, seq * 1000, kind, bytes(32), body, openings, {})


def test_options_together_leave_what_each_of_them_leaves() -> None:
    entries = [entry(seq) for seq in range(120)]
    options: dict[str, Any] = {
        "kinds": frozenset({"resolved", "withdrawn"}),
        "task": "t1",
        "step": "s2",
        "tool": "tool1",
        "approver": "u4",
        "outcome": "reject",
        "start": 10_000,
        "end": 110_000,
    }
    alone = {
        name: {each.seq for each in entries if Filter(**{name: value}).takes(each)}
        for name, value in options.items()
    }
    assert all(0 < len(found) < 120 for found in alone.values())
    for size in range(2, len(options) + 1):
        for names in combinations(options, size):
            together = Filter(**{name: options[name] for name in names})
            found = {each.seq for each in entries if together.takes(each)}
            assert found == set.intersection(*(alone[name] for name in names)), names


@pytest.mark.parametrize("value", ["yesterday", "2026-13-01", "", "12:00"])
def test_a_time_that_is_none_is_a_usage_error(story: SimpleNamespace, value: str) -> None:
    done = story.host.run("log", "approvals", "--after", value)
    assert (done.status, done.out) == (2, "")
    assert "expected a UTC time like 2026-01-31T14:03:00Z" in done.err


def test_a_filter_takes_hostile_text_and_prints_it_inert(exported: SimpleNamespace) -> None:
    hostile = '\x1b[2J\u202e\u200b\x7f"quote\\\n=1+1'
    for path in ("approvals", "export.cbor"):
        done = exported.host.run("log", path, "--task", hostile, "--approver", hostile)
        assert seqs(done.out) == [9]
        shown = r"\u{1b}[2J\u{202e}\u{200b}\u{7f}\"quote\\\n=1+1"
        assert done.out.endswith(f' withdrawn   {exported.hostile[:12]} cancelled by "{shown}"\n')


def test_log_json_is_one_object_a_line(exported: SimpleNamespace) -> None:
    live = exported.host.ok("log", "approvals", "--json", "--approver", "user:ann").out
    (own,) = map(json.loads, live.splitlines())
    assert (own["seq"], own["at"], own["kind"]) == (2, 1767225602000, "resolved")
    assert own["openings"] == {"note": {"text": "paid twice, I looked"}}
    read = exported.host.run("log", "export.cbor", "--json", "--approver", "user:ann").out
    (other,) = map(json.loads, read.splitlines())
    assert own.items() >= other.items()
    assert set(own) - set(other) == {"chain_digest", "prev_chain_digest", "chain", "kid"}


def test_status_lists_the_cards_of_the_chosen_events(exported: SimpleNamespace) -> None:
    mail = f'{exported.mail} REJECTED "mail.send" for "mail-2" "send"'
    expected = [
        f'{mail}, last resolved: reject by "user:bob"',
        f'{exported.open} EXPIRED "mail.send" for "mail-2" "again"',
    ]
    live = exported.host.ok("status", "approvals", "--task", "mail-2")
    assert live.out.splitlines() == expected
    read = exported.host.run("status", "export.cbor", "--task", "mail-2")
    assert read.out.splitlines() == [expected[0], expected[1].replace("EXPIRED", "OPEN")]
    document = exported.host.ok("status", "approvals", "--approver", "user:bob", "--json").json
    assert document == {
        "cards": [
            {"card_hash": exported.refund, "state": "SETTLED", "seqs": [3]},
            {"card_hash": exported.mail, "state": "REJECTED", "seqs": [7]},
        ]
    }
    none = exported.host.ok("status", "approvals", "--task", "nobody")
    assert none.out == "no card has such an event\n"


def test_status_of_an_export_counts_its_cards(exported: SimpleNamespace) -> None:
    done = exported.host.run("status", "export.cbor")
    assert done.status == 0
    assert done.err.splitlines() == VERIFIED
    assert done.out.splitlines()[-4:] == ["OPEN 1", "REJECTED 1", "SETTLED 1", "WITHDRAWN 1"]
    document = exported.host.run("status", "export.cbor", "--json").json
    assert document["count"] == 11
    assert document["verdict"] == "VERIFIED"
    live = exported.host.ok("status", "approvals", "--json").json
    assert (document["head"], document["chain"]) == (live["head"], live["chain"])


def test_follow_is_refused_where_nobody_appends(exported: SimpleNamespace) -> None:
    done = exported.host.run("log", "export.cbor", "--follow")
    assert (done.status, done.out) == (2, "")
    assert "--follow needs a ledger of this host" in done.err


def copied(story: SimpleNamespace, name: str) -> Path:
    """A copy of the ledger of the story, modes and all."""
    shutil.copytree(story.host.folder / "approvals", story.host.folder / name)
    return Path(story.host.folder / name)


def test_a_copy_is_verified_and_said_to_be_one(exported: SimpleNamespace) -> None:
    copied(exported, "copy")
    live = exported.host.ok("log", "approvals")
    done = exported.host.run("log", "copy")
    assert (done.status, done.out) == (0, live.out)
    first, *rest = done.err.splitlines()
    assert "not the directory that this host wrote to, but a copy" in first
    assert rest == ["cardchain: seq 0 to 10, assurance: pinned", "cardchain: VERIFIED"]


def test_on_another_host_nothing_is_made(exported: SimpleNamespace, tmp_path: Path) -> None:
    elsewhere = {"CARDCHAIN_STATE": str(tmp_path / "state"), "HOME": str(tmp_path)}
    live = exported.host.ok("log", "approvals")
    done = exported.host.run("log", "approvals", environment=elsewhere)
    assert (done.status, done.out) == (4, live.out)
    lines = done.err.splitlines()
    assert lines[0].startswith("cardchain: finding key_missing in ")
    assert lines[1].startswith("cardchain: next: ")
    assert lines[-1] == "cardchain: CANNOT VERIFY"
    (key,) = exported.host.state.rglob("keys/*.json")
    given = exported.host.run("log", "approvals", "--key", str(key), environment=elsewhere)
    assert (given.status, given.out, given.err.splitlines()) == (0, live.out, VERIFIED)
    assert list(tmp_path.iterdir()) == []


def test_a_secret_of_a_variable_is_for_a_ledger_of_this_host(exported: SimpleNamespace) -> None:
    done = exported.host.run("log", "export.cbor", "--key", "env:SECRET")
    assert (done.status, done.out) == (2, "")
    assert "takes key files only" in done.err


def test_a_read_only_ledger_is_read(exported: SimpleNamespace) -> None:
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"]).returncode:
        pytest.skip("no namespace in which a folder can be mounted read-only")
    live = exported.host.ok("log", "approvals")
    line = "mount --bind approvals approvals && mount -o remount,ro,bind approvals"
    done = exported.host.shell(f"unshare -rm bash -c '{line} && cardchain log approvals'")
    assert (done.status, done.out) == (0, live.out)
    assert "Read-only file system" in done.err.splitlines()[0]
    assert done.err.splitlines()[-1] == "cardchain: VERIFIED"


@contextmanager
def changed(story: SimpleNamespace, old: bytes, new: bytes) -> Iterator[None]:
    """Change bytes of the ledger where they stand last, for a while."""
    (file,) = (story.host.folder / "approvals" / "segments").iterdir()
    data = file.read_bytes()
    at = data.rindex(old)
    file.write_bytes(data[:at] + new + data[at + len(new) :])
    try:
        yield
    finally:
        file.write_bytes(data)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        (("log",), 10),
        (("log", "--task", "mail-2"), 2),
        (("status", "--tool", "mail.send"), 1),
        (("log", "--json"), 10),
    ],
)
def test_a_changed_byte_of_the_last_record_is_told(
    story: SimpleNamespace, command: tuple[str, ...], lines: int
) -> None:
    name, *options = command
    with changed(story, b'"again"', b'"other"'):
        done = story.host.run(name, "approvals", *options)
    assert done.status == 3
    assert len(done.out.splitlines()) == lines
    said = done.err.splitlines()
    assert any(
        re.match(r"cardchain: finding card_hash in \S+\.cbor, seq 10: ", line) for line in said
    )
    assert said[-1] == "cardchain: BROKEN"


def test_a_changed_byte_that_the_index_covers_is_told_too(story: SimpleNamespace) -> None:
    story.host.ok("status", "approvals")
    with changed(story, b"paid twice, I looked", b"PAID"):
        log = story.host.run("log", "approvals")
        shown = story.host.run("show", "approvals", story.refund)
        state = story.host.run("status", "approvals", "--task", "refund-run-7")
    assert seqs(log.out) == [0, 1, *range(3, 11)]
    for done in (log, shown, state):
        assert done.status == 3
        assert re.search(r"^cardchain: finding opening_digest in \S+, seq 2: ", done.err, re.M)
        assert done.err.endswith("cardchain: BROKEN\n")
    assert "\nnote: the state is not sure: " in shown.out
    assert "\ndecided: no sound record\n" in shown.out
    assert re.search(r" \(not sure(, with findings)?\) ", state.out)
    assert story.host.ok("log", "approvals").out.count("\n") == 11


def test_a_state_that_rests_on_a_broken_rule_is_marked(empty_host: SimpleNamespace) -> None:
    """The record is sound, so it makes the state: a decision after its time, yet APPROVED."""
    fixtures = Path(__file__).parents[3] / "fixtures"
    log = str(fixtures / "cases" / "decision_after_clock_reset" / "log.cbor")
    chosen = ("--key", str(fixtures / "keys" / "a.json"))
    listed = empty_host.run("status", log, *chosen, "--step", "again")
    assert (listed.status, listed.out.split()[1:4]) == (3, ["APPROVED", "(with", "findings)"])
    shown = empty_host.run("show", log, "a7f6fe8b9a28", *chosen)
    assert "\nstate: APPROVED (with findings) at the end of this log" in shown.out
    assert "\nAPPROVED (with findings) 1\n" in empty_host.run("status", log, *chosen).out


def test_a_log_of_another_system_is_read(tmp_path: Path, empty_host: SimpleNamespace) -> None:
    if not SAMPLES.is_dir():
        pytest.skip("the samples of the other system are not here")
    sample = SAMPLES / "clean"
    key = tmp_path / "audit.key"
    key.write_bytes((sample / "audit.key").read_bytes())
    key.chmod(0o600)
    given = (str(sample), "--key", str(key))
    log = empty_host.run("log", *given, "--approver", "U-bob")
    assert (log.status, log.err.splitlines()[-1]) == (0, "cardchain: VERIFIED")
    assert all('by "U-bob"' in line for line in log.out.splitlines())
    whole = empty_host.run("log", *given, "--approver", "U-bob", "--json")
    card = json.loads(whole.out.splitlines()[0])["card_hash"]
    shown = empty_host.run("show", *given, card)
    assert shown.status == 0
    assert 'decided: reject by "U-bob"' in shown.out
    assert '\n  "action": {\n' in shown.out
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028]", shown.out) is None
    raw = empty_host.shell(f"cardchain show {sample} {card} --key {key} --raw | sha256sum")
    assert raw.out.startswith(card)
    status = empty_host.run("status", *given, "--outcome", "reject")
    assert {line.split()[1] for line in status.out.splitlines()} == {"REJECTED"}
    without = empty_host.run("log", str(sample))
    assert (without.status, without.err.splitlines()[-1]) == (4, "cardchain: CANNOT VERIFY")
    assert not os.path.lexists(empty_host.state)


def test_tampered_logs_of_another_system_tell_no_tidy_story(empty_host: SimpleNamespace) -> None:
    if not SAMPLES.is_dir():
        pytest.skip("the samples of the other system are not here")
    key = empty_host.folder / "audit.key"
    key.write_bytes((SAMPLES / "clean" / "audit.key").read_bytes())
    key.chmod(0o600)
    for name in ("f01_resolve_without_issue", "f02_double_resolve"):
        done = empty_host.run("log", str(SAMPLES / "tampered" / name), "--key", str(key))
        assert done.status == 3
        assert "cardchain: finding bernstein." in done.err
        assert done.err.endswith("cardchain: BROKEN\n")


def test_a_receipt_with_withheld_openings_is_looked_at_where_that_is_allowed(
    empty_host: SimpleNamespace,
) -> None:
    receipt = str(FIXTURES / "cases" / "right_receipt_withheld" / "receipt.excerpt")
    vkey = ("--vkey", str(FIXTURES / "keys" / "signer.vkey"))
    strict = empty_host.run("log", receipt, *vkey)
    assert (strict.status, strict.err.splitlines()[-1]) == (3, "cardchain: BROKEN")
    allowed = empty_host.run("log", receipt, *vkey, "--allow-withheld")
    assert (allowed.status, allowed.err.splitlines()[-1]) == (0, "cardchain: VERIFIED")
    assert allowed.out == strict.out
