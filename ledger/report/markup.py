"""Pieces of HTML in which text from a log is text and nothing else (spec §9.2)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from ledger.hidden import shown

# a string of spec §9.1 as HTML; where a line was cut it goes on behind a line feed and a backslash
_STRING: Final = re.compile(
    r"(?<!\\)&quot;(?:\n\\|\\(?:\n\\)?(?:&quot;|[^&\n])|(?!&quot;)[^\\\n])*&quot;"
)


def text(value: object) -> str:
    """Give words of ours, or text that was escaped by §9.2 already, as HTML text."""
    return html.escape(str(value))


def value(hostile: object) -> str:
    """Give text from a log in quotes, its hidden characters escaped, as HTML.

    It stands alone for a browser, so letters that run from right to left turn nothing around it.
    """
    quoted = f'"{shown(str(hostile))}"'
    return f"<bdi>{text(quoted)}</bdi>"


def code(word: object, classes: str = "") -> str:
    """Give a digest, a name of ours or a command in the type of a machine."""
    return f"<code{_class(classes)}>{text(word)}</code>"


def lines(body: str) -> str:
    """Give lines that were rendered safely already, each as it stands.

    A text with letters that run from right to left stands alone for a browser, as in `value`: else
    the number behind it is shown before it, turned around. Each line is a block then, since a
    browser takes very long to put many such letters of one block in order.
    """
    stated = text(body.removesuffix("\n"))
    if not body.isascii():
        stated = _STRING.sub(_alone, stated).replace("\n", "\n</span><span>")
        stated = f"<span>{stated}</span>"
    return f"<pre>{stated}</pre>\n"


def _alone(string: re.Match[str]) -> str:
    """Isolate a string, line for line."""
    return f"<bdi>{string[0]}</bdi>".replace("\n", "</bdi>\n<bdi>")


def pairs(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Give a list of terms, which are words of ours, and descriptions, which are HTML."""
    yield "<dl>\n"
    for term, description in rows:
        yield f"<div><dt>{text(term)}</dt><dd>{description}</dd></div>\n"
    yield "</dl>\n"


def table(caption: str, names: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Give a table; the cells are HTML and the first of a row is its header."""
    yield f"<table><caption>{text(caption)}</caption>\n<thead><tr>"
    yield "".join(f'<th scope="col">{text(name)}</th>' for name in names)
    yield "</tr></thead>\n<tbody>\n"
    for first, *rest in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in rest)
        yield f'<tr><th scope="row">{first}</th>{cells}</tr>\n'
    yield "</tbody></table>\n"


def sentences(items: Iterable[str]) -> Iterator[str]:
    """Give a list of sentences of ours; nothing where there is none."""
    found = [f"<li>{text(item)}</li>\n" for item in items]
    if found:
        yield "".join(("<ul>\n", *found, "</ul>\n"))


def instant(at_ms: int) -> str:
    """Give unix milliseconds as UTC for people and machines."""
    moment = utc(at_ms)
    return f'<time datetime="{moment}">{moment}</time>' if moment.endswith("Z") else moment


def utc(at_ms: int) -> str:
    """Give unix milliseconds as UTC; a time after the year 9999 stays a number."""
    try:
        moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def duration(milliseconds: int) -> str:
    """Give a length of time in the largest units that fit, to a tenth of a second."""
    if milliseconds < 0:  # the clock was set back in between
        return f"-{duration(-milliseconds)}"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""
