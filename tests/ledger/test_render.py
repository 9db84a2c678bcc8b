"""What the approver sees (spec §9.1)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.envelope import Envelope, Proposal, project
from ledger.errors import Malformed
from ledger.render import render_card_text, shown

HASH = "0123456789abcdef" * 4


def envelope(**members: Any) -> Envelope:
    usual: dict[str, Any] = {
        "task": ("run-1", "refund"),
        "tool_name": "refund.create",
        "arguments": {},
        "reasoning": "",
        "ttl": 1800,
    }
    return project(Proposal.for_tool_call(**usual | members), 1_700_000_000)


FULL: dict[str, Any] = {
    "arguments": {"amount": "199.00", "lines": [1, 2.5, {"a": None}, [], {}, [True]], "é": "a\nb"},
    "reasoning": 'He said "yes"',
    "capability": {"refund": 1e21},
    "spec_digest": HASH,
    "artifact_digest": HASH,
    "subject": {"id": "user:1", "source": "sso"},
    "preconditions": [{"ref": "order/1", "version": "7"}],
    "policy_version": "policy-1",
    "purpose": "\u202egnp.exe",
    "impact": {
        "score": 90,
        "hard_one_way": True,
        "rationale": "money leaves",
        "fired_detectors": ["payment"],
        "detector_set": {"id": "set-1", "digest": HASH},
    },
    "rollback": {"procedure": "none", "irreversible": True},
    "grant_ttl": 900,
    "supersedes": HASH,
    "prior_attempt": {"card_hash": HASH, "outcome": "unknown"},
}

SMALLEST = """\
approval card (cardchain-text/1)
kind: "tool_call"
tool: "refund.create"
arguments: {}
capability: not stated
reasoning: ""
purpose: not stated
subject: not stated
NOT ASSESSED: treat as irreversible
impact: not assessed
rollback: not stated
preconditions: not stated
policy version: not stated
approval basis: not stated
review manifest: not stated
task:
  "id": "run-1"
  "step": "refund"
supersedes: not stated
prior attempt: not stated
tool specification: not stated
artifact: not stated
arguments digest: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
effect key: "<effect key>"
format: "cardchain-card/1"
issued at: 1700000000 (2023-11-14T22:13:20Z)
decide before: 1700001800 (2023-11-14T22:43:20Z)
runs at most once
may run: no limit
to decide, echo this hash: <card hash>
"""

LARGEST = f"""\
approval card (cardchain-text/1)
kind: "tool_call"
tool: "refund.create"
arguments:
  "amount": "199.00"
  "lines":
    [0]: 1
    [1]: 2.5
    [2]:
      "a": null
    [3]: []
    [4]: {{}}
    [5]:
      [0]: true
  "é": "a\\nb"
capability:
  "refund": 1e+21
reasoning: "He said \\"yes\\""
purpose: "\\u{{202e}}gnp.exe"
subject:
  "id": "user:1"
  "source": "sso"
IRREVERSIBLE: it cannot be undone
impact:
  "detector_set":
    "digest": "{HASH}"
    "id": "set-1"
  "fired_detectors":
    [0]: "payment"
  "hard_one_way": true
  "rationale": "money leaves"
  "score": 90
rollback:
  "irreversible": true
  "procedure": "none"
preconditions:
  [0]:
    "ref": "order/1"
    "version": "7"
policy version: "policy-1"
approval basis: not stated
review manifest: not stated
task:
  "id": "run-1"
  "step": "refund"
supersedes: "{HASH}"
prior attempt:
  "card_hash": "{HASH}"
  "outcome": "unknown"
tool specification: "{HASH}"
artifact: "{HASH}"
arguments digest: "<arguments digest>"
effect key: "<effect key>"
format: "cardchain-card/1"
issued at: 1700000000 (2023-11-14T22:13:20Z)
decide before: 1700001800 (2023-11-14T22:43:20Z)
runs at most once
may run: until 900 seconds after the decision
to decide, echo this hash: <card hash>
"""


@pytest.mark.parametrize(("members", "text"), [({}, SMALLEST), (FULL, LARGEST)])
def test_text_is_that_of_the_spec(members: dict[str, Any], text: str) -> None:
    card = envelope(**members)
    expected = (
        text.replace("<arguments digest>", card.document["action"]["args_digest"])
        .replace("<effect key>", card.effect_key)
        .replace("<card hash>", card.card_hash.hex())
    )
    assert render_card_text(card) == expected


def test_bytes_are_read_before_they_are_shown() -> None:
    card = envelope()
    assert render_card_text(card.bytes) == render_card_text(card)
    with pytest.raises(Malformed):
        render_card_text(card.bytes + b" ")


def test_reversible_is_said_only_where_it_was_stated() -> None:
    card = envelope(rollback={"procedure": "undo", "irreversible": False})
    assert "\nreversible: see rollback\n" in render_card_text(card)


def test_last_time_of_an_envelope_is_shown() -> None:
    asked = Proposal.for_tool_call(
        task=("a", "b"), tool_name="t", arguments={}, reasoning="", ttl=1
    )
    text = render_card_text(project(asked, 253_402_300_798))
    assert "decide before: 253402300799 (9999-12-31T23:59:59Z)" in text


def test_policy_evidence_is_shown() -> None:
    basis = f'"approval_basis":{{"engine":"e","evidence_class":"none","profile":"{HASH}",'
    basis += '"rules":[],"verdict":"ask"},'
    fields = '[{"id":"f","path":"/kind","value":null}]'
    manifest = f'"review_manifest":{{"fields":{fields},"schema":"s","selector":"{HASH}"}},'
    text = envelope().bytes.decode()
    text = text.replace('"effect_key"', basis + '"effect_key"')
    text = text.replace('"task"', manifest + '"task"')
    shown_text = render_card_text(text.encode())
    assert '\napproval basis:\n  "engine": "e"\n  "evidence_class": "none"\n' in shown_text
    assert (
        '\nreview manifest:\n  "fields":\n    [0]:\n      "id": "f"\n      "path": "/kind"\n'
        '      "value": null\n'
    ) in shown_text


# Reading the text back: what can be read back is injective, and forges nothing.

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}
TEXT = r'"((?:[^"\\]|\\.)*)"'


def unquoted(text: str) -> str:
    return re.sub(
        r"\\(?:u\{([0-9a-f]+)\}|s\{([0-9]+)\}|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else " " * int(m[2]) if m[2] else ESCAPES[m[3]],
        text,
    )


def leaf(text: str) -> Any:
    if quoted := re.fullmatch(TEXT, text):
        return unquoted(quoted[1])
    words = {"null": None, "true": True, "false": False, "{}": {}, "[]": []}
    return words[text] if text in words else int(text)


def block(lines: list[str], indent: int) -> Any:
    """Read the lines of an object or an array from the front, as deep as they are indented."""
    members: list[tuple[Any, Any]] = []
    while lines and lines[0].startswith(" " * indent):
        line = lines.pop(0)[indent:]
        found = re.fullmatch(rf"(?:{TEXT}|\[(\d+)\]):(?: (.*))?", line)
        assert found is not None, line
        name = int(found[2]) if found[2] else unquoted(found[1])
        members.append((name, leaf(found[3]) if found[3] else block(lines, indent + 2)))
    if [name for name, _ in members] == list(range(len(members))):
        return [value for _, value in members]
    return dict(members)


def arguments_in(text: str) -> Any:
    lines = text.replace("\n\\", "").removesuffix("\n").split("\n")
    first = next(line for line in lines if line.startswith("arguments:"))
    if first != "arguments:":
        return leaf(first.removeprefix("arguments: "))
    return block(lines[lines.index(first) + 1 :], 2)


ANY_TEXT = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from(
        [
            "\x1b[2J",
            "\u202e",
            "\\u{202e}",
            '": "',
            "\n  ",
            "not stated",
            "kind",
            "[0]",
            "\u0301",
            "{}",
        ]
    )
    | st.sampled_from([" " * 4, "\\s{4}", "a" * 99, "\\" * 150, "   "])
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(ANY_TEXT, VALUES, max_size=3)
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u0300-\u036f\u200b-\u200f\u2028-\u202e\ue000]")


@given(ARGUMENTS)
def test_arguments_can_be_read_back_from_the_text(arguments: dict[str, Any]) -> None:
    assert arguments_in(render_card_text(envelope(arguments=arguments))) == arguments


@given(ARGUMENTS, ANY_TEXT)
def test_no_hidden_character_comes_through_raw(arguments: dict[str, Any], reason: str) -> None:
    text = render_card_text(envelope(arguments=arguments, reasoning=reason))
    assert HIDDEN.search(text) is None


@given(ANY_TEXT, ANY_TEXT.filter(bool), ANY_TEXT.filter(bool))
def test_no_text_adds_a_line_of_its_own(reasoning: str, tool: str, step: str) -> None:
    text = render_card_text(envelope(reasoning=reasoning, tool_name=tool, task=("run", step)))
    whole = text.replace("\n\\", "")
    assert whole.count("\n") == SMALLEST.count("\n")
    assert unquoted(re.search(rf"^reasoning: {TEXT}$", whole, re.M)[1]) == reasoning


@given(ARGUMENTS, st.integers(0, 400))
def test_no_line_is_wider_than_a_screen(arguments: dict[str, Any], padding: int) -> None:
    padded = arguments | {"padded": "a" + " " * padding + "b" * padding}
    text = render_card_text(envelope(arguments=padded))
    assert max(map(len, text.split("\n"))) <= 100
    assert "     " not in re.sub(r"^ +", "", text, flags=re.M)
    assert arguments_in(text) == padded


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict) and value:
        return [leaf for member in value.values() for leaf in leaves(member)]
    if isinstance(value, list) and value:
        return [leaf for element in value for leaf in leaves(element)]
    return [value]


def test_every_text_of_the_envelope_is_in_the_text() -> None:
    card = envelope(**FULL)
    text = render_card_text(card)
    for value in leaves(card.document):
        if isinstance(value, str):
            assert f'"{shown(value)}"' in text.replace("\n\\", "")
