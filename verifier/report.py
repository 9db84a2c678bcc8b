"""What a verification found, as plain frozen values (spec §10.2 to §10.4).

Nothing here reads, decides or prints.
The values fit every format: a log without sequence numbers gives its record number as `seq`.
Every text in them may be hostile; the renderers escape it (spec §9.2).
"""

# Annotations of so many classes are cheaper to evaluate than to keep: every start imports this.
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple


class Verdict(Enum):
    """The outcome for a log or for a whole run; the worst one wins (spec §10.2)."""

    VERIFIED = "VERIFIED"
    CANNOT_VERIFY = "CANNOT VERIFY"
    BROKEN = "BROKEN"

    @property
    def exit_code(self) -> int:
        """The exit status of the command: 0, 4 or 3."""
        return _EXIT_CODES[self]

    def worse(self, other: "Verdict") -> "Verdict":
        """Give the worse of two: BROKEN over CANNOT VERIFY over VERIFIED."""
        return max(self, other, key=_SEVERITY.index)


_SEVERITY = (Verdict.VERIFIED, Verdict.CANNOT_VERIFY, Verdict.BROKEN)
_EXIT_CODES = {Verdict.VERIFIED: 0, Verdict.BROKEN: 3, Verdict.CANNOT_VERIFY: 4}


class Outcome(Enum):
    """How a row of the table of checks ended."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_CHECKED = "NOT CHECKED"


class Finding(NamedTuple):
    """One thing that is wrong, or that keeps a log from being verified (spec §10.3).

    `check` is the reason code; `verdict` is BROKEN or CANNOT_VERIFY.
    `offset` counts bytes in `file` from 0 (of the decompressed bytes of a `.gz`), `line` counts
    lines from 1. Each of `offset`, `line` and `seq` is None where it has no meaning.
    """

    check: str
    verdict: Verdict
    file: str
    offset: int | None
    line: int | None
    seq: int | None
    expected: str
    found: str
    cause: str
    next_command: str


class Row(NamedTuple):
    """How one check of the table ended; `detail` says why it failed or was not checked."""

    check: str
    section: str
    claim: str
    outcome: Outcome
    detail: str


class Input(NamedTuple):
    """One file that was read: its name, its size and the SHA-256 of its bytes as stored (hex)."""

    file: str
    bytes: int
    sha256: str


class Property(NamedTuple):
    """One of the three properties of an approval: how it ended, and why."""

    outcome: Outcome
    detail: str


class Approval(NamedTuple):
    """What can be said of one approved card (spec §8), named by its hash in hex.

    Execution integrity: what ran is what was approved. Decision provenance: which rules asked, and
    on what evidence. Presentation integrity: what stood before the approver is what was hashed.
    `asserted` pairs names with values that nothing in the log shows to be true.
    """

    card: str
    execution: Property
    provenance: Property
    presentation: Property
    asserted: tuple[tuple[str, str], ...] = ()


class Drift(NamedTuple):
    """Where a rebuilt envelope differs from its card, recomputed from both (spec §8.6).

    `event` is the kind of the record, `pointers` pairs each pointer with its class. `more` says
    that there are others.
    """

    seq: int
    card: str
    event: str
    pointers: tuple[tuple[str, str], ...]
    more: bool


class Withheld(NamedTuple):
    """Openings of one record that are absent, as the auditor allows (spec §15.4)."""

    seq: int
    openings: tuple[str, ...]


class Counts(NamedTuple):
    """What a log holds (spec §10.4).

    `kinds` pairs each kind of event with its number. `contained` counts late or wrong decisions
    that were refused. `asserted` counts refusals that nothing in the log can show to be true.
    `exceptions` pairs each exception that something was dispatched under with its number.
    """

    records: int = 0
    kinds: tuple[tuple[str, int], ...] = ()
    cards: int = 0
    envelopes_ok: int = 0
    envelopes_total: int = 0
    decisions_ok: int = 0
    decisions_total: int = 0
    contained: int = 0
    contained_dispatched: int = 0
    asserted: int = 0
    exceptions: tuple[tuple[str, int], ...] = ()


class Event(NamedTuple):
    """One sound record of a card.

    `at` is unix milliseconds, `body` as in spec §3.5, `openings` all but the envelope.
    """

    seq: int
    kind: str
    at: int
    body: Mapping[str, Any]
    openings: Mapping[str, bytes]
    file: str
    offset: int


class History(NamedTuple):
    """One card: the envelope as its bytes, None where no sound record has it, and its events.

    `card` is the card hash in hex. `state` is that of spec §6.1 at the time of the last record,
    `NOT ISSUED`, or `ENDED` for a card that was pruned; it is empty where nothing sound says it.
    `doubt` says why the state is not sure.
    `findings` are those listed in the report that are about a record of the card.
    """

    card: str
    envelope: bytes | None
    events: tuple[Event, ...]
    state: str
    doubt: str
    findings: tuple[Finding, ...]


class Header(NamedTuple):
    """Which software made a report, under which Python, and when by the clock of its host.

    `source_sha256` is the digest of the verifier's own source in hex, None where that could not be
    read. The times are unix milliseconds.
    """

    software: str
    source_sha256: str | None
    python: str
    started_at: int
    ended_at: int


class LogReport(NamedTuple):
    """Everything there is to say about one input.

    `findings` is cut at a limit so that a ruined log cannot exhaust memory; `findings_total` is
    the true number. `chain`, `kids` and `head` are lower-case hex; `start_at` and `end_at` are
    unix milliseconds. `complete` is true where an expected head or count was found, so that the
    end of the log was vouched for from outside. `drifts` are the dispatches, and refusals to
    dispatch, whose rebuilt envelope differs from the card. `histories` are those of the cards that
    were asked for, `chain_events` the sound records without a card where any were. `scope` says of
    an excerpt what it is of. `assurance` says how much a verdict of VERIFIED rests on (spec
    §16.1), with the last seq that a checkpoint or a pinned head vouches for; it is empty for any
    other verdict, and where nothing vouches and nothing was added: then `first_seq` is None, and
    `last_seq` and `head` are those of the record that was kept (spec §15.2). `withheld` are
    openings that may be absent, as the auditor says; it is cut at a limit, and `withheld_total` is
    their number.
    """

    path: str
    format: str
    verdict: Verdict
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    findings_total: int = 0
    warnings: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    counts: Counts = Counts()
    chain: str | None = None
    kids: tuple[str, ...] = ()
    first_seq: int | None = None
    last_seq: int | None = None
    head: str | None = None
    start_at: int | None = None
    end_at: int | None = None
    inputs: tuple[Input, ...] = ()
    complete: bool = False
    approvals: Collection[Approval] = ()
    drifts: tuple[Drift, ...] = ()
    histories: Iterable[History] = ()
    chain_events: tuple[Event, ...] = ()
    scope: str = ""
    assurance: tuple[str, ...] = ()
    signed_to: int | None = None
    pinned_to: int | None = None
    withheld: tuple[Withheld, ...] = ()
    withheld_total: int = 0


class Report(NamedTuple):
    """The reports of all inputs, in the order given, and the evidence header of the run."""

    logs: tuple[LogReport, ...]
    header: Header | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any log; without a log nothing is verified (spec §10.2)."""
        if not self.logs:
            return Verdict.CANNOT_VERIFY
        return max((log.verdict for log in self.logs), key=_SEVERITY.index)
