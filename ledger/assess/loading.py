"""Reading a set of detectors from its data file, by a closed schema (docs/assessor.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from ledger.assess.rules import (
    READINGS,
    ROLES,
    SIGNALS,
    Carrier,
    CommandRule,
    Detector,
    Detectors,
    SqlRule,
    ToolClass,
    ToolRule,
    Undo,
    Words,
)
from ledger.errors import LedgerError, ProposalInvalid

DATA: Final = "detectors.json"
FORMAT: Final = "cardchain-detectors/1"

_MAX_DETECTORS: Final = 64
_MAX_UNDO: Final = 4000  # bytes of all ids and procedures, so that any card can hold them
_MAX_GLOB_STARS: Final = 4  # with the sizes in `fired`, this bounds the time of a match

_T = TypeVar("_T")
_Members = dict[str, Any]


def load(path: Path | None = None) -> Detectors:
    """Read a set of detectors from a file, or the set that comes with the package.

    Raises `ProposalInvalid`, naming the place in the file as a JSON pointer.
    """
    try:
        data = files(__package__).joinpath(DATA).read_bytes() if path is None else path.read_bytes()
    except OSError as error:
        raise LedgerError(
            f"detectors not readable: {error.strerror}", "give a file of detectors"
        ) from None
    return parse(data, _code())


def parse(data: bytes, code: Mapping[str, bytes]) -> Detectors:
    """Give the set of detectors that `data` describes and the sources `code` match by."""
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_unrepeated)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ProposalInvalid):
            raise
        raise ProposalInvalid("", f"not JSON: {type(error).__name__}") from None
    return _detectors(document, digest(data, code))


def digest(data: bytes, code: Mapping[str, bytes]) -> str:
    """Give the digest that names the behaviour: of the data and of every source of the package.

    It is the SHA-256 of what `sha256sum` prints for the data file and then for the
    sources in the order of their names.
    """
    listed = [(DATA, data), *sorted(code.items())]
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in listed]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _code() -> dict[str, bytes]:
    entries = files(__package__).iterdir()
    code = {entry.name: entry.read_bytes() for entry in entries if entry.name.endswith(".py")}
    if not code:
        raise LedgerError(
            "the sources of ledger.assess are missing, so nothing can name what it does",
            "install cardchain from its wheel",
        )
    return code


def _unrepeated(pairs: list[tuple[str, Any]]) -> _Members:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ProposalInvalid("", "an object with a repeated name")
    return members


def _detectors(value: Any, named: str) -> Detectors:
    required = ("format", "id", "members", "options", "writers", "carriers", "detectors")
    document = _object(value, "", (*required, "classes", "unknown"))
    if document["format"] != FORMAT:
        raise ProposalInvalid("/format", f"not {FORMAT}")
    members = _object(document["members"], "/members", ROLES)
    loaded = Detectors(
        id=_name(document["id"], "/id"),
        digest=named,
        members=_table(members, "/members"),
        options=_table(document["options"], "/options"),
        writers=_writers(document["writers"], "/writers"),
        carriers=_each(document["carriers"], "/carriers", _carrier),
        detectors=_each(document["detectors"], "/detectors", _detector),
        classes=_each(document["classes"], "/classes", _class),
        unknown=_undo(document["unknown"], "/unknown", ()),
    )
    _check_whole(loaded)
    return loaded


def _check_whole(loaded: Detectors) -> None:
    ids = [d.id for d in loaded.detectors]
    if len(set(ids)) != len(ids) or len(ids) > _MAX_DETECTORS:
        raise ProposalInvalid("/detectors", f"an id twice, or more than {_MAX_DETECTORS}")
    undo = [loaded.unknown, *(c.undo for c in loaded.classes), *(d.undo for d in loaded.detectors)]
    size = sum(len(u.undo) for u in undo) + sum(len(name) + 20 for name in ids)
    if size > _MAX_UNDO:
        raise ProposalInvalid("/detectors", f"{size} bytes of ids and undo, limit {_MAX_UNDO}")
    claimed = {signal for d in loaded.detectors for signal in d.signals}
    if claimed != set(SIGNALS):
        raise ProposalInvalid("/detectors", f"signals must be {', '.join(SIGNALS)}, all of them")


def _detector(value: Any, at: str) -> Detector:
    lists = ("commands", "sql", "tools", "paths", "content", "code", "signals")
    own = ("id", "hard", "score", "undo", "irreversible")
    members = _object(value, at, own, lists)
    undo = _undo(members, at, ("id", "hard", *lists))
    hard = _boolean(members["hard"], f"{at}/hard")
    if hard and not undo.irreversible:
        raise ProposalInvalid(f"{at}/irreversible", "false although hard is true")
    return Detector(
        id=_name(members["id"], f"{at}/id"),
        hard=hard,
        undo=undo,
        commands=_each(members.get("commands", []), f"{at}/commands", _command_rule),
        sql=_each(members.get("sql", []), f"{at}/sql", _sql_rule),
        tools=_each(members.get("tools", []), f"{at}/tools", _tool_rule),
        paths=_globs(members.get("paths", []), f"{at}/paths"),
        content=_texts(members.get("content", []), f"{at}/content"),
        code=_texts(members.get("code", []), f"{at}/code"),
        signals=_texts(members.get("signals", []), f"{at}/signals"),
    )


def _class(value: Any, at: str) -> ToolClass:
    own = ("id", "score", "undo", "irreversible")
    optional = ("tools", "commands", "sql", "reads", "writes", "carries")
    members = _object(value, at, own, optional)
    lines = _texts(members.get("commands", []), f"{at}/commands")
    return ToolClass(
        id=_name(members["id"], f"{at}/id"),
        undo=_undo(members, at, ("id", *optional)),
        tools=_globs(members.get("tools", []), f"{at}/tools"),
        commands=tuple(_words(line.split(), f"{at}/commands") for line in lines),
        sql=_texts(members.get("sql", []), f"{at}/sql"),
        reads=_boolean(members.get("reads", False), f"{at}/reads"),
        writes=_boolean(members.get("writes", False), f"{at}/writes"),
        carries=_boolean(members.get("carries", False), f"{at}/carries"),
    )


def _carrier(value: Any, at: str) -> Carrier:
    optional = ("values", "options", "skip", "rest", "stdin")
    members = _object(value, at, ("words", "reading"), optional)
    if members["reading"] not in READINGS:
        raise ProposalInvalid(f"{at}/reading", f"not one of {', '.join(READINGS)}")
    return Carrier(
        words=_words(members["words"], f"{at}/words"),
        reading=members["reading"],
        values=frozenset(_texts(members.get("values", []), f"{at}/values")),
        options=_texts(members.get("options", []), f"{at}/options"),
        skip=_integer(members.get("skip", 0), f"{at}/skip"),
        rest=_boolean(members.get("rest", False), f"{at}/rest"),
        stdin=_boolean(members.get("stdin", False), f"{at}/stdin"),
    )


def _command_rule(value: Any, at: str) -> CommandRule:
    members = _object(value, at, ("words",), ("options", "operands", "unless"))
    if not all(word.startswith("-") for word in _texts(members.get("unless", []), f"{at}/unless")):
        raise ProposalInvalid(f"{at}/unless", "not options only")
    return CommandRule(
        words=_words(members["words"], f"{at}/words"),
        options=_texts(members.get("options", []), f"{at}/options"),
        operands=_globs(members.get("operands", []), f"{at}/operands"),
        unless=_texts(members.get("unless", []), f"{at}/unless"),
    )


def _sql_rule(value: Any, at: str) -> SqlRule:
    members = _object(value, at, ("sequence",), ("unless",))
    steps = _texts(members["sequence"], f"{at}/sequence")
    if not steps or steps[0] == "..." or steps[-1] == "..." or steps.count("...") > 1:
        raise ProposalInvalid(f"{at}/sequence", "empty, or a gap at its ends, or two gaps")
    return SqlRule(
        sequence=tuple(tuple(step.split("|")) for step in steps),
        unless=_texts(members.get("unless", []), f"{at}/unless"),
    )


def _tool_rule(value: Any, at: str) -> ToolRule:
    members = _object(value, at, ("name",), ("members",))
    name = _globs([members["name"]], f"{at}/name")[0]
    return ToolRule(name, _texts(members.get("members", []), f"{at}/members"))


def _undo(value: Any, at: str, others: tuple[str, ...]) -> Undo:
    members = _object(value, at, ("score", "undo", "irreversible"), others)
    score = _integer(members["score"], f"{at}/score")
    if score > 100:
        raise ProposalInvalid(f"{at}/score", f"{score}, limit 100")
    text = _text(members["undo"], f"{at}/undo")
    if not text.isprintable() or not text.isascii():
        raise ProposalInvalid(f"{at}/undo", "not printable ASCII")
    return Undo(score, text, _boolean(members["irreversible"], f"{at}/irreversible"))


def _words(value: Any, at: str) -> Words:
    words = tuple(tuple(word.split("|")) for word in _texts(value, at))
    if not words or not all(words[0]):
        raise ProposalInvalid(at, "no program")
    return words


def _globs(value: Any, at: str) -> tuple[str, ...]:
    globs = _texts(value, at)
    if any(glob.count("*") > _MAX_GLOB_STARS for glob in globs):
        raise ProposalInvalid(at, f"more than {_MAX_GLOB_STARS} stars in a pattern")
    return globs


def _writers(value: Any, at: str) -> Mapping[str, str]:
    if type(value) is not dict or not all(which in ("all", "last") for which in value.values()):
        raise ProposalInvalid(at, 'not an object of "all" and "last"')
    return MappingProxyType(value)


def _table(value: Any, at: str) -> Mapping[str, frozenset[str]]:
    if type(value) is not dict:
        raise ProposalInvalid(at, "not an object")
    table = {name: frozenset(_texts(texts, f"{at}/{name}")) for name, texts in value.items()}
    return MappingProxyType(table)


def _object(
    value: Any, at: str, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> _Members:
    if type(value) is not dict:
        raise ProposalInvalid(at, "not an object")
    for name in required:
        if name not in value:
            raise ProposalInvalid(at, f"member {name} is missing")
    unknown = value.keys() - {*required, *optional}
    if unknown:
        raise ProposalInvalid(f"{at}/{min(unknown)}", "an unknown member")
    return value


def _each(value: Any, at: str, read: Callable[[Any, str], _T]) -> tuple[_T, ...]:
    if type(value) is not list:
        raise ProposalInvalid(at, "not an array")
    return tuple(read(element, f"{at}/{index}") for index, element in enumerate(value))


def _texts(value: Any, at: str) -> tuple[str, ...]:
    return _each(value, at, _text)


def _text(value: Any, at: str) -> str:
    if type(value) is not str or not value:
        raise ProposalInvalid(at, "not a text of at least one character")
    return value


def _name(value: Any, at: str) -> str:
    name = _text(value, at)
    if not name.isascii() or not name.replace("_", "").replace("-", "").isalnum() or len(name) > 64:
        raise ProposalInvalid(at, "not a name of at most 64 letters, digits, - and _")
    return name


def _integer(value: Any, at: str) -> int:
    if type(value) is not int or value < 0:
        raise ProposalInvalid(at, "not an integer from 0")
    return value


def _boolean(value: Any, at: str) -> bool:
    if type(value) is not bool:
        raise ProposalInvalid(at, "not a boolean")
    return value
