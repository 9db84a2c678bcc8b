"""Hidden characters made visible, by a fixed list (spec §9.2).

Every text from a log, a file name or a key file passes here before it is printed.
"""

from __future__ import annotations

from bisect import bisect_right

from verifier.spec import HIDDEN_RANGES

_FIRSTS = [first for first, _ in HIDDEN_RANGES]
_LASTS = [last for _, last in HIDDEN_RANGES]
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def is_hidden(character: str) -> bool:
    """Say whether a code point is in the list of spec §9.2, whatever the interpreter knows."""
    code = ord(character)
    if code & 0xFFFE == 0xFFFE:
        return True
    place = bisect_right(_FIRSTS, code) - 1
    return place >= 0 and code <= _LASTS[place]


def is_blank(text: str) -> bool:
    """Say whether an id shows nothing: every code point is a space or hidden (spec §6.3)."""
    return all(character == " " or is_hidden(character) for character in text)


def escaped(text: str) -> str:
    """Give `text` with every hidden code point, quote and backslash escaped; nothing is lost."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(
        _SHORT.get(character)
        or (f"\\u{{{ord(character):x}}}" if is_hidden(character) else character)
        for character in text
    )


def quoted(text: str) -> str:
    """Give `text` escaped and in double quotes, so that it cannot pass for words of the report."""
    return f'"{escaped(text)}"'
