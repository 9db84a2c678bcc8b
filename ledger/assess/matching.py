"""One pass of a set of detectors over one call: what fired, and which classes know the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ledger.assess import arguments as arguments_
from ledger.assess import shell, sql
from ledger.assess.arguments import JSON, UNKNOWN
from ledger.assess.commands import (
    Call,
    Carried,
    behind_carrier,
    call,
    carried,
    names,
    one_of,
    rule_matches,
    written_files,
)
from ledger.assess.programs import Known, Programs, programs
from ledger.assess.rules import Carrier, Detector, Detectors, ToolClass
from ledger.assess.tools import spellings

_BUDGET: Final = 4 * arguments_.MAX_CHARACTERS  # characters read, what is carried counted again
_MAX_DEPTH: Final = 16
_HARMLESS_FILES: Final = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/*")


@dataclass(frozen=True, slots=True)
class Matched:
    """The detectors that fired, in the order of the set, and the classes of the call.

    `classes` holds None for a part of the call that no class and no detector knows.
    """

    fired: tuple[Detector, ...]
    classes: tuple[ToolClass | None, ...]


def match(tool_name: str, arguments: JSON, detectors: Detectors) -> Matched:
    """Read a call as far as the limits allow, and tell what the detectors say to it."""
    tool = _tool_class(tool_name, detectors)
    found = arguments_.read(arguments, detectors.members)
    run = _Run(detectors, programs(detectors), reads=tool is not None and tool.reads)
    if not found.whole:
        run.signal("not_fully_read")
    run.match_tool(tool_name, found.true_members)
    for role, text in found.texts:
        run.read_text(role, text)
    for role, words in found.argvs:
        run.queue.append((Carried("command", words=words), 0, role != UNKNOWN))
    run.finish()
    classes = run.classes if tool is not None and tool.carries and run.sure else {tool}
    fired = tuple(d for d in detectors.detectors if d.id in run.fired)
    ordered = [c for c in (*detectors.classes, None) if c in classes]
    return Matched(fired, tuple(ordered))


def _tool_class(tool_name: str, detectors: Detectors) -> ToolClass | None:
    spelled = spellings(tool_name)
    for tool_class in detectors.classes:
        if any(one_of(name, tool_class.tools) for name in spelled):
            return tool_class
    return None


@dataclass(slots=True)
class _Run:
    """Reads texts from a queue until it is empty or the budget is spent.

    A queue element is (what to read, its depth, whether it surely is a command).
    """

    detectors: Detectors
    programs: Programs
    reads: bool
    fired: set[str] = field(default_factory=set)
    classes: set[ToolClass | None] = field(default_factory=set)
    queue: list[tuple[Carried, int, bool]] = field(default_factory=list)
    sure: bool = False
    known: dict[str, Known] = field(default_factory=dict)
    left: int = _BUDGET

    def signal(self, name: str) -> None:
        self.fired |= {d.id for d in self.detectors.detectors if name in d.signals}

    def match_tool(self, tool_name: str, true_members: set[str]) -> None:
        """Match the name of a tool, unless it is one that only reads."""
        if self.reads:
            return
        spelled = spellings(tool_name)
        for detector in self.detectors.detectors:
            for rule in detector.tools:
                asked = not rule.members or true_members & set(rule.members)
                if asked and any(one_of(name, (rule.name,)) for name in spelled):
                    self.fired.add(detector.id)

    def read_text(self, role: str, text: str) -> None:
        """Queue a text as its role says; one of no known role may be a command, SQL or a path."""
        if role in ("command", UNKNOWN):
            self.queue.append((Carried("shell", text=text), 0, role == "command"))
        if role in ("sql", UNKNOWN):
            self.queue.append((Carried("sql", text=text), 0, role == "sql"))
        if role == "code":
            self.queue.append((Carried("code", text=text), 0, True))
            self.queue.append((Carried("shell", text=text), 0, False))
        if self.reads:
            return
        if role == "path":
            self.match_path(text)
        if role == "content":
            self.match_literals(text, "content")

    def finish(self) -> None:
        """Read all that is queued, what is carried inside included."""
        while self.queue:
            part, depth, sure = self.queue.pop()
            self.left -= len(part.text) + sum(len(word) + 1 for word in part.words)
            if depth > _MAX_DEPTH or self.left < 0:
                self.signal("not_fully_read")
                self.classes.add(None)
            elif part.reading == "command":
                inner = shell.Command(part.words, stdin=part.stdin, fed=part.fed)
                self.match_command(inner, depth, sure)
            elif part.reading == "shell":
                self.match_shell(part.text, depth, sure)
            elif part.reading == "sql":
                self.match_sql(part.text, sure)
            else:
                self.signal("opaque")
                self.match_literals(part.text, "code")

    def match_shell(self, text: str, depth: int, sure: bool) -> None:
        script = shell.parse(text)
        if sure and not script.parsable:
            self.signal("unparsable")
        for command in script.commands:
            self.match_command(command, depth, sure)
        for document in script.documents:
            quoted = document.replace('"', " ")
            self.queue.append((Carried("shell", text=f': "{quoted}"'), depth + 1, sure))

    def match_command(self, command: shell.Command, depth: int, sure: bool) -> None:
        for file in written_files(command, self.detectors.writers):
            self.match_path(file)
            if sure and not one_of(file, _HARMLESS_FILES):
                self.classes |= self.writing_classes()
        made = call(command, self.detectors.options)
        if made is None:
            return
        known = self.known.get(made.program) or self.programs.about(made.program)
        self.known[made.program] = known
        fired = {d.id for d, rule in known.rules if rule_matches(rule, made)}
        self.fired |= fired
        carries = self.queue_carried(command, known.carriers, depth, sure)
        self.sure |= sure
        if sure and not fired and not carries:
            self.classes.add(self.class_of(made, known))

    def queue_carried(
        self, command: shell.Command, carriers: list[Carrier], depth: int, sure: bool
    ) -> bool:
        carries = False
        for carrier in carriers:
            behind = behind_carrier(carrier, command, self.detectors.options)
            if behind is None:
                continue
            if carrier.stdin and command.fed and command.stdin is None:
                self.signal("opaque")
            for part in carried(carrier, command, behind):
                if part.text or part.words:
                    self.queue.append((part, depth + 1, sure))
                    carries = True
        return carries

    def match_sql(self, text: str, sure: bool) -> None:
        statements = sql.parse(text)
        if sure and not statements.parsable:
            self.signal("unparsable")
        if sure and text.lstrip().startswith("$"):  # a variable, or what a command prints
            self.signal("opaque")
        fired = {
            detector.id
            for detector in self.detectors.detectors
            if any(sql.matches(rule, statements) for rule in detector.sql)
        }
        self.fired |= fired
        self.sure |= sure
        if sure and not fired:
            self.classes |= {self.class_of_statement(w) for w in sql.first_words(statements)}

    def match_path(self, path: str) -> None:
        short = path.lower().replace("\\", "/")
        self.fired |= {d.id for d in self.detectors.detectors if one_of(short, d.paths)}

    def match_literals(self, text: str, kind: str) -> None:
        lower = text.lower()
        for detector in self.detectors.detectors:
            literals = detector.content if kind == "content" else detector.code
            if any(literal in lower for literal in literals):
                self.fired.add(detector.id)

    def class_of(self, made: Call, known: Known) -> ToolClass | None:
        return next((c for c, words in known.classes if names(words, made)), None)

    def class_of_statement(self, word: str) -> ToolClass | None:
        return next((c for c in self.detectors.classes if word in c.sql), None)

    def writing_classes(self) -> set[ToolClass | None]:
        return {c for c in self.detectors.classes if c.writes} or {None}
