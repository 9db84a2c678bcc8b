"""Commands as programs, options and operands, and what carriers such as `sudo` and `sh -c` run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from ledger.assess.rules import Carrier, CommandRule, Words
from ledger.assess.shell import Command, without_prefix

_MAX_SHOWN: Final = 4096  # characters of a word that are compared with a pattern
_MAX_LOOKED: Final = 16  # words behind an option in which its value is looked for
_SHORTEST_LONG: Final = 3  # `--r` is `--recursive` to GNU


@dataclass(frozen=True, slots=True)
class Call:
    """A command taken apart; `given` holds its options as spelled, and each letter of a cluster."""

    program: str
    options: frozenset[str]
    given: frozenset[str]
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """What a command runs: another command, fed with the same, or text to be read as `reading`."""

    reading: str
    words: tuple[str, ...] = ()
    stdin: str | None = None
    fed: bool = False
    text: str = ""


def call(command: Command, values: Mapping[str, frozenset[str]]) -> Call | None:
    """Take a command apart, its options wherever they stand; None where no program is named."""
    words = without_prefix(command.words)
    if not words:
        return None
    program = program_of(words[0])
    taking = values.get(program, frozenset())
    options: set[str] = set()
    given: set[str] = set()
    operands: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word == "--":
            options.add(word)
            operands += rest
        elif len(word) < 2 or word[0] != "-":
            operands.append(word)
        else:
            given.add(word)
            options.add(word.partition("=")[0])
            letters, value_follows = _letters(word, taking)
            options |= letters
            given |= letters
            if value_follows:
                next(rest, None)
    return Call(program, frozenset(options), frozenset(given), tuple(operands))


def program_of(word: str) -> str:
    """Give the name of a program without folders and in lower case."""
    name = word.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return name[:_MAX_SHOWN].lower().removesuffix(".exe")


def rule_matches(rule: CommandRule, made: Call) -> bool:
    """Tell whether a command is one that the rule describes."""
    if not names(rule.words, made):
        return False
    behind = made.operands[len(rule.words) - 1 :]
    return (
        (not rule.options or any(_has(option, made) for option in rule.options))
        and (not rule.operands or any(one_of(word, rule.operands) for word in behind))
        and not any(_softens(option, made) for option in rule.unless)
    )


def names(words: Words, made: Call) -> bool:
    """Tell whether the program and its first operands are these words."""
    found = (made.program, *made.operands[: len(words) - 1])
    return len(found) == len(words) and all(map(one_of, found, words))


def one_of(word: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether a word, in lower case as it stands or not, is one of some globs."""
    short = word[:_MAX_SHOWN]
    return any(
        (short == pattern) if pattern.isalnum() else fnmatchcase(short, pattern)
        for pattern in patterns
    )


def carried(carrier: Carrier, command: Command, behind: tuple[str, ...]) -> Iterator[Carried]:
    """Give what a command of this carrier runs; `words` or `text` may be empty."""
    if carrier.reading == "command":
        for inner in _inner_commands(carrier, behind):
            yield Carried("command", inner, command.stdin, command.fed)
        return
    texts = list(_option_texts(carrier.options, behind))
    operands = _operands(behind, carrier)
    if carrier.rest and operands:
        texts.append(" ".join(operands))
    if carrier.stdin and command.stdin is not None:
        texts.append(command.stdin)
    for text in dict.fromkeys(texts):
        yield Carried(carrier.reading, text=text)


def behind_carrier(
    carrier: Carrier, command: Command, values: Mapping[str, frozenset[str]]
) -> tuple[str, ...] | None:
    """Give the words behind a carrier's own; None where the command is not of this carrier."""
    words = without_prefix(command.words)
    if not words or not one_of(program_of(words[0]), carrier.words[0]):
        return None
    taking = values.get(program_of(words[0]), frozenset()) | carrier.values
    at = 1
    for pattern in carrier.words[1:]:
        at = _past_options(words, at, taking)
        if at >= len(words) or not one_of(words[at], pattern):
            return None
        at += 1
    return words[at:]


def written_files(command: Command, writers: Mapping[str, str]) -> Iterator[str]:
    """Give the files that a command writes: by redirection, and by the kind of program it is."""
    yield from command.writes
    words = without_prefix(command.words)
    which = writers.get(program_of(words[0])) if words else None
    operands = [word for word in words[1:] if not word.startswith("-")]
    if which == "all":
        yield from operands
    elif which == "last":
        yield from operands[-1:]


def _letters(word: str, taking: frozenset[str]) -> tuple[set[str], bool]:
    """Give the options of a cluster such as `-fdx`, and whether the next word is a value."""
    if word in taking or word.startswith("--"):
        return set(), word in taking
    letters = set()
    for index, letter in enumerate(word[1:], 2):
        letters.add(f"-{letter}")
        if f"-{letter}" in taking:
            return letters, index == len(word)
    return letters, False


def _softens(option: str, made: Call) -> bool:
    """Tell whether an option is given and no other one may take it back, as the last one does."""
    name = option.partition("=")[0]
    return option in made.given and not any(
        other != option and (other.startswith("--no-") or other.partition("=")[0] == name)
        for other in made.given
    )


def _has(option: str, made: Call) -> bool:
    """Tell whether an option is given, a long one in a short form such as `--recur` too."""
    if option in made.options:
        return True
    return option.startswith("--") and any(
        len(name) >= _SHORTEST_LONG and name.startswith("--") and option.startswith(name)
        for name in made.options
    )


def _past_options(words: tuple[str, ...], at: int, taking: frozenset[str]) -> int:
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        at += 1 + _letters(words[at], taking)[1]
    return at


def _operands(words: tuple[str, ...], carrier: Carrier) -> tuple[str, ...]:
    """Give what follows the options and the skipped operands."""
    at = _past_options(words, 0, carrier.values)
    at += words[at : at + 1] == ("--",)
    for _ in range(carrier.skip):
        at = _past_options(words, at + 1, carrier.values)
    return words[at:]


def _inner_commands(carrier: Carrier, behind: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not carrier.options:
        yield _operands(behind, carrier)
    start = None
    for at, word in enumerate(behind):
        if start is None and word in carrier.options:
            start = at + 1
        elif start is not None and word in (";", "+"):
            yield behind[start:at]
            start = None
    if start is not None:
        yield behind[start:]


def _option_texts(options: tuple[str, ...], words: tuple[str, ...]) -> Iterator[str]:
    """Give every text that may be the value of one of the options.

    Programs differ in what they take: the rest of the word, the next word, or the
    first one that is no option. All three are given.
    """
    for at, word in enumerate(words):
        for option in options if word.startswith("-") else ():
            if option.startswith("--"):
                name, equals, value = word.partition("=")
                if name == option:
                    yield from (value,) if equals else words[at + 1 : at + 2]
            elif not word.startswith("--") and option[1] in word:
                yield word.partition(option[1])[2]
                yield from _next(words, at + 1)


def _next(words: tuple[str, ...], at: int) -> Iterator[str]:
    yield from words[at : at + 1]
    for word in words[at : at + _MAX_LOOKED]:
        if not word.startswith("-"):
            yield word
            return
