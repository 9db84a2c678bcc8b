"""The replay of one log: record by record, each judged and then folded in (spec §10.3).

`Replay.take` is the judge: it runs the table of checks over one piece of evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from verifier import checks, notes
from verifier.cards import JUDGED
from verifier.checks import Check
from verifier.checks.completeness import End
from verifier.checks.refusals import count_key, shows_reason
from verifier.evidence import Evidence
from verifier.findings import finding
from verifier.lookout import Lookout
from verifier.proof import PROVEN
from verifier.report import Finding, Verdict
from verifier.shape import BODIES, Problem
from verifier.spec import NO_PREVIOUS
from verifier.state import Absent, Edge, State, bound_bits
from verifier.tally import Run, Tally

if TYPE_CHECKING:
    from verifier.coverage import Coverage  # starting takes longer with it

MAX_FINDINGS = 1000
# spec §10.3, rule 6; what is wrong in an envelope is wrong in all records of its card
SILENCED_GROUPS = (
    "lifecycle",
    "policy evidence",
    "refusals true",
    "envelope schema",
    "effect key",
)

REPORTED_ONCE = ("key_missing", "version", "profile")
# what a record that belongs to an earlier finding is not asked again (spec §10.3, rules 3 and 9)
HISTORY_GROUPS = ("lifecycle", "policy evidence", "refusals true", "key lifecycle", "time")
# after these the bytes that follow may be the rest of the record
CUT_CHECKS = ("framing", "shape", "tag")


class TooManyFindings(Exception):
    """The log has more findings than a report can use; reading on would tell nothing new."""


class Replay:
    """One log under replay: its state, its findings, its counts."""

    def __init__(
        self,
        state: State,
        lookout: Lookout | None = None,
        coverage: Coverage | None = None,
        skipped: Collection[str] = (),
    ) -> None:
        """Start before the first record; the checks in `skipped` are not made."""
        self.state = state
        self.lookout = lookout or Lookout()
        self.coverage = coverage
        for size in () if coverage is None else coverage.sizes:
            state.pins[size] = []
        # keys that are missing as far as it is known: a checkpoint may cover their records
        self._missing: list[tuple[int, int, Finding]] = []
        self.tally = Tally()
        self.findings: list[Finding] = []
        self.failed: Counter[str] = Counter()
        self.blamed: dict[bytes, list[str]] = {}  # cards with broken rules, and the checks
        self._listed: Counter[Verdict] = Counter()
        self.begins_at: int | None = None  # seq of the record that the log begins with
        self.since: Edge | None = None  # the left edge that the auditor gave
        self.passed_over = False  # there are records before it
        self.passed_to = 0  # one past the highest seq of those that were hashed or passed over
        self.since_holds = True  # they say what the auditor kept
        self.edge_is_named = False  # by the auditor, or by a pruned event
        self._chain_before: bytes | None = None  # of the record before, as found
        self._cut = False  # the record before may go on in the bytes that follow it
        self._made = [check for check in checks.CHECKS if check.id not in skipped]
        self._rows = [check for check in self._made if check.scope == checks.RECORD]
        unproven = [check for check in self._rows if check.id not in PROVEN]
        self._unproven_rows = {
            kind: [check for check in unproven if check.concerns(kind)] for kind in BODIES
        }

    def take(self, record: Evidence, proven: bool = False, broke: bool = False) -> bool:
        """Judge one piece of evidence by the table and move the state on; say if it was sound.

        `proven` says that the fused loop made the checks in PROVEN; `broke` that it found a rule
        broken: a table that then finds none is out of step with it, which is no verdict.
        """
        self._begin(record)
        rows = self._unproven_rows[record.kind or ""] if proven else self._rows
        failed, undecided = self._judge(record, rows)
        if broke and failed is None and not undecided:
            raise RuntimeError(f"the checks disagree about {record.file} offset {record.offset}")
        state = self.state
        belongs = state.belongs(record.seq)
        unsound = belongs or (failed is not None and failed.unsound)
        unsound = unsound or (record.version is not None and not record.known_version)
        if failed is not None:
            self._touch(record.card)
        if not record.digest:
            self._damage(record)
            return False
        name = None if failed is None else failed.id
        self.tally.take(record, name, self.echoed(record), unsound)
        self._move(record, failed, belongs, unsound)
        return not unsound and record.seq is not None

    @property
    def begun(self) -> bool:
        """Whether there was something to judge."""
        return bool(self.tally.records or self.findings)

    def _begin(self, record: Evidence) -> None:
        """Take chain and pins from the first record; what stands before a later seq is unknown."""
        state = self.state
        chain = state.chain or state.ring.chain_for(record.chain, record.kid)
        if state.chain is None and chain is not None and record.version is not None:
            self.be_of(chain)
        if state.expected_seq is None and record.seq is not None:
            self.begins_at = record.seq
            if self.since is not None and (self.passed_over or record.seq == self.since.seq):
                state.expected_seq, state.prev = self.since
                state.begin_at(self.since)
                self.edge_is_named = self.since_holds
            elif record.seq:
                state.begin_at(Edge(record.seq, record.prev or NO_PREVIOUS))
            if state.left_edge is not None:
                self.lookout.see_before(*state.left_edge)
        elif record.seq == 0:
            self.begins_at = 0  # the beginning is there, in another place: check_sequence says so

    def be_of(self, chain: bytes) -> None:
        """Take it that the log is of a chain, and look out for what is known of that."""
        self.state.chain = chain
        for pin in self.state.ring.pins(chain):
            self.state.pins.setdefault(pin.seq, []).append(pin)
        if self.coverage is not None:
            self.coverage.chain = chain

    def accept(self, run: Run) -> None:
        """Move on after a run of sound records that the fused loop folded in."""
        count = len(run.digests)
        if not count:
            return
        state, tally = self.state, self.tally
        state.prev = run.digests[-1]
        state.expected_seq = run.first_seq + count
        state.surplus = None
        state.at = run.at
        state.digests.extend(run.first_seq, run.digests, bytes(run.bound))
        tally.take_run(run)
        if state.edge and run.steps:
            notes.note_steps(run.steps, tally)
        self.lookout.see(run.first_seq, run.digests)
        self._cover(run.first_seq, run.digests)

    def passes(self, record: Evidence) -> bool:
        """Say whether a record that the fused loop proved passes the rest of the table."""
        rows = self._unproven_rows[record.kind or ""]
        return all(check.function(record, self.state) is None for check in rows)

    def _judge(self, record: Evidence, rows: list[Check]) -> tuple[Check | None, bool]:
        """Run the table; report the first row that fails, and every one that cannot verify.

        Gives the row that failed, and whether there was one that cannot verify.
        """
        undecided = False
        for check in rows:
            if not check.concerns(record.kind, record.card in self.state.claims):
                continue
            problem = check.function(record, self.state)
            if problem is None:
                continue
            if check.id == "key_missing":
                self.state.keyless.add(record.kid)
            if self._is_news(check, problem, record):
                self.report(check, problem, record)
            if check.verdict is Verdict.BROKEN:
                return check, undecided
            undecided = True
        return None, undecided

    def _is_news(self, check: Check, problem: Problem, record: Evidence) -> bool:
        """Say whether a problem is reported: each kid, version and profile once (rule 1).

        A card touched by a finding has no further ones of some groups (rule 6). Records of another
        chain in a row are one finding, and so is a record with the bytes that were cut off it.
        """
        if check.group in HISTORY_GROUPS and self.state.belongs(record.seq):
            return False
        if check.id == "chain":
            return record.chain != self._chain_before
        if check.id == "framing" and not record.digest:
            return not self._cut
        if check.group in SILENCED_GROUPS and record.card in self.state.touched:
            return False
        if check.id not in REPORTED_ONCE:
            return True
        name = _name(check.id, problem[0])
        known = name in self.state.names
        self.state.names.add(name)
        return not known

    def report(
        self, check: Check, problem: Problem, record: Evidence | Absent | None, file: str = ""
    ) -> None:
        """Add a finding of a check, of a record or of a file beside them; raises TooManyFindings.

        What cannot be verified is listed up to a limit and never ends the reading: it must not hide
        what is broken after it.
        """
        found = finding(check, problem, record, file)
        if check.id == "key_missing" and self.coverage is not None:
            self._missing.append((_name(check.id, problem[0]), len(self.findings), found))
            return
        self._add(found, len(self.findings))
        if check.verdict is Verdict.BROKEN and record is not None and record.card is not None:
            self.blamed.setdefault(record.card, []).append(check.id)
        if self._listed[Verdict.BROKEN] >= MAX_FINDINGS:
            raise TooManyFindings

    def _add(self, found: Finding, place: int) -> None:
        self.failed[found.check] += 1
        self._listed[found.verdict] += 1
        if self._listed[found.verdict] <= MAX_FINDINGS:
            self.findings.insert(place, found)

    def _cover(self, first_seq: int, digests: Sequence[bytes]) -> None:
        """Take records into the tree; those that a signed root covers need no key (spec §16.1)."""
        if self.coverage is not None and self.coverage.extend(first_seq, digests):
            self.state.names.difference_update(name for name, _, _ in self._missing)
            self.state.keyless.clear()
            self._missing.clear()

    def _stop_tree(self, doubted: int | None = None) -> None:
        if self.coverage is not None:
            self.coverage.stop(doubted)

    def settle(self) -> None:
        """Report the keys that are missing for records that no checkpoint covers."""
        for _, place, found in reversed(self._missing):
            self._add(found, place)
        self._missing.clear()

    def _touch(self, card: bytes | None) -> None:
        if card is not None:
            self.state.touched.add(card)

    def _damage(self, record: Evidence) -> None:
        """Go on after bytes that are no record (spec §10.3, rule 5)."""
        if record.name and self.state.expected_seq is None:
            return  # a stray file, listed before the first record
        self._cut = False
        self._stop_tree()
        self._disturb()
        if self.state.expected_seq is None:
            self.state.expected_seq = 0
        self.state.gap_explained = True
        self.state.link_explained = True

    def _disturb(self) -> None:
        """Note that an unsound record may explain what follows (spec §10.3, rule 7)."""
        state = self.state
        state.disturbed = True
        state.sure_from = len(state.cards.flags)
        state.refusals.clear()
        state.governance.lose(state.sure_from)
        if state.absent:
            self.tally.unproven.add(
                "openings that were absent before an unsound record: a redacted event may be lost"
            )
            state.absent.clear()
        state.kid = None
        state.at = None

    def _move(self, record: Evidence, failed: Check | None, belongs: bool, unsound: bool) -> None:
        """Go on from what was found (spec §10.3, rules 3 to 8)."""
        state = self.state
        state.prev = record.digest
        self._chain_before = record.chain
        self._cut = failed is not None and failed.id in CUT_CHECKS
        is_later = record.version is not None and not record.known_version
        if unsound:
            self._disturb()
        if unsound and not (is_later and failed is None):
            is_link = failed is not None and failed.id == "link"
            self._stop_tree(record.seq if is_link else None)
        if is_later:
            # its finding accuses nobody, so the tree goes on with it: an edit has another root
            seq = state.expected_seq or 0
            self._cover(seq, (record.digest,))
            self.lookout.see(seq, (record.digest,), sound=False)
            state.expected_seq = seq + 1
        elif record.seq is None:
            state.gap_explained = True
        else:
            self._move_seq(record.seq, belongs)
            self.lookout.see(record.seq, (record.digest,), sound=not unsound)
        state.link_explained = unsound
        if not unsound and record.seq is not None:
            self._fold(record, record.seq)

    def _move_seq(self, seq: int, belongs: bool) -> None:
        state = self.state
        expected = state.expected_seq
        if belongs:
            state.close_gap(seq)
        elif expected is not None and seq > expected:
            state.gaps.append((expected, seq + 1))  # its own seq too: it may be the false one
        state.surplus = seq if expected is not None and seq < expected else None
        state.expected_seq = seq + 1 if expected is None else max(expected, seq + 1)
        state.gap_explained = False

    def _fold(self, record: Evidence, seq: int) -> None:
        """Fold in a sound record."""
        state, body, kind, at = self.state, record.body, record.kind or "", record.at or 0
        state.kid = body["kid"] if kind == "rekeyed" else record.kid
        state.kids.setdefault(record.kid)
        state.kids.setdefault(state.kid)
        state.at = at
        state.digests.add(seq, record.digest, bound_bits(record.bound))
        self._cover(seq, (record.digest,))
        self.fold_card(record)
        if kind == "redacted":
            self._account(body["seq"], body["openings"])
        elif kind in ("opened", "configured"):
            notes.note_profile(record, state, self.tally)
        elif kind == "pruned":
            self.edge_is_named |= state.left_edge is not None and body["before"] == self.begins_at
            state.forget(min(body["before"], seq))
        absent = record.bound.keys() - record.openings.keys()
        if absent:
            state.absent[seq] = Absent(record, absent)
            self.tally.unproven.add("the checks of envelopes and openings that are absent")

    def fold_card(self, record: Evidence) -> None:
        """Fold a sound record into the state of its card and into the counts of refusals."""
        state, kind = self.state, record.kind or ""
        if state.edge:
            notes.note_edge(record, state, self.tally)
        if kind == "refused":
            state.refusals.note(count_key(record), record.body["count"], record.seq or 0)
            self._count_refusal(record)
        elif kind == "issued":
            notes.note_step(record, state)
        elif kind == "dispatched":
            notes.note_exception(record, state, self.tally)
        state.cards.fold(kind, record.card, record.seq or 0, record.at or 0, record.body)
        if record.card is None or record.card not in state.cards.numbers:
            return
        claim = record.body if kind == "issued" else None
        if record.envelope is not None:
            state.cards.flags[state.cards.numbers[record.card]] |= JUDGED
            if record.card in state.claims:
                claim = state.claims.pop(record.card)[1]
        elif claim is not None:
            state.claims[record.card] = (record.at or 0, record.body)
        if claim is not None:
            notes.note_card(record, claim, state, self.tally)

    def _account(self, seq: int, names: list[str]) -> None:
        absent = self.state.absent.get(seq)
        if absent is not None:
            absent.names -= set(names)
            if not absent.names:
                del self.state.absent[seq]

    def echoed(self, record: Evidence) -> bool:
        """Say whether a decision is on a card that is known from its issue on."""
        card = self.state.cards.numbers.get(record.card or b"")
        return card is not None and self.state.judges_card(card)

    def _count_refusal(self, record: Evidence) -> None:
        if record.body["gate"] == "resolve":
            self.tally.contained += 1
        if record.body["reason"] == "mismatch":
            notes.note_drift(record, self.tally)
        if not shows_reason(record, self.state):
            self.tally.asserted += 1

    def finish(self, end: End) -> None:
        """Make the checks of the end of a log; raises TooManyFindings."""
        for check in self._made:
            if check.scope == checks.OPENINGS:
                for absent in self.state.absent.values():
                    self.report(check, check.function(absent.names), absent)  # type: ignore[arg-type]
            elif check.scope == checks.LOG:
                problem = check.function(end)
                if problem is not None:
                    self.report(check, problem, None)


def _name(check: str, expected: str) -> int:
    return hash((check, expected))
