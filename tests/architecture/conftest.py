"""Runs the examples of a document, so that what it shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = ("fixtures", "verifier")  # folders of the project that examples may read
SHOWN_FOLDER = "/srv/example"  # where documents say that the examples run
VARYING = {
    "TIME": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z",
    "HEX": r"\b[0-9a-f]{12,64}\b",
    "SECOND": r"\b\d{10}\b",
    "DURATION": r"\b\d+\.\d s(?:econds)?\b",
    "SIZE": r"\b\d+(?:\.\d)? (?:MiB|bytes)",
    "FILES": r"(?<=file system: )[\w.]+",
    "PYTHON": r"(?<=python: )\w+ \d+\.\d+\.\d+",
}
TOKEN = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in VARYING.items()))
BLOCK = re.compile(
    r"(?:`(?P<file>[\w.-]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S
)


class Examples:
    """The blocks of a document, run in order in one folder.

    `console` blocks hold commands after `$ ` and all that they print; a status
    other than 0 is the line `[exit status N]`, and a line `...` stands for any lines.
    Digests and times vary: one that was shown before stands for what it was in this run.
    A block of another kind after a file name is written to that file, and any `python`
    block is run; a `text` block that follows it is what it prints, else that is not shown.
    The folder holds nothing at first but links to `fixtures` and `verifier` of the project.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.real: dict[str, str] = {}
        for name in BESIDE:
            (folder / name).symlink_to(ROOT / name)
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "CARDCHAIN_STATE": str(folder / "state"),
            "COLUMNS": "80",
        }

    def check(self, document: Path) -> list[str]:
        """Run a document and give its commands; they must print what is shown.

        With `UPDATE_EXAMPLES=1` in the environment, the document is changed instead.
        """
        text = document.read_text("utf-8")
        parts, commands, end = [], [], 0
        printed: list[str] | None = None
        for block in BLOCK.finditer(text):
            parts += [text[end : block.start("body")], block["body"]]
            end = block.end("body")
            if block["kind"] == "console":
                parts[-1] = "".join(self.console(block["body"], commands))
            elif block["kind"] == "text" and printed is not None:
                shown = block["body"].splitlines()
                lines = self.aligned(shown, self.elided(shown, printed))
                parts[-1] = "".join(f"{line}\n" for line in lines)
            elif block["file"] or block["kind"] == "python":
                name = block["file"] or "example.py"
                printed = self.file(name, block["body"])
                commands += [name] if name.endswith(".py") else []
                continue
            printed = None
        updated = "".join([*parts, text[end:]])
        if os.environ.get("UPDATE_EXAMPLES") == "1":
            document.write_text(updated, "utf-8")
        else:
            assert text == updated
        return commands

    def file(self, name: str, body: str) -> list[str]:
        """Write a file, and run it if it is a program; gives what it prints."""
        (self.folder / name).write_text(body)
        if not name.endswith(".py"):
            return []
        printed = self.shell(f"{sys.executable} {name}")
        assert not printed or not printed[-1].startswith("[exit status "), printed
        return printed

    def console(self, body: str, commands: list[str]) -> Iterator[str]:
        """Run the commands of a block and give it as it should be."""
        for example in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, *shown = example.splitlines()
            commands.append(command)
            printed = self.shell(TOKEN.sub(lambda match: self.translate(match[0]), command))
            lines = [f"$ {command}", *self.aligned(shown, self.elided(shown, printed))]
            yield "".join(f"{line}\n" for line in lines)

    def shell(self, command: str) -> list[str]:
        """Give the lines that a command prints on both outputs, and its status if it is not 0."""
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=self.environment,
            check=False,
        )
        lines = done.stdout.decode().replace(str(self.folder), SHOWN_FOLDER).splitlines()
        return lines + ([f"[exit status {done.returncode}]"] if done.returncode else [])

    def translate(self, token: str) -> str:
        """Give what a shown digest, or the beginning of one, is in this run."""
        found = [real[: len(token)] for shown, real in self.real.items() if shown.startswith(token)]
        return found[0] if found else token

    def elided(self, shown: list[str], printed: list[str]) -> list[str]:
        """Give the printed lines with `...` in place of those that are not shown."""
        kept: list[str] = []
        rest = printed
        for line in shown:
            if kept[-1:] == ["..."]:
                places = [n for n, new in enumerate(rest) if fixed(new) == fixed(line)]
                rest = rest[places[0] :] if places else rest
            kept, rest = ([*kept, "..."], rest) if line == "..." else (kept + rest[:1], rest[1:])
        return kept if shown[-1:] == ["..."] else kept + rest

    def aligned(self, shown: list[str], printed: list[str]) -> list[str]:
        """Give the printed lines with what varies as it is shown, and remember the digests."""
        old_lines = [*shown, *[""] * len(printed)]
        for old, new in zip(shown, printed, strict=False):
            if fixed(old) == fixed(new):
                pairs = zip(TOKEN.finditer(old), TOKEN.finditer(new), strict=True)
                self.real |= {a[0]: b[0] for a, b in pairs if a[0] not in self.real}
        back = {real: shown for shown, real in self.real.items()}
        return [
            old if fixed(old) == fixed(new) else TOKEN.sub(lambda m: back.get(m[0], m[0]), new)
            for old, new in zip(old_lines, printed, strict=False)
        ]


def fixed(line: str) -> str:
    """Give a line with the kinds of its varying parts in their place."""
    return TOKEN.sub(_placeholder, line)


def _placeholder(match: re.Match[str]) -> str:
    return f"<HEX {len(match[0])}>" if match.lastgroup == "HEX" else f"<{match.lastgroup}>"


@pytest.fixture
def examples(tmp_path: Path) -> Examples:
    """A folder in which the examples of a document run."""
    return Examples(tmp_path)
