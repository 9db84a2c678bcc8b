"""What the approver sees (spec §9.1)."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.envelope import Envelope, Proposal, differences, project
from ledger.errors import Malformed
from ledger.render import render_card_text, render_changes, shown

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
approval card (cardchain-text/2)
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
arguments digest:
  "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
effect key:
  "<effect key>"
format: "cardchain-card/1"
issued at: 1700000000 (2023-11-14T22:13:20Z)
decide before: 1700001800 (2023-11-14T22:43:20Z)
runs at most once
may run: no limit
to decide, echo this hash:
  <card hash>
"""

LARGEST = f"""\
approval card (cardchain-text/2)
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
    "digest":
      "{HASH}"
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
supersedes:
  "{HASH}"
prior attempt:
  "card_hash":
    "{HASH}"
  "outcome": "unknown"
tool specification:
  "{HASH}"
artifact: "{HASH}"
arguments digest:
  "<arguments digest>"
effect key:
  "<effect key>"
format: "cardchain-card/1"
issued at: 1700000000 (2023-11-14T22:13:20Z)
decide before: 1700001800 (2023-11-14T22:43:20Z)
runs at most once
may run: until 900 seconds after the decision
to decide, echo this hash:
  <card hash>
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

MEMBERS = {
    "kind": "kind",
    "tool": "action.tool_name",
    "arguments": "action.arguments",
    "capability": "action.capability",
    "reasoning": "reasoning",
    "purpose": "purpose",
    "subject": "subject",
    "impact": "impact",
    "rollback": "rollback",
    "preconditions": "preconditions",
    "policy version": "policy_version",
    "approval basis": "approval_basis",
    "review manifest": "review_manifest",
    "task": "task",
    "supersedes": "supersedes",
    "prior attempt": "prior_attempt",
    "tool specification": "action.spec_digest",
    "artifact": "action.artifact_digest",
    "arguments digest": "action.args_digest",
    "effect key": "effect_key",
    "format": "format",
}
FIRST = "approval card (cardchain-text/2)"
LAST = ("issued at", "decide before", "runs at most once", "may run", "to decide, echo this hash")
WORDS = (FIRST, "IRREVERSIBLE", "reversible", "NOT ASSESSED", *LAST)

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
        members.append((name, leaf(found[3]) if found[3] else below(lines, indent + 2)))
    if [name for name, _ in members] == list(range(len(members))):
        return [value for _, value in members]
    return dict(members)


def below(lines: list[str], indent: int) -> Any:
    """Read what stands below a label: a value alone in its line, or an object or array."""
    try:
        value = leaf(lines[0][indent:])
    except ValueError:
        return block(lines, indent)
    del lines[0]
    return value


def card_in(text: str) -> dict[str, Any]:
    """Give what each label of the renderer states; None where it says that nothing is stated."""
    lines = text.replace("\n\\", "").removesuffix("\n").split("\n")
    found: dict[str, Any] = {}
    while lines:
        label, _, stated = lines.pop(0).partition(": ")
        if label in ("to decide, echo this hash:", *WORDS):
            found[label] = stated or (lines.pop(0) if label.endswith(":") else None)
        elif stated in ("not stated", "not assessed"):
            found[label] = None
        else:
            found[label.removesuffix(":")] = leaf(stated) if stated else below(lines, 2)
    return found


def arguments_in(text: str) -> Any:
    return card_in(text)["arguments"]


SHORT_TEXT = (
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
            "not stated\nto decide, echo this hash:\n  " + HASH,
        ]
    )
    | st.sampled_from([" " * 4, "\\s{4}", "a" * 99, "\\" * 150, "   ", HASH])
)
ANY_TEXT = SHORT_TEXT | (
    st.builds(str.__mul__, st.sampled_from("\uff41\U0001f600\u4e00\u0430\n"), st.integers(1, 160))
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


@given(ARGUMENTS, st.integers(0, 400))
def test_no_row_of_spaces_pushes_a_value_away(arguments: dict[str, Any], padding: int) -> None:
    padded = arguments | {"padded": "a" + " " * padding + "b" * padding}
    text = render_card_text(envelope(arguments=padded))
    assert "     " not in re.sub(r"^ +", "", text, flags=re.M)
    assert arguments_in(text) == padded


PROPOSED = st.fixed_dictionaries(
    {"arguments": ARGUMENTS, "reasoning": ANY_TEXT},
    optional={
        "capability": st.dictionaries(ANY_TEXT, VALUES, min_size=1, max_size=2),
        "purpose": ANY_TEXT,
        "policy_version": SHORT_TEXT.filter(bool),
        "tool_name": SHORT_TEXT.filter(bool),
        "task": st.tuples(SHORT_TEXT.filter(bool), SHORT_TEXT.filter(bool)),
        "rollback": st.fixed_dictionaries({"procedure": ANY_TEXT, "irreversible": st.booleans()}),
        "supersedes": st.just(HASH),
        "grant_ttl": st.integers(1, 10**9),
    },
)


@given(PROPOSED)
def test_every_member_can_be_read_back_from_the_text(proposed: dict[str, Any]) -> None:
    """So different envelopes give different texts."""
    card = envelope(**proposed)
    found, document = card_in(render_card_text(card)), card.document
    for label, path in MEMBERS.items():
        value: Any = document
        for name in path.split("."):
            value = None if value is None else value.get(name)
        assert found.pop(label) == value, label
    grant = proposed.get("grant_ttl")
    irreversible = proposed.get("rollback", {}).get("irreversible")
    assert found == {
        FIRST: None,
        {
            None: "NOT ASSESSED",
            True: "IRREVERSIBLE",
            False: "reversible",
        }[irreversible]: {
            None: "treat as irreversible",
            True: "it cannot be undone",
            False: "see rollback",
        }[irreversible],
        "issued at": "1700000000 (2023-11-14T22:13:20Z)",
        "decide before": "1700001800 (2023-11-14T22:43:20Z)",
        "runs at most once": None,
        "may run": "no limit" if grant is None else f"until {grant} seconds after the decision",
        "to decide, echo this hash:": f"  {card.card_hash.hex()}",
    }


@given(PROPOSED)
def test_no_label_of_the_renderer_can_be_forged_at_the_left_edge(proposed: dict[str, Any]) -> None:
    """In a terminal of 80 columns each line is a row, so this is what stands at its left edge."""
    card = envelope(**proposed)
    lines = render_card_text(card).removesuffix("\n").split("\n")
    labels = [line.split(":")[0] for line in lines if not line.startswith((" ", "\\"))]
    shown_as = ("NOT ASSESSED", "IRREVERSIBLE", "reversible")
    expected = [FIRST, *MEMBERS, *LAST]
    assert [label for label in labels if label not in shown_as] == expected
    assert len(labels) == len(expected) + 1
    assert lines[-2:] == ["to decide, echo this hash:", f"  {card.card_hash.hex()}"]


def is_wide(character: str) -> bool:
    """Tell whether a terminal draws two columns, by the Unicode tables of this Python.

    They hold a width for code points that are not assigned too, which says nothing.
    """
    is_assigned = unicodedata.category(character) != "Cn"
    return is_assigned and unicodedata.east_asian_width(character) in "WF"


def columns(line: str) -> int:
    return len(line) + sum(map(is_wide, line))


@given(PROPOSED)
def test_no_line_is_wrapped_by_a_terminal_of_80_columns(proposed: dict[str, Any]) -> None:
    text = render_card_text(envelope(**proposed))
    assert max(map(columns, text.split("\n"))) <= 76


def test_every_wide_code_point_is_counted_as_wide() -> None:
    every = [chr(n) for n in range(0x110000) if is_wide(chr(n))]
    assert len(every) > 100_000
    text = render_card_text(envelope(arguments={"wide": "".join(every)}))
    assert max(map(columns, text.split("\n"))) in (75, 76)


A, WIDE, BELOW = '  "a": "', "\uff41", '    "'


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("a" * 67, [A + "a" * 67 + '"']),
        ("a" * 68, ['  "a":', BELOW + "a" * 68 + '"']),
        ("a" * 70, ['  "a":', BELOW + "a" * 70 + '"']),
        ("a" * 71, ['  "a":', BELOW + "a" * 71, '\\"']),
        ("a" * 146, ['  "a":', BELOW + "a" * 71, "\\" + "a" * 75, '\\"']),
        (WIDE * 33, [A + WIDE * 33 + '"']),
        (WIDE * 34, ['  "a":', BELOW + WIDE * 34 + '"']),
        (WIDE * 36, ['  "a":', BELOW + WIDE * 35, "\\" + WIDE + '"']),
        ("\u10ff" * 67, [A + "\u10ff" * 67 + '"']),
        ("\u1100" * 34, ['  "a":', BELOW + "\u1100" * 34 + '"']),
        ("a" * 64 + "\u202e", ['  "a":', BELOW + "a" * 64, '\\\\u{202e}"']),
        ("a" * 67 + "    b", ['  "a":', BELOW + "a" * 67, '\\\\s{4}b"']),
        ("a" * 70 + "\n", ['  "a":', BELOW + "a" * 70, '\\\\n"']),
    ],
)
def test_value_that_is_too_wide_stands_below_and_is_cut_there(value: str, lines: list[str]) -> None:
    text = render_card_text(envelope(arguments={"a": value}))
    assert f"\narguments:\n{chr(10).join(lines)}\ncapability: not stated\n" in text


def test_wide_name_is_cut_and_its_value_stands_below() -> None:
    text = render_card_text(envelope(arguments={"n" * 80: True, "o" * 80: [1]}))
    assert (
        f'\narguments:\n  "{"n" * 73}\n\\{"n" * 7}":\n    true\n'
        f'  "{"o" * 73}\n\\{"o" * 7}":\n    [0]: 1\ncapability:'
    ) in text


# What changed


def side(text: str) -> Any:
    return ... if text == "not stated" else leaf(text)


def changes_in(text: str) -> list[tuple[str, Any, Any]]:
    """Give the pointer and both values of each change that a text tells."""
    lines = text.replace("\n\\", "").removesuffix("\n").split("\n")[2:]
    found = []
    while lines:
        line = lines.pop(0)
        named = re.match(rf"  {TEXT}:", line)
        assert named is not None, line
        if line == named[0]:
            before, after = lines.pop(0)[4:], lines.pop(0)[4:].removeprefix("-> ")
        else:
            both = re.fullmatch(rf" (.*) -> ({TEXT}|[^\"]*)", line[named.end() :])
            assert both is not None, line
            before, after = both[1], both[2]
        found.append((unquoted(named[1]), side(before), side(after)))
    return found


@given(ARGUMENTS, ARGUMENTS)
def test_changes_can_be_read_back_from_the_text(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    old, new = envelope(arguments=before), envelope(arguments=after)
    text = render_changes(old, new)
    assert changes_in(text) == [
        (pointer, *(... if one is None else json.loads(one) for one in (was, now)))
        for pointer, was, now in differences(old, new)
    ]
    assert text.startswith(f"changes (cardchain-changes/2)\nsince card: {old.card_hash.hex()}\n")
    assert max(map(columns, text.split("\n"))) <= 76
    edge = [line for line in text.split("\n") if not line.startswith((" ", "\\"))]
    assert edge == [*text.split("\n")[:2], ""]


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
