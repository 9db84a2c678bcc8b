"""Profiles, drift and changes on the command line: configure, dispatch, diff, affected, show."""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace
from typing import Any

import pytest

APPROVER = ("--approver", "user:approver-1")
RULE = {"id": "refunds", "sha256": "01" * 32}
WEAK: dict[str, Any] = {
    "format": "cardchain-profile/1",
    "minimum": "none",
    "required": [],
    "grant_ttl": "optional",
    "self_approval": "allow",
    "assurance": "label",
    "fixed_parameters": [],
    "critical": [],
    "basis_drift": "allow_if_allowed",
}


def digest(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(text).hexdigest()


def basis(profile: dict[str, Any] = WEAK, **members: Any) -> dict[str, Any]:
    return {
        "verdict": "require_approval",
        "engine": "engine/1",
        "evidence_class": "fired_rules",
        "profile": digest(profile),
        "rules": [RULE],
        **members,
    }


@pytest.fixture
def weak(host: SimpleNamespace) -> str:
    """The name of a profile file that is not in canonical form."""
    name: str = host.write("weak.json", WEAK)
    return name


def facts(host: SimpleNamespace, **members: Any) -> str:
    arguments = {"order": "SO-1001", "amount": "199.00"}
    action = {"tool_name": "refund.create", "arguments": arguments}
    name: str = host.write("facts.json", {"action": action, **members})
    return name


def test_a_profile_is_put_in_force_by_its_canonical_bytes(host: SimpleNamespace, weak: str) -> None:
    done = host.ok("configure", "approvals", "--by", "user:operator-1", "--profile", weak)
    assert done.out == f"configured seq 1\nprofile {digest(WEAK)}\n"
    told = host.ok(
        "configure", "approvals", "--by", "user:operator-1", "--vkey", "k/1", "--json"
    ).json
    assert (told["seq"], told["profile"], told["vkey"]) == (2, None, "k/1")
    assert 'configured  ------------ by "user:operator-1"' in host.ok("log", "approvals").out


@pytest.mark.parametrize("document", [{}, {**WEAK, "minimum": "all"}])
def test_a_file_that_is_no_profile_is_2_and_nothing_is_recorded(
    host: SimpleNamespace, document: dict[str, Any]
) -> None:
    name = host.write("p.json", document)
    done = host.run("configure", "approvals", "--by", "user:operator-1", "--profile", name)
    assert (done.status, done.out) == (2, "")
    assert "cardchain: error: /" in done.err
    assert host.count() == 1


def test_configure_needs_something_to_configure(host: SimpleNamespace) -> None:
    done = host.run("configure", "approvals", "--by", "user:operator-1")
    assert (done.status, done.out) == (2, "")
    assert "--profile, --vkey or both" in done.err


def test_a_ledger_can_begin_with_a_profile(empty_host: SimpleNamespace) -> None:
    name = empty_host.write("p.json", {**WEAK, "minimum": "fired_rules"})
    empty_host.ok("init", "approvals", "--profile", name)
    ask = json.dumps(
        {
            "kind": "tool_call",
            "task": {"id": "t", "step": "s"},
            "action": {"tool_name": "t", "arguments": {}},
            "reasoning": "",
            "ttl": 60,
        }
    ).encode()
    done = empty_host.run("issue", "approvals", "-", stdin=ask)
    assert done.status == 5
    assert "refused at issue: evidence_below_floor" in done.err


def test_a_profile_that_a_card_names_is_given_as_a_file(host: SimpleNamespace, weak: str) -> None:
    ask = host.write(
        "ask.json",
        {
            "kind": "tool_call",
            "task": {"id": "t", "step": "s"},
            "action": {"tool_name": "t", "arguments": {}},
            "reasoning": "",
            "ttl": 600,
            "approval_basis": basis(),
        },
    )
    assert "profile_unknown" in host.run("issue", "approvals", ask).err
    told = host.ok("issue", "approvals", ask, "--profile", weak, "--json").json
    card = told["card_hash"]
    done = host.run("approve", "approvals", card, *APPROVER)
    assert (done.status, done.out) == (6, "")
    assert f"no profile {digest(WEAK)}" in done.err
    assert "--profile FILE" in done.err
    host.ok("approve", "approvals", card, *APPROVER, "--profile", weak)


def test_a_mismatch_names_the_classes_of_drift(host: SimpleNamespace) -> None:
    card = host.issue(subject={"id": "user:requester-1", "source": "idp"})
    host.ok("approve", "approvals", card, *APPROVER)
    now = facts(host, subject={"id": "user:requester-2\x1b[2J", "source": "idp"})
    done = host.run("dispatch", "approvals", card, "--facts", now)
    assert (done.status, done.out) == (5, "")
    assert "mismatch (subject and authority) at /subject/id, seq 3" in done.err
    assert "\x1b" not in done.err
    told = host.ok("show", "approvals", card).out.splitlines()[-1]
    assert told.endswith("dispatch: mismatch (subject and authority) at /subject/id (count 1)")


def test_what_policy_says_now_is_passed_on(host: SimpleNamespace) -> None:
    card = host.issue()
    host.ok("approve", "approvals", card, *APPROVER)
    run = ("dispatch", "approvals", card, "--facts", facts(host))
    denied = host.run(*run, "--policy-outcome", "deny")
    assert denied.status == 5
    assert "policy_denied" in denied.err
    host.ok(*run, "--policy-outcome", "allow", "--approver-check", "directory at 12:00")
    log = [json.loads(line) for line in host.ok("log", "approvals", "--json").out.splitlines()]
    assert log[-1]["body"]["policy_outcome"] == "allow"
    assert log[-1]["body"]["approver_check"] == "directory at 12:00"


def test_an_exception_is_told(host: SimpleNamespace, weak: str) -> None:
    host.ok("configure", "approvals", "--by", "user:operator-1", "--profile", weak)
    card = host.issue(approval_basis=basis())
    host.ok("approve", "approvals", card, *APPROVER)
    other = {"id": "refunds", "sha256": "02" * 32}
    now = facts(host, approval_basis=basis(verdict="allow", rules=[other]))
    done = host.ok("dispatch", "approvals", card, "--facts", now, "--policy-outcome", "allow")
    assert done.out.splitlines()[-1] == "exception basis_drift"
    assert host.ok("log", "approvals").out.splitlines()[-1].endswith(' "basis_drift"')


# Changes


def superseding(host: SimpleNamespace, first: str, **changes: Any) -> str:
    card: str = host.issue(supersedes=first, **changes)
    return card


def test_diff_tells_what_changed_since_the_superseded_card(host: SimpleNamespace) -> None:
    first = host.issue()
    second = superseding(host, first, arguments={"order": "SO-1001", "amount": "9\x1b[2J"})
    out = host.ok("diff", "approvals", second[:8]).out
    assert out.startswith(f"changes (cardchain-changes/2)\nsince card: {first}\n")
    assert '  "/action/arguments/amount": "199.00" -> "9\\u{1b}[2J"\n' in out
    assert host.ok("diff", "approvals", first, second).out == out
    assert out.rstrip("\n") in host.ok("show", "approvals", second).out
    changes = host.ok("diff", "approvals", second, "--json").json["changes"]
    assert {"pointer": "/supersedes", "after": first} in changes
    back = host.ok("diff", "approvals", second, first, "--json").json
    assert (back["from"], back["to"]) == (second, first)
    assert {"pointer": "/supersedes", "before": first} in back["changes"]


def test_diff_of_a_card_that_supersedes_none_is_2(host: SimpleNamespace) -> None:
    card = host.issue()
    done = host.run("diff", "approvals", card)
    assert (done.status, done.out) == (2, "")
    assert f"card {card} supersedes none" in done.err


def test_the_hash_to_echo_is_the_last_line_of_the_text(host: SimpleNamespace) -> None:
    second = superseding(host, host.issue(), purpose="smaller")
    text = host.ok("show", "approvals", second, "--json").json["text"]
    assert text.endswith(f"\nto decide, echo this hash:\n  {second}\n")


def test_a_call_that_comes_back_is_told_to_who_decides(host: SimpleNamespace) -> None:
    first = host.issue()
    host.ok("reject", "approvals", first, *APPROVER)
    second = host.issue(task={"id": "other", "step": "refund"})
    note = f"note: another task asked for the same call before; REJECTED: card {first}"
    assert note in host.ok("show", "approvals", second).out.splitlines()
    assert host.ok("pending", "approvals").out.splitlines()[-1] == note
    (waiting,) = host.ok("pending", "approvals", "--json").json["pending"]
    assert waiting["returned"] == [{"card_hash": first, "state": "REJECTED"}]


# Rules that changed


def test_affected_lists_the_cards_that_a_rule_asked_for(host: SimpleNamespace, weak: str) -> None:
    host.ok("configure", "approvals", "--by", "user:operator-1", "--profile", weak)
    card = host.issue(approval_basis=basis())
    assert host.ok("affected", "approvals", "--rule", "01" * 32).out == (
        f'{card} OPEN "refund.create" for "refund-run-7" "refund"\n'
    )
    found = host.ok("affected", "approvals", "--rule", "02" * 32, "--rule", "01" * 32, "--json")
    assert [each["card_hash"] for each in found.json["affected"]] == [card]
    assert host.ok("affected", "approvals", "--rule", "02" * 32).out == "nothing is affected\n"


@pytest.mark.parametrize("rule", ["01", "A" * 64, "-"])
def test_a_rule_is_named_by_all_its_digits(host: SimpleNamespace, rule: str) -> None:
    done = host.run("affected", "approvals", "--rule", rule)
    assert (done.status, done.out) == (2, "")
