"""docs/retention.md shows what happens, and says what erasure cannot do."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

from ledger.redaction import ERASABLE

PATH = Path(__file__).parents[2] / "docs" / "retention.md"
PAGE = PATH.read_text("utf-8")


def test_the_examples_print_what_is_shown(examples: SimpleNamespace) -> None:
    commands = examples.check(PATH)
    run = {command.split()[1] for command in commands if command.startswith("cardchain ")}
    assert {"redact", "archive", "prune", "restore"} <= run


def test_a_line_of_prose_holds_one_sentence() -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S)
    ended = re.compile(r"[a-z)`\]]\. +[A-Z`]|[a-z)`\]]\? +[A-Z]")
    assert [line for line in prose.splitlines() if ended.search(line)] == []


def test_what_erasure_cannot_reach_is_said() -> None:
    limits = PAGE.split("## What erasure cannot do")[1].split("\n## ")[0]
    for word in ("Exports", "backups", "SSD", "`card_hash`", "pseudonyms", "restore the archive"):
        assert word in limits
    assert "profile" not in ERASABLE
