"""SQL text as statements of tokens, in one pass that never raises (docs/assessor.md).

No dialect is known. Where dialects differ, the reading that shows more is taken:
MySQL's `/*! ... */` and the text between dollar quotes count as code, and a backslash
in a string is read both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ledger.assess.rules import SqlRule

_TOKEN: Final = re.compile(
    r"""
    (?P<comment>--[^\n]*+|/\*(?!!).*?(?:\*/|(?P<cut_comment>\Z)))
  | (?P<quoted>"[^"]*+(?:"|(?P<cut_name>\Z))|`[^`]*+(?:`|(?P<cut_mysql_name>\Z))|\[[^\]\s]{1,128}\])
  | (?P<ignored>\*/|/\*!\d*+|\$\w*+\$)
  | (?P<word>[^\W\d][\w.]*+)
  | (?P<number>\d[\w.]*+)
  | (?P<mark>\S)
    """,
    re.VERBOSE | re.DOTALL,
)
_STRING: Final = re.compile(r"'(?:[^']++|'')*+('|\Z)")
_STRING_WITH_ESCAPES: Final = re.compile(r"'(?:[^'\\]++|\\(?:.|\Z)|'')*+('|\Z)", re.DOTALL)
_CUT: Final = ("cut_comment", "cut_name", "cut_mysql_name")
_HEADS: Final = frozenset(
    ("(", ")", "AS", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "ANALYZE", "EXPLAIN", "ATOMIC")
)
_GAP: Final = 64  # tokens that `...` may stand for
_CLAUSE: Final = 256  # tokens in which `unless` must follow

_NAME, _TEXT = "<name>", "<text>"


class Token(NamedTuple):
    """A token in upper case, how deep in parentheses it stands, and whether a clause begins."""

    text: str
    depth: int
    head: bool


class Statements(NamedTuple):
    """The tokens of a text, `;` among them, which of them are heads, and whether all quotes end."""

    tokens: tuple[Token, ...]
    heads: tuple[int, ...]
    parsable: bool


def parse(text: str) -> Statements:
    """Split SQL text into tokens; of a text that does not parse, quotes are dropped."""
    scans = [_Scan(text, _STRING)]
    if "\\" in text:
        scans.append(_Scan(text, _STRING_WITH_ESCAPES))
    parsable = all(scan.parsable for scan in scans)
    if not parsable:
        scans.append(_Scan(re.sub(r"['\"`]|/\*", " ", text), _STRING))
    end = Token(";", 0, False)
    tokens = tuple(token for scan in scans for token in (*scan.tokens, end))
    heads = tuple(index for index, token in enumerate(tokens) if token.head)
    return Statements(tokens, heads, parsable)


def matches(rule: SqlRule, statements: Statements) -> bool:
    """Tell whether a rule finds its sequence at any head."""
    tokens = statements.tokens
    return any(
        tokens[index].text in rule.sequence[0] and _matches_at(rule, tokens, index)
        for index in statements.heads
    )


def first_words(statements: Statements) -> Iterator[str]:
    """Give the word that each statement begins with."""
    begins = True
    for token in statements.tokens:
        if begins and token.text not in ("(", ";"):
            yield token.text
            begins = False
        begins = begins or token.text == ";"


class _Scan:
    """One pass over a text, with one idea of where a string ends."""

    def __init__(self, text: str, string: re.Pattern[str]) -> None:
        self.tokens: list[Token] = []
        self.parsable = True
        self._before = ";"
        self._first = True  # on its line
        self._depth = 0
        at = 0
        while at < len(text):
            match = (string if text[at] == "'" else _TOKEN).match(text, at)
            if match is None:
                self._first = self._first or text[at] == "\n"
                at += 1
                continue
            at = match.end()
            if match.re is string:
                self.parsable &= match[1] == "'"
                self._add(_TEXT)
            else:
                self._add_match(match)

    def _add_match(self, match: re.Match[str]) -> None:
        self.parsable &= all(match[name] is None for name in _CUT)
        if match["comment"] is not None:
            self._first = self._first or "\n" in match[0]
        elif match["ignored"] is not None:
            self._first = True
        elif match["quoted"] is not None:
            self._add(_NAME)
        else:
            self._add(match[0].upper())

    def _add(self, text: str) -> None:
        if text == ")":
            self._depth = max(0, self._depth - 1)
        head = self._first or self._before == ";" or self._before in _HEADS
        self.tokens.append(Token(text, self._depth, head))
        self._depth = 0 if text == ";" else self._depth + (text == "(")
        self._before, self._first = text, False


def _matches_at(rule: SqlRule, tokens: tuple[Token, ...], start: int) -> bool:
    end = _end_of(rule.sequence, tokens, start)
    return end is not None and not _softened(rule.unless, tokens, start, end)


def _end_of(
    sequence: tuple[tuple[str, ...], ...], tokens: tuple[Token, ...], start: int
) -> int | None:
    """Give where the sequence ends if it begins at `start`; at most one gap is in it."""
    at = start
    for number, step in enumerate(sequence):
        if step == ("...",):
            rest = sequence[number + 1 :]
            for later in range(at, min(at + _GAP, len(tokens))):
                end = _end_of(rest, tokens, later)
                if end is not None:
                    return end
                if tokens[later].text == ";":
                    return None
            return None
        if at >= len(tokens) or not _step_matches(step, tokens[at].text):
            return None
        at += 1
    return at


def _step_matches(step: tuple[str, ...], text: str) -> bool:
    if step[0].startswith("!"):
        return text != ";" and text not in (step[0][1:], *step[1:])
    if text in step:
        return True
    word = text == _NAME or text[0].isalpha() or text[0] == "_"
    return (_NAME in step and word) or ("<end>" in step and text == ";")


def _softened(words: tuple[str, ...], tokens: tuple[Token, ...], start: int, end: int) -> bool:
    """Tell whether one of the words follows in the same statement, at the same depth."""
    depth = tokens[start].depth
    for token in tokens[end : end + _CLAUSE]:
        if token.text == ";" or token.depth < depth:
            return False
        if token.depth == depth and token.text in words:
            return True
    return False
