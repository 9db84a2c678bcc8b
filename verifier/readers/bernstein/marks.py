"""Checkpoints, seals and tiles beside a Bernstein log: what they say the log once held.

A checkpoint is authenticated by the key; a seal and a tile are not, but the log must not
contradict them either. All of them name, per file, the digest of its first bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verifier.readers.bernstein.envelope import HEX64
from verifier.readers.bernstein.findings import Place, Problem
from verifier.readers.bernstein.keys import Key
from verifier.readers.bernstein.text import shown

_MAX_BYTES: Final = 64 << 20
_CHECKPOINT: Final = "bernstein.checkpoint"
_SEAL: Final = "bernstein.seal"


@dataclass(frozen=True, slots=True)
class Leaf:
    """The digest of the first `size` bytes of a file of the log."""

    file: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Mark:
    """What one checkpoint, seal or tile covers."""

    check: str
    place: Place
    leaves: tuple[Leaf, ...]
    entry_count: int
    origin: str
    extends: bool


@dataclass(frozen=True, slots=True)
class Marks:
    """All marks beside a log, what is wrong with them in themselves, and what was passed over."""

    marks: tuple[Mark, ...]
    problems: tuple[tuple[Problem, Place], ...]
    warnings: tuple[str, ...]

    def wanted(self, file: str) -> set[int]:
        """Give the sizes of the prefixes of a file that the marks name."""
        return {leaf.size for mark in self.marks for leaf in mark.leaves if leaf.file == file}


def read_marks(folder: Path, keys: tuple[Key, ...]) -> Marks:
    """Read the marks beside a log. With keys, every checkpoint must hold under one of them."""
    problems: list[tuple[Problem, Place]] = []
    warnings: list[str] = []
    checkpoints = _checkpoints(folder / "checkpoints", keys, problems, warnings)
    diverged = [number for number, mark in enumerate(checkpoints) if not mark.extends]
    if diverged:
        warnings.append("an acknowledged divergence ends the validity of earlier checkpoints")
        return Marks(tuple(checkpoints[diverged[-1] :]), tuple(problems), tuple(warnings))
    seals: list[Mark] = []
    for path in _files(folder / "merkle", "seal-*.json"):
        seals += _unsigned(path, problems, warnings, lambda value: value.get("leaves"))
    for path in _files(folder / "tiles", "*.tile"):
        seals += _unsigned(path, problems, warnings, _tile_leaf)
    marks = (*checkpoints, *seals)
    if any(_archived(leaf) for mark in marks for leaf in mark.leaves):
        warnings.append("checkpoints or seals name compressed files, which were not compared")
    return Marks(marks, tuple(problems), tuple(warnings))


def disagreement(
    mark: Mark, prefixes: dict[str, dict[int, str]], records: int, firsts: list[str]
) -> Problem | None:
    """Say in what the log contradicts a mark, or None."""
    for leaf in mark.leaves:
        if _archived(leaf):
            continue
        found = prefixes.get(leaf.file)
        if found is None:
            return Problem(mark.check, f"the file {shown(leaf.file)}", "no such file")
        if leaf.size not in found:
            return Problem(
                mark.check, f"at least {leaf.size} bytes in {shown(leaf.file)}", "a shorter file"
            )
        if found[leaf.size] != leaf.digest:
            return Problem(
                mark.check,
                f"the first {leaf.size} bytes of {shown(leaf.file)} with digest {leaf.digest}",
                f"bytes with digest {found[leaf.size]}",
            )
    if mark.entry_count > records:
        return Problem(mark.check, f"at least {mark.entry_count} records", f"{records} records")
    if mark.origin and mark.origin not in firsts:
        return Problem(
            mark.check, f"a file that begins with hmac {shown(mark.origin)}", "no such file"
        )
    return None


def _checkpoints(
    folder: Path,
    keys: tuple[Key, ...],
    problems: list[tuple[Problem, Place]],
    warnings: list[str],
) -> list[Mark]:
    marks: list[Mark] = []
    path = folder / "checkpoints.jsonl"
    previous, seen = "0" * 64, set()
    for number, line in enumerate(_lines(path, warnings), 1):
        place = Place(str(path), line=number)
        mark = _checkpoint(line, previous, keys, place)
        if isinstance(mark, Mark):
            marks.append(mark)
        else:
            problems.append((mark, place))
        previous = hashlib.sha256(line).hexdigest()
        seen.add(previous)
    latest = folder / "latest.json"
    for line in _lines(latest, warnings):
        digest = hashlib.sha256(line).hexdigest()
        if digest not in seen and not problems:
            problems.append(
                (
                    Problem(_CHECKPOINT, "latest.json among checkpoints.jsonl", "another one"),
                    Place(str(latest)),
                )
            )
        elif digest != previous:
            warnings.append("latest.json is not the last checkpoint")
    return marks


def _checkpoint(line: bytes, previous: str, keys: tuple[Key, ...], place: Place) -> Mark | Problem:
    value = _object(line)
    payload = value.get("payload")
    if not isinstance(payload, dict) or _compact(value) != line:
        return Problem(_CHECKPOINT, "a checkpoint in its canonical form", "something else")
    text = _compact(payload)
    if keys and not any(key.checkpoint_hmac(text) == value.get("hmac") for key in keys):
        return Problem(_CHECKPOINT, "an hmac that holds under the key", shown(value.get("hmac")))
    if payload.get("prev_checkpoint_sha256") != previous:
        return Problem(
            _CHECKPOINT,
            f"prev_checkpoint_sha256 {previous}",
            shown(payload.get("prev_checkpoint_sha256")),
            "a checkpoint was removed, added or changed",
        )
    return _mark(_CHECKPOINT, place, payload, payload.get("leaves"))


def _unsigned(
    path: Path, problems: list[tuple[Problem, Place]], warnings: list[str], leaves: Any
) -> list[Mark]:
    """Read a seal or a tile; one of an older or newer scheme is passed over."""
    text = b"\n".join(_lines(path, warnings))
    if not text:
        return []
    value = _object(text)
    if value and value.get("scheme") != 2:
        warnings.append(f"{path.name} is of a scheme that is not known here, and was not checked")
        return []
    mark = _mark(_SEAL, Place(str(path)), value, leaves(value))
    if isinstance(mark, Problem):
        problems.append((mark, Place(str(path))))
        return []
    return [mark]


def _mark(check: str, place: Place, value: dict[str, Any], leaves: Any) -> Mark | Problem:
    parsed = _leaves(leaves)
    if not parsed:
        return Problem(check, "leaves of files, sizes and digests", shown(leaves))
    root = value.get("root_hash")
    if root is not None and root != _root([leaf.digest for leaf in parsed]):
        return Problem(check, f"root_hash {_root([leaf.digest for leaf in parsed])}", shown(root))
    count, origin = value.get("entry_count", 0), value.get("origin", "")
    if type(count) is not int or not isinstance(origin, str):
        return Problem(check, "a number as entry_count, text as origin", shown([count, origin]))
    return Mark(check, place, parsed, count, origin, value.get("extends_prev") is not False)


def _leaves(value: Any) -> tuple[Leaf, ...]:
    """Give the leaves of a mark, or nothing where one of them is malformed."""
    if not isinstance(value, list):
        return ()
    leaves = []
    for item in value:
        if not isinstance(item, dict):
            return ()
        file, size, digest = item.get("file"), item.get("byte_len"), item.get("hash")
        if not isinstance(file, str) or type(size) is not int or size < 0:
            return ()
        if not isinstance(digest, str) or not HEX64.fullmatch(digest):
            return ()
        leaves.append(Leaf(file, size, digest))
    return tuple(leaves)


def _archived(leaf: Leaf) -> bool:
    return leaf.file.endswith(".gz")


def _tile_leaf(value: dict[str, Any]) -> list[dict[str, Any]]:
    size, digest = value.get("byte_len"), value.get("leaf_hash")
    return [{"file": value.get("segment"), "byte_len": size, "hash": digest}]


def _root(digests: list[str]) -> str:
    """Give the root of a tree whose nodes hash the hexadecimal text of their children."""
    while len(digests) > 1:
        paired = [
            hashlib.sha256(b"\x01" + (left + right).encode()).hexdigest()
            for left, right in zip(digests[::2], digests[1::2], strict=False)
        ]
        digests = paired + digests[len(digests) - len(digests) % 2 :]
    return digests[0]


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _compact(value: Any) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return b""


def _lines(path: Path, warnings: list[str]) -> Iterator[bytes]:
    """Give the lines of a small file that may be absent."""
    try:
        if not os.path.isfile(path):
            return
        if path.stat().st_size > _MAX_BYTES:
            warnings.append(f"{path.name} is over 64 MiB and was not checked")
            return
        text = path.read_bytes()
    except OSError as error:
        warnings.append(f"{path.name} cannot be read and was not checked: {error.strerror}")
        return
    yield from text.removesuffix(b"\n").split(b"\n") if text else ()


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern)) if os.path.isdir(folder) else []
