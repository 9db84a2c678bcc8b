"""Detectors, tool classes and carriers: the values that a data file gives (docs/assessor.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

SIGNALS: Final = ("not_fully_read", "opaque", "unparsable")
ROLES: Final = ("command", "arguments", "sql", "code", "path", "content")
READINGS: Final = ("command", "shell", "sql", "code")

Pattern: TypeAlias = tuple[str, ...]  # alternatives, each a glob
Words: TypeAlias = tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class CommandRule:
    """A program with its subcommands, and what must and must not stand behind them.

    Empty `options` and `operands` ask for nothing.
    """

    words: Words
    options: tuple[str, ...] = ()
    operands: Pattern = ()
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SqlRule:
    """A sequence of tokens at the head of a clause, and a word that makes it harmless."""

    sequence: tuple[tuple[str, ...], ...]
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A glob over the dotted name of a tool; with `members`, one of them must be true."""

    name: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Undo:
    """A score, how to undo, and whether that is impossible."""

    score: int
    undo: str
    irreversible: bool


@dataclass(frozen=True, slots=True)
class Detector:
    """One thing to look for, and what it says about the call in which it is found."""

    id: str
    hard: bool
    undo: Undo
    commands: tuple[CommandRule, ...] = ()
    sql: tuple[SqlRule, ...] = ()
    tools: tuple[ToolRule, ...] = ()
    paths: Pattern = ()
    content: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolClass:
    """Tools, commands and statements that are undone alike.

    A class that `reads` changes nothing, one that `writes` covers files written by a
    command, and one that `carries` is as good as the commands in its arguments.
    """

    id: str
    undo: Undo
    tools: Pattern = ()
    commands: tuple[Words, ...] = ()
    sql: tuple[str, ...] = ()
    reads: bool = False
    writes: bool = False
    carries: bool = False


@dataclass(frozen=True, slots=True)
class Carrier:
    """A program that runs what its arguments hold: behind `options`, as `rest`, or on `stdin`."""

    words: Words
    reading: str
    values: frozenset[str] = frozenset()
    options: tuple[str, ...] = ()
    skip: int = 0
    rest: bool = False
    stdin: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Detectors:
    """A set of detectors, as loaded; `digest` names the bytes of its data and the code.

    Two sets are the same only if they are one object.

    `members` maps a role to names of members in lower case, `options` a program to its
    options that take a value, `writers` a program to `all` or `last`, its operands that
    are files to write.
    """

    id: str
    digest: str
    members: Mapping[str, frozenset[str]]
    options: Mapping[str, frozenset[str]]
    writers: Mapping[str, str]
    carriers: tuple[Carrier, ...]
    detectors: tuple[Detector, ...]
    classes: tuple[ToolClass, ...]
    unknown: Undo
