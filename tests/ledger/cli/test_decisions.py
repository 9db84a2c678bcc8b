"""issue, approve, reject, withdraw, dispatch, settle: what they record, print and refuse."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import pytest

APPROVER = ("--approver", "user:approver-1")
UNKNOWN = "00" * 32


def kinds(host: SimpleNamespace) -> list[str]:
    log = host.ok("log", "approvals", "--json").out
    return [json.loads(line)["kind"] for line in log.splitlines()]


def test_a_card_from_issue_to_outcome(host: SimpleNamespace, facts: str) -> None:
    card = host.issue()
    assert host.ok("approve", "approvals", card, *APPROVER).out == f"approved {card} seq 2\n"
    ticket = host.ok("dispatch", "approvals", card, "--facts", facts).out.splitlines()
    assert ticket[0] == f"dispatched {card} seq 3"
    assert ticket[1].startswith("effect key ")
    assert ticket[2] == 'arguments {"amount":"199.00","order":"SO-1001"}'
    settled = host.ok("settle", "approvals", card, "--outcome", "succeeded").out
    assert settled == f"settled succeeded {card} seq 4\n"
    assert kinds(host) == ["opened", "issued", "resolved", "dispatched", "settled"]


def test_issue_reads_a_file_and_prints_the_hash(host: SimpleNamespace) -> None:
    card = host.issue()
    (host.folder / "p.json").write_text(
        '{"kind":"tool_call","task":{"id":"other","step":"s"},"ttl":60,"reasoning":"",'
        '"action":{"tool_name":"page.post","arguments":{}}}'
    )
    word, other, seq, number = host.ok("issue", "approvals", "p.json").out.split()
    assert (word, seq, number) == ("issued", "seq", "2")
    assert other != card
    assert len(other) == 64


def test_the_same_proposal_again_gives_the_same_card_and_writes_nothing(
    host: SimpleNamespace,
) -> None:
    assert host.issue() == host.issue()
    assert host.count() == 2


def test_the_json_of_a_ticket_holds_the_arguments_and_the_key(
    host: SimpleNamespace, facts: str
) -> None:
    card = host.issue()
    host.ok("approve", "approvals", card, *APPROVER)
    ticket = host.ok("dispatch", "approvals", card, "--facts", facts, "--json").json
    assert ticket["card_hash"] == card
    assert ticket["arguments"] == {"order": "SO-1001", "amount": "199.00"}
    assert ticket["arguments_json"] == '{"amount":"199.00","order":"SO-1001"}'
    assert len(bytes.fromhex(ticket["effect_key"])) == 32


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (b"", "the whole document"),
        (b"[]", "the whole document"),
        (b'{"ttl": 1, "ttl": 2}', "/ttl"),
        (b'{"ttl": NaN}', "NaN"),
        (b"\xff", "the whole document"),
    ],
)
def test_a_bad_proposal_is_2_and_nothing_is_recorded(
    host: SimpleNamespace, document: bytes, place: str
) -> None:
    done = host.run("issue", "approvals", "-", stdin=document)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("cardchain: error: ")
    assert place in done.err
    assert host.count() == 1


def test_bad_facts_are_2_and_burn_no_grant(host: SimpleNamespace, facts: str) -> None:
    card = host.issue()
    host.ok("approve", "approvals", card, *APPROVER)
    assert host.run("dispatch", "approvals", card, "--facts", "-", stdin=b"{}").status == 2
    assert host.ok("dispatch", "approvals", card, "--facts", facts).status == 0


def test_a_rejected_card_does_not_run(host: SimpleNamespace, facts: str) -> None:
    card = host.issue()
    rejected = host.ok("reject", "approvals", card, *APPROVER, "--note", "not today").out
    assert rejected == f"rejected {card} seq 2\n"
    done = host.run("dispatch", "approvals", card, "--facts", facts)
    assert (done.status, done.out) == (5, "")
    assert done.err.splitlines()[0] == (
        "cardchain: error: refused at dispatch: not_approved, seq 3"
    )


@pytest.mark.parametrize(
    ("reason", "arguments"),
    [
        ("hash_mismatch", ["approve", "approvals", UNKNOWN, *APPROVER]),
        ("hash_mismatch", ["reject", "approvals", UNKNOWN, *APPROVER]),
        (
            "hash_mismatch",
            ["withdraw", "approvals", UNKNOWN, "--reason", "revoked", "--by", "user:approver-1"],
        ),
        ("unknown_card", ["settle", "approvals", UNKNOWN, "--outcome", "failed"]),
        ("unknown_card", ["dispatch", "approvals", UNKNOWN, "--facts", "facts.json"]),
    ],
)
def test_a_hash_that_was_never_issued_is_refused_and_recorded(
    host: SimpleNamespace, facts: str, reason: str, arguments: list[str]
) -> None:
    done = host.run(*arguments)
    assert (done.status, done.out) == (5, "")
    assert f"{reason}, seq 1\n" in done.err
    assert kinds(host) == ["opened", "refused"]


def test_a_late_decision_is_refused(host: SimpleNamespace) -> None:
    card = host.issue(ttl=1)
    time.sleep(1)
    done = host.run("approve", "approvals", card, *APPROVER)
    assert done.status == 5
    assert "refused at resolve: expired, seq 2" in done.err


def test_a_blank_approver_is_refused(host: SimpleNamespace) -> None:
    done = host.run("approve", "approvals", host.issue(), "--approver", " ")
    assert done.status == 5
    assert "refused at resolve: missing_approver, seq 2" in done.err


def test_drifted_arguments_are_refused_and_the_place_is_named(host: SimpleNamespace) -> None:
    card = host.issue()
    host.ok("approve", "approvals", card, *APPROVER)
    action = {
        "tool_name": "refund.create",
        "arguments": {"order": "SO-1001", "amount": "999.00"},
    }
    drifted = json.dumps({"action": action}).encode()
    done = host.run("dispatch", "approvals", card, "--facts", "-", stdin=drifted)
    assert (done.status, done.out) == (5, "")
    assert "mismatch" in done.err
    assert "/action/arguments/amount" in done.err


def test_a_grant_is_spent_once(host: SimpleNamespace, facts: str) -> None:
    card = host.issue()
    host.ok("approve", "approvals", card, *APPROVER)
    host.ok("dispatch", "approvals", card, "--facts", facts)
    done = host.run("dispatch", "approvals", card, "--facts", facts)
    assert (done.status, done.out) == (5, "")
    assert "refused at dispatch: already_dispatched, seq 4" in done.err


def test_a_withdrawn_grant_does_not_run(host: SimpleNamespace, facts: str) -> None:
    card = host.issue()
    host.ok("approve", "approvals", card, *APPROVER)
    withdraw = ("withdraw", "approvals", card, "--reason", "revoked", "--by", "user:approver-1")
    assert host.ok(*withdraw).out == f"withdrawn {card} seq 3\n"
    done = host.run("dispatch", "approvals", card, "--facts", facts)
    assert "refused at dispatch: withdrawn, seq 4" in done.err
    assert done.status == 5


def test_an_unknown_outcome_may_become_known_once(host: SimpleNamespace, facts: str) -> None:
    card = host.issue()
    host.ok("approve", "approvals", card, *APPROVER)
    host.ok("dispatch", "approvals", card, "--facts", facts)
    host.ok("settle", "approvals", card, "--outcome", "unknown")
    host.ok("settle", "approvals", card, "--outcome", "failed")
    done = host.run("settle", "approvals", card, "--outcome", "succeeded")
    assert done.status == 5
    assert "refused at settle: already_settled" in done.err


def test_the_note_is_kept_and_shown_escaped(host: SimpleNamespace) -> None:
    card = host.issue()
    host.ok("reject", "approvals", card, *APPROVER, "--note", "no\u202e")
    line = host.ok("log", "approvals", "--kind", "resolved", "--json").out
    assert json.loads(line)["openings"]["note"] == {"text": "no\u202e"}
    assert line.isascii()


def test_the_arguments_of_a_ticket_are_json_of_printable_ascii(host: SimpleNamespace) -> None:
    arguments = {"text": "\u202e\x7f\x1b\U0001f600 \\"}
    card = host.issue(arguments=arguments)
    host.ok("approve", "approvals", card, *APPROVER)
    action = {"tool_name": "refund.create", "arguments": arguments}
    facts = json.dumps({"action": action}).encode()
    line = host.ok("dispatch", "approvals", card, "--facts", "-", stdin=facts).out.splitlines()[2]
    assert line.isprintable()
    assert line.isascii()
    assert json.loads(line.removeprefix("arguments ")) == arguments
