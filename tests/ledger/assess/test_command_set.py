"""The detectors against a set of commands, and the score that docs/assessor.md publishes."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.assess import DEFAULT, assess
from ledger.assess.rules import CommandRule, Detector

COMMANDS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("commands.json").read_text("utf-8")
)
IDS = [detector.id for detector in DEFAULT.detectors]
DOCUMENT = (Path(__file__).parents[3] / "docs" / "assessor.md").read_text("utf-8")
WRAPS = ["sudo {line}", "env A=b {line}", "true; {line}", "({line}\n)", "sh -c {quoted}"]
PARSED = [row for row in COMMANDS if "unparsable_command" not in row["detectors"]]


def impact(command: str) -> dict[str, Any]:
    return assess("shell.run", {"command": command}).impact


def tables() -> tuple[list[str], list[str]]:
    """The rows of both tables of the document, as Markdown."""
    answers = [(row, impact(row["command"])) for row in COMMANDS]
    sets = {
        "written with the rules": [a for a in answers if "unseen" not in a[0]],
        "written before a first run": [a for a in answers if "unseen" in a[0]],
        "both": answers,
    }
    hard = [
        _line(name, [(row["hard_one_way"], found["hard_one_way"]) for row, found in chosen])
        for name, chosen in sets.items()
    ]
    each = [_line(f"`{name}`", _marks(answers, name)) for name in IDS]
    return hard, each


def _marks(
    answers: Iterable[tuple[dict[str, Any], dict[str, Any]]], name: str
) -> list[tuple[bool, bool]]:
    return [(name in row["detectors"], name in found["fired_detectors"]) for row, found in answers]


def _line(name: str, marks: list[tuple[bool, bool]]) -> str:
    right = sum(expected and found for expected, found in marks)
    wrong = sum(found and not expected for expected, found in marks)
    missed = sum(expected and not found for expected, found in marks)
    cells = [len(marks), right, wrong, missed, _share(right, wrong), _share(right, missed)]
    return f"| {name} | {' | '.join(map(str, cells))} |"


def _share(right: int, other: int) -> str:
    return f"{right / (right + other):.2f}" if right + other else "none"


def found(row: dict[str, Any]) -> list[str]:
    """What the row says that the detectors answer: the truth, or a known error."""
    answer: list[str] = row.get("found", row["detectors"])
    return answer


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row["command"])
def test_command_fires_what_is_written(row: dict[str, Any]) -> None:
    answer = impact(row["command"])
    assert found(row) == answer["fired_detectors"]
    hard = {d.id for d in DEFAULT.detectors if d.hard}
    assert bool(hard & set(found(row))) == answer["hard_one_way"]
    assert bool(hard & set(row["detectors"])) == row["hard_one_way"]


def test_the_set_is_large_and_much_of_it_harmless() -> None:
    assert len(COMMANDS) >= 60
    assert len({row["command"] for row in COMMANDS}) == len(COMMANDS)
    assert len([row for row in COMMANDS if row["detectors"] == []]) >= 20


def test_a_known_error_is_one_and_gives_its_reason() -> None:
    errors = [row for row in COMMANDS if "found" in row or "why" in row]
    assert len(errors) > 10
    for row in errors:
        assert sorted(row["found"]) != sorted(row["detectors"]), row["command"]
        assert re.match(r"false (?:negative|positive): \w", row["why"]), row["command"]


def test_every_detector_of_commands_is_in_the_set() -> None:
    asked = {d.id for d in DEFAULT.detectors if d.commands or d.sql}
    assert asked - {name for row in COMMANDS for name in row["detectors"]} == {"payment"}


def spelled(pattern: str) -> str:
    """A word that a glob of the data matches."""
    for glob in ("[!n]", "[!u]", "[:/]", "*", "?"):
        pattern = pattern.replace(glob, "/" if glob == "[:/]" else "x")
    return pattern


def lines(rule: CommandRule) -> Iterator[str]:
    """The shortest commands that a rule describes, one for each alternative and option."""
    for words in itertools.product(*rule.words):
        for option in rule.options or ("",):
            for operand in rule.operands or ("",):
                parts = [*map(spelled, words), option, spelled(operand)]
                yield " ".join(part.replace("$x", "\\$x") for part in parts if part)


@pytest.mark.parametrize("detector", DEFAULT.detectors, ids=lambda detector: detector.id)
def test_every_rule_of_commands_can_fire(detector: Detector) -> None:
    every = [line for rule in detector.commands for line in lines(rule)]
    assert [x for x in every if detector.id not in impact(x)["fired_detectors"]] == []


SQL_WORDS = {"<name>": "x", "<end>": ";", "...": "x"}


def calls(detector: Detector) -> Iterator[tuple[str, dict[str, Any]]]:
    """A call for each of the other rules of a detector."""
    for rule in detector.sql:
        steps = [("x",) if step[0][0] == "!" else step for step in rule.sequence]
        for chosen in itertools.product(*steps):
            words = " ".join(SQL_WORDS.get(word, word) for word in chosen)
            yield "sql.query", {"sql": words}
    for tool in detector.tools:
        yield spelled(tool.name), dict.fromkeys(tool.members[-1:], True)
    yield from (("file.write", {"path": spelled(path)}) for path in detector.paths)
    yield from (("file.write", {"content": f"A {text} b"}) for text in detector.content)
    yield from (("python", {"code": f"a = {text}"}) for text in detector.code)


@pytest.mark.parametrize("detector", DEFAULT.detectors, ids=lambda detector: detector.id)
def test_every_other_rule_can_fire(detector: Detector) -> None:
    answers = [(call, assess(*call).impact["fired_detectors"]) for call in calls(detector)]
    assert [call for call, fired in answers if detector.id not in fired] == []


def test_the_published_score_is_the_score() -> None:
    hard, each = tables()
    rows = re.findall(r"^\| .* \| \d.* \|$", DOCUMENT.split("## Score")[1], re.M)
    assert hard + each == rows


@pytest.mark.parametrize("wrap", WRAPS)
def test_wrapping_loses_no_detector(wrap: str) -> None:
    wrapped = [wrap.format(line=r["command"], quoted=shlex.quote(r["command"])) for r in PARSED]
    pairs = zip(PARSED, wrapped, strict=True)
    lost = [line for r, line in pairs if set(found(r)) - set(impact(line)["fired_detectors"])]
    assert lost == []


LAYERS = [
    lambda line: f"sudo -u deploy sh -c {shlex.quote(line)}",
    lambda line: f"env -i A=b bash -lc {shlex.quote(line)}",
    lambda line: f"ssh -p 22 host {shlex.quote(line)}",
    lambda line: f"nohup timeout -k 1 5 sh -ec {shlex.quote(line)} &",
    lambda line: f"docker exec -u root web sh -c {shlex.quote(line)}",
    lambda line: f"eval {shlex.quote(line)}",
    lambda line: f"echo {shlex.quote(line)} | bash",
    lambda line: f"bash <<'END'\n{line}\nEND\n",
    lambda line: f"x=$({line}\n)",
]


@settings(deadline=None)
@given(st.sampled_from(PARSED), st.lists(st.sampled_from(LAYERS), max_size=3))
def test_wrapping_in_layers_loses_no_detector(row: dict[str, Any], layers: list[Any]) -> None:
    line = row["command"]
    for layer in layers:
        line = layer(line)
    assert set(found(row)) <= set(impact(line)["fired_detectors"])


@settings(deadline=None)
@given(st.permutations(["-r", "-f", "-v", "--one-file-system", "/srv/a", "b"]))
def test_the_order_of_the_flags_of_rm_does_not_matter(words: list[str]) -> None:
    assert ["recursive_delete"] == impact(f"rm {' '.join(words)}")["fired_detectors"]


@settings(deadline=None)
@given(st.permutations("rfvi"), st.sampled_from(["{}", "-i {}", "{} -v"]))
def test_the_order_in_a_cluster_of_rm_does_not_matter(letters: list[str], form: str) -> None:
    line = f"rm {form.format('-' + ''.join(letters))} x"
    assert ["recursive_delete"] == impact(line)["fired_detectors"]


@settings(deadline=None)
@given(
    st.permutations(["-u", "-q", "origin", "main"]),
    st.sampled_from(["-f", "--force", "--force-with-lease", "--force-with-lease=main:1a", "-fq"]),
    st.integers(0, 4),
)
def test_the_place_of_the_flag_of_git_push_does_not_matter(
    words: list[str], flag: str, place: int
) -> None:
    line = " ".join(["git push", *words[:place], flag, *words[place:]])
    assert ["force_push", "git_push"] == impact(line)["fired_detectors"]


@settings(deadline=None)
@given(st.sampled_from(PARSED))
def test_a_list_of_words_is_read_like_the_line(row: dict[str, Any]) -> None:
    given_words = ["bash", "-c", row["command"]]
    assert set(found(row)) <= set(
        assess("shell.run", {"argv": given_words}).impact["fired_detectors"]
    )
