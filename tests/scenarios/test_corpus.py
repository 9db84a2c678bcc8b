"""The corpus is whole: every rule and reason has a scenario, and every scenario can fail."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import jsonschema
import pytest
from naive import Naive
from play import Play

from ledger import gate, lifecycle, policy

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
SPEC = (ROOT / "docs" / "spec.md").read_text("utf-8")
SCENARIOS = {path.stem: corpus.load(path) for path in corpus.PATHS}
VALIDATOR = jsonschema.Draft202012Validator(json.loads(corpus.SCHEMA.read_text("utf-8")))
MUST_BE_COVERED = [
    *(f"F{number:02}" for number in range(1, 24)),
    *(f"G{number:02}" for number in range(1, 13)),
    *(f"H{number:02}" for number in range(1, 21)),
    "I24",
]
OWNERS = (
    "policy engine",
    "identity system",
    "business system",
    "tool registry",
    "approval policy",
    "whoever chooses the fields",
    "auditor",
    "operator",
    "workflow",
)
METHODS = (
    *("issue", "resolve", "withdraw", "dispatch", "guard", "settle"),
    *("configure", "clock_reset", "affected"),
)
SERIES = ("resume", "checklist", "shortcut")
WRONG = {
    "refused": "no_such_reason",
    "differs": ["/no/such/place"],
    "drift": ["nothing"],
    "exceptions": ["nothing"],
    "affected": ["nothing"],
    "verdict": "nothing",
    "outcomes": {"accepted": 99},
    "business_got": ["nothing"],
}


def reasons_of_the_spec() -> list[tuple[str, str]]:
    """Pair each gate with each of its reasons, from the first table of spec §6.4."""
    table = SPEC.split("### 6.4")[1].split("\n\n", 3)[2]
    found, at_gate = [], ""
    for line in table.splitlines()[2:]:
        cells = [cell.strip() for cell in line.split("|")]
        at_gate = cells[1] or at_gate
        found += [(at_gate, reason) for reason in re.findall(r"`(\w+)`", cells[2])]
    return found


def expected_of(scenario: dict[str, Any], number: int) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    for entry in scenario["then"]:
        expected |= entry if entry["after"] == number else {}
    return expected


def refusals(scenario: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give gate and reason of everything that the scenario expects to be refused."""
    for number, step in enumerate(scenario["when"], 1):
        expected = expected_of(scenario, number)
        if "refused" in expected:
            yield {"guard": "dispatch"}.get(step["do"], step["do"]), expected["refused"]
        for reason in expected.get("outcomes", {}):
            if reason != "accepted":
                yield step["steps"][0]["do"], reason


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from texts(member)
    elif isinstance(value, str):
        yield value


def labels_in(value: Any) -> Iterator[str]:
    """Give the cards that a scenario names anywhere, inside cards and outside."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name in ("card", "like", "echo") and isinstance(member, str):
                yield member
            yield from labels_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from labels_in(member)


# The files


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_fits_the_schema(name: str) -> None:
    VALIDATOR.validate(SCENARIOS[name])


def test_the_schema_is_one() -> None:
    VALIDATOR.check_schema(VALIDATOR.schema)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_names_itself_its_cards_and_its_steps(name: str) -> None:
    scenario = SCENARIOS[name]
    cards = set(scenario["given"]["cards"])
    assert scenario["name"] == name
    assert set(labels_in([scenario["given"], scenario["when"]])) <= cards
    assert cards <= {*labels_in(scenario["given"]), *labels_in(scenario["when"])}
    steps = len(scenario["when"])
    assert all(entry["after"] <= steps for entry in scenario["then"])
    assert all(entry.get("same_as", 0) < entry["after"] for entry in scenario["then"])


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_depends_on_no_hash_and_no_date(name: str) -> None:
    found = [text for text in texts(SCENARIOS[name]) if re.search(r"[0-9a-f]{32}|\d{10}", text)]
    assert found == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_owned_outside_has_an_owner_and_says_what_is_kept_here(name: str) -> None:
    said = SCENARIOS[name].get("owned_outside")
    if said is not None:
        assert said.startswith(OWNERS)
        owner, _, here = said.partition("; ")
        assert ":" in owner
        assert here


def test_two_scenarios_are_not_the_same() -> None:
    bodies = [json.dumps([s["given"], s["when"], s["then"]]) for s in SCENARIOS.values()]
    assert len(set(bodies)) == len(bodies)


# What they cover


def test_every_rule_of_the_gate_of_spending_and_of_policy_has_a_scenario() -> None:
    covered = {rule for scenario in SCENARIOS.values() for rule in scenario["rule"]}
    assert [rule for rule in MUST_BE_COVERED if rule not in covered] == []


def test_every_refusal_reason_of_every_gate_has_a_scenario() -> None:
    expected = reasons_of_the_spec()
    assert len(expected) > 30
    found = {pair for scenario in SCENARIOS.values() for pair in refusals(scenario)}
    assert [pair for pair in expected if pair not in found] == []


def test_the_nine_steps_the_ten_questions_and_the_four_shortcuts_have_one_each() -> None:
    for prefix, count in zip(SERIES, (9, 10, 4), strict=True):
        numbers = [int(n.split("_")[1]) for n in SCENARIOS if n.startswith(f"{prefix}_")]
        assert sorted(numbers) == list(range(1, count + 1))


def test_a_forbidden_shortcut_has_no_effect() -> None:
    for name, scenario in SCENARIOS.items():
        if name.startswith("shortcut_"):
            counts = [entry["counts"] for entry in scenario["then"] if "counts" in entry]
            assert counts
            assert all(count["business_effect_count"] == 0 for count in counts)


def test_the_second_implementation_is_one() -> None:
    here = Path(__file__).parent
    modules = [here / f"{name}.py" for name in ("naive", "naive_card", "corpus", "driver", "play")]
    names = {
        name.split(".")[0]
        for path in modules
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", "") or "", *(alias.name for alias in node.names)]
    }
    assert names & {"ledger", "verifier", "real"} == set()


# They can fail


def falsified(name: str, value: Any) -> Any:
    """Give a value that an expectation of this name cannot have."""
    if name in WRONG:
        return WRONG[name]
    if name == "counts":
        return {each: count + 1 for each, count in value.items()}
    if name in ("state", "step_state", "approver"):
        return dict.fromkeys(value, "nothing")
    if name == "shown":
        return {label: ["not in any card"] for label in value}
    if name == "hidden":
        return {label: ["refund"] for label in value}
    if name == "trace":
        return {label: {} for label in value}
    return None


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_expectation_is_looked_at(name: str) -> None:
    scenario = SCENARIOS[name]
    for number, entry in enumerate(scenario["then"]):
        for member, value in entry.items():
            changed = copy.deepcopy(scenario)
            wrong = falsified(member, value)
            if wrong is not None:
                changed["then"][number][member] = wrong
            elif member in ("invalid", "stopped", "same_as"):
                del changed["then"][number][member]
            elif member in ("same", "different"):
                other = {"same": "different", "different": "same"}[member]
                changed["then"][number][other] = changed["then"][number].pop(member)
            else:
                assert member == "after"
                continue
            changed["when"] = changed["when"][: entry["after"]]
            with pytest.raises((AssertionError, KeyError)):
                Play(changed, Naive).check()


def test_an_accepted_step_is_expected_where_nothing_is_said() -> None:
    scenario = copy.deepcopy(SCENARIOS["shortcut_1_dispatch_under_expired_approval"])
    scenario["then"] = []
    with pytest.raises(AssertionError):
        Play(scenario, Naive).check()


# The page


def decided_by(at_gate: str, reason: str) -> str:
    """Name the function of the ledger that gives a reason."""
    for module in (gate, policy, lifecycle):
        function = getattr(module, at_gate, None)
        source = inspect.getsource(function) if function else ""
        if module is policy and at_gate == "issue":
            source = inspect.getsource(policy)
        if f'"{reason}"' in source:
            return f"{module.__name__.split('.')[-1]}.{at_gate}"
    assert f'"{reason}"' in inspect.getsource(lifecycle)
    return f"lifecycle.{at_gate}"


def functions_of(scenario: dict[str, Any]) -> str:
    """Give the functions that a scenario runs through, and the reasons of each."""
    reasons: dict[str, list[str]] = {}
    for number, step in enumerate(scenario["when"], 1):
        expected = expected_of(scenario, number)
        for name in [step["do"], *(inner["do"] for inner in step.get("steps", []))]:
            if name == "verify":
                reasons.setdefault("verifier.verify", [])
            if name in METHODS:
                kind = [word for word in ("invalid", "stopped") if expected.get(word)]
                if "refused" not in expected:
                    reasons.setdefault(f"Ledger.{name}", []).extend(kind)
    for at_gate, reason in refusals(scenario):
        reasons.setdefault(decided_by(at_gate, reason), []).append(f"`{reason}`")
    return "; ".join(
        f"{name}: {', '.join(dict.fromkeys(said))}" if said else name
        for name, said in reasons.items()
    )


def place(name: str) -> tuple[int, int, str]:
    """The numbered series come first, in the order of their numbers."""
    word, _, rest = name.partition("_")
    if word not in SERIES:
        return len(SERIES), 0, name
    return SERIES.index(word), int(rest.split("_")[0]), name


def table_of_scenarios() -> str:
    rows = [
        f"| `{name}` | {' '.join(SCENARIOS[name]['rule'])} | {SCENARIOS[name]['what']} | "
        f"{functions_of(SCENARIOS[name])} |"
        for name in sorted(SCENARIOS, key=place)
    ]
    return "\n".join(rows) + "\n"


def test_the_page_holds_the_table_of_the_scenarios() -> None:
    """With `UPDATE_EXAMPLES=1` in the environment, the page is changed instead."""
    text = PAGE.read_text("utf-8")
    head, rule, rest = text.partition("| scenario | rules | what it shows | functions, reasons |\n")
    line, _, rows = rest.partition("\n")
    old = re.match(r"(?:\|.*\n)*", rows)
    assert rule
    assert old
    updated = f"{head}{rule}{line}\n{table_of_scenarios()}{rows[old.end() :]}"
    if os.environ.get("UPDATE_EXAMPLES") == "1":
        PAGE.write_text(updated, "utf-8")
    else:
        assert text == updated


def test_the_page_says_what_every_rule_is() -> None:
    rules = re.findall(r"^\| ([A-J]\d\d) \| \S.* \|$", PAGE.read_text("utf-8"), re.M)
    used = {rule for scenario in SCENARIOS.values() for rule in scenario["rule"]}
    assert rules == sorted(rules)
    assert set(rules) == used


def test_the_page_names_every_step_and_every_expectation() -> None:
    schema = VALIDATOR.schema
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.M))
    defined = schema["$defs"]
    steps = [
        defined.get(each.get("$ref", "").split("/")[-1], each) for each in defined["step"]["oneOf"]
    ]
    assert {step["properties"]["do"]["const"] for step in steps} <= named
    assert {*schema["$defs"]["then"]["properties"]} - {"after"} <= named
