"""What no file of the project may hold: paths of a machine, keys, leftovers, foreign line ends."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("ledger", "verifier", "fixtures", "tests", "docs")
TEXT = {".py", ".md", ".json", ".cddl", ".toml", ".txt", ".yml", ".yaml", ".typed"}


def text_files() -> list[Path]:
    """Every text file of the project, without caches and what npm installed."""
    inside = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in TEXT]
    top = [p for p in ROOT.iterdir() if p.suffix in TEXT]
    foreign = {"__pycache__", "node_modules"}
    return sorted(p for p in [*inside, *top] if p.is_file() and foreign.isdisjoint(p.parts))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def findings(pattern: str, text: str) -> list[str]:
    return [match[0] for match in re.finditer(pattern, text)]


MACHINE_PATH = r"(?<![\w.~}])/(?:work|tmp|home|root|Users|var/folders)\b(?:/[\w.]*)?"
LEFTOVER = r"\b(?:TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b"
ISSUE = r"\b(?i:issue|pull request|pr|ticket) #\d+"
SECRET = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_\w{36}|"
    r"\bsk-[A-Za-z0-9]{20,}|\bxox[abprs]-\w+"
)
KEY_MEMBER = re.compile(r"""["']secret["']\s*:\s*["']([0-9a-fA-F]{64})["']""")


def counts_up(secret: bytes) -> bool:
    """Whether each byte is the one before plus one fixed step: a key nobody would use."""
    steps = {(b - a) % 256 for a, b in pairwise(secret)}
    return len(steps) == 1


@pytest.mark.parametrize(
    ("pattern", "bad"),
    [
        (MACHINE_PATH, "see /" + "home/someone/file"),
        (MACHINE_PATH, '"/' + 'tmp"'),
        (LEFTOVER, "# TO" + "DO later"),
        (ISSUE, "fixes issue #" + "12"),
        (SECRET, "-----BEGIN " + "PRIVATE KEY"),
    ],
)
def test_patterns_find_what_they_forbid(pattern: str, bad: str) -> None:
    assert findings(pattern, bad) != []


def test_a_random_secret_does_not_pass_for_a_counted_one() -> None:
    assert counts_up(bytes(range(32)))
    assert counts_up(bytes(32))
    assert not counts_up(bytes([*range(31), 99]))


def texts() -> dict[str, str]:
    return {name_of(path): path.read_bytes().decode("utf-8") for path in text_files()}


def code() -> dict[str, str]:
    """The modules of the product."""
    return {
        name: text
        for name, text in texts().items()
        if name.endswith(".py") and name.startswith(("ledger/", "verifier/"))
    }


def test_no_file_names_a_machine_a_leftover_or_an_issue() -> None:
    pattern = f"{MACHINE_PATH}|{LEFTOVER}|{ISSUE}"
    found = {name: findings(pattern, text) for name, text in texts().items()}
    assert {name: words for name, words in found.items() if words} == {}


def test_no_file_holds_a_key_that_could_be_real() -> None:
    found = {
        name: findings(SECRET, text)
        + [s for s in KEY_MEMBER.findall(text) if not counts_up(bytes.fromhex(s))]
        for name, text in texts().items()
    }
    assert {name: words for name, words in found.items() if words} == {}


def test_lines_end_with_a_line_feed_alone() -> None:
    assert [name for name, text in texts().items() if "\r" in text] == []


def test_pages_and_modules_end_with_one_line_feed() -> None:
    ended = re.compile(r"(?:\A|[^\n]\n)\Z")
    pages = {n: t for n, t in texts().items() if n.endswith((".py", ".md"))}
    assert [name for name, text in pages.items() if not ended.search(text)] == []


def test_pages_and_modules_have_no_trailing_space_and_no_tab() -> None:
    untidy = re.compile(r"\t|[^\S\n]$", re.M)
    pages = {n: t for n, t in texts().items() if n.endswith((".py", ".md"))}
    assert [name for name, text in pages.items() if untidy.search(text)] == []


def test_modules_fit_in_a_head() -> None:
    sizes = {name: text.count("\n") for name, text in code().items()}
    assert {name: size for name, size in sizes.items() if size > 400} == {}


def test_bidi_and_invisible_characters_are_written_as_escapes() -> None:
    """Hostile text in a test is spelled out, so that a reader of the source sees it."""
    hidden = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")
    assert [name for name, text in texts().items() if hidden.search(text)] == []
