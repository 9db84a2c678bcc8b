"""The two JSON forms of Bernstein, the times in it, and how a stored value is quoted.

A line has the form that `json.dumps(entry, sort_keys=True)` gives, a card hash is taken over the
compact form in UTF-8. Both are made again from the parsed value, and a float is written as
Python writes it, so `1000.0` stays `1000.0`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)\.(\d{6})Z", re.ASCII
)
_SHOWN: Final = 80


class NotALine(ValueError):
    """The text of a line is not one JSON object; the message says why."""


def _encoder(plain: json.JSONEncoder) -> Callable[[Any], str]:
    """Give the function of an encoder; a C one is made once, not for every value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    name = "encode_basestring_ascii" if plain.ensure_ascii else "encode_basestring"
    quote: Any = getattr(json.encoder, name, None)
    if make is None or quote is None:
        return plain.encode
    colon, comma, nan = plain.key_separator, plain.item_separator, plain.allow_nan
    encode = make(None, None, quote, None, colon, comma, True, False, nan)
    return lambda value: "".join(encode(value, 0))


line_form: Final = _encoder(json.JSONEncoder(sort_keys=True))
_card_form: Final = _encoder(
    json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
)


class Scanner:
    """Reads JSON and counts the words for numbers that JSON cannot express."""

    def __init__(self) -> None:
        """Start with a count of 0."""
        self.constants = 0
        decoder: Any = json.JSONDecoder(parse_constant=self._constant)
        self.scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once

    def _constant(self, word: str) -> float:
        self.constants += 1
        return float(word)


def parse(raw: bytes) -> dict[str, Any]:
    """Parse a line that is not in the form of a writer as far as it can be."""
    if raw.startswith(b"\xef\xbb\xbf"):
        raise NotALine("a byte order mark")
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise NotALine(f"bytes that are not UTF-8 at {error.start} of the line") from None
    except RecursionError:
        raise NotALine("JSON nested too deeply") from None
    except ValueError as error:
        raise NotALine(_why(raw, error)) from None
    if not isinstance(value, dict):
        raise NotALine("JSON that is not an object")
    return value


def _why(raw: bytes, error: ValueError) -> str:
    if not raw.strip():
        return "an empty line"
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error.msg} at column {error.colno}"
    return "a number with too many digits"


def card_bytes(envelope: Any) -> bytes:
    """Give the bytes that a card hash covers. Raises ValueError for what has no such form."""
    return _card_form(envelope).encode("utf-8")


@lru_cache(maxsize=1024)
def _day_start(day: str) -> int | None:
    try:
        return int(datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def seconds(timestamp: str) -> float | None:
    """Give a timestamp in unix seconds, or None where it is not of the format."""
    match = _TIME.fullmatch(timestamp)
    if match is None:
        return None
    day, hour, minute, second, micro = match.groups()
    start = _day_start(day)
    if start is None:
        return None
    return start + int(hour) * 3600 + int(minute) * 60 + int(second) + int(micro) / 1e6


def shown(value: object) -> str:
    """Quote a stored value for a finding, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (ValueError, TypeError, RecursionError):
        return "a value that cannot be shown"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
