"""The ways to give a key to a command or a program: none puts a secret where others can see it.

FILE or DIR   a key file, or a folder of them
env:NAME      the content of a key file, in a variable of the environment
fd:N          the content of a key file, from a descriptor that this process was started with
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ledger.keys import (
    MAX_BYTES,
    HeldKey,
    KeyFile,
    KeyFiles,
    KeyFileUnusable,
    KeySource,
    parse,
)

Given: TypeAlias = str | os.PathLike[str] | KeySource

_DESCRIPTOR: Final = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """A variable of the environment that holds the content of a key file."""

    name: str

    def keys(self, chain: bytes) -> Iterable[HeldKey]:
        """Give the one key."""
        where = Path(f"env:{self.name}")
        text = os.environ.get(self.name)
        if text is None:
            raise KeyFileUnusable(where, "there is no such variable")
        return [parse(where, os.fsencode(text))]


@dataclass(frozen=True, slots=True)
class KeyOnce:
    """A key that was read from where it cannot be read again."""

    key: KeyFile

    def keys(self, chain: bytes) -> Iterable[HeldKey]:
        """Give the one key."""
        return [self.key]


def descriptor(number: int) -> KeyOnce:
    """Read a key from a descriptor, now, before its number can mean another file."""
    where = Path(f"fd:{number}")
    text = b""
    try:
        mode = os.fstat(number).st_mode
        while len(text) <= MAX_BYTES and (piece := os.read(number, MAX_BYTES + 1)):
            text += piece
    except OSError as error:
        raise KeyFileUnusable(where, error.strerror or "it cannot be read") from error
    if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyFileUnusable(where, "others can read or write the file behind it")
    return KeyOnce(parse(where, text))


def named(text: str) -> KeySource:
    """Give the source that a text names, as in an option of a command.

    Raises:
        ValueError: A descriptor is not a number.
        KeyFileUnusable: A descriptor does not hold a key file.

    """
    kind, _, rest = text.partition(":")
    if kind == "env":
        return KeyVariable(rest)
    if kind == "fd":
        if not _DESCRIPTOR.fullmatch(rest):
            raise ValueError(f"fd: expected a number, found {rest!r}")
        return descriptor(int(rest))
    return KeyFiles(Path(text))


def source(given: Given) -> KeySource:
    """Give the source for what a program passed: a path, or a source already."""
    return KeyFiles(Path(given)) if isinstance(given, str | os.PathLike) else given
