"""Documents keep their promises: links, anchors, checks, tests and errors that they name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ledger import errors
from ledger.cli import cli
from verifier import checks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SPEC = (DOCS / "spec.md").read_text("utf-8")
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("fixtures/*.md")])
ONE_SENTENCE = sorted(
    [
        *DOCS.glob("decisions/*.md"),
        *DOCS.glob("how-to/*.md"),
        *(
            DOCS / f"{n}.md"
            for n in ("README", "quickstart", "concepts", "glossary", "threat-model", "operations")
        ),
    ]
)
DECISION_PARTS = ["Context", "Options", "Choice", "Cost"]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def prose(text: str) -> str:
    """The text without fenced code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def links(text: str) -> list[str]:
    """Targets of relative Markdown links."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(text))
    return [target for target in targets if "://" not in target]


def anchors(text: str) -> set[str]:
    """The anchors that a heading gives: lower case, punctuation dropped, hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_ids() -> list[str]:
    table = SPEC.split("### 10.1")[1].split("### 10.2")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.M)


def refusal_reasons() -> set[str]:
    """The reasons in the second column of the first table of spec §6.4."""
    table = SPEC.split("### 6.4")[1].split("\n\n", 3)[2]
    cells = [line.split("|")[2] for line in table.splitlines()[2:]]
    return {reason for cell in cells for reason in re.findall(r"`(\w+)`", cell)}


def guarantees() -> list[tuple[str, str]]:
    """Numbered guarantees of the threat model: number, and what its line says holds it."""
    section = page("threat-model.md").split("## Guarantees")[1].split("\n## ")[0]
    items = re.split(r"^(\d+)\. ", section, flags=re.M)[1:]
    return list(zip(items[::2], items[1::2], strict=True))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_relative_links_resolve(path: Path) -> None:
    broken = []
    for target in links(path.read_text("utf-8")):
        file, _, anchor = target.partition("#")
        place = path.parent / file if file else path
        if not place.exists() or (anchor and anchor not in anchors(place.read_text("utf-8"))):
            broken.append(target)
    assert broken == []


def test_anchors_are_those_of_headings() -> None:
    assert anchors("## 2.3 Members, and `more`\n") == {"23-members-and-more"}


@pytest.mark.parametrize("path", ONE_SENTENCE, ids=name_of)
def test_a_line_of_prose_holds_one_sentence(path: Path) -> None:
    lines = prose(path.read_text("utf-8")).splitlines()
    ended = re.compile(r"[a-z)`\]]\. +[A-Z`]|[a-z)`]\? +[A-Z]")
    assert [line for line in lines if not line.startswith("|") and ended.search(line)] == []


# Decisions.


@pytest.mark.parametrize("path", sorted(DOCS.glob("decisions/*.md")), ids=name_of)
def test_decision_has_its_four_parts(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.findall(r"^## (.+)$", text, re.M) == DECISION_PARTS
    assert re.match(r"# Decision (\d+): ", text)[1] == str(int(path.name[:4]))  # type: ignore[index]


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(path.name[:4]) for path in sorted(DOCS.glob("decisions/*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


# The threat model.


def test_guarantees_are_numbered_from_one() -> None:
    numbers = [int(number) for number, _ in guarantees()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 5


@pytest.mark.parametrize(("number", "text"), guarantees())
def test_guarantee_names_a_check_or_a_test_that_exists(number: str, text: str) -> None:
    held = re.search(r"^ +Held by (.*)\.$", text, re.M)
    assert held is not None, f"guarantee {number} names nothing that holds it"
    names = re.findall(r"`([\w./-]+)`", held[1])
    missing = [
        name
        for name in names
        if not (name in check_ids() or (name.startswith("tests/") and (ROOT / name).exists()))
    ]
    assert names != []
    assert missing == []


def test_limits_are_numbered_from_one() -> None:
    section = page("threat-model.md").split("## Limits")[1].split("\n## ")[0]
    numbers = [int(n) for n in re.findall(r"^(\d+)\. ", section, re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 5


# Operations.


def answered() -> set[str]:
    """What operations.md answers: the code words in its headings and first columns."""
    rows = re.findall(r"^\| (.*?) \|", page("operations.md"), re.M)
    heads = re.findall(r"^#+ (.*)$", page("operations.md"), re.M)
    return {word for line in [*rows, *heads] for word in re.findall(r"`(\w+)`", line)}


@pytest.mark.parametrize("check", check_ids())
def test_operations_answers_every_check(check: str) -> None:
    assert check in answered()


@pytest.mark.parametrize("reason", sorted(refusal_reasons()))
def test_operations_answers_every_refusal(reason: str) -> None:
    assert reason in answered()


def error_classes() -> Iterator[str]:
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            yield name


@pytest.mark.parametrize("name", sorted(error_classes()))
def test_operations_answers_every_error(name: str) -> None:
    assert name in answered()


def test_operations_answers_nothing_that_is_gone() -> None:
    """A name in camel case in a first column is an error class that exists."""
    named = {word for word in answered() if re.fullmatch(r"(?:[A-Z][a-z]+)+", word)}
    assert named - set(error_classes()) == set()


# Commands.


def commands(text: str) -> list[str]:
    """What stands in backticks and begins with the name of the command."""
    return re.findall(r"`(cardchain [^`]+)`", text)


def unknown_words(command: str) -> list[str]:
    """The subcommands and options of a command line that `cardchain` does not have."""
    found: click.Command = cli
    words = command.split()[1:]
    while isinstance(found, click.Group) and words:
        name = words.pop(0)
        inner = found.get_command(click.Context(found), name)
        if inner is None:
            return [name]
        found = inner
    options = {option for parameter in found.params for option in parameter.opts}
    return [w for w in words if w.startswith("-") and w not in options | {"--help", "-"}]


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("cardchain status DIR", []),
        ("cardchain export DIR -o FILE.cbor", []),
        ("cardchain frobnicate DIR", ["frobnicate"]),
        ("cardchain status DIR --colour", ["--colour"]),
    ],
)
def test_unknown_words_of_a_command_are_told(command: str, unknown: list[str]) -> None:
    assert unknown_words(command) == unknown


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_commands_that_a_page_names_exist(path: Path) -> None:
    named = commands(path.read_text("utf-8"))
    assert [command for command in named if unknown_words(command)] == []


def advice() -> dict[str, str]:
    """What errors and findings tell a reader to do next."""
    hints = {name: getattr(errors, name).hint for name in error_classes()}
    refusals = {
        reason: errors.Refused("resolve", reason, count=1, record=None).hint
        for reason in sorted(refusal_reasons())
    }
    return hints | refusals | {check.id: check.next_command for check in checks.CHECKS}


@pytest.mark.parametrize(("name", "text"), advice().items())
def test_commands_that_a_hint_names_exist(name: str, text: str) -> None:
    named = re.findall(r"\bcardchain [a-z][^;,]*", text)
    assert [command for command in named if unknown_words(command)] == []


# The glossary.


def test_glossary_is_in_order_and_cites_the_spec() -> None:
    rows = re.findall(r"^\*\*(.+?)\*\*", page("glossary.md"), re.M)
    entries = page("glossary.md").split("\n**")[1:]
    assert rows == sorted(rows, key=str.lower)
    assert [entry for entry in entries if "§" not in entry and "](" not in entry] == []
