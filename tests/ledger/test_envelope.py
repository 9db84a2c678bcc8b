"""Proposals, facts and envelopes (spec §2)."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.envelope import (
    Envelope,
    Facts,
    PriorAttempt,
    Proposal,
    Task,
    differing_pointers,
    parse,
    project,
    rebuild,
    same_ask,
)
from ledger.errors import EnvelopeMalformed, ProposalInvalid, VersionUnknown

ISSUED_AT = 1_700_000_000
HASH = "0123456789abcdef" * 4
LAST = 253_402_300_799
ARGUMENTS = {"order": "SO-1001", "amount": "199.00", "lines": [1, 2.5, {"": None}]}


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def proposal(**members: Any) -> Proposal:
    usual: dict[str, Any] = {
        "task": ("refund-run-7", "refund"),
        "tool_name": "refund.create",
        "arguments": ARGUMENTS,
        "reasoning": "Duplicate payment",
        "ttl": 1800,
    }
    return Proposal.for_tool_call(**usual | members)


def facts(**members: Any) -> Facts:
    return Facts.for_tool_call(**{"tool_name": "refund.create", "arguments": ARGUMENTS} | members)


# The smallest envelope of this proposal, written out by hand (spec §2.2, §2.3, §2.5).
CANONICAL_ARGUMENTS = b'{"amount":"199.00","lines":[1,2.5,{"":null}],"order":"SO-1001"}'
ARGS_DIGEST = sha256(CANONICAL_ARGUMENTS).encode()
TASK = b'{"id":"refund-run-7","step":"refund"}'
EFFECT_KEY = sha256(
    b'{"args_digest":"' + ARGS_DIGEST + b'","capability":null,"format":"effect-key/1","task":'
    b"" + TASK + b',"tool_name":"refund.create"}'
).encode()
SMALLEST = (
    b'{"action":{"args_digest":"' + ARGS_DIGEST + b'","arguments":' + CANONICAL_ARGUMENTS
    + b',"tool_name":"refund.create"},"effect_key":"' + EFFECT_KEY
    + b'","format":"cardchain-card/1","issued_at":1700000000,"kind":"tool_call",'
    b'"not_after":1700001800,"reasoning":"Duplicate payment","task":' + TASK + b"}"
)  # fmt: skip


def test_envelope_has_the_bytes_of_the_spec() -> None:
    assert project(proposal(), ISSUED_AT).bytes == SMALLEST


def test_card_hash_is_sha256_of_the_bytes() -> None:
    assert project(proposal(), ISSUED_AT).card_hash.hex() == sha256(SMALLEST)


def test_envelope_is_read_into_its_parts() -> None:
    envelope = parse(SMALLEST)
    assert envelope == Envelope(
        bytes=SMALLEST,
        card_hash=bytes.fromhex(sha256(SMALLEST)),
        task=Task("refund-run-7", "refund"),
        task_digest=bytes.fromhex(sha256(TASK)),
        issued_at=1_700_000_000,
        not_after=1_700_001_800,
        grant_ttl=None,
        supersedes=None,
        prior_attempt=None,
        effect_key=EFFECT_KEY.decode(),
        arguments_bytes=CANONICAL_ARGUMENTS,
    )
    assert envelope.document == json.loads(SMALLEST)


def test_optional_parts_are_read() -> None:
    envelope = project(
        proposal(
            grant_ttl=900,
            supersedes=HASH,
            prior_attempt={"card_hash": HASH, "outcome": "failed"},
        ),
        ISSUED_AT,
    )
    assert envelope.grant_ttl == 900
    assert envelope.supersedes == bytes.fromhex(HASH)
    assert envelope.prior_attempt == PriorAttempt(bytes.fromhex(HASH), "failed")


FULL = {
    "capability": {"refund": ["create"]},
    "spec_digest": HASH,
    "artifact_digest": HASH,
    "subject": {"id": "user:1", "source": "sso", "delegation": {"by": None}},
    "preconditions": [{"ref": "order/SO-1001", "version": "7"}],
    "policy_version": "1",
    "purpose": "why",
    "impact": {
        "score": 50.0,
        "hard_one_way": True,
        "rationale": "money leaves",
        "fired_detectors": ["payment"],
        "detector_set": {"id": "set-1", "digest": HASH},
    },
    "rollback": {"procedure": "none", "irreversible": True},
    "grant_ttl": 900,
    "supersedes": HASH,
    "prior_attempt": {"card_hash": HASH, "outcome": "unknown"},
    "kind": "publication",
}


def test_same_proposal_and_time_give_the_same_envelope() -> None:
    assert project(proposal(**FULL), ISSUED_AT) == project(proposal(**FULL), ISSUED_AT)


def test_projected_envelope_is_read_back_as_equal() -> None:
    envelope = project(proposal(**FULL), ISSUED_AT)
    assert parse(envelope.bytes) == envelope


def test_order_of_members_does_not_matter() -> None:
    backwards = dict(reversed(ARGUMENTS.items()))
    assert proposal(arguments=backwards) == proposal()


def test_order_in_an_array_matters() -> None:
    one, two = proposal(arguments={"ids": [1, 2]}), proposal(arguments={"ids": [2, 1]})
    assert project(one, ISSUED_AT).card_hash != project(two, ISSUED_AT).card_hash


def test_absent_null_and_empty_arguments_give_different_cards() -> None:
    variants: list[dict[str, Any]] = [{}, {"a": None}, {"a": ""}, {"a": []}, {"a": {}}]
    hashes = {project(proposal(arguments=v), ISSUED_AT).card_hash for v in variants}
    assert len(hashes) == 5


def test_changing_the_arguments_afterwards_changes_nothing() -> None:
    arguments = copy.deepcopy(ARGUMENTS)
    subject = {"id": "user:1", "source": "sso"}
    asked = proposal(arguments=arguments, subject=subject)
    now = facts(arguments=arguments, subject=subject)
    envelope = project(asked, ISSUED_AT)
    arguments["lines"].append("more")  # type: ignore[attr-defined]
    arguments["amount"] = "1.00"
    subject["id"] = "user:2"
    assert project(asked, ISSUED_AT) == envelope
    assert rebuild(envelope, now) == envelope


def test_changing_the_document_changes_nothing() -> None:
    envelope = project(proposal(), ISSUED_AT)
    envelope.document["action"]["arguments"]["amount"] = "1.00"
    envelope.document.clear()
    assert envelope.document == json.loads(SMALLEST)


def test_arguments_that_run_are_the_canonical_ones() -> None:
    envelope = project(proposal(arguments={"n": 1e1, "m": 1.0}), ISSUED_AT)
    assert envelope.arguments_bytes == b'{"m":1,"n":10}'


@pytest.mark.parametrize(("size", "shown"), [(1_999, 1_999), (2_000, 2_000), (2_001, 1_999)])
@pytest.mark.parametrize("character", ["a", "é", "😀", "\u0301"])
def test_reasoning_over_2000_code_points_is_cut_and_marked(
    size: int, shown: int, character: str
) -> None:
    envelope = project(proposal(reasoning=character * size), ISSUED_AT)
    expected = character * shown + ("…" if size > 2_000 else "")
    assert envelope.document["reasoning"] == expected


def test_last_second_of_the_year_9999_is_the_latest_end() -> None:
    assert project(proposal(ttl=1), LAST - 1).not_after == LAST
    with pytest.raises(ProposalInvalid, match="/ttl"):
        project(proposal(ttl=2), LAST - 1)


def test_envelope_over_the_limit_is_refused() -> None:
    """The proposal fits, but the envelope has members that it lacks."""
    asked = proposal(arguments={"a": "a" * (1_048_576 - 200)})
    with pytest.raises(ProposalInvalid, match="limit"):
        project(asked, ISSUED_AT)


def test_proposal_as_json_is_the_one_that_was_made() -> None:
    asked = proposal(**FULL)
    text = json.dumps(json.loads(asked.to_json()), indent=2).encode()
    assert Proposal.from_json(text) == asked


def test_facts_as_json_are_those_that_were_made() -> None:
    text = json.dumps(
        {"preconditions": FULL["preconditions"], "subject": FULL["subject"], "action": {
            "tool_name": "refund.create", "arguments": ARGUMENTS, "capability": FULL["capability"],
        }}
    ).encode()  # fmt: skip
    names = ("preconditions", "subject", "capability")
    assert Facts.from_json(text) == facts(**{name: FULL[name] for name in names})


def test_proposal_as_json_has_no_member_that_the_ledger_sets() -> None:
    assert proposal().to_json() == (
        b'{"action":{"arguments":' + CANONICAL_ARGUMENTS + b',"tool_name":"refund.create"},'
        b'"kind":"tool_call","reasoning":"Duplicate payment","task":' + TASK + b',"ttl":1800}'
    )


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"ttl": 0}, "/ttl"),
        ({"task": ("only",)}, "/task"),
        ({"task": "ab"}, "/task"),
        ({"task": None}, "/task"),
        ({"action": {"tool_name": "other", "arguments": {}}}, "/action"),
        ({"task": ("", "step")}, "/task/id"),
        ({"arguments": {1: 2}}, "/action/arguments"),
        ({"arguments": {"a": float("nan")}}, "/action/arguments/a"),
        ({"arguments": {"a": b""}}, "/action/arguments/a"),
        ({"arguments": [1]}, "/action/arguments"),
        ({"subject": {"id": "a", "source": "model"}}, "/subject/source"),
        ({"salt": "a"}, "/salt"),
        ({"issued_at": 5}, "/issued_at"),
        ({"approval_basis": {}}, "/approval_basis/verdict"),
        ({"approver": "user:approver-1"}, "/approver"),
        ({"reasoning": None}, "/reasoning"),
        ({"reasoning": "\ud800"}, "/reasoning"),
    ],
)
def test_proposal_that_breaks_a_rule_is_refused(members: dict[str, Any], pointer: str) -> None:
    with pytest.raises(ProposalInvalid) as caught:
        proposal(**members)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("kind", [Proposal, Facts])
def test_only_bytes_are_read(kind: Any) -> None:
    good = (proposal() if kind is Proposal else facts()).canonical
    for other in (good.decode(), bytearray(good), None, 7):
        for read in (kind, kind.from_json):
            with pytest.raises(ProposalInvalid, match="expected bytes"):
                read(other)


@pytest.mark.parametrize("kind", [Proposal, Facts])
def test_bytes_that_are_not_canonical_make_no_value(kind: Any) -> None:
    good = proposal() if kind is Proposal else facts()
    with pytest.raises(ProposalInvalid, match="canonical"):
        kind(good.canonical + b" ")


# The stored envelope.

MALFORMED = {
    "not JSON": (b"{", ""),
    "not canonical": (SMALLEST.replace(b",", b", ", 1), ""),
    "not in order": (b'{"task":' + TASK + b"," + SMALLEST[1:].replace(b',"task":' + TASK, b""), ""),
    "not an object": (b"[]", ""),
    "no format": (SMALLEST.replace(b'"format":"cardchain-card/1",', b""), "/format"),
    "a format that is not text": (SMALLEST.replace(b'"cardchain-card/1"', b"1"), "/format"),
    "an unknown member": (SMALLEST.replace(b"{", b'{"a":1,', 1), "/a"),
    "an argument that was changed": (
        SMALLEST.replace(b"199.00", b"199.99"),
        "/action/args_digest",
    ),
    "a digest that was changed": (
        SMALLEST.replace(ARGS_DIGEST, HASH.encode()),
        "/action/args_digest",
    ),
    "an effect key that was changed": (SMALLEST.replace(EFFECT_KEY, HASH.encode()), "/effect_key"),
    "a task that was changed": (SMALLEST.replace(b"run-7", b"run-8"), "/effect_key"),
    "a tool that was changed": (
        SMALLEST.replace(b"refund.create", b"refund.delete"),
        "/effect_key",
    ),
    "an end before its beginning": (SMALLEST.replace(b"1700001800", b"1700000000"), "/not_after"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_stored_envelope_is_malformed(name: str) -> None:
    text, pointer = MALFORMED[name]
    with pytest.raises(EnvelopeMalformed) as caught:
        parse(text)
    assert caught.value.pointer == pointer


def test_other_format_is_unknown_and_not_malformed() -> None:
    with pytest.raises(VersionUnknown) as caught:
        parse(b'{"format":"cardchain-card/2","later":1}')
    assert caught.value.found == "cardchain-card/2"


def test_policy_evidence_is_read_though_not_proposed() -> None:
    basis = (
        b'"approval_basis":{"engine":"e","evidence_class":"none","profile":"' + HASH.encode() +
        b'","rules":[],"verdict":"ask"},'
    )  # fmt: skip
    text = SMALLEST.replace(b'"effect_key"', basis + b'"effect_key"')
    assert parse(text).document["approval_basis"]["verdict"] == "ask"


# Rebuilding at dispatch.


def full() -> Envelope:
    return project(proposal(**FULL), ISSUED_AT)


OTHER_FACTS = ("capability", "spec_digest", "artifact_digest", "subject", "preconditions")
SAME = {name: FULL[name] for name in OTHER_FACTS}


def test_same_facts_give_the_same_envelope() -> None:
    assert rebuild(full(), facts(**SAME)) == full()


def test_rebuilt_envelope_is_well_formed() -> None:
    rebuilt = rebuild(full(), facts(tool_name="other", arguments={}))
    assert parse(rebuilt.bytes) == rebuilt


FACT_POINTERS = {
    "capability": ("/action/capability/refund/0", "/effect_key"),
    "spec_digest": ("/action/spec_digest",),
    "artifact_digest": ("/action/artifact_digest",),
    "subject": ("/subject/delegation/by", "/subject/id", "/subject/source"),
    "preconditions": ("/preconditions/0/ref", "/preconditions/0/version"),
}


@pytest.mark.parametrize("fact", OTHER_FACTS)
def test_omitted_fact_is_absent_and_not_filled_in(fact: str) -> None:
    now = {name: value for name, value in SAME.items() if name != fact}
    rebuilt = rebuild(full(), facts(**now))
    assert differing_pointers(full(), rebuilt) == FACT_POINTERS[fact]


def test_fact_that_the_card_lacks_differs() -> None:
    envelope = project(proposal(), ISSUED_AT)
    rebuilt = rebuild(envelope, facts(subject={"id": "user:1", "source": "sso"}))
    assert differing_pointers(envelope, rebuilt) == ("/subject/id", "/subject/source")


def test_terms_are_those_of_the_card() -> None:
    rebuilt = rebuild(full(), facts(arguments={}))
    for name in FULL.keys() - set(OTHER_FACTS) | {"reasoning", "issued_at", "not_after", "task"}:
        assert rebuilt.document[name] == full().document[name]


# What differs.


def differing(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, ...]:
    """The pointers below the arguments, relative to them."""
    one, two = (project(proposal(arguments=arguments), ISSUED_AT) for arguments in (a, b))
    prefix = "/action/arguments"
    places = differing_pointers(one, two)
    return tuple(p.removeprefix(prefix) for p in places if p.startswith(prefix))


DIFFERENCES: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    ({"a": 1}, {"a": 1}, ()),
    ({"a": 1}, {"a": 2}, ("/a",)),
    ({"a": 1}, {"a": True}, ("/a",)),
    ({"a": 0}, {"a": False}, ("/a",)),
    ({"a": 1}, {"a": "1"}, ("/a",)),
    ({"a": None}, {}, ("", "/a")),
    ({"a": 1}, {"a": 1, "b": 2}, ("/b",)),
    ({"a": [1, 2]}, {"a": [2, 1]}, ("/a/0", "/a/1")),
    ({"a": [1]}, {"a": [1, 2]}, ("/a/1",)),
    ({"a": []}, {"a": {}}, ("/a",)),
    ({"a": [1]}, {"a": {"0": 1}}, ("/a/0",)),
    ({"a": {"x": 1}}, {"a": 1}, ("/a", "/a/x")),
    ({"a/b": 1, "~": 1}, {"a/b": 2, "~": 2}, ("/a~1b", "/~0")),
]


@pytest.mark.parametrize(("a", "b", "pointers"), DIFFERENCES)
def test_leaves_that_differ_are_named(
    a: dict[str, Any], b: dict[str, Any], pointers: tuple[str, ...]
) -> None:
    assert differing(a, b) == pointers
    assert differing(b, a) == pointers


def test_digests_that_follow_are_named_too() -> None:
    one, two = (project(proposal(arguments={"a": n}), ISSUED_AT) for n in (1, 2))
    assert differing_pointers(one, two) == (
        "/action/args_digest",
        "/action/arguments/a",
        "/effect_key",
    )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_cards_have_one_hash_exactly_where_nothing_differs(
    a: dict[str, Any], b: dict[str, Any]
) -> None:
    one, two = (project(proposal(arguments=arguments), ISSUED_AT) for arguments in (a, b))
    assert (one.card_hash == two.card_hash) == (differing_pointers(one, two) == ())
    assert (one.bytes == two.bytes) == (one.card_hash == two.card_hash)


# Asking again.


def test_same_ask_with_other_words_and_time_is_the_same() -> None:
    envelope = project(proposal(**FULL), ISSUED_AT)
    assert same_ask(envelope, proposal(**FULL, reasoning="in other words", ttl=60))


def test_ask_whose_reasoning_was_cut_is_the_same() -> None:
    asked = proposal(reasoning="a" * 5_000)
    assert same_ask(project(asked, ISSUED_AT), asked)


@pytest.mark.parametrize("name", [*FULL, "arguments", "tool_name", "task"])
def test_ask_for_anything_else_is_another(name: str) -> None:
    other: dict[str, Any] = {
        "kind": "tool_call",
        "arguments": {},
        "tool_name": "other",
        "task": ("refund-run-7", "other"),
        "rollback": {"procedure": "other", "irreversible": True},
        "impact": None,
    }
    asked = FULL | {name: other.get(name)}
    assert not same_ask(project(proposal(**FULL), ISSUED_AT), proposal(**asked))
