"""What a disk may hold after the power failed, given every call that a process made (POSIX).

A write or truncation counts for sure only when its file was synced after it, a name only when its
directory was. Of everything else any part may have come about. Taken as atomic: the change of one
name by `rename`, and an overwrite of one sector of 512 bytes in place.

All of that at once has no end, so the states are bounded. At each instant everything not synced is
lost, or everything is kept, but for at most two files or directories, which lag in any way:

- a file: any prefix of what was done to it, the last write torn after one byte, in the middle or
  before its last byte, or its size there and its bytes zeros, alone or before later writes;
- a directory: any prefix of the changes of its names, or any single one of them;
- the index (SQLite writes it past the record): missing, as it was after this or either of the last
  two commits, or without its write-ahead log.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

Happened = list[dict[str, Any]]
Change = Callable[[bytes], bytes]
Names = dict[str, int]
SECTOR = 512


@dataclass
class File:
    """A file: the bytes on the disk for sure, and the changes since its last sync."""

    durable: bytes = b""
    pending: list[tuple[str, int, bytes]] = field(default_factory=list)

    @property
    def content(self) -> bytes:
        return _applied(self.durable, self.pending)

    def sync(self) -> None:
        self.durable, self.pending = self.content, []

    def variants(self) -> Iterator[bytes]:
        """Give every content that the disk may hold, nothing of it and all of it first."""
        yield self.durable
        yield self.content
        for count, (what, at, data) in enumerate(self.pending):
            before = _applied(self.durable, self.pending[:count])
            yield before
            in_place = at + len(data) <= len(before)
            if what != "write" or (in_place and len(data) <= SECTOR):
                continue
            for cut in (1, len(data) // 2, len(data) - 1):
                yield _applied(before, [("write", at, data[:cut])])
            if in_place:  # its blocks hold the old bytes or the new ones, no zeros
                continue
            hole = _applied(before, [("write", at, bytes(len(data)))])
            yield hole
            yield _applied(hole, self.pending[count + 1 :])
            half = bytes(len(data) // 2)
            yield _applied(before, [("write", at, half + data[len(half) :])])


@dataclass
class Folder:
    """A directory: the names on the disk for sure, and the changes since its last sync."""

    durable: Names = field(default_factory=dict)
    pending: list[dict[str, int | None]] = field(default_factory=list)

    @property
    def content(self) -> Names:
        return _named(self.durable, self.pending)

    def sync(self) -> None:
        self.durable, self.pending = self.content, []

    def variants(self) -> Iterator[Names]:
        """Give all names that the disk may hold, none of the changes and all of them first."""
        yield self.durable
        yield self.content
        for count, change in enumerate(self.pending):
            yield _named(self.durable, self.pending[:count])
            yield _named(self.durable, [change])


def _applied(content: bytes, changes: Iterable[tuple[str, int, bytes]]) -> bytes:
    for what, at, data in changes:
        if what == "truncate":
            content = content[:at].ljust(at, b"\0")
        else:
            content = content[:at].ljust(at, b"\0") + data + content[at + len(data) :]
    return content


def _named(names: Names, changes: Iterable[dict[str, int | None]]) -> Names:
    found: dict[str, int | None] = dict(names)
    for change in changes:
        found |= change
    return {name: node for name, node in found.items() if node is not None}


class Disk:
    """The files and directories of one folder, which itself is there for sure."""

    def __init__(self) -> None:
        self.nodes: list[File | Folder] = [Folder()]
        self.indexes: list[dict[str, bytes]] = [{}]

    def take(self, event: dict[str, Any]) -> None:
        """Take in one call."""
        if event["do"] == "index":
            files = {name: base64.b64decode(text) for name, text in event["files"].items()}
            self.indexes = [*self.indexes[-2:], files]
        elif "path" in event:
            getattr(self, f"_{event['do']}")(event)

    def _find(self, path: str) -> tuple[Folder, str, int | None]:
        """Give the directory of a path, the last name, and what stands there now."""
        *above, name = path.split("/")
        folder = self.nodes[0]
        for each in above:
            assert isinstance(folder, Folder)
            folder = self.nodes[folder.content[each]]
        assert isinstance(folder, Folder)
        return folder, name, 0 if path == "." else folder.content.get(name)

    def _file(self, path: str) -> File:
        node = self._find(path)[2]
        assert node is not None
        file = self.nodes[node]
        assert isinstance(file, File)
        return file

    def _add(self, path: str, made: File | Folder) -> None:
        folder, name, node = self._find(path)
        if node is None:
            self.nodes.append(made)
            folder.pending.append({name: len(self.nodes) - 1})

    def _create(self, event: dict[str, Any]) -> None:
        self._add(event["path"], File())

    def _mkdir(self, event: dict[str, Any]) -> None:
        self._add(event["path"], Folder())

    def _write(self, event: dict[str, Any]) -> None:
        file = self._file(event["path"])
        at = len(file.content) if event["at"] < 0 else event["at"]
        file.pending.append(("write", at, base64.b64decode(event["data"])))

    def _truncate(self, event: dict[str, Any]) -> None:
        self._file(event["path"]).pending.append(("truncate", event["size"], b""))

    def _sync(self, event: dict[str, Any]) -> None:
        node = self._find(event["path"])[2]
        assert node is not None
        self.nodes[node].sync()

    def _replace(self, event: dict[str, Any]) -> None:
        folder, name, node = self._find(event["path"])
        assert folder is self._find(event["to"])[0]
        folder.pending.append({name: None, event["to"].rpartition("/")[2]: node})

    def _link(self, event: dict[str, Any]) -> None:
        folder, name, _ = self._find(event["to"])
        folder.pending.append({name: self._find(event["path"])[2]})

    def _unlink(self, event: dict[str, Any]) -> None:
        folder, name, _ = self._find(event["path"])
        folder.pending.append({name: None})

    # What the disk may hold

    def states(self) -> Iterator[State]:
        """Give every state within the bounds; many of them are the same."""
        lagging = [number for number, node in enumerate(self.nodes) if node.pending]
        choices = [dict.fromkeys(lagging, side) for side in (0, 1)]
        variants = {number: list(self.nodes[number].variants()) for number in lagging}
        for base in choices:
            for index in self._indexes():
                yield self._state(variants, base, index)
            for number in lagging:
                for which in range(2, len(variants[number])):
                    for index in self._indexes():
                        yield self._state(variants, {**base, number: which}, index)
            for one, two in combinations(lagging, 2):
                for first in range(len(variants[one])):
                    for second in range(len(variants[two])):
                        chosen = {**base, one: first, two: second}
                        yield self._state(variants, chosen, self.indexes[-1])

    def _indexes(self) -> list[dict[str, bytes]]:
        bare = {name: data for name, data in self.indexes[-1].items() if not name.endswith("-wal")}
        return [{}, *self.indexes, bare]

    def _state(
        self, variants: dict[int, list[Any]], chosen: dict[int, int], index: dict[str, bytes]
    ) -> State:
        def content(number: int) -> Any:
            node = self.nodes[number]
            return variants[number][chosen[number]] if number in chosen else node.durable

        files: dict[str, bytes | None] = {}

        def walk(number: int, path: str) -> None:
            for name, inner in sorted(content(number).items()):
                place = f"{path}{name}"
                if isinstance(self.nodes[inner], Folder):
                    files[place] = None
                    walk(inner, f"{place}/")
                else:
                    files[place] = content(inner)

        walk(0, "")
        files |= {name: data for name, data in index.items() if name.rpartition("/")[0] in files}
        return State(files)


@dataclass(frozen=True, eq=False)
class State:
    """Everything below a folder: the bytes of each file, None for a directory."""

    files: dict[str, bytes | None]

    @property
    def key(self) -> int:
        """A number that no other state of a life has."""
        return hash(frozenset(self.files.items()))
