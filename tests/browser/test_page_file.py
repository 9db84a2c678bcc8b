"""The page is one file that is built from its sources, and that reaches for nothing outside."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import PAGE

from verifier import escape, spec

BROWSER = PAGE.parent
SOURCES = sorted((BROWSER / "src").glob("*.mjs"))
HTML = PAGE.read_text("utf-8")
POLICY = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', HTML)


def built(*arguments: str, folder: Path = BROWSER) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "build.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_page_is_what_the_sources_give() -> None:
    assert built("--check").returncode == 0


def copied(folder: Path) -> Path:
    """Give a copy of the build script and its sources."""
    (folder / "src").mkdir()
    for path in [BROWSER / "build.py", *(BROWSER / "src").iterdir()]:
        (folder / path.relative_to(BROWSER)).write_bytes(path.read_bytes())
    return folder


def test_page_that_is_out_of_date_is_told(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    assert built(folder=folder).returncode == 0
    style = folder / "src" / "page.css"
    style.write_text(style.read_text("utf-8") + "b { color: red; }\n", "utf-8")
    run = built("--check", folder=folder)
    assert (run.returncode, "not up to date" in run.stderr) == (1, True)


@pytest.mark.parametrize(
    "line",
    [
        'import { page } from "./page.mjs";\n',  # a circle
        "export { element };\n",
        "const text = `</" + "script>`;\n",
    ],
)
def test_sources_that_cannot_be_joined_are_refused(tmp_path: Path, line: str) -> None:
    folder = copied(tmp_path)
    source = folder / "src" / "dom.mjs"
    source.write_text(line + source.read_text("utf-8"), "utf-8")
    assert "BuildFailed" in built(folder=folder).stderr


def test_nothing_outside_the_file_is_named() -> None:
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`)]*", HTML)
    assert addresses == []
    assert re.findall(r"<(?:link|img|iframe|object|embed|base|form[^>]*action)\b", HTML) == []
    assert re.findall(r"\b(?:src|href|srcset)=", HTML) == []


def test_policy_allows_the_script_and_style_in_the_file_and_nothing_else() -> None:
    assert POLICY is not None
    rules = dict(rule.split(" ", 1) for rule in POLICY[1].split("; "))
    script = re.findall(r"<script>(.*?)</script>", HTML, re.S)
    style = re.findall(r"<style>(.*?)</style>", HTML, re.S)
    assert (len(script), len(style)) == (1, 1)
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest(script[0])}'",
        "style-src": f"'sha256-{digest(style[0])}'",
        "worker-src": "blob:",
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "cardchain-worker",
    }


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


FORBIDDEN = (
    r"\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"
    r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|localStorage|"
    r"indexedDB|document\.cookie|\bstyle="
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_source_makes_no_markup_of_text_and_asks_for_nothing(path: Path) -> None:
    assert re.findall(FORBIDDEN, path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_source_is_tidy_and_fits_in_a_head(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("/*")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert re.findall(r"\t|[ ]$|\r", text, re.M) == []
    assert text.count("\n") <= 400


def source(name: str) -> str:
    return (BROWSER / "src" / name).read_text("utf-8")


def test_hidden_code_points_are_those_of_the_spec() -> None:
    """Held against the ranges that tests/architecture holds against spec §9.2."""
    pairs = re.findall(r"\[(0x[0-9a-f]+), (0x[0-9a-f]+)\]", source("escape.mjs"))
    written = {
        code for first, last in pairs for code in range(int(first, 16), int(last, 16) + 1)
    } | {plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF)}
    assert written == {code for code in range(0x110000) if escape.is_hidden(chr(code))}


def test_reasons_are_those_of_the_spec_in_order() -> None:
    """Held against the reasons that tests/architecture holds against spec §6.4."""
    table = source("refusals.mjs").split("export const REASONS")[1].split("};")[0]
    found = {
        gate: re.findall(r'"(\w+)"', names)
        for gate, names in re.findall(r"(\w+): \[(.*?)\]", table, re.S)
    }
    assert found == {gate: list(names) for gate, names in spec.REASONS.items()}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_source_cites_sections_of_the_spec_that_exist(path: Path) -> None:
    pages = (PAGE.parents[2] / "docs" / "spec.md").read_text("utf-8")
    sections = set(re.findall(r"^#{2,4} (\d+(?:\.\d+)*)\.? ", pages, re.M))
    text = re.sub(r"RFC \d+ §[\d.]*\d", "", path.read_text("utf-8"))
    cited = set(re.findall(r"§(\d+(?:\.\d+)*)", text))
    assert cited - sections == set()
