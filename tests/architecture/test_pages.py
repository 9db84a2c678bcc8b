"""The pages for users are true: every block runs, in order, and prints what is shown."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUN_ELSEWHERE = {
    "docs/cli.md": ("tests/architecture/test_help.py", "examples.check"),
    "docs/retention.md": ("tests/architecture/test_retention_page.py", "examples.check"),
    "docs/assessor.md": ("tests/ledger/assess/test_assessment.py", "assessor.md"),
    "fixtures/README.md": ("tests/agreement/test_cases.py", '"generate.py"), "--check"'),
}
GUIDES = [
    *(DOCS / f"{name}.md" for name in ("README", "quickstart", "concepts")),
    *sorted(DOCS.glob("how-to/*.md")),
]
IMAGES = DOCS / "images"
SET_UP = re.compile(r"(?:python3 dev\.py \w+|\. \.venv/bin/activate|pip install \.)(?: +#.*)?")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[tuple[str, str, str]]:
    """The fenced blocks: the line above (a file name or nothing), the kind, the body."""
    found = re.findall(r"^(?:`([\w.-]+)`:\n\n)?```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [(name, kind, body) for name, kind, body in found]


def runs(path: Path) -> bool:
    return bool({"console", "python"} & {kind for _, kind, _ in blocks(path.read_text("utf-8"))})


PAGES = [path for path in sorted({*DOCS.rglob("*.md"), *ROOT.glob("fixtures/*.md")}) if runs(path)]
RUN_HERE = [path for path in PAGES if name_of(path) not in RUN_ELSEWHERE]


@pytest.mark.parametrize("path", RUN_HERE, ids=name_of)
def test_the_examples_print_what_is_shown(path: Path, examples: SimpleNamespace) -> None:
    assert examples.check(path) != []


@pytest.mark.parametrize(("test", "word"), RUN_ELSEWHERE.values(), ids=RUN_ELSEWHERE)
def test_a_page_that_is_run_elsewhere_is_run_there(test: str, word: str) -> None:
    assert word in (ROOT / test).read_text("utf-8")


@pytest.mark.parametrize("wrong", ["2", "1\n1", ""])
def test_an_output_that_a_program_does_not_print_is_seen(
    wrong: str, examples: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UPDATE_EXAMPLES", raising=False)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n1\n```\n")
    assert examples.check(page) == ["example.py"]
    page.write_text(f"```python\nprint(1)\n```\n\n```text\n{wrong}\n```\n")
    with pytest.raises(AssertionError):
        examples.check(page)


def idle(text: str) -> list[str]:
    """Blocks that nothing runs: neither commands, nor programs, nor files or outputs of those."""
    left, before = [], ""
    used = " ".join(body for _, kind, body in blocks(text) if kind in ("console", "python"))
    for name, kind, body in blocks(text):
        output = kind == "text" and before == "python"
        set_up = kind == "sh" and all(SET_UP.fullmatch(line) for line in body.splitlines())
        if not (kind in ("console", "python") or output or set_up or (name and name in used)):
            left.append(f"{kind}: {body.splitlines()[0]}")
        before = kind
    return left


@pytest.mark.parametrize("path", GUIDES, ids=name_of)
def test_no_block_of_a_guide_is_left_out(path: Path) -> None:
    assert idle(path.read_text("utf-8")) == []


def test_a_block_that_nothing_runs_is_seen() -> None:
    ran = "```console\n$ sh a.sh\n```\n\n`a.sh`:\n\n```sh\necho\n```\n\n```python\n1\n```\n"
    assert idle(ran + "```text\nthe output\n```\n") == []
    assert idle("```text\nalone\n```\n```\nbare\n```\n```sh\nrm x\n```\n") == [
        "text: alone",
        ": bare",
        "sh: rm x",
    ]


def test_the_index_leads_to_every_page() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    linked = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)", index)}
    pages = {*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md")} - {DOCS / "README.md"}
    assert sorted(name_of(path) for path in pages - linked) == []


# Pictures.


def make_images() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_images", IMAGES / "make_images.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pictures() -> set[str]:
    """The pictures that the pages show, by name."""
    shown = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    links = [re.findall(r"!\[[^\]]+\]\(([^)]+)\)", path.read_text("utf-8")) for path in shown]
    return {Path(target).name for targets in links for target in targets}


def test_the_picture_of_a_terminal_is_what_the_verifier_prints_now() -> None:
    assert make_images().verdicts() == (IMAGES / "verdicts.svg").read_text("utf-8")


def test_the_picture_of_a_terminal_has_both_verdicts_in_their_colours() -> None:
    drawn = (IMAGES / "verdicts.svg").read_text("utf-8")
    coloured = re.findall(r'fill="(#\w+)" font-weight="bold">(\w+)<', drawn)
    assert coloured == [("#7ee2a8", "VERIFIED"), ("#ff8f88", "BROKEN")]


def test_every_picture_is_shown_and_made_and_small() -> None:
    files = {file.name: file for file in IMAGES.iterdir() if file.suffix in (".png", ".svg")}
    made = {"verdicts.svg", "growth.svg", *make_images().VIEWS}
    assert set(files) == pictures() == made
    assert sum(file.stat().st_size for file in files.values()) < 220_000
