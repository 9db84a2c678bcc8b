"""The texts in the arguments of a call, each with the role that the name of its member gives."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

from ledger.assess.rules import ROLES

JSON: TypeAlias = Any

MAX_CHARACTERS: Final = 65_536  # of texts that may be commands, SQL, code or paths
MAX_CONTENT: Final = 1_048_576  # characters of content
MAX_VALUES: Final = 65_536
UNKNOWN: Final = "unknown"

_MAX_NAME: Final = 64  # characters of a member's name that are looked at


@dataclass(slots=True)
class Arguments:
    """What was found: texts and lists of words by role, and the names of members that are true.

    `whole` is false where a limit was met or a value is not JSON.
    """

    texts: list[tuple[str, str]] = field(default_factory=list)
    argvs: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    true_members: set[str] = field(default_factory=set)
    whole: bool = True


def read(arguments: JSON, members: Mapping[str, frozenset[str]]) -> Arguments:
    """Collect the texts of any value, without recursion and within fixed limits."""
    found = Arguments()
    values, room = MAX_VALUES, {"content": MAX_CONTENT, "other": MAX_CHARACTERS}
    waiting: list[tuple[str, JSON]] = [(UNKNOWN, arguments)]
    while waiting:
        role, value = waiting.pop()
        if isinstance(value, str):
            kind = "content" if role == "content" else "other"
            found.whole &= len(value) <= room[kind]
            found.texts.append((role, value[: room[kind]]))
            room[kind] -= len(found.texts[-1][1])
        elif isinstance(value, dict | list | tuple):
            found.whole &= len(value) <= values
            inner = list(islice(value, values))
            values -= len(inner)
            if isinstance(value, dict):
                waiting += _of_object({name: value[name] for name in inner}, role, members, found)
            else:
                waiting += _of_array(inner, role, found)
        elif value is not None and not isinstance(value, bool | int | float):
            found.whole = False
    _cut(found)
    return found


def _of_object(
    value: dict[Any, JSON], role: str, members: Mapping[str, frozenset[str]], found: Arguments
) -> list[tuple[str, JSON]]:
    roles = {name: _role(name, role, members) for name in value}
    found.true_members |= {_plain(name) for name in value if value[name] is True}
    programs = [value[name] for name, its in roles.items() if its == "command"]
    behind = [value[name] for name, its in roles.items() if its == "arguments"]
    if len(programs) == 1 and len(behind) == 1 and isinstance(programs[0], str):
        found.texts += _joined(programs[0], behind[0])
        roles = {n: "argument" if r in ("command", "arguments") else r for n, r in roles.items()}
    return [(its, value[name]) for name, its in roles.items()]


def _joined(program: str, behind: JSON) -> Iterator[tuple[str, str]]:
    """Give the line of a call that has the program in one member and the rest in another."""
    if isinstance(behind, list | tuple):
        behind = shlex.join(word for word in behind[:MAX_VALUES] if isinstance(word, str))
    if isinstance(behind, str):
        yield "command", f"{program[:MAX_CHARACTERS]} {behind[:MAX_CHARACTERS]}"


def _of_array(value: list[JSON], role: str, found: Arguments) -> list[tuple[str, JSON]]:
    words = tuple(word for word in value if isinstance(word, str))
    one_call = words and len(words) == len(value) and not any(c.isspace() for c in words[0])
    if one_call and role in ("command", "arguments", UNKNOWN):
        found.argvs.append((role, words))
        guessed = role == UNKNOWN
        return [(UNKNOWN if guessed and " " in word else "argument", word) for word in words]
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
    for role, words in found.argvs:
        left -= sum(len(word) + 1 for word in words)
        if left < 0:
            found.whole = False
            break
        kept.append((role, words))
    found.argvs = kept
