"""An envelope of another format as lines that are safe to show (spec §9.2)."""

from __future__ import annotations

import json

from ledger.hidden import shown


def foreign_text(stored: bytes) -> str:
    """Give JSON line by line, what is hidden in it escaped; bytes that are none on one line.

    Every line ends with a line feed.
    """
    try:
        pretty = json.dumps(json.loads(stored), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return f"{shown(stored.decode('utf-8', 'backslashreplace'))}\n"
    return "".join(f"{_visible(line)}\n" for line in pretty.split("\n"))


def _visible(line: str) -> str:
    """Escape what is hidden in a line of JSON, where quotes and backslashes are escaped already."""
    return shown(line).replace('\\"', '"').replace("\\\\", "\\")
