"""Names of tools in one spelling: dotted, in lower case."""

from __future__ import annotations

import re
from typing import Final

_MAX_NAME: Final = 256
_MAX_PARTS: Final = 16
_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS: Final = re.compile(r"[\W_]+")


def spellings(tool_name: str) -> tuple[str, ...]:
    """Give a tool's name dotted and in lower case, and again without each prefix.

    `mcp__mail__sendEmail` is `mcp.mail.send.email`, `mail.send.email`, `send.email`
    and `email`.
    """
    split = _BOUNDARY.sub(".", str(tool_name)[:_MAX_NAME])
    parts = [part for part in _SEPARATORS.split(split.lower()) if part][-_MAX_PARTS:]
    return tuple(".".join(parts[start:]) for start in range(len(parts)))
