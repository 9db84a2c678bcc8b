"""The files of a Bernstein log: which there are, in which order, and their bytes in pieces.

Archived days come first, then the live files by name. Whatever stands in them is read in pieces:
memory does not depend on the size of a file, and a compressed bomb is stopped.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MAX_LINE: Final = 64 << 20
_MAX_RATIO: Final = 200
_BLOCK: Final = 1 << 17
_TEAR: Final = b'"chain.torn_record"'
_DAY: Final = re.compile(r"(\d{4}-\d{2}-\d{2})\.jsonl")
_DATED: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


class LineTooLong(Exception):
    """A line is over the limit."""


class BadArchive(Exception):
    """A `.gz` is not one whole gzip file; the message says why."""


class Bomb(Exception):
    """A `.gz` expands far beyond what a log does."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of the log; `name` is that of the live file, also where it is archived."""

    path: Path
    name: str

    @property
    def day(self) -> str | None:
        """The day that the name says, as `YYYY-MM-DD`."""
        match = _DAY.fullmatch(self.name)
        return match[1] if match else None

    @property
    def is_compressed(self) -> bool:
        """Whether the file is stored as gzip."""
        return self.path.name.endswith(".gz")


@dataclass(slots=True)
class Survey:
    """What a first pass over a file gives; sizes and digests of `content` are after gunzip."""

    stored_bytes: int = 0
    stored_sha256: str = ""
    size: int = 0
    content_sha256: str = ""
    has_tear: bool = False
    prefixes: dict[int, str] = field(default_factory=dict)


def audit_folder(path: str) -> Path | None:
    """Give the folder that holds the day files for any of the paths a user may give."""
    given = Path(path)
    for folder in (given / ".sdd" / "audit", given / "audit", given):
        if os.path.isdir(folder) and (
            folder.absolute().parts[-2:] == (".sdd", "audit") or _has_days(folder)
        ):
            return folder
    return None


def looks_like_log(path: str) -> bool:
    """Say whether a path looks like a Bernstein log, or like the place of one that is gone."""
    given = Path(path)
    if given.parts[-2:] == (".sdd", "audit") or given.name == ".sdd":
        return True
    if os.path.isfile(given):
        return given.name.endswith((".jsonl", ".jsonl.gz"))
    return (
        audit_folder(path) is not None
        or os.path.isdir(given / ".sdd")
        or os.path.isfile(given / "audit.key")
    )


def segments(folder: Path) -> list[Segment]:
    """List the files in the order in which they were written. Raises OSError."""
    archived = [
        Segment(path, path.name.removesuffix(".gz"))
        for path in _entries(folder / "archive", ".jsonl.gz")
    ]
    archived.sort(key=lambda item: (not _DATED.match(item.name), item.name))
    live = [Segment(path, path.name) for path in _entries(folder, ".jsonl")]
    return archived + sorted(live, key=lambda item: item.name)


def survey(segment: Segment, wanted: Iterable[int]) -> Survey:
    """Read a file once: digests, damage of an archive, and digests of the prefixes `wanted`.

    A prefix digest is SHA-256(0x00 || the first n bytes), in hex. Raises OSError, BadArchive, Bomb.
    """
    found = Survey()
    stored = hashlib.sha256()
    content = hashlib.sha256() if segment.is_compressed else stored
    prefix = hashlib.sha256(b"\0")
    cuts = sorted({cut for cut in wanted if cut >= 0}, reverse=True)
    tail = b""

    def hashed() -> Iterator[bytes]:
        for block in _stored(segment.path):
            found.stored_bytes += len(block)
            stored.update(block)
            yield block

    for data in _content(segment, hashed()):
        if content is not stored:
            content.update(data)
        start = found.size
        found.size += len(data)
        used = 0
        while cuts and cuts[-1] <= found.size:
            cut = cuts.pop()
            prefix.update(data[used : cut - start])
            used = max(used, cut - start)
            found.prefixes[cut] = prefix.hexdigest()
        if cuts:
            prefix.update(data[used:])
        found.has_tear = found.has_tear or _TEAR in tail + data[: len(_TEAR)] or _TEAR in data
        tail = data[-len(_TEAR) :]
    if cuts and cuts[-1] == 0:
        found.prefixes[0] = prefix.hexdigest()
    found.stored_sha256, found.content_sha256 = stored.hexdigest(), content.hexdigest()
    return found


def lines(segment: Segment, size: int) -> Iterator[tuple[bytes, bool]]:
    """Give the lines of the first `size` bytes without their LF, and whether one was there."""
    carry: list[bytes] = []
    held = 0
    left = size
    for data in _content(segment, _stored(segment.path)):
        data = data[:left]
        left -= len(data)
        parts = data.split(b"\n")
        held += len(parts[0])
        if held > MAX_LINE:
            raise LineTooLong
        carry.append(parts[0])
        if len(parts) == 1:
            continue
        yield b"".join(carry), True
        for part in parts[1:-1]:
            yield part, True
        carry, held = [parts[-1]], len(parts[-1])
    rest = b"".join(carry)
    if rest:
        yield rest, False


def read_range(segment: Segment, start: int, end: int) -> bytes:
    """Give the bytes from `start` to `end`, as far as they exist; at most MAX_LINE."""
    parts: list[bytes] = []
    at = 0
    end = min(end, start + MAX_LINE)
    for data in _content(segment, _stored(segment.path)):
        if at + len(data) > start:
            parts.append(data[max(0, start - at) : end - at])
        at += len(data)
        if at >= end:
            break
    return b"".join(parts)


def _stored(path: Path) -> Iterator[bytes]:
    """Give the bytes of a regular file as stored, in blocks."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
        raise OSError(None, "not a regular file")
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


def _content(segment: Segment, blocks: Iterator[bytes]) -> Iterator[bytes]:
    return _gunzip(blocks) if segment.is_compressed else blocks


def _gunzip(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress a gzip file of one or more members, strictly and in bounded memory."""
    read = made = 0
    member = None
    for block in blocks:
        read += len(block)
        rest = block
        while rest or (member and not member.eof):
            if member is None or member.eof:
                member = zlib.decompressobj(wbits=31)
            data = _inflate(member, rest)
            rest = member.unused_data if member.eof else member.unconsumed_tail
            made += len(data)
            if made > _MAX_RATIO * (read + 4096):
                raise Bomb
            yield data
            if not data and not rest:
                break
    if member is None or not member.eof:
        raise BadArchive("the file ends too early")


def _inflate(member: zlib._Decompress, data: bytes) -> bytes:
    try:
        return member.decompress(data, _BLOCK)
    except zlib.error as error:
        raise BadArchive(str(error)) from error


def _has_days(folder: Path) -> bool:
    try:
        return bool(_entries(folder, ".jsonl") or _entries(folder / "archive", ".jsonl.gz"))
    except OSError:
        return False


def _entries(folder: Path, suffix: str) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.name.endswith(suffix)]
    except (FileNotFoundError, NotADirectoryError):
        return []
