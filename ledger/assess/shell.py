"""Shell text as simple commands, in one pass that never raises (docs/assessor.md).

`shlex` cannot serve here: it does not tell a quoted `;` from an operator, and knows
no here-document, no substitution and no comment at the start of a word only.
Nothing is expanded: what a substitution prints stands as `$()` in its word.
What cannot be parsed is read on, and said so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_BLANK: Final = " \t\r\f\v"
_PLAIN: Final = re.compile(r"[^\s;&|()<>`'\"\\$#]+")
_PLAIN_QUOTED: Final = re.compile(r'[^"\\$`]+')
_REDIRECT: Final = re.compile(r"<<<|<<-?|&>>?|>>|>\||<>|[<>]&|[<>](?!\()")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|.)", re.DOTALL)
_SHORT_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b"}
_CRUDE: Final = re.compile(r"[;&|()<>`\n]+")
_KEYWORDS: Final = frozenset(
    ("if", "then", "elif", "else", "fi", "do", "done", "while", "until", "!", "{", "}", "coproc")
)
_SUBSTITUTED: Final = "$()"  # in a word, for what a substitution prints
_MAX_BEFORE_ECHO: Final = 16  # words such as `sudo -u deploy`
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its words without quotes, the files it writes, and what it is fed.

    `stdin` is None where it is not known; `fed` tells that there is one all the same.
    """

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    stdin: str | None = None
    fed: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """The simple commands of a text in the order of their ends, and whether it parses.

    `documents` are the here-documents in which the shell looks for substitutions.
    """

    commands: tuple[Command, ...]
    documents: tuple[str, ...]
    parsable: bool


def parse(text: str) -> Script:
    """Split shell text into simple commands, those of substitutions included.

    Of a text that does not parse, the words without any quoting are given as well.
    """
    scanner = _Scanner(text)
    commands = scanner.commands()
    documents = tuple(scanner.expanded)
    if scanner.parsable:
        return Script(commands, documents, True)
    unquoted = re.sub(r"[\"'\\]", " ", text)
    crude = (tuple(part.split()) for part in _CRUDE.split(unquoted))
    more = tuple(Command(words) for words in crude if words)
    return Script(commands + more, documents, False)


def without_prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    """Drop what stands before a program: assignments and words such as `then` and `!`."""
    for index, word in enumerate(words):
        if word not in _KEYWORDS and not _ASSIGNMENT.match(word):
            return words[index:]
    return ()


@dataclass(slots=True)
class _Building:
    """A command that is not ended yet."""

    words: list[str] = field(default_factory=list)
    word: list[str] | None = None
    writes: list[str] = field(default_factory=list)
    redirect: str = ""
    stdin: str | None = None
    fed: bool = False
    source: _Building | None = None
    quoted: bool = False  # inside double quotes
    literal: bool = False  # the word has quotes
    closer: str = ""  # what ends the group that this command stands in

    def add(self, characters: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(characters)


class _Scanner:
    """One pass over a text; groups and substitutions stand on a stack, not on calls."""

    def __init__(self, text: str) -> None:
        self.parsable = True
        self._text = text
        self._at = 0
        self._now = _Building()
        self._outer: list[_Building] = []
        self._ended: list[_Building] = []
        self._documents: list[tuple[_Building, str, bool, bool]] = []
        self.expanded: list[str] = []

    def commands(self) -> tuple[Command, ...]:
        while self._at < len(self._text):
            if self._now.quoted:
                self._in_quotes()
            else:
                self._outside()
        self.parsable &= not (self._now.quoted or self._outer or self._documents)
        while self._outer:
            self._close()
        self._end_command()
        return tuple(self._finished())

    def _finished(self) -> Iterator[Command]:
        for built in self._ended:
            stdin = built.stdin
            if stdin is None and built.source is not None:
                stdin = _output(built.source)
            built.stdin = stdin
            fed = built.fed or built.source is not None
            yield Command(tuple(built.words), tuple(built.writes), stdin, fed)

    def _take(self, length: int) -> str:
        taken = self._text[self._at : self._at + length]
        self._at += length
        return taken

    def _in_quotes(self) -> None:
        plain = _PLAIN_QUOTED.match(self._text, self._at)
        if plain:
            self._now.add(self._take(len(plain[0])))
            return
        c = self._text[self._at]
        if c == '"':
            self._now.quoted = False
            self._at += 1
        elif c == "\\":
            after = self._text[self._at + 1 : self._at + 2]
            self._now.add("" if after == "\n" else after if after in '$`"\\' else c + after)
            self._at += 2
        elif not self._substitution():
            self._now.add(self._take(1))

    def _outside(self) -> None:
        plain = _PLAIN.match(self._text, self._at)
        if plain:
            self._now.add(self._take(len(plain[0])))
            return
        c = self._text[self._at]
        redirect = _REDIRECT.match(self._text, self._at)
        if c in _BLANK:
            self._end_word()
            self._at += 1
        elif c == "\n":
            self._at += 1
            self._end_command()
            self._read_documents()
        elif redirect:
            self._redirect(self._take(len(redirect[0])))
        elif c in ";&|":
            self._operator(c)
        elif c == "'":
            self._single(self._at + 1)
        elif c == '"':
            self._now.add("")
            self._now.quoted = self._now.literal = True
            self._at += 1
        elif c == "\\":
            self._escaped(self._text[self._at + 1 : self._at + 2])
        elif c == "#" and self._now.word is None:
            self._at = self._line_end(self._at)
        elif c == ")":
            self._at += 1
            self._close() if self._now.closer == ")" else self._end_command()
        elif not self._substitution():
            self._now.add(self._take(1))

    def _substitution(self) -> bool:
        """Open or close what runs commands of its own: `$(`, backquotes, `(`, `<(`, `>(`."""
        text, at = self._text, self._at
        if text[at] == "`":
            self._at += 1
            if self._now.closer == "`":
                self._close()
            else:
                self._open("`")
            return True
        if not self._now.quoted and text.startswith("$'", at):
            self._ansi(at + 2)
            return True
        if not self._now.quoted and text.startswith('$"', at):
            self._at += 1
            return True
        if not self._now.quoted and text.startswith("()", at):
            self._at += 2
            self._end_command()
            return True
        opener = "$(" if self._now.quoted else ("$(", "<(", ">(", "(")
        if not text.startswith(opener, at):
            return False
        group = text[at] == "("
        self._at += 1 if group else 2
        self._open(")", "" if group else _SUBSTITUTED)
        return True

    def _escaped(self, c: str) -> None:
        if c != "\n":
            self._now.add(c)
            self._now.literal = True
        self._at += 2

    def _open(self, closer: str, stands_for: str = _SUBSTITUTED) -> None:
        if stands_for:
            self._now.add(stands_for)
        self._outer.append(self._now)
        source = None if self._now.words else self._now.source
        self._now = _Building(closer=closer, source=source)

    def _close(self) -> None:
        self._end_command()
        self._now = self._outer.pop()

    def _single(self, start: int) -> None:
        end = self._text.find("'", start)
        if end < 0:
            self.parsable = False
            end = len(self._text)
        self._now.add(self._text[start:end])
        self._now.literal = True
        self._at = end + 1

    def _ansi(self, start: int) -> None:
        at = start
        while at < len(self._text) and self._text[at] != "'":
            escape = _ESCAPE.match(self._text, at)
            self._now.add(_unescaped(escape[1]) if escape else self._text[at])
            at = escape.end() if escape else at + 1
        self.parsable &= at < len(self._text)
        self._at = at + 1

    def _operator(self, c: str) -> None:
        length = 1
        while length < 2 and self._text[self._at + length : self._at + length + 1] in (c, "&"):
            length += 1
        operator = self._take(length)
        ended = self._end_command()
        if operator in ("|", "|&"):
            self._now.source = ended
            self._now.fed = ended is None

    def _redirect(self, operator: str) -> None:
        word = self._now.word
        if word is not None and "".join(word).isdigit():
            self._now.word = None
        self._end_word()
        self._now.redirect = operator

    def _end_word(self) -> None:
        now = self._now
        if now.word is None:
            return
        word, now.word = "".join(now.word), None
        literal, now.literal = now.literal, False
        operator, now.redirect = now.redirect, ""
        if not operator:
            now.words.append(word)
            if word == "{" and not literal:
                self._end_command()
        elif operator in ("<<", "<<-"):
            self._documents.append((now, word, operator == "<<-", literal))
        elif operator == "<<<":
            now.stdin = word
        elif operator == "<":
            now.fed = True
        elif not (operator.endswith("&") and (word.isdigit() or word == "-")):
            now.writes.append(word)

    def _end_command(self) -> _Building | None:
        self._end_word()
        ended = self._now
        self._now = _Building(closer=ended.closer)
        if not (ended.words or ended.writes):
            self._now.source, self._now.fed = ended.source, ended.fed
            return None
        self._ended.append(ended)
        return ended

    def _line_end(self, start: int) -> int:
        end = self._text.find("\n", start)
        return len(self._text) if end < 0 else end

    def _read_documents(self) -> None:
        documents, self._documents = self._documents, []
        for command, delimiter, strip, literal in documents:
            command.stdin = "\n".join(self._document(delimiter, strip))
            if not literal and ("$(" in command.stdin or "`" in command.stdin):
                self.expanded.append(command.stdin)

    def _document(self, delimiter: str, strip: bool) -> Iterator[str]:
        while self._at < len(self._text):
            end = self._line_end(self._at)
            line = self._text[self._at : end]
            self._at = end + 1
            line = line.lstrip("\t") if strip else line
            if line.rstrip("\r") == delimiter:
                return
            yield line
        self.parsable = False


def _output(command: _Building) -> str | None:
    """Give what a command prints, where that stands in its words or in what it is fed."""
    words = command.words
    for index, word in enumerate(words[:_MAX_BEFORE_ECHO]):
        if word in ("echo", "printf"):
            return " ".join(w for w in words[index + 1 :] if w not in ("-e", "-n", "-E", "--"))
    return command.stdin if words[-1:] == ["cat"] else None


def _unescaped(escape: str) -> str:
    if escape[0] in "xu" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape[0] in "01234567":
        return chr(int(escape, 8) % 256)
    return _SHORT_ESCAPES.get(escape, escape)
