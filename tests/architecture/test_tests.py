"""Tests can fail: each asserts something, none mocks the product or skips without a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
ASSERTING = ("assert", "check", "raises", "validate", "fail", "ok")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def own_tests(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def called(node: ast.AST) -> Iterator[str]:
    """Last words of the names of all functions called inside."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            function = call.func
            yield str(getattr(function, "attr", "") or getattr(function, "id", ""))


def asserting(tree: ast.AST) -> set[str]:
    """Functions of a file that assert, directly or through one another."""
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    found = {
        name
        for name, node in functions.items()
        if any(isinstance(inner, ast.Assert) for inner in ast.walk(node))
        or any(word.startswith(ASSERTING) for word in called(node))
    }
    while more := {n for n, f in functions.items() if n not in found and found & {*called(f)}}:
        found |= more
    return found


def idle(text: str) -> list[str]:
    """Tests that assert nothing."""
    tree = ast.parse(text)
    return [node.name for node in own_tests(tree) if node.name not in asserting(tree)]


def test_a_test_that_asserts_nothing_is_seen() -> None:
    text = "def look(x): assert x\ndef test_a(): look(1)\ndef test_b(): print(1)\n"
    assert idle(text) == ["test_b"]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_test_asserts_something(path: Path) -> None:
    assert idle(path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_test_of_a_file_hides_another(path: Path) -> None:
    """Two functions of one name in one file: the first would never run."""
    names = [n.name for n in ast.parse(path.read_text("utf-8")).body if hasattr(n, "name")]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_is_mocked(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    modules = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", "") or "", *(alias.name for alias in node.names)]
    ]
    assert [name for name in modules if "mock" in name.split(".")] == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_skip_and_no_expected_failure_is_without_a_reason(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    words = {"skip", "skipif", "xfail", "importorskip"}
    silent = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "attr", "") in words)
        and not (node.keywords or node.args)
    ]
    marked = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
        if isinstance(mark, ast.Attribute) and mark.attr in words
    ]
    assert silent + marked == []
