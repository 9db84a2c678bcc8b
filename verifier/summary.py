"""The report of one log, drawn from its replay (spec §10.2, §10.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifier import checks
from verifier.approvals import Approvals
from verifier.checks import Check
from verifier.checks.completeness import End, Expectation
from verifier.manner import ALONE
from verifier.replay import MAX_FINDINGS, Replay
from verifier.report import Counts, Finding, Input, LogReport, Outcome, Row, Verdict, Withheld
from verifier.spec import VERSION
from verifier.state import Edge
from verifier.tally import Tally

if TYPE_CHECKING:
    from verifier.histories import Collector
    from verifier.since import Before

# what no verifier can see from a log
WHO_MADE_IT = (
    "who made the log: whoever holds a key can make HMACs, so they prove nothing to others"
)
# in its place where a checkpoint under a given vkey covers every record
WHO_SIGNED_IT = (
    "that the signer of the checkpoint tells everybody the same: whoever holds its key can sign "
    "another history, and HMACs prove nothing to others"
)
BEYOND = (
    "events that were never appended: a log shows what it holds, not what happened",
    WHO_MADE_IT,
    "who decided: an approver id is what the writer was told",
    "that an echo came from a screen, or that facts came from live systems",
)

_OF_WHOLE_LOGS = (checks.LOG, checks.LOGS, checks.ANCHOR)
_OF_ENVELOPES = ("card_hash", "envelope_canonical", "envelope_schema", "args_digest", "effect_key")


class Reading:
    """What happened while the files of a log were read."""

    __slots__ = (
        "before",
        "collector",
        "expectation",
        "inputs",
        "is_directory",
        "manner",
        "not_read",
        "reasons",
        "unreadable",
        "warnings",
    )

    def __init__(self, expectation: Expectation, *, is_directory: bool) -> None:
        """Start with nothing read."""
        self.expectation = expectation
        self.is_directory = is_directory
        self.manner = ALONE
        self.before: Before | None = None  # what deals with the records before those asked about
        self.unreadable = False
        self.warnings: list[str] = []
        self.not_read: list[str] = []
        # by check, why it was not made where it did not fail
        self.reasons: dict[str, str] = {
            "excerpt": "not an excerpt",
            "inclusion": "not an excerpt",
            "pinned_head": "give --pin",
            "required": "give --require",
        }
        self.inputs: list[Input] = []
        self.collector: Collector | None = None  # where histories of cards are asked for

    def reached(self, replay: Replay) -> int | None:
        """Give how many records a log has, None where what was not read may hold more."""
        if self.unreadable or self.not_read or replay.state.gap_explained:
            return None
        return max(replay.state.expected_seq or 0, replay.passed_to)

    def unchanged(self, replay: Replay) -> Edge | None:
        """Give the left edge that the auditor kept, where nothing was added there (spec §15.2)."""
        if self.before is None or replay.tally.records or self.reached(replay) is None:
            return None
        return self.before.held

    def end(self, replay: Replay) -> End:
        """Give what the checks of the whole log need."""
        return End(
            nothing=not replay.begun,
            begins_at=replay.begins_at,
            edge_is_named=replay.edge_is_named,
            since=replay.since,
            ends_at_edge=self.unchanged(replay) is not None,
            other=None if self.before is None else self.before.other,
            reached=max(replay.state.expected_seq or 0, replay.passed_to),
            unreadable=self.unreadable,
            expectation=self.expectation,
            head_at=replay.lookout.head_at,
        )


def report(path: str, replay: Replay, reading: Reading) -> LogReport:
    """Make the report of a log that was replayed."""
    state, tally = replay.state, replay.tally
    last_seq, head, said = _last(replay, reading)
    withheld = _withheld(replay)
    verdict = Verdict.VERIFIED
    for finding in replay.findings:
        verdict = verdict.worse(finding.verdict)
    return LogReport(
        path=path,
        format=VERSION,
        verdict=verdict,
        rows=tuple(_row(check, replay, reading) for check in checks.CHECKS),
        findings=tuple(
            finding if finding.file else finding._replace(file=path) for finding in replay.findings
        ),
        findings_total=sum(replay.failed.values()),
        warnings=(*reading.warnings, *said, *_pin_warnings(replay, last_seq)),
        not_checked=(*reading.not_read, *_not_checked(replay), *BEYOND),
        counts=Counts(
            records=tally.records,
            kinds=tuple(sorted(tally.kinds.items())),
            cards=len(state.cards.flags),
            envelopes_ok=tally.envelopes_ok,
            envelopes_total=tally.envelopes,
            decisions_ok=tally.decisions_ok,
            decisions_total=tally.decisions,
            contained=tally.contained,
            contained_dispatched=tally.bad_dispatches,
            asserted=tally.asserted,
            exceptions=tuple(sorted(tally.exceptions.items())),
        ),
        chain=None if state.chain is None else state.chain.hex(),
        kids=tuple(kid.hex() for kid in state.kids),
        first_seq=tally.first_seq,
        last_seq=last_seq,
        head=None if head is None else head.hex(),
        start_at=tally.start_at,
        end_at=tally.end_at,
        inputs=tuple(reading.inputs),
        complete=_complete(replay, reading.expectation, last_seq),
        approvals=Approvals(replay),
        drifts=tuple(tally.drifts),
        histories=() if reading.collector is None else reading.collector.close(replay),
        chain_events=() if reading.collector is None else tuple(reading.collector.chain_events),
        withheld=withheld[:MAX_FINDINGS],
        withheld_total=sum(len(one.openings) for one in withheld),
    )


def _last(replay: Replay, reading: Reading) -> tuple[int | None, bytes | None, list[str]]:
    """Give seq and digest of the last record, and a sentence where nothing was added to it."""
    edge, tally = reading.unchanged(replay), replay.tally
    if edge is None:
        return tally.last_seq, replay.state.prev if tally.records else None, []
    last = edge.seq - 1
    return last, edge.prev, [f"nothing was added since seq {last}: no record was verified"]


def _withheld(replay: Replay) -> tuple[Withheld, ...]:
    """Give the openings that are absent without a finding, which is where they may be."""
    if replay.failed["opening_missing"]:
        return ()
    return tuple(
        Withheld(seq, tuple(sorted(absent.names))) for seq, absent in replay.state.absent.items()
    )


def _complete(replay: Replay, expectation: Expectation, last: int | None) -> bool:
    """Say whether an expected head or count vouches for the end of the log."""
    if last is None:
        return False
    return replay.lookout.head_at == last or expectation.records == last + 1


def _row(check: Check, replay: Replay, reading: Reading) -> Row:
    failed = replay.failed[check.id]
    if failed:
        outcome, detail = Outcome.FAIL, "1 finding" if failed == 1 else f"{failed} findings"
    else:
        detail = _why_not_checked(check, replay, reading)
        outcome = Outcome.NOT_CHECKED if detail else Outcome.PASS
    return Row(check.id, check.section, check.claim, outcome, detail)


def _why_not_checked(check: Check, replay: Replay, reading: Reading) -> str:
    """Say why a check that did not fail did not pass either; empty if it passed."""
    tally, name = replay.tally, check.id
    if name in ("empty", "unreadable"):
        return ""
    if name in reading.reasons:
        return reading.reasons[name]
    if not tally.records and not (check.scope in _OF_WHOLE_LOGS and reading.unchanged(replay)):
        return "no record"
    if reading.not_read:
        return "the log was not read to its end"
    if not replay.state.kids and check.scope == checks.RECORD:
        return "no sound record"
    if name == "segment_name" and not reading.is_directory:
        return "not a directory"
    if name in ("tag", "key_missing") and _keyless(replay):
        return "a key is missing"
    if name == "rekey" and _keyless(replay, first=1):
        return "a new key is missing"
    if name == "pin" and not any(replay.state.pins.values()):
        return "no key file pins a record"
    if name in _OF_ENVELOPES and not tally.envelopes:
        return "no envelope"
    if name == "signature":
        return "none in the log"
    if tally.unjudged[name]:
        return f"{tally.unjudged[name]} events rest on records before the left edge"
    if check.group in ("policy evidence", "manifest"):
        return _why_no_policy(name, replay)
    if check.kinds and not any(tally.kinds[kind] for kind in check.kinds):
        return "no such event"
    if name == "fork":
        return "no other input of this chain"
    return _why_not_expected(name, reading)


def _keyless(replay: Replay, first: int = 0) -> bool:
    """Say whether the secret of a kid that was in force is missing, from one of them on."""
    state = replay.state
    return any(state.ring.hmac(state.chain or b"", kid) is None for kid in list(state.kids)[first:])


def _why_no_policy(name: str, replay: Replay) -> str:
    tally = replay.tally
    if name == "profile_form":
        return "" if tally.profiles else "no profile in the log"
    if name == "claim":
        return "" if tally.bases else "no approval basis"
    if name == "manifest":
        return "" if tally.manifests else "no review manifest"
    if name == "auditor_floor":
        return "" if replay.state.floor else "give --floor"
    if replay.failed["profile"]:
        return "a profile is missing"
    if replay.state.governance.was_lost:
        return "a missing or unsound record may have changed the profile in force"
    return "" if tally.governed else "no card under a profile"


def _why_not_expected(name: str, reading: Reading) -> str:
    if name == "expected_count" and reading.expectation.records is None:
        return "give --expect-count"
    if name == "expected_head" and reading.expectation.head is None:
        return "give --expect-head"
    if name in ("expected_count", "expected_head") and reading.unreadable:
        return "the log could not be read to its end"
    return ""


def _pin_warnings(replay: Replay, last: int | None) -> list[str]:
    if last is None:
        return []
    return [
        f"a key file pins the record at seq {seq}, and the log ends before it, at seq {last}"
        for seq, pins in sorted(replay.state.pins.items())
        if pins and seq > last
    ]


def _not_checked(replay: Replay) -> list[str]:
    state, tally = replay.state, replay.tally
    sentences = sorted(tally.unproven)
    if replay.failed["key_missing"] or _keyless(replay):
        sentences.append("the HMACs of records whose key is missing")
    if state.disturbed and tally.records:
        sentences.append("what a missing or unsound record could explain (spec §10.3)")
    if tally.asserted:
        sentences.append(f"the reasons of {tally.asserted} refusals that only the writer could see")
    if replay.state.witnesses:
        sentences.append(
            "what approval bases and manifests assert: verdicts, engines, labels, "
            "what their digests stand for, and that a selector is complete"
        )
    if tally.kinds["anchored"]:
        sentences.append(f"what the {tally.kinds['anchored']} anchored events say")
    if state.left_edge is not None:
        sentences.append(_before_the_edge(state.left_edge.seq, tally))
    return sentences


def _before_the_edge(seq: int, tally: Tally) -> str:
    said = f"what rests on records before seq {seq}: the kid and profile in force there"
    most = max(tally.unjudged.values(), default=0)
    return f"{said}, and events of earlier cards and steps ({most})" if most else said


def with_row(log: LogReport, name: str, outcome: Outcome, detail: str) -> LogReport:
    """Give the report with another outcome of one check."""
    rows = (
        row._replace(outcome=outcome, detail=detail) if row.check == name else row
        for row in log.rows
    )
    return log._replace(rows=tuple(rows))


def with_finding(log: LogReport, finding: Finding) -> LogReport:
    """Give the report with one finding more, and the row and verdict that follow."""
    count = 1 + sum(one.check == finding.check for one in log.findings)
    detail = "1 finding" if count == 1 else f"{count} findings"
    log = with_row(log, finding.check, Outcome.FAIL, detail)
    return log._replace(
        verdict=log.verdict.worse(finding.verdict),
        findings=(*log.findings, finding),
        findings_total=log.findings_total + 1,
    )
