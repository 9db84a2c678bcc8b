"""JSON at the strict boundary (spec §2.1) and its canonical form, RFC 8785 (spec §2.2).

`parse` and `encode` are the judge. `canonical`, `load`, `reload` and `plain_end` give the same
answer at the speed of the C scanner, where their answer is provably that of the judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple, NoReturn

from verifier.spec import MAX_DEPTH, MAX_DOCUMENT, MAX_INTEGER


class JsonRefused(Exception):
    """The bytes break a rule of the strict boundary at `pointer` (RFC 6901)."""

    def __init__(self, pointer: str, problem: str) -> None:
        """Name the place and the problem."""
        super().__init__(f"{problem} at {pointer!r}")
        self.pointer = pointer
        self.problem = problem


def parse(data: bytes) -> Any:
    """Read one JSON document by the strict rules of spec §2.1, or raise JsonRefused."""
    if len(data) > MAX_DOCUMENT:
        raise JsonRefused("", f"a document of {len(data)} bytes")
    try:
        source = data.decode()
    except UnicodeDecodeError as error:
        raise JsonRefused("", f"bytes that are not UTF-8 at offset {error.start}") from None
    if source.startswith("\ufeff"):
        raise JsonRefused("", "a byte order mark")
    parser = _Parser(source)
    value = parser.value(parser.blank(0), None, 0)
    end = parser.blank(parser.end)
    if end != len(source):
        raise JsonRefused("", f"data after the value at character {end}")
    return value


_BLANK = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_HEX4 = re.compile(r"[0-9A-Fa-f]{4}")
_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_WORDS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


Place = tuple[Any, str | int] | None
"""Where a value stands: the place of what holds it, and its name or number there."""


def _pointer(place: Place) -> str:
    """Write a place as a JSON pointer, which only a refusal needs."""
    parts: list[str] = []
    while place is not None:
        place, token = place
        parts.append(str(token).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{part}" for part in reversed(parts))


class _Parser:
    """A recursive reader of one document; `end` is the position after the last value."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.end = 0

    def blank(self, pos: int) -> int:
        match = _BLANK.match(self.source, pos)
        return match.end() if match else pos

    def value(self, pos: int, place: Place, depth: int) -> Any:
        first = self.source[pos : pos + 1]
        if first == '"':
            return self.string(pos + 1, place)
        if first in ("{", "["):
            if depth == MAX_DEPTH:
                raise JsonRefused(_pointer(place), f"nesting deeper than {MAX_DEPTH}")
            if first == "{":
                return self.object(pos + 1, place, depth + 1)
            return self.array(pos + 1, place, depth + 1)
        if first in _WORDS and first:
            word, value = _WORDS[first]
            if self.source.startswith(word, pos):
                self.end = pos + len(word)
                return value
        return self.number(pos, place)

    def object(self, pos: int, place: Place, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        pos = self.blank(pos)
        if self.source.startswith("}", pos):
            self.end = pos + 1
            return members
        while True:
            if not self.source.startswith('"', pos):
                raise JsonRefused(_pointer(place), f"a member without a name at character {pos}")
            name = self.string(pos + 1, place)
            inner = (place, name)
            if name in members:
                raise JsonRefused(_pointer(inner), "a repeated name")
            pos = self.blank(self.end)
            if not self.source.startswith(":", pos):
                raise JsonRefused(_pointer(inner), f"no colon at character {pos}")
            members[name] = self.value(self.blank(pos + 1), inner, depth)
            pos = self.blank(self.end)
            if self.source.startswith("}", pos):
                self.end = pos + 1
                return members
            pos = self.comma(pos, place)

    def array(self, pos: int, place: Place, depth: int) -> list[Any]:
        items: list[Any] = []
        pos = self.blank(pos)
        if self.source.startswith("]", pos):
            self.end = pos + 1
            return items
        while True:
            items.append(self.value(pos, (place, len(items)), depth))
            pos = self.blank(self.end)
            if self.source.startswith("]", pos):
                self.end = pos + 1
                return items
            pos = self.comma(pos, place)

    def comma(self, pos: int, place: Place) -> int:
        if not self.source.startswith(",", pos):
            raise JsonRefused(_pointer(place), f"no comma and no end at character {pos}")
        return self.blank(pos + 1)

    def string(self, pos: int, place: Place) -> str:
        parts = []
        while True:
            match = _PLAIN.match(self.source, pos)
            end = match.end() if match else pos
            parts.append(self.source[pos:end])
            mark = self.source[end : end + 1]
            if mark == '"':
                self.end = end + 1
                return "".join(parts)
            if mark != "\\":
                raise JsonRefused(
                    _pointer(place), f"a string with a bare control or no end at {end}"
                )
            character, pos = self.escape(end + 1, place)
            parts.append(character)

    def escape(self, pos: int, place: Place) -> tuple[str, int]:
        letter = self.source[pos : pos + 1]
        if letter in _ESCAPES and letter:
            return _ESCAPES[letter], pos + 1
        code, pos = self.unit(pos, place)
        if 0xDC00 <= code <= 0xDFFF:
            raise JsonRefused(_pointer(place), "an unpaired surrogate")
        if 0xD800 <= code <= 0xDBFF:
            if not self.source.startswith("\\u", pos):
                raise JsonRefused(_pointer(place), "an unpaired surrogate")
            low, pos = self.unit(pos + 1, place)
            if not 0xDC00 <= low <= 0xDFFF:
                raise JsonRefused(_pointer(place), "an unpaired surrogate")
            code = 0x10000 + (code - 0xD800 << 10) + (low - 0xDC00)
        return chr(code), pos

    def unit(self, pos: int, place: Place) -> tuple[int, int]:
        match = _HEX4.match(self.source, pos + 1)
        if not self.source.startswith("u", pos) or match is None:
            raise JsonRefused(_pointer(place), f"an unknown escape at character {pos}")
        return int(match.group(), 16), match.end()

    def number(self, pos: int, place: Place) -> int | float:
        match = _NUMBER.match(self.source, pos)
        if match is None:
            raise JsonRefused(_pointer(place), f"no JSON value at character {pos}")
        self.end = match.end()
        return _number(match.group(), match.group(1) or match.group(2), place)


def _number(spelling: str, is_float: str | None, place: Place) -> int | float:
    if is_float is None:
        # a spelling of more digits is out of range, and int() of a long one would be slow
        value: int | float = int(spelling) if len(spelling) <= 17 else MAX_INTEGER + 1
    else:
        value = float(spelling)
        if value in (float("inf"), float("-inf")):
            raise JsonRefused(_pointer(place), "a number that overflows")
        if value.is_integer() and abs(value) < 1e21:
            value = int(value) if value or not spelling.startswith("-") else value
    if value == 0 and spelling.startswith("-"):
        raise JsonRefused(_pointer(place), "negative zero")
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise JsonRefused(_pointer(place), "an integer beyond 2^53 - 1")
    return value


Encode = Callable[[Any], bytes]


def encode(value: Any) -> bytes:
    """Give the RFC 8785 form of what `parse` gave."""
    return _encode(value).encode()


def _encode(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, list):
        return f"[{','.join(map(_encode, value))}]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return f"{{{','.join(f'{_string(name)}:{_encode(value[name])}' for name in names)}}}"


_MUST_ESCAPE = re.compile(r'["\\\x00-\x1f]')
_SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def _string(value: str) -> str:
    return '"' + _MUST_ESCAPE.sub(_escape, value) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def number_text(value: float) -> str:
    """Print a finite double as ECMAScript does (RFC 8785 §3.2.2.3).

    Python's repr gives the same shortest digits; only the notation differs.
    """
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or "0")
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'+' if power > 0 else '-'}{abs(power)}"


class _NeedsJudge(Exception):
    """The document holds something about which only the judge can say whether it is canonical."""


def _needs_judge(_spelling: str) -> NoReturn:
    raise _NeedsJudge


def _small_integer(spelling: str) -> int:
    if len(spelling) > 15:
        raise _NeedsJudge
    return int(spelling)


class _Quick(NamedTuple):
    """The scanner and the encoders of the standard library, set to the strict rules."""

    decode: Callable[[str, int], tuple[Any, int]]
    chunks: Callable[[Any, int], Iterable[str]]
    quote: Callable[[str], str]


@cache
def _quick() -> _Quick:
    """Make them when the first envelope is read: starting takes longer with their module.

    The encoder is that which `JSONEncoder.encode` makes anew for each call.
    """
    from json import JSONDecoder, JSONEncoder
    from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]

    scanner = JSONDecoder(
        parse_float=_needs_judge, parse_int=_small_integer, parse_constant=_needs_judge
    )
    decode = scanner.scan_once  # type: ignore[attr-defined]
    if c_make_encoder is not None:
        chunks = c_make_encoder(None, None, encode_basestring, None, ":", ",", True, False, True)
        return _Quick(decode, chunks, encode_basestring)
    encoder = JSONEncoder(
        sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
    )
    return _Quick(decode, lambda value, _level: encoder.encode(value), encode_basestring)


def quote(text: str) -> str:
    """Give a text as a JSON string, as `encode` does."""
    return _quick().quote(text)


def canonical(data: bytes) -> tuple[Any, Encode]:
    """Give the value of a document in canonical form, and an encoder for parts of it.

    Raises JsonRefused if the document is not canonical.
    """
    found = _plain(data, 0)
    if found is not None and found[1] == len(data):
        return found[0], _encode_plain
    return judged(data), encode


def load(data: bytes) -> Any:
    """Read a document as `parse` does, quicker where it is plainly in canonical form."""
    found = _plain(data, 0)
    return parse(data) if found is None or found[1] != len(data) else found[0]


def reload(data: bytes) -> Any:
    """Read a document of which it is known that it is canonical."""
    try:
        return _quick().decode(data.decode(), 0)[0]
    except (_NeedsJudge, ValueError):
        return parse(data)


def plain_end(data: bytes, start: int) -> int | None:
    """Give the end of the value at `start` if it is plainly in canonical form, else None."""
    found = _plain(data, start)
    return None if found is None else found[1]


def _plain(data: bytes, start: int) -> tuple[Any, int] | None:
    """Give the value at `start` and its end, if it is plainly in canonical form.

    The C scanner and encoder decide only where they agree with RFC 8785: no float, integers of at
    most 15 digits, at most 64 brackets, and no name beyond U+FFFF, so that names sort by code
    point as by UTF-16. Then equal bytes show that there is no repeated name, no white space, no
    other escape and no other order. None says nothing: the judge decides.
    """
    if len(data) > MAX_DOCUMENT or data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        return None
    try:
        source = data.decode()
        if not source.isascii() and any(lead in data for lead in _ASTRAL):
            return None
        value = _quick().decode(source, start)[0]
        again = _encode_plain(value)
    except (_NeedsJudge, ValueError, StopIteration):
        return None
    return (value, start + len(again)) if data.startswith(again, start) else None


def _encode_plain(value: Any) -> bytes:
    return "".join(_quick().chunks(value, 0)).encode()


_ASTRAL = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")


def judged(data: bytes) -> Any:
    """Give the value of a document in canonical form by the strict rules alone."""
    value = parse(data)
    again = encode(value)
    if again != data:
        same = next((i for i, (a, b) in enumerate(zip(again, data)) if a != b), len(again))  # noqa: B905
        raise JsonRefused("", f"another form than the canonical one from offset {same}")
    return value
