"""A log under replay, and what its auditor holds it against (spec §13.7, §16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from verifier import checks, source
from verifier.anchors import Anchor, Auditor
from verifier.assurance import Sight
from verifier.checks.causes import OVER_A_FRONTIER
from verifier.held import Held, hold_log, signed_roots
from verifier.replay import Replay
from verifier.report import LogReport
from verifier.summary import Reading

if TYPE_CHECKING:
    from verifier.coverage import Coverage  # starting takes longer with it


def anchors_of(path: str, auditor: Auditor) -> tuple[list[Anchor], list[str]]:
    """Give the checkpoints and proofs for a log: those given, and those that come with it.

    The others are warnings.
    """
    if not auditor.vkeys or not source.is_ledger(path):
        return list(auditor.given), []
    from verifier.anchorfiles import delivered

    found, warnings = delivered(path, auditor.vkeys)
    return [*auditor.given, *found], warnings


def coverage_of(path: str, anchors: Sequence[Anchor]) -> Coverage | None:
    """Give the tree to build for checkpoints, None where there is none to check."""
    if not anchors:
        return None
    from verifier.anchorfiles import frontiers
    from verifier.coverage import Coverage

    known = frontiers(path) if source.is_ledger(path) else {}
    return Coverage(signed_roots(anchors), known)


def hold(replay: Replay, reading: Reading, anchors: Sequence[Anchor]) -> Held:
    """Hold a log that was replayed against checkpoints and proofs, and report what they say."""
    replay.settle()
    roots = {} if replay.coverage is None else replay.coverage.roots
    held = hold_log(anchors, replay.state.chain, reading.reached(replay), roots)
    report_held(replay, reading, held, anchors)
    return held


def report_held(replay: Replay, reading: Reading, held: Held, anchors: Sequence[Anchor]) -> None:
    """Report what failed, and the files that could not be read."""
    for failure in held.failures:
        replay.report(failure.check, failure.problem, None, failure.file)
        tree = replay.coverage
        if failure.check.id == "checkpoint_root" and tree is not None and tree.begins_at_frontier:
            cause, command = OVER_A_FRONTIER
            found = replay.findings[-1]._replace(cause=cause, next_command=command)
            replay.findings[-1] = found
    for check in checks.CHECKS:
        for anchor in anchors if check.id == "unreadable" else ():
            if anchor.unreadable is not None:
                replay.report(check, anchor.unreadable, None, anchor.file)
    reading.reasons |= held.reasons


def note(replay: Replay, reading: Reading, auditor: Auditor) -> None:
    """Note what the auditor is to know of withheld openings and of another vkey."""
    announced = replay.tally.announced
    known = {vkey.text for vkey in auditor.vkeys}
    if known and announced is not None and announced not in known:
        reading.warnings.append(f"the log announces a vkey that was not given: {announced}")
    if auditor.allow_withheld and replay.state.absent:
        reading.reasons["opening_missing"] = "openings are withheld, as the auditor allows"


def foreign(log: LogReport, auditor: Auditor) -> LogReport:
    """Say of a log of another format that nothing of this was held against it."""
    if not auditor.given and auditor.pin is None:
        return log
    sentence = "the checkpoints and the pinned head that were given: this format has neither"
    return log._replace(not_checked=(sentence, *log.not_checked))


def sight(replay: Replay, reading: Reading, held: Held) -> Sight:
    """Give what was seen of a log besides its report."""
    found = replay.lookout
    return Sight(
        found.digests or {},
        found.head_at,
        found.found,
        reading.reached(replay),
        held.signed_to,
        held.pinned_to,
        held.apart,
    )
