"""JSON pointers into a document (RFC 6901), and where two documents differ (spec §8.2, §8.6)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from verifier.schema import escape_token

ABSENT: Any = object()
"""What stands where a pointer leads nowhere."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)


def resolve(document: Any, pointer: str) -> Any:
    """Give what stands at a JSON pointer, or ABSENT."""
    value = document
    for token in pointer.split("/")[1:]:
        if type(value) is dict:
            value = value.get(token.replace("~1", "/").replace("~0", "~"), ABSENT)
        elif type(value) is list and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        else:
            return ABSENT
    return value


def differences(old: Any, new: Any, pointer: str = "") -> Iterator[str]:
    """Give the pointers at which two documents differ, as deep as both have the same container.

    Members come in the order of their names, elements in that of their places.
    """
    if type(old) is dict and type(new) is dict:
        for name in sorted(old.keys() | new.keys()):
            inner = f"{pointer}/{escape_token(name)}"
            yield from differences(old.get(name, ABSENT), new.get(name, ABSENT), inner)
    elif type(old) is list and type(new) is list:
        for place in range(max(len(old), len(new))):
            left = old[place] if place < len(old) else ABSENT
            right = new[place] if place < len(new) else ABSENT
            yield from differences(left, right, f"{pointer}/{place}")
    elif type(old) is not type(new) or old != new:
        yield pointer
