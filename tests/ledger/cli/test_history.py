"""log, show, pending: everything in the chain, and nothing raw on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

APPROVER = ("--approver", "user:approver-1")
HOSTILE = '\x1b[2J\u202e\u200b\x7f"quote\\\n'


def lines(host: SimpleNamespace, *arguments: str) -> list[str]:
    found: list[str] = host.ok("log", "approvals", *arguments).out.splitlines()
    return found


def objects(host: SimpleNamespace, *arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines(host, "--json", *arguments)]


def test_log_tells_what_happened_in_order(host: SimpleNamespace) -> None:
    card = host.issue()
    host.ok("approve", "approvals", card, *APPROVER)
    host.run("approve", "approvals", card, "--approver", "user:approver-2")
    host.ok("withdraw", "approvals", card, "--reason", "revoked", "--by", "user:approver-1")
    time_of_day = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    expected = [
        '     0 TIME opened      ------------ "approvals"',
        f'     1 TIME issued      {card[:12]} "refund.create" for "refund-run-7" "refund"',
        f'     2 TIME resolved    {card[:12]} approve by "user:approver-1"',
        f"     3 TIME refused     {card[:12]} resolve: already_resolved (count 1)",
        f'     4 TIME withdrawn   {card[:12]} revoked by "user:approver-1"',
    ]
    assert [re.sub(time_of_day, "TIME", line) for line in lines(host)] == expected


def test_log_json_holds_everything_and_links(host: SimpleNamespace) -> None:
    card = host.issue()
    host.ok("reject", "approvals", card, *APPROVER)
    opened, issued, resolved = objects(host)
    assert opened["prev_chain_digest"] == "00" * 32
    assert issued["prev_chain_digest"] == opened["chain_digest"]
    assert resolved["prev_chain_digest"] == issued["chain_digest"]
    assert (opened["card_hash"], opened["envelope"]) == (None, None)
    assert resolved["card_hash"] == card
    assert resolved["envelope"]["action"]["arguments"]["amount"] == "199.00"
    assert resolved["body"]["decision"] == "reject"
    assert resolved["body"]["echo"] == card
    assert {record["chain"] for record in (opened, issued, resolved)} == {opened["chain"]}


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        (["issued"], ["issued"]),
        (["chat.approval_card.issued"], ["issued"]),
        (["chat.approval_card.resolved"], ["resolved"]),
        (["chat.approval_card.refused"], ["refused"]),
        (["opened", "chat.approval_card.refused"], ["opened", "refused"]),
        (["settled"], []),
    ],
)
def test_log_takes_both_spellings_of_a_kind(
    host: SimpleNamespace, asked: list[str], kinds: list[str]
) -> None:
    card = host.issue()
    host.ok("reject", "approvals", card, *APPROVER)
    host.run("approve", "approvals", card, *APPROVER)
    options = [word for kind in asked for word in ("--kind", kind)]
    assert [record["kind"] for record in objects(host, *options)] == kinds


def test_follow_prints_what_is_appended_and_ends_with_an_interrupt(host: SimpleNamespace) -> None:
    host.issue()
    script = host.scripts / "cardchain"
    follow = subprocess.Popen(
        [script, "log", "approvals", "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=host.folder,
        env=host.environment,
    )
    assert follow.stdout is not None
    assert b" opened " in follow.stdout.readline()
    assert b" issued " in follow.stdout.readline()
    host.issue(task={"id": "other", "step": "refund"})
    assert b'"other"' in follow.stdout.readline()
    follow.send_signal(signal.SIGINT)
    out, err = follow.communicate(timeout=60)
    assert (follow.returncode, out, err.strip()) == (130, b"", b"")


def test_show_raw_is_what_the_hash_is_taken_over(host: SimpleNamespace) -> None:
    card = host.issue(reasoning=HOSTILE)
    done = host.shell(f"cardchain show approvals {card} --raw | sha256sum")
    assert (done.status, done.out) == (0, f"{card}  -\n")


def test_show_raw_does_not_go_to_a_terminal(host: SimpleNamespace) -> None:
    card = host.issue(reasoning=HOSTILE)
    ours, theirs = pty.openpty()
    script = host.scripts / "cardchain"
    done = subprocess.run(
        [script, "show", "approvals", card, "--raw"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        cwd=host.folder,
        env=host.environment,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"pipe it into a program" in done.stderr


def test_show_finds_a_card_by_the_beginning_of_its_hash(host: SimpleNamespace) -> None:
    card = host.issue()
    host.ok("reject", "approvals", card, *APPROVER)
    shown = host.ok("show", "approvals", card[:8]).out
    assert f"to decide, echo this hash:\n  {card}\n" in shown
    assert "\nstate: REJECTED\n" in shown
    assert [line.split()[2] for line in shown.splitlines()[-2:]] == ["issued", "resolved"]


def test_show_json_is_one_document(host: SimpleNamespace) -> None:
    card = host.issue()
    document = host.ok("show", "approvals", card[:8], "--json").json
    assert (document["card_hash"], document["state"]) == (card, "OPEN")
    assert document["step_state"] == "awaiting_approval"
    assert [event["kind"] for event in document["events"]] == ["issued"]


@pytest.mark.parametrize("prefix", ["abc", "ABCD", "xyzw", "", "0" * 65])
def test_what_is_no_prefix_is_a_usage_error(host: SimpleNamespace, prefix: str) -> None:
    assert host.run("show", "approvals", prefix).status == 2


def test_a_card_that_is_not_there_is_2_with_a_hint(host: SimpleNamespace) -> None:
    done = host.run("show", "approvals", "0000")
    assert (done.status, done.out) == (2, "")
    assert "cardchain: hint: " in done.err


def test_pending_lists_open_cards_and_only_these(host: SimpleNamespace) -> None:
    assert host.ok("pending", "approvals").out == "nothing is pending\n"
    first = host.issue()
    second = host.issue(task={"id": "other", "step": "refund"}, arguments={"order": "SO-2"})
    host.ok("reject", "approvals", first, *APPROVER)
    assert re.fullmatch(
        rf'{second} decide before \S+Z "refund.create" for "other" "refund"\n',
        host.ok("pending", "approvals").out,
    )
    listed = host.ok("pending", "approvals", "--json").json["pending"]
    assert [card["card_hash"] for card in listed] == [second]


def test_an_expired_card_is_not_pending(host: SimpleNamespace) -> None:
    host.issue(ttl=1)
    time.sleep(1)
    assert host.ok("pending", "approvals", "--json").json == {"pending": []}


def test_nothing_hostile_is_printed_raw(host: SimpleNamespace) -> None:
    card = host.issue(
        task={"id": HOSTILE, "step": HOSTILE},
        reasoning=HOSTILE,
        arguments={HOSTILE: HOSTILE},
        purpose=HOSTILE,
    )
    host.run("approve", "approvals", card, "--approver", HOSTILE)
    for arguments in (["log"], ["pending"], ["show"], ["status"]):
        for option in ([], ["--json"]):
            name, *rest = arguments
            prefix = [card] if name == "show" else []
            done = host.ok(name, "approvals", *prefix, *rest, *option)
            assert re.search("[^\n\x20-\x7e]", done.out) is None, arguments
