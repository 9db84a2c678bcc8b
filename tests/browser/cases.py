"""The fixtures as the page takes them: bytes in base64, under the names that a case gives them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures"
PAGE = FIXTURES.parent / "verifier" / "browser" / "verify.html"
CASES = {
    path.parent.name: json.loads(path.read_text("utf-8"))
    for path in sorted(FIXTURES.glob("cases/*/case.json"))
}


def options(case: dict[str, Any]) -> dict[str, list[str]]:
    """Give the arguments of a case: each option with its values."""
    found: dict[str, list[str]] = {}
    for word in case.get("args", []):
        if word.startswith("--"):
            last = found.setdefault(word, [])
        else:
            last.append(word)
    return found


def single(given: dict[str, list[str]], option: str) -> str | None:
    """Give the last value of an option, or None."""
    return given[option][-1] if option in given else None


def request(name: str) -> dict[str, Any]:
    """Give a request of the page, with base64 where a file belongs."""
    case, folder = CASES[name], FIXTURES / "cases" / name
    given = options(case)
    count, since = single(given, "--expect-count"), single(given, "--since")
    lists = ("keys", "profiles", "vkeys", "checkpoints", "proofs")
    return {
        "inputs": [_input(folder, path) for path in case["inputs"]],
        **{kind: [_file(folder, path) for path in case.get(kind, [])] for kind in lists},
        "pin": _file(folder, case["pin"]) if "pin" in case else None,
        "require": given.get("--require", []),
        "allowWithheld": "--allow-withheld" in given,
        "expectHead": single(given, "--expect-head"),
        "expectCount": None if count is None else int(count),
        "floor": single(given, "--floor") or "none",
        "since": _file(folder, case["since"]) if "since" in case else _since(since),
    }


def _since(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    seq, _, digest = text.partition(":")
    return {"seq": int(seq), "digest": digest}


def _input(folder: Path, path: str) -> dict[str, Any]:
    place = folder / path
    if not place.is_dir():
        return {"path": path, "file": _bytes(place)}
    inside = sorted(file for file in place.rglob("*") if file.is_file())
    entries = [
        {"name": file.relative_to(place).as_posix(), "file": _bytes(file)} for file in inside
    ]
    return {"path": path, "entries": entries}


def _file(folder: Path, path: str) -> dict[str, Any]:
    return {"name": path, "file": _bytes(folder / path)}


def _bytes(path: Path) -> str | None:
    return base64.b64encode(path.read_bytes()).decode() if path.exists() else None


VERIFY_ALL = """
const files = (value) => {
  if (Array.isArray(value)) return value.map(files);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [
    name,
    name !== "file" ? files(one)
      : one === null ? null
      : new Blob([Uint8Array.from(atob(one), (letter) => letter.charCodeAt(0))]),
  ]));
};
return (async () => {
  const reports = [];
  for (const request of arguments[0]) {
    const report = await cardchain.verify(files(request));
    const rows = report.cards === 0 ? [] : [...document.querySelectorAll("#list tbody tr")];
    const listed = rows.map((row) => [...row.children].map((cell) => cell.textContent));
    reports.push({ ...report, listed });
  }
  return reports;
})();
"""
"""The body of a function that hands requests to what the drop handler calls, one by one.

Each gives its report and, as `listed`, the cells of the first rows of cards.
"""

HUNG = """
const walker = document.createTreeWalker(document.querySelector('pre'), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const at = walker.currentNode.data.indexOf(arguments[0]);
  if (at === -1) continue;
  const range = document.createRange();
  range.setStart(walker.currentNode, at);
  range.setEnd(walker.currentNode, at + arguments[0].length);
  const rows = [...range.getClientRects()].map((row) => row.left);
  return rows.length < 2 ? null : Math.min(...rows.slice(1)) - rows[0];
}
return null;
"""
"""The body of a function that gives how far the wrapped rest of a line of a card is indented."""
