"""JSON as an envelope needs it: a strict boundary and one canonical form (spec §2.1, §2.2).

Text and native values pass the same rules. What comes out holds only `None`,
`bool`, `int`, `float`, `str`, `list` and `dict`, is a copy, and has an `int`
wherever the canonical form is an integer.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import rfc8785

from ledger.errors import ProposalInvalid

JSON: TypeAlias = Any

MAX_BYTES: Final = 1_048_576
MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53 - 1

_FIRST_WITH_EXPONENT: Final = 1e21  # from here on ECMAScript prints an exponent
_MOST_DIGITS: Final = 17  # of 2^53 - 1 and a sign; `int` is slow over long ones
_TOO_LARGE: Final = "an integer outside ±(2^53 - 1); write it as text"
_MOST_GROWTH: Final = 4  # `9e15` becomes 16 digits; nothing else grows as much
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[][{},]', re.DOTALL)


def parse(text: bytes) -> JSON:
    """Read a JSON document by the strict rules of the boundary (spec §2.1).

    Raises `ProposalInvalid`, naming the place as a JSON pointer.
    """
    characters = _characters(text)
    _refuse_depth(characters)
    try:
        value = json.loads(
            characters,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=lambda spelled: _Flaw(f"{spelled} is not a JSON number"),
        )
    except json.JSONDecodeError as error:
        offset = len(characters[: error.pos].encode())
        what = error.msg.lower().removesuffix(" at").replace("extra data", "trailing data")
        raise ProposalInvalid("", f"not JSON: {what} at byte {offset}") from None
    walk = _Walk()
    value = walk.checked(value)
    if len(text) * _MOST_GROWTH > MAX_BYTES:
        _dump(value, walk)
    return value


def encode(value: JSON) -> bytes:
    """Give the canonical form of a native value (spec §2.1, §2.2).

    Types are exact: a boolean is never a number, and subclasses, bytes, sets
    and names that are not text are refused, never converted. A tuple is an array.
    Raises `ProposalInvalid`, naming the place as a JSON pointer.
    """
    walk = _Walk()
    return _dump(walk.checked(value), walk)


def load(canonical: bytes) -> JSON:
    """Give a fresh copy of the value that canonical bytes hold."""
    return json.loads(canonical)


def digest(value: JSON) -> bytes:
    """Give the SHA-256 of the canonical form, 32 bytes."""
    return hashlib.sha256(encode(value)).digest()


def pointer(path: Iterable[str | int]) -> str:
    """Give the JSON pointer of a path of names and indices (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


class _Flaw(Exception):
    """What is wrong with a value, and, from the inside out, the path to it.

    The hooks of the parser do not know where they are: they put it in the tree,
    and the walk raises it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str | int] = []


class _Walk:
    """One pass over a value: checks it, copies it, and notes what the encoder must know."""

    def __init__(self) -> None:
        self.fast = True  # no float, and names sort alike by code point and by UTF-16
        self._left = MAX_BYTES  # values that still fit, so that shared ones cannot explode

    def checked(self, value: JSON) -> JSON:
        try:
            return self._value(value, 1)
        except _Flaw as flaw:
            raise ProposalInvalid(pointer(reversed(flaw.path)), flaw.reason) from None

    def _value(self, value: JSON, depth: int) -> JSON:
        kind = type(value)
        if kind is str:
            return _text(value)
        if kind is dict:
            return self._members(value, depth)
        if kind is list or kind is tuple:
            return self._elements(value, depth)
        if kind is int:
            return _in_range(value)
        if kind is float:
            return self._number(value)
        if value is None or kind is bool:
            return value
        if kind is _Flaw:
            raise value
        raise _Flaw(f"type {kind.__name__}, expected a JSON value")

    def _members(self, value: dict[Any, Any], depth: int) -> dict[str, JSON]:
        self._enter(len(value), depth)
        members = {}
        for name, member in value.items():
            if type(name) is not str:
                raise _Flaw(f"a name of type {type(name).__name__}, expected text")
            if not name.isascii():
                _text(name)
                self.fast = self.fast and max(name) < "\ud800"
            try:
                members[name] = self._value(member, depth + 1)
            except _Flaw as flaw:
                flaw.path.append(name)
                raise
        return members

    def _elements(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[JSON]:
        self._enter(len(value), depth)
        elements = []
        for index, element in enumerate(value):
            try:
                elements.append(self._value(element, depth + 1))
            except _Flaw as flaw:
                flaw.path.append(index)
                raise
        return elements

    def _number(self, value: float) -> int | float:
        if not math.isfinite(value):
            raise _Flaw(f"{value} is not a JSON number")
        if value == 0 and math.copysign(1, value) < 0:
            raise _Flaw("negative zero, expected 0")
        if value.is_integer() and abs(value) < _FIRST_WITH_EXPONENT:
            return _in_range(int(value))
        self.fast = False
        return value

    def _enter(self, count: int, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _Flaw(f"nesting deeper than {MAX_DEPTH}")
        self._left -= count
        if self._left < 0:
            raise _Flaw(f"over {MAX_BYTES} bytes in canonical form")


def _dump(value: JSON, walk: _Walk) -> bytes:
    """Write a checked value. The C encoder of `json` gives JCS bytes where `fast` says so."""
    if walk.fast:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        canonical = text.encode()
    else:
        canonical = rfc8785.dumps(value)
    if len(canonical) > MAX_BYTES:
        raise ProposalInvalid("", f"{len(canonical)} bytes in canonical form, limit {MAX_BYTES}")
    return canonical


def _characters(text: bytes) -> str:
    if type(text) is not bytes:
        raise ProposalInvalid("", f"expected bytes of JSON, found {type(text).__name__}")
    if len(text) > MAX_BYTES:
        raise ProposalInvalid("", f"{len(text)} bytes, limit {MAX_BYTES}")
    if text.startswith(b"\xef\xbb\xbf"):
        raise ProposalInvalid("", "begins with a byte order mark")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProposalInvalid("", f"not UTF-8 at byte {error.start}") from None


def _refuse_depth(characters: str) -> None:
    """Refuse what nests too deep before anything recurses over it."""
    if characters.count("[") + characters.count("{") <= MAX_DEPTH:
        return
    path: list[str | int] = []
    for match in _TOKEN.finditer(characters):
        token = match[0]
        if token in "[{":
            if len(path) == MAX_DEPTH:
                place = pointer(map(_spelled, path))
                raise ProposalInvalid(place, f"nesting deeper than {MAX_DEPTH}")
            path.append(0 if token == "[" else '""')
        elif not path:
            continue
        elif token in "]}":
            path.pop()
        elif isinstance(path[-1], int):
            path[-1] += token == ","
        elif token != ",":
            path[-1] = token


def _spelled(step: str | int) -> str | int:
    """Read a name as it is spelled in the text, or leave it so where it is not JSON."""
    try:
        return step if isinstance(step, int) else str(json.loads(step))
    except ValueError:
        return step


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON] | _Flaw:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            break
        seen.add(name)
    flaw = _Flaw("a repeated name")
    flaw.path.append(name)
    return flaw


def _integer(spelled: str) -> int | _Flaw:
    """Read digits alone. From 1e21 on their form would be that of a float, with digits lost."""
    if spelled == "-0":
        return _Flaw("negative zero, expected 0")
    if len(spelled) > _MOST_DIGITS:
        return _Flaw(_TOO_LARGE)
    return int(spelled)


def _float(spelled: str) -> float | _Flaw:
    value = float(spelled)
    return value if math.isfinite(value) else _Flaw("a number that overflows to infinity")


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise _Flaw(f"an unpaired surrogate at code point {error.start}") from None
    return value


def _in_range(value: int) -> int:
    if -MAX_INTEGER <= value <= MAX_INTEGER:
        return value
    raise _Flaw(_TOO_LARGE)
