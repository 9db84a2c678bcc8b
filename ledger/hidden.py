"""Hostile text made visible: the fixed list of hidden code points (spec §9.2).

The list does not depend on the Unicode version of the interpreter.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

_RANGES: Final = (
    # control
    (0x0000, 0x001F),
    (0x007F, 0x009F),
    # space-like, line breaks
    (0x00A0, 0x00A0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0x2028, 0x2029),
    # invisible, blank-looking, zero-width, direction
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFC),
    (0x16FE4, 0x16FE4),
    (0x1D159, 0x1D159),
    # variation selectors, tags
    (0xFE00, 0xFE0F),
    (0xE0000, 0xE0FFF),
    # combining marks
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0x302A, 0x302F),
    (0x3099, 0x309A),
    (0xFE20, 0xFE2F),
    (0x1D165, 0x1D169),
    (0x1D16D, 0x1D182),
    # surrogates, private use, non-characters
    (0xD800, 0xDFFF),
    (0xE000, 0xF8FF),
    (0xF0000, 0x10FFFF),
    (0xFDD0, 0xFDEF),
    *((plane << 16 | 0xFFFE, plane << 16 | 0xFFFF) for plane in range(17)),
    # format characters of scripts
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0x13430, 0x1345F),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
)
_CLASS: Final = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in _RANGES)
_ESCAPED: Final = re.compile(f'[\\\\"{_CLASS}]')
_BLANK: Final = re.compile(f"[ {_CLASS}]*")
_SHORT: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: str) -> str:
    """Give `text` with every hidden code point escaped, without quotes (spec §9.2).

    Total and injective: lone surrogates are escaped too, and different texts
    give different results. The result has no line break and no control character.
    """
    return _ESCAPED.sub(lambda match: _escape(match[0]), text)


def word(text: object) -> str:
    """Give what is shown of `text` as one word of a shell, for a command to run next."""
    return shlex.quote(shown(str(text)))


def blank(text: str) -> bool:
    """Tell whether every code point of `text` is a space or hidden (spec §6.3)."""
    return _BLANK.fullmatch(text) is not None


def _escape(character: str) -> str:
    return _SHORT.get(character) or f"\\u{{{ord(character):x}}}"
