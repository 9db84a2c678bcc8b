"""Runs the examples of a document, so that what it shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SHOWN_FOLDER = "/srv/example"  # where documents say that the examples run
VARYING = {
    "TIME": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z",
    "HEX": r"\b[0-9a-f]{12,64}\b",
    "SECOND": r"\b\d{10}\b",
    "DURATION": r"\b\d+\.\d seconds",
    "SIZE": r"\b\d+ (?:MiB|bytes)",
    "FILES": r"(?<=file system: )[\w.]+",
}
PATTERN = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in VARYING.items()))
BLOCK = re.compile(
    r"(?:`(?P<file>[\w.-]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S
)


class Examples:
    """The blocks of a document, run in order in one folder.

    `console` blocks hold commands after `$ ` and all that they print; a status
    other than 0 is the line `[exit status N]`, and a line `...` stands for any lines.
    Digests and times vary: one that was shown before stands for what it was in this run.
    A `json` or `python` block after a file name is written to that file, and any
    `python` block is run; what it prints is not shown.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.real: dict[str, str] = {}
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "CARDCHAIN_STATE": str(folder / "state"),
            "COLUMNS": "80",
        }

    def run(self, text: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Give each command with the lines that are shown and those that were printed."""
        for block in BLOCK.finditer(text):
            if block["file"]:
                (self.folder / block["file"]).write_text(block["body"])
            if block["kind"] == "python":
                name = block["file"] or "example.py"
                (self.folder / name).write_text(block["body"])
                printed = self.shell(f"{sys.executable} {name}")
                yield name, [], printed if printed[-1:] == ["[exit status 1]"] else []
            if block["kind"] == "console":
                yield from self.console(block["body"])

    def console(self, body: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Run the commands of one block."""
        for example in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, *shown = example.splitlines()
            printed = self.shell(PATTERN.sub(lambda match: self.translate(match[0]), command))
            yield command, *self.aligned(shown, printed)

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

    def aligned(self, shown: list[str], printed: list[str]) -> tuple[list[str], list[str]]:
        """Give both without what varies and what `...` leaves out, and remember the digests."""
        printed = self.elided(shown, printed)
        for old, new in zip(shown, printed, strict=False):
            for a, b in zip(PATTERN.finditer(old), PATTERN.finditer(new), strict=False):
                self.real.setdefault(a[0], b[0])
        return [self.fixed(line) for line in shown], [self.fixed(line) for line in printed]

    def elided(self, shown: list[str], printed: list[str]) -> list[str]:
        """Give the printed lines with `...` in place of those that are not shown."""
        kept: list[str] = []
        rest = printed
        for line in shown:
            if kept[-1:] == ["..."]:
                places = [n for n, new in enumerate(rest) if self.fixed(new) == self.fixed(line)]
                rest = rest[places[0] :] if places else rest
            kept, rest = ([*kept, "..."], rest) if line == "..." else (kept + rest[:1], rest[1:])
        return kept if shown[-1:] == ["..."] else kept + rest

    @staticmethod
    def fixed(line: str) -> str:
        """Give a line with the kinds of its varying parts in their place."""
        return PATTERN.sub(lambda match: f"<{match.lastgroup} {len(match[0])}>", line)


@pytest.fixture
def examples(tmp_path: Path) -> Examples:
    """A folder in which the examples of a document run."""
    return Examples(tmp_path)
