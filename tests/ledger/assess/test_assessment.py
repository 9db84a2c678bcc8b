"""Impact and rollback of a call, as members of a proposal."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import Proposal, render_card_text
from ledger.assess import DEFAULT, assess
from ledger.assess.arguments import MAX_CHARACTERS
from ledger.envelope import project

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "assessor.md").read_text("utf-8")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.sampled_from("rm -f;|&()'\"`$\\#=<>\n")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text() | st.sampled_from(["command", "sql", "path", "content", "args", "code"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
TOOLS = st.text() | st.sampled_from(["shell.run", "sql.query", "file.write", "payment.create"])


def proposed(tool_name: str, arguments: dict[str, Any], **members: Any) -> str:
    """The card of a proposal, as text."""
    proposal = Proposal.for_tool_call(
        task=("run-7", "step"),
        tool_name=tool_name,
        arguments=arguments,
        reasoning="a test",
        ttl=60,
        **members,
    )
    return render_card_text(project(proposal, 1_800_000_000))


@settings(deadline=None)
@given(TOOLS, JSON)
def test_any_call_has_members_that_a_proposal_takes(tool_name: str, arguments: Any) -> None:
    answer = assess(tool_name, arguments)
    card = proposed("a.tool", {}, impact=answer.impact, rollback=answer.rollback)
    score = answer.impact["score"]
    assert f'  "score": {score}\n' in card


@settings(deadline=None)
@given(TOOLS, JSON)
def test_the_same_call_is_always_assessed_alike(tool_name: str, arguments: Any) -> None:
    assert assess(tool_name, arguments) == assess(tool_name, arguments)


def without(text: str, phrases: set[str]) -> set[str]:
    """The characters that are left of a text when every phrase is taken out."""
    for phrase in sorted(phrases, key=len, reverse=True):
        text = text.replace(phrase, "")
    return set(text)


@settings(deadline=None)
@given(TOOLS, JSON)
def test_nothing_of_the_call_stands_in_the_texts(tool_name: str, arguments: Any) -> None:
    answer = assess(tool_name, arguments)
    ids = {d.id for d in DEFAULT.detectors} | {c.id for c in DEFAULT.classes} | {"unknown"}
    undo = {d.undo.undo for d in DEFAULT.detectors} | {c.undo.undo for c in DEFAULT.classes}
    undo.add(DEFAULT.unknown.undo)
    said = {"detectors fired", "none of", "of", "one way", "class", "rest of the call"}
    assert without(answer.impact["rationale"], ids | said) <= set("0123456789 :;,()")
    assert without(answer.rollback["procedure"], ids | undo | said) <= set(" :;")


@settings(deadline=None)
@given(TOOLS, JSON)
def test_a_one_way_door_is_marked_in_both_members(tool_name: str, arguments: Any) -> None:
    answer = assess(tool_name, arguments)
    hard = {d.id for d in DEFAULT.detectors if d.hard} & set(answer.impact["fired_detectors"])
    assert bool(hard) is answer.impact["hard_one_way"]
    assert answer.rollback["irreversible"] or not hard


@pytest.mark.parametrize("value", [b"rm", object(), {1: "rm -rf x"}, {"command": {"rm"}}, 1 + 2j])
def test_what_is_no_json_is_assessed_too(value: Any) -> None:
    assert assess("shell.run", value).impact["score"] > 0


def test_a_call_in_which_nothing_fires_has_the_score_of_its_class() -> None:
    answer = assess("shell.run", {"command": "git status | head"})
    assert answer.impact == {
        "score": 0,
        "hard_one_way": False,
        "rationale": f"none of {len(DEFAULT.detectors)} detectors fired; class: read",
        "fired_detectors": [],
        "detector_set": {"id": DEFAULT.id, "digest": DEFAULT.digest},
    }
    assert answer.rollback == {
        "procedure": "nothing to undo: it only reads",
        "irreversible": False,
    }


def test_what_fires_is_in_score_rationale_and_rollback() -> None:
    answer = assess("shell.run", {"command": "git push --force; frobnicate"})
    assert 95 == answer.impact["score"]
    assert answer.impact["rationale"].endswith("detectors fired: force_push (one way), git_push")
    assert answer.rollback["procedure"].startswith("force_push: push the old commit again")
    assert answer.rollback["procedure"].endswith("; rest of the call: no known undo")


@pytest.mark.parametrize(
    ("tool_name", "procedure", "irreversible"),
    [
        ("frobnicate", "no known undo", True),
        ("shell.run", "no known undo", True),
        ("file.read", "nothing to undo: it only reads", False),
        ("mailing.list.create", "no known undo", True),
        ("file.write", next(c.undo.undo for c in DEFAULT.classes if c.writes), False),
    ],
)
def test_a_tool_is_undone_like_its_class(
    tool_name: str, procedure: str, irreversible: bool
) -> None:
    expected = {"procedure": procedure, "irreversible": irreversible}
    assert expected == assess(tool_name, {}).rollback


@pytest.mark.parametrize(
    ("tool_name", "arguments", "fired"),
    [
        ("payment.create", {"amount": "10.00"}, ["payment"]),
        ("mcp__payments__refund_create", {}, ["payment"]),
        ("payment.list", {}, []),
        ("npm.publish", {}, ["publication"]),
        ("publish", {}, ["publication"]),
        (
            "email.send",
            {"to": "a@example.com", "body": "rm -rf /;"},
            ["message_sent"],
        ),
        ("sendEmail", {}, ["message_sent"]),
        ("git.push", {"force": True}, ["force_push", "git_push"]),
        ("git.push", {"force": False}, ["git_push"]),
        ("file.delete", {"path": "x"}, ["delete"]),
        ("file.delete", {"path": "x", "recursive": True}, ["recursive_delete", "delete"]),
        ("file.write", {"path": "app/.env", "content": "A=b"}, ["secret_write"]),
        ("file.write", {"path": "notes.md", "content": "rm -rf /; DROP TABLE x"}, []),
        (
            "file.write",
            {"path": "k", "content": "X PRIVATE KEY-----"},
            ["secret_write"],
        ),
        ("file.write", {"file_path": "db/migrations/1.sql", "content": "x"}, ["schema_change"]),
        ("file.read", {"path": "app/.env"}, []),
        ("db.query", {"sql": "DROP TABLE x"}, ["destructive_sql"]),
        ("db.query", {"query": "SELECT 1"}, []),
        (
            "db",
            {"batch": [{"sql": "SELECT 1"}, {"sql": "TRUNCATE x"}]},
            ["destructive_sql"],
        ),
        ("x", {"steps": [{"run": "ls"}, {"run": "rm -rf x"}]}, ["recursive_delete"]),
        ("x", {"command": "rm", "args": ["-r", "x"]}, ["recursive_delete"]),
        ("x", {"argv": ["sudo", "rm", "-r", "x"]}, ["recursive_delete"]),
        ("x", {"whatever": "cd /srv && rm -rf x"}, ["recursive_delete"]),
        ("x", {"whatever": "it's a note (see below"}, []),
        ("x", "rm -rf x", ["recursive_delete"]),
        (
            "python",
            {"code": "shutil.rmtree('x')"},
            ["recursive_delete", "opaque_command"],
        ),
        ("x", {"language": "bash", "code": "rm -rf x"}, ["recursive_delete", "opaque_command"]),
        ("x", {"content": "x" * 1_048_577}, ["not_fully_read"]),
        ("x", {"command": "sudo " * 100 + "rm -rf x"}, ["not_fully_read"]),
    ],
)
def test_structured_calls_fire(tool_name: str, arguments: Any, fired: list[str]) -> None:
    assert fired == assess(tool_name, arguments).impact["fired_detectors"]


@pytest.mark.parametrize(
    ("command", "classes"),
    [
        ("ls; cat x", "read"),
        ("git commit -m x", "version_control"),
        ("echo x > y", "file_write, read"),
        ("ls > /dev/null 2>&1", "read"),
        ("ls; frobnicate", "read, unknown"),
        ("sudo ls", "read"),
        ("psql -c 'SELECT 1'", "read"),
        ("psql -c 'VACUUM'", "unknown"),
        ("psql", "unknown"),
        ("", "command"),
    ],
)
def test_a_command_is_of_the_classes_of_its_parts(command: str, classes: str) -> None:
    rationale = assess("shell.run", {"command": command}).impact["rationale"]
    assert f"class: {classes}" == rationale.partition("; ")[2]


def test_a_card_without_an_assessment_says_so_and_one_with_shows_it() -> None:
    command = {"command": "git push --force"}
    assert "\nimpact: not assessed\n" in proposed("shell.run", command)
    answer = assess("shell.run", command)
    card = proposed("shell.run", command, **dataclasses.asdict(answer))
    assert "\nIRREVERSIBLE: it cannot be undone\n" in card
    assert '\n    [0]: "force_push"\n' in card


def test_the_example_of_the_document_prints_what_is_shown() -> None:
    program, shown = re.findall(r"^```(?:python|text)\n(.*?)^```$", DOCUMENT, re.M | re.S)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert shown == done.stdout


def test_the_table_of_the_document_is_the_set() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (yes|no) \| (\d+) \|", DOCUMENT, re.M)
    expected = [(d.id, "yes" if d.hard else "no", str(d.undo.score)) for d in DEFAULT.detectors]
    assert expected == rows


N = MAX_CHARACTERS
HOSTILE = {
    "quotes": "'" * N,
    "escaped quotes": "'" + "\\'" * (N // 2 - 2) + "\\",
    "groups": "(" * N,
    "substitutions": '"$(' * (N // 3),
    "backquotes": "`" * N,
    "carriers": "sudo " * (N // 5),
    "options": "sh " + "-c " * (N // 3 - 1),
    "joined options": "psql " + "-cA " * (N // 4 - 2),
    "commands": "rm;" * (N // 3),
    "programs": ";".join(f"p{n} -x" for n in range(N // 10)),
    "documents": "cat <<A\n$(" * (N // 10),
    "comments": "/*" * (N // 2),
    "dollars": "$a" * (N // 2),
    "brackets": "[" * N,
    "statements": "UPDATE a\n" * (N // 9),
    "open statements": "(DELETE x " * (N // 10),
    "stars": "git push " + "github.com" * (N // 10 - 1),
    "files": ">a " * (N // 3),
    "assignments": "a=b " * (N // 4),
    "pipes": "echo a" + "|cat" * (N // 4 - 2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_of_full_size_takes_bounded_time(name: str) -> None:
    """Quadratic time would take minutes here, linear time takes about a second."""
    started = time.process_time()
    assess("x", {"whatever": HOSTILE[name], "path": HOSTILE[name]})
    assert time.process_time() - started < 10
