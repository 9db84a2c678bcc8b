"""Plays a case of the fixtures: hands the verifier what its case.json says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verifier import verify
from verifier.report import Report
from verifier.state import Edge

ALLOW = "--allow-withheld"


def resolved(folder: Path, paths: list[str]) -> list[str]:
    return [os.path.normpath(folder / path) for path in paths]


def played(
    folder: Path,
    case: dict[str, Any],
    pin: str | None,
    wanted: Callable[[str], bool] | None = None,
) -> Report:
    """Verify the inputs of a case; `pin` is a copy of its pin file (`copied_pin`)."""
    args = [word for word in case.get("args", []) if word != ALLOW]
    values = dict(zip(args[::2], args[1::2], strict=True))
    head, count = values.get("--expect-head"), values.get("--expect-count")
    return verify(
        resolved(folder, case["inputs"]),
        resolved(folder, case["keys"]),
        expect_head=None if head is None else bytes.fromhex(head),
        expect_count=None if count is None else int(count),
        profile_files=resolved(folder, case.get("profiles", [])),
        floor=values.get("--floor", "none"),
        since=since_of(folder, case, values.get("--since")),
        vkeys=resolved(folder, case.get("vkeys", [])),
        checkpoint_files=resolved(folder, case.get("checkpoints", []) + case.get("proofs", [])),
        pin_file=pin,
        required=[values["--require"]] if "--require" in values else [],
        allow_withheld=ALLOW in case.get("args", []),
        environ={},
        wanted=wanted,
    )


def copied_pin(folder: Path, case: dict[str, Any], scratch: Path) -> str | None:
    """Give a copy of the pin file, since verifying moves it on, or the place where none is yet."""
    if "pin" not in case:
        return None
    if (folder / case["pin"]).exists():
        shutil.copy(folder / case["pin"], scratch)
    return str(scratch / case["pin"])


def since_of(folder: Path, case: dict[str, Any], text: str | None) -> Edge | str | None:
    """Give the left edge that follows the record named, or the file of a checkpoint."""
    if "since" in case:
        return os.path.normpath(folder / case["since"])
    if text is None:
        return None
    seq, head = text.split(":")
    return Edge(int(seq) + 1, bytes.fromhex(head))
