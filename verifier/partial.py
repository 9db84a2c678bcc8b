"""The verification of an excerpt: what is there is judged as in a log, the rest is left (§14.3)."""

from __future__ import annotations

from collections.abc import Callable

from verifier import checks
from verifier.anchorfiles import anchor
from verifier.anchors import ENCLOSED, Anchor, Auditor
from verifier.assurance import Sight
from verifier.auditing import note, report_held
from verifier.checkpoint import Checkpoint
from verifier.checks.completeness import Expectation
from verifier.evidence import Evidence
from verifier.excerpt import (
    MAX_EXCERPT,
    Excerpt,
    ExcerptRefused,
    LaterFormat,
    Scope,
    parse_excerpt,
)
from verifier.governance import Library
from verifier.held import Held, hold_excerpt
from verifier.histories import Collector
from verifier.keys import Ring
from verifier.lookout import Lookout
from verifier.merkle import root_of_inclusion
from verifier.replay import MAX_FINDINGS, Replay, TooManyFindings
from verifier.report import LogReport
from verifier.shape import Problem
from verifier.source import Segment, Unreadable
from verifier.spec import EXCERPT_FORMAT
from verifier.state import State
from verifier.summary import Reading, report

# what rests on records that an excerpt leaves out
_LEFT_OUT = (
    "supersedes",
    "prior_attempt",
    "not_issued",
    "latest",
    "refusal_reason",
    "refusal_count",
    "recovered",
    "left_edge",
    "expected_count",
)
_LEFT_OUT_OF_RECEIPTS = ("sequence", "kid", "rekey")
CANNOT_SHOW = (
    "that no later record of the cards of this excerpt exists",
    "that a card of it was the latest of its step",
    "that every refusal is in it",
    "anything about cards that are not in it",
    "that the log was complete",
)


def verify_excerpt(
    segment: Segment,
    ring: Ring,
    expectation: Expectation,
    policy: tuple[Library, int],
    auditor: Auditor,
    keep_digests: bool = False,
    wanted: Callable[[str], bool] | None = None,
) -> tuple[LogReport, Sight]:
    """Verify one excerpt; the arguments are those of `verify_log`."""
    reading = Reading(Expectation(), is_directory=False)
    reading.warnings += ring.warnings
    reading.collector = None if wanted is None else Collector(wanted)
    state = State(ring, *policy)
    try:
        excerpt = parse_excerpt(segment.path, _gather(segment))
    except (ExcerptRefused, Unreadable) as error:
        reading.inputs += [segment.input()] if segment.opened else []
        return _refused(segment, Replay(state), reading, error), Sight({})

    reading.inputs.append(segment.input())
    left_out = (*_LEFT_OUT, *(() if excerpt.scope.card is None else _LEFT_OUT_OF_RECEIPTS))
    skipped = (*left_out, *(("opening_missing",) if auditor.allow_withheld else ()))
    reading.reasons |= dict.fromkeys(left_out, "it rests on records that an excerpt leaves out")
    del reading.reasons["excerpt"]
    replay = Replay(state, Lookout(expectation.head, None, keep_digests), None, skipped)
    anchors = [*_enclosed(excerpt, auditor), *auditor.given]
    held = hold_excerpt(anchors, excerpt.chain)
    _cover(excerpt, state, anchors, held)
    try:
        report_held(replay, reading, held, anchors)
        _replay(excerpt, replay, reading)
        _expect_head(expectation, replay, reading)
        replay.finish(reading.end(replay))
    except TooManyFindings:
        reading.not_read.append(f"what follows: reading stopped after {MAX_FINDINGS} findings")
    _note_inclusion(excerpt, replay, reading, auditor)
    note(replay, reading, auditor)
    log = _worded(report(segment.path, replay, reading), excerpt, state)
    lookout = replay.lookout
    digests, head_at = lookout.digests or {}, lookout.head_at
    return log, Sight(digests, head_at, None, None, held.signed_to, held.pinned_to, held.apart)


def _gather(segment: Segment) -> bytes:
    """Give the bytes of a file, or so many that it is seen to be too long; raises Unreadable."""
    parts, size = [], 0
    for chunk in segment.chunks():
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_EXCERPT:
            break
    return b"".join(parts)


def _refused(
    segment: Segment, replay: Replay, reading: Reading, error: ExcerptRefused | Unreadable
) -> LogReport:
    """Give the report of a file that begins as an excerpt and is none."""
    if isinstance(error, Unreadable):
        record = Evidence(segment.path, -1, b"")
        record.unreadable = ("an excerpt that can be read", str(error))
        replay.take(record)
        reading.unreadable = True
    else:
        row = "version" if isinstance(error, LaterFormat) else "excerpt"
        _report(replay, row, error.problem, segment.path)
    del reading.reasons["excerpt"]
    return report(segment.path, replay, reading)._replace(format=EXCERPT_FORMAT)


def _report(replay: Replay, name: str, problem: Problem, file: str) -> None:
    for check in checks.CHECKS:
        if check.id == name:
            replay.report(check, problem, None, file)


def _enclosed(excerpt: Excerpt, auditor: Auditor) -> list[Anchor]:
    """Give the checkpoint of the proofs, if there are some."""
    return [
        anchor(excerpt.file, ENCLOSED, proof.note.encode(), auditor.vkeys)
        for proof in excerpt.proofs[:1]
    ]


def _cover(excerpt: Excerpt, state: State, anchors: list[Anchor], held: Held) -> None:
    """Note which records a checkpoint covers, and the proofs to be checked.

    Where no signature can be checked, that is a finding of its own, and no key is missing.
    """
    enclosed = next((one for one in anchors if one.role == ENCLOSED), None)
    if enclosed is None or enclosed.checkpoint is None:
        return
    signed = enclosed.checkpoint
    if held.signed_to or enclosed.no_library:
        state.covered = _covered(excerpt, signed)
    if held.signed_to:
        state.proofs = {
            proof.seq: (proof.hashes, signed.size, signed.root) for proof in excerpt.proofs
        }


def _covered(excerpt: Excerpt, signed: Checkpoint) -> frozenset[int]:
    """Give the seqs of which a proof holds, or that a covered next record names (spec §14.3)."""
    hashes = {proof.seq: proof.hashes for proof in excerpt.proofs}
    covered: set[int] = set()
    after = None
    for entry in reversed(excerpt.entries):
        seq = entry.seq
        if seq is not None:
            linked = after is not None and (after.seq, after.prev) == (seq + 1, entry.digest)
            if linked and seq + 1 in covered:
                covered.add(seq)
            elif seq in hashes:
                found = root_of_inclusion(seq, signed.size, entry.digest, hashes[seq])
                covered.update((seq,) if found == signed.root else ())
        after = entry
    return frozenset(covered)


def _replay(excerpt: Excerpt, replay: Replay, reading: Reading) -> None:
    state = replay.state
    state.disturbed = True  # records that were left out may explain what follows
    if excerpt.scope.card is not None or excerpt.entries[0].seq != 0:
        state.governance.lose(0)
    for record in excerpt.records():
        if record.seq is not None and record.seq != state.expected_seq:
            _step_over(excerpt.scope, record.seq, state)
        sound = replay.take(record)
        if reading.collector is not None:
            reading.collector.take(record, sound)
    expected = max(state.expected_seq or 0, excerpt.scope.first)
    if expected <= excerpt.scope.last and not state.gap_explained:
        problem = (f"seq {expected}", "the end of the excerpt")
        _report(replay, "sequence", problem, excerpt.file)


def _step_over(scope: Scope, seq: int, state: State) -> None:
    """Go on at a seq; only inside a range the records before it are missed (spec §14.3)."""
    expected = state.expected_seq or 0
    missed = max(expected, scope.first)
    if missed < seq and missed <= scope.last:
        state.expected_seq = missed
        return
    state.link_explained = seq != 0
    state.gap_explained = False
    state.expected_seq = seq
    state.at = None
    if scope.card is not None or seq > scope.last:
        state.kid = None  # a rekeyed may have been left out


def _expect_head(expectation: Expectation, replay: Replay, reading: Reading) -> None:
    """An expected head that is not among the records accuses nobody."""
    if replay.lookout.head_at is not None:
        reading.expectation = expectation
    elif expectation.head is not None:
        reading.reasons["expected_head"] = "it is not among the records of the excerpt"


def _note_inclusion(excerpt: Excerpt, replay: Replay, reading: Reading, auditor: Auditor) -> None:
    """Say why proofs were not checked."""
    if replay.state.proofs:
        del reading.reasons["inclusion"]
    elif not excerpt.proofs:
        reading.reasons["inclusion"] = "no proof in the excerpt"
    else:
        reading.reasons["inclusion"] = "no given vkey signed the checkpoint of the proofs"
        if auditor.vkeys and not replay.findings:
            reading.warnings.append(
                f"the checkpoint in {excerpt.file} is left aside: no given vkey signed it"
            )


def _worded(log: LogReport, excerpt: Excerpt, state: State) -> LogReport:
    covered = sum(entry.seq in state.covered for entry in excerpt.entries) if state.proofs else 0
    total = len(excerpt.entries)
    return log._replace(
        format=EXCERPT_FORMAT,
        scope=f"{excerpt.scope}; {covered} of its {total} records are under a signed checkpoint",
        not_checked=(*CANNOT_SHOW, *log.not_checked),
    )
