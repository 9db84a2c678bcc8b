"""The texts in the arguments of a call, each with the role that the name of its member gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ledger.assess.rules import ROLES

JSON: TypeAlias = Any

MAX_CHARACTERS: Final = 262_144
MAX_VALUES: Final = 65_536
UNKNOWN: Final = "unknown"

_MAX_NAME: Final = 64  # characters of a member's name that are looked at


@dataclass(slots=True)
class Arguments:
    """What was found: (role, text) pairs, lists of words, the names of members that are true.

    `whole` is false where a limit was met or a value is not JSON.
    """

    texts: list[tuple[str, str]] = field(default_factory=list)
    argvs: list[tuple[str, ...]] = field(default_factory=list)
    true_members: set[str] = field(default_factory=set)
    whole: bool = True


def read(arguments: JSON, members: Mapping[str, frozenset[str]]) -> Arguments:
    """Collect the texts of any value, without recursion and within fixed limits."""
    found = Arguments()
    left, values = MAX_CHARACTERS, 0
    waiting: list[tuple[str, JSON]] = [(UNKNOWN, arguments)]
    while waiting:
        role, value = waiting.pop()
        values += 1
        if values > MAX_VALUES:
            found.whole = False
            break
        if isinstance(value, str):
            found.whole &= len(value) <= left
            found.texts.append((role, value[:left]))
            left -= len(found.texts[-1][1])
        elif isinstance(value, dict):
            waiting += _of_object(value, role, members, found)
        elif isinstance(value, list | tuple):
            waiting += _of_array(list(value[: MAX_VALUES + 1]), role, found)
        elif value is not None and not isinstance(value, bool | int | float):
            found.whole = False
    _cut(found)
    return found


def _of_object(
    value: dict[Any, JSON], role: str, members: Mapping[str, frozenset[str]], found: Arguments
) -> Iterator[tuple[str, JSON]]:
    roles = {name: _role(name, role, members) for name in list(value)[: MAX_VALUES + 1]}
    found.true_members |= {_plain(name) for name in roles if value[name] is True}
    programs = [value[name] for name, its in roles.items() if its == "command"]
    behind = [value[name] for name, its in roles.items() if its == "arguments"]
    if len(programs) == 1 and len(behind) == 1 and isinstance(programs[0], str):
        found.argvs += _joined(programs[0], behind[0], found)
    for name, its in roles.items():
        yield its, value[name]


def _joined(program: str, behind: JSON, found: Arguments) -> Iterator[tuple[str, ...]]:
    """Give the words of a call that has the program in one member and the rest in another."""
    if isinstance(behind, str):
        found.texts.append(("command", f"{program} {behind}"))
    elif isinstance(behind, list | tuple):
        yield tuple(word for word in (program, *behind[:MAX_VALUES]) if isinstance(word, str))


def _of_array(value: list[JSON], role: str, found: Arguments) -> list[tuple[str, JSON]]:
    words = tuple(word for word in value if isinstance(word, str))
    one_call = words and len(words) == len(value) and not any(c.isspace() for c in words[0])
    if one_call and role in ("command", "arguments", UNKNOWN):
        found.argvs.append(words)
        return [("argument", word) for word in words]
    return [(role, element) for element in value]


def _role(name: Any, around: str, members: Mapping[str, frozenset[str]]) -> str:
    plain = _plain(name)
    for role in ROLES:
        if plain in members[role]:
            return role
    return around if around == "content" else UNKNOWN


def _plain(name: Any) -> str:
    return name[:_MAX_NAME].lower() if isinstance(name, str) else ""


def _cut(found: Arguments) -> None:
    """Keep the words of lists, which stand in `texts` too, within the same limit."""
    left = 2 * MAX_CHARACTERS
    kept = []
    for words in found.argvs:
        left -= sum(len(word) + 1 for word in words)
        if left < 0:
            found.whole = False
            break
        kept.append(words)
    found.argvs = kept
