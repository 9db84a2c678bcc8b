"""Rules for members of a closed JSON schema (spec §2.3, §8.5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Rule = Callable[[Any], "str | None"]
"""Gives None for a value that keeps the rule, else the place below it and what it asks for."""

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*", re.DOTALL)
_HEX = frozenset("0123456789abcdef")


def is_hex32(value: Any) -> bool:
    """Say whether a value is 64 lower-case hexadecimal digits (spec §1)."""
    return type(value) is str and len(value) == 64 and _HEX.issuperset(value)


def hex32_rule(value: Any) -> str | None:
    """Ask for 64 lower-case hexadecimal digits."""
    return None if is_hex32(value) else ": 64 lower-case hexadecimal digits"


def name_rule(value: Any) -> str | None:
    """Ask for a text of 1 to 256 bytes."""
    if type(value) is str and value:
        size = len(value)
        if size <= 256 and (value.isascii() or len(value.encode()) <= 256):
            return None
    return ": a name of 1 to 256 bytes"


def text_rule(value: Any) -> str | None:
    """Ask for a text of 0 to 4,096 bytes."""
    if type(value) is str and (
        len(value) <= 1024 or (len(value) <= 4096 and len(value.encode()) <= 4096)
    ):
        return None
    return ": a text of at most 4096 bytes"


def boolean_rule(value: Any) -> str | None:
    """Ask for true or false, which no number is."""
    return None if value is True or value is False else ": true or false"


def integer_rule(least: int, most: int) -> Rule:
    """Make the rule of an integer."""

    def rule(value: Any) -> str | None:
        if type(value) is int and least <= value <= most:
            return None
        return f": an integer from {least} to {most}"

    return rule


def word_rule(*words: str) -> Rule:
    """Make the rule of a text that is one of these."""

    def rule(value: Any) -> str | None:
        return None if type(value) is str and value in words else f": {' or '.join(words)}"

    return rule


def pointer_rule(value: Any) -> str | None:
    """Ask for a JSON pointer (RFC 6901)."""
    if type(value) is str and _POINTER.fullmatch(value):
        return None
    return ": a JSON pointer"


def object_rule(required: dict[str, Rule], optional: dict[str, Rule] | None = None) -> Rule:
    """Make the rule of a closed object."""
    rules = {**required, **(optional or {})}
    needed = required.keys()

    def rule(value: Any) -> str | None:
        if type(value) is not dict:
            return ": an object"
        for name, item in value.items():
            check = rules.get(name)
            if check is None:
                return f"/{escape_token(name)}: no such member"
            problem = check(item)
            if problem is not None:
                return f"/{escape_token(name)}{problem}"
        if not needed <= value.keys():
            missing = next(name for name in required if name not in value)
            return f"/{missing}: a member that must be there"
        return None

    return rule


def array_rule(item_rule: Rule, least: int, most: int, unique: str | None = None) -> Rule:
    """Make the rule of an array; `unique` names the member that may not repeat ('' the item)."""

    def rule(value: Any) -> str | None:
        if type(value) is not list or not least <= len(value) <= most:
            return f": an array of {least} to {most}"
        for place, item in enumerate(value):
            problem = item_rule(item)
            if problem is not None:
                return f"/{place}{problem}"
        if unique is not None:
            keys = [item[unique] if unique else item for item in value]
            if len(set(keys)) != len(keys):
                return ": no item twice"
        return None

    return rule


def escape_token(name: str) -> str:
    """Give a member's name as a token of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
