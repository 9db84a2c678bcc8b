from __future__ import annotations

from typing import Any

import pytest

from verifier import jcs, plain
from verifier.envelope import schema_problem


def test_usual_envelopes_are_plain(log: Any) -> None:
    assert plain.read(log.jcs(log.envelope(grant_ttl=900))) is not None
    assert plain.read(log.jcs(log.envelope(reasoning='a "b"\n\u00e9\x01'))) is not None


RULE = {"id": "rule-1", "sha256": "ab" * 32}
BASIS: dict[str, Any] = {
    "verdict": "review",
    "engine": "rules-1",
    "evidence_class": "selection",
    "profile": "ab" * 32,
    "rules": [],
}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rules": [RULE]},
        {"rules": [RULE] * 3, "combining": "first", "default": "review"},
        {"policy_sha256": "cd" * 32, "profile_id": "p", "profile_version": "1"},
        {"selection": {"mode": "by_target", "digest": "ab" * 32, "count": 17}},
    ],
)
def test_a_basis_is_plain_and_said(log: Any, more: dict[str, Any]) -> None:
    data = log.jcs(log.envelope(approval_basis={**BASIS, **more}))
    found = plain.read(data)
    assert found is not None
    assert found.has_basis
    assert schema_problem(jcs.parse(data)) is None
    assert plain.read(log.jcs(log.envelope())) == found._replace(has_basis=False)


@pytest.mark.parametrize(
    "more",
    [
        {"verdict": ""},
        {"evidence_class": "all"},
        {"profile": "AB" * 32},
        {"rules": [{"id": "rule-1"}]},
        {"rules": [RULE] * 1025},
        {"rules": None},
        {"selection": {"mode": "by_target", "digest": "ab" * 32, "count": -1}},
        {"other": "x"},
        {"engine": None},
    ],
)
def test_a_basis_outside_the_schema_is_not_accepted(log: Any, more: dict[str, Any]) -> None:
    data = log.jcs(log.envelope(approval_basis={**BASIS, **more}))
    assert schema_problem(jcs.parse(data)) is not None
    assert plain.read(data) is None


@pytest.mark.parametrize(
    "more",
    [
        {"preconditions": [{"ref": "order", "version": "7"}]},
        {"subject": {"id": "user:1", "source": "session", "tenant": "t"}},
    ],
)
def test_one_precondition_and_a_tenant_are_plain(log: Any, more: dict[str, Any]) -> None:
    data = log.jcs(log.envelope(**more))
    assert plain.read(data) is not None
    assert schema_problem(jcs.parse(data)) is None


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (b'"kind":"tool_call"', b'"kind": "tool_call"'),
        (b'"kind":"tool_call"', b'"kind":"tool_\\u0063all"'),
        (b'"kind":"tool_call"', b'"kind":"tool_call","kind":"tool_call"'),
        (b'"order":"SO-0001"', b'"order":"SO-0001" '),
        (b'"order":"SO-0001"', b'"order":1.0'),
        (b'"order":"SO-0001"', b'"order":-0'),
        (b'"order":"SO-0001"', b'"order":"\\/"'),
        (b'"order":"SO-0001"', b'"\xf0\x90\x80\x80":1,"\xee\x80\x80":1'),
        (b'"order":"SO-0001"', b'"order":"\xff"'),
        (b'"amount":"1.00","order":"SO-0001"', b'"order":"SO-0001","amount":"1.00"'),
        (b'"reasoning":"d', b'"reasoning":"\\u001Fd'),
        (b'"reasoning":"d', b'"reasoning":"\\u000ad'),
        (b'"issued_at":1', b'"issued_at":01'),
        (b"}}", b"}} "),
    ],
)
def test_other_bytes_are_not_accepted(log: Any, part: bytes, other: bytes) -> None:
    data = log.jcs(log.envelope())
    assert plain.read(data) is not None
    assert part in data
    assert plain.read(data.replace(part, other)) is None


@pytest.mark.parametrize("name", ["effect_key", "args_digest"])
def test_digest_that_does_not_follow_is_not_accepted(log: Any, name: str) -> None:
    envelope = log.envelope()
    place = envelope if name in envelope else envelope["action"]
    place[name] = "00" * 32
    assert plain.read(log.jcs(envelope)) is None


def test_every_bit_of_an_envelope_counts(log: Any) -> None:
    data = log.jcs(log.envelope())
    kept = []
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        found = plain.read(bytes(changed))
        if found is not None and found == plain.read(data):
            kept.append(chr(data[place]))
    shown = log.envelope()
    assert "".join(kept) == shown["kind"] + shown["reasoning"]
