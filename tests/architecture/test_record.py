"""docs/record.cddl says what the spec says, and writer and verifier do as it says (spec §3.5)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import errors, kinds
from verifier import shape

DOCS = Path(__file__).parents[2] / "docs"
H32 = bytes(range(32))


def cddl_rules(text: str) -> dict[str, str]:
    """Rule names and bodies, without comments and white space."""
    bare = re.sub(r";[^\n]*", "", text)
    parts = re.split(r"^([\w-]+)\s*=", bare, flags=re.M)[1:]
    return {
        name: re.sub(r"\s+", "", body) for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def spec_cddl() -> dict[str, str]:
    block = re.search(r"```cddl\n(.*?)```", (DOCS / "spec.md").read_text("utf-8"), re.S)
    assert block is not None
    return cddl_rules(re.sub(r"\buint\b", "uint53", block[1]))


def file_cddl() -> dict[str, str]:
    return cddl_rules((DOCS / "record.cddl").read_text("utf-8"))


def test_cddl_file_holds_the_rules_of_the_spec() -> None:
    rules = file_cddl()
    assert {name: rules.get(name) for name in spec_cddl()} == spec_cddl()


def test_cddl_file_names_every_kind_of_the_spec() -> None:
    kinds = {name for name, body in spec_cddl().items() if body.startswith("{")}
    kinds -= {"opening", "runtime", "approver"}
    named = re.findall(r'kind:"(\w+)",card:[^,]+,body:(\w+)', file_cddl()["event"])
    assert named == [(kind, kind) for kind in sorted(kinds, key=list(spec_cddl()).index)]


def test_cddl_file_gives_a_null_card_where_the_spec_does() -> None:
    spec = (DOCS / "spec.md").read_text("utf-8")
    sentence = re.search(r"^`card` is null on (.*?), and on a refusal", spec, re.M)
    assert sentence is not None
    named = re.findall(r'kind:"(\w+)",card:null,', file_cddl()["event"])
    assert set(re.split(r", | and ", sentence[1])) == set(named)


def test_cddl_file_has_the_openings_of_the_spec() -> None:
    section = (DOCS / "spec.md").read_text("utf-8").split("### 3.4")[1].split("### 3.5")[0]
    openings = re.findall(r"^\| `(\w+)` \|", section, re.M)
    assert re.findall(r"\?(\w+):opening-bytes", file_cddl()["unprotected"]) == openings


def test_cddl_rules_are_all_used() -> None:
    rules = file_cddl()
    text = " ".join(rules.values())
    assert [name for name in rules if name != "record" and name not in text] == []


# Bodies made from the CDDL, given to writer and verifier.

SAMPLES: dict[str, tuple[list[Any], list[Any]]] = {
    "h32": ([H32], [H32[1:], H32 + b"x", H32.hex(), None]),
    "kid": ([H32[:8]], [H32[:7], H32, "kid", None]),
    "uint53": ([0, 2**53 - 1], [-1, 2**53, 1.0, True, "0", None]),
    "line": (["a", "a" * 256, "\u00e9" * 128], ["", "a" * 257, "\u00e9" * 129, b"a", 1, None]),
    "bool": ([True, False], [0, 1, "true", None]),
}


def split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def members(rule: str) -> dict[str, tuple[str, bool]]:
    """The members of a map: name to type, and whether it is required."""
    found = {}
    for part in split(rule[1:-1]):
        name, _, kind = part.partition(":")
        found[name.lstrip("?")] = (kind, not name.startswith("?"))
    return found


def values(kind: str) -> tuple[list[Any], list[Any]]:
    """Good and bad values of a CDDL type; the first good one is the plainest."""
    if kind in SAMPLES:
        return SAMPLES[kind]
    if kind.startswith("{"):
        good = list(maps(kind))
        return good, [{}, [], None, "x", *broken_maps(kind)]
    if kind.startswith("["):
        most = re.match(r"\[1\*(\d*)line\]$", kind)
        assert most is not None, kind
        too_many = [["a"] * (int(most[1]) + 1)] if most[1] else []
        return [["a"], ["a", "b"]], [[], "a", [1], [""], None, *too_many]
    if kind.startswith('"'):
        return [word.strip('"') for word in kind.split("/")], ["", "x", 1, None]
    return values(file_cddl()[kind])


def maps(rule: str) -> Iterator[dict[str, Any]]:
    """The map with required members alone, with all, and with each good value of each member."""
    plain = {name: values(kind)[0][0] for name, (kind, _) in members(rule).items()}
    yield {name: plain[name] for name, (_, required) in members(rule).items() if required}
    yield plain
    for name, (kind, _) in members(rule).items():
        yield from (plain | {name: value} for value in values(kind)[0][1:])


def broken_maps(rule: str) -> Iterator[dict[Any, Any]]:
    """The full map with one thing wrong: a member unknown, missing or of another type."""
    plain = {name: values(kind)[0][0] for name, (kind, _) in members(rule).items()}
    yield plain | {"unknown": 1}
    yield plain | {1: 1}
    for name, (kind, required) in members(rule).items():
        if required:
            yield {other: value for other, value in plain.items() if other != name}
        yield from (plain | {name: value} for value in values(kind)[1])


def card_of(kind: str) -> bytes | None:
    card = re.search(rf'kind:"{kind}",card:([^,]+),', file_cddl()["event"])
    assert card is not None
    return H32 if card[1] == "h32" else None


def accepted_by_writer(kind: str, card: bytes | None, body: Any) -> bool:
    try:
        kinds.check_event(kind, card, body, {})
    except errors.Malformed:
        return False
    return True


def accepted_by_verifier(kind: str, card: bytes | None, body: Any) -> bool:
    payload = ["cardchain/1", bytes(16), 1, bytes(32), 0, kind, card, body]
    return shape.payload_problem(payload) is None


KINDS: list[str] = re.findall(r'kind:"(\w+)"', file_cddl()["event"])
PLAIN_KINDS = [kind for kind in KINDS if kind != "refused"]
GATES: dict[str, tuple[bytes | None, dict[str, Any]]] = {
    "issue": (H32, {"task": H32}),
    "resolve": (None, {"echo": H32, "decision": "approve", "channel": "c"}),
    "withdraw": (H32, {"echo": H32, "of": 1}),
    "dispatch": (None, {"target": H32}),
    "settle": (H32, {"of": 1}),
}
REASON = {
    "issue": "open_exists",
    "resolve": "hash_mismatch",
    "withdraw": "hash_mismatch",
    "dispatch": "unknown_card",
    "settle": "not_dispatched",
}


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_writer_and_verifier_accept_the_bodies_of_the_cddl(kind: str) -> None:
    card = card_of(kind)
    bodies = [body for body in maps(file_cddl()[kind]) if body.keys() != {"by"}]
    assert bodies
    for body in bodies:
        assert (accepted_by_writer(kind, card, body), body) == (True, body)
        assert (accepted_by_verifier(kind, card, body), body) == (True, body)


@pytest.mark.parametrize("kind", KINDS)
def test_writer_and_verifier_refuse_bodies_that_break_the_cddl(kind: str) -> None:
    card = card_of(kind)
    bodies: list[Any] = [*broken_maps(file_cddl()[kind]), [], None, "x", b""]
    for body in bodies:
        assert (accepted_by_writer(kind, card, body), body) == (False, body)
        assert (accepted_by_verifier(kind, card, body), body) == (False, body)


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_writer_and_verifier_refuse_a_card_where_none_belongs_and_the_reverse(kind: str) -> None:
    body = next(maps(file_cddl()[kind]))
    for card in {None, H32, H32[1:]} - {card_of(kind)}:
        assert not accepted_by_verifier(kind, card, body)
    assert not accepted_by_writer(kind, None if card_of(kind) else H32, body)


@pytest.mark.parametrize("gate", GATES)
def test_writer_and_verifier_know_the_members_of_a_refusal(gate: str) -> None:
    """Every member of the other gates is malformed at this one (spec §6.4)."""
    card, own = GATES[gate]
    body = {"gate": gate, "reason": REASON[gate], "count": 1, **own}
    assert accepted_by_writer("refused", card, body)
    assert accepted_by_verifier("refused", card, body)
    for name in own:
        less = {other: value for other, value in body.items() if other != name}
        assert not accepted_by_writer("refused", card, less)
        assert not accepted_by_verifier("refused", card, less)


ALLOWED = {
    "issue": {"task"},
    "resolve": {"of", "echo", "decision", "channel", "target", "approver"},
    "withdraw": {"of", "echo", "channel", "target", "approver"},
    "dispatch": {"of", "target", "rebuilt"},
    "settle": {"of", "target"},
}
REFUSED = members(file_cddl()["refused"])
STRAYS = [
    (gate, name)
    for gate, name in itertools.product(GATES, REFUSED)
    if name not in ALLOWED[gate] | {"gate", "reason", "count"}
]


@pytest.mark.parametrize(("gate", "name"), STRAYS)
def test_writer_and_verifier_refuse_a_member_of_another_gate(gate: str, name: str) -> None:
    card, own = GATES[gate]
    body = {"gate": gate, "reason": REASON[gate], "count": 1, **own}
    body[name] = values(REFUSED[name][0])[0][0]
    assert not accepted_by_writer("refused", card, body)
    assert not accepted_by_verifier("refused", card, body)
