"""Verification of inputs, from paths to a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing

from verifier import auditing, checks, keys, source
from verifier.anchors import Auditor
from verifier.assurance import Sight, move_pin, with_apart, with_assurance, with_pin
from verifier.checks.completeness import Expectation
from verifier.evidence import Evidence
from verifier.findings import finding
from verifier.framing import Frames, Lost
from verifier.governance import Library, load_profiles
from verifier.header import header, now
from verifier.held import Held
from verifier.lookout import Lookout
from verifier.manner import ALONE, Manner, pool
from verifier.pinfile import PinRefused, read_pin
from verifier.progress import Progress
from verifier.replay import MAX_FINDINGS, Replay, TooManyFindings
from verifier.report import Finding, LogReport, Outcome, Report
from verifier.spec import EVIDENCE_CLASSES
from verifier.state import Edge, State
from verifier.summary import Reading, report, with_finding, with_row


def verify(
    paths: Sequence[str],
    key_files: Iterable[str] = (),
    *,
    expect_head: bytes | None = None,
    expect_count: int | None = None,
    profile_files: Iterable[str] = (),
    floor: str = EVIDENCE_CLASSES[0],
    extra_keys: Iterable[keys.Key] = (),
    environ: Mapping[str, str] | None = None,
    vkeys: Iterable[str] = (),
    checkpoint_files: Iterable[str] = (),
    pin_file: str | None = None,
    required: Sequence[str] = (),
    allow_withheld: bool = False,
    wanted: Callable[[str], bool] | None = None,
    since: Edge | str | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    moves_pin: bool = True,
) -> Report:
    """Verify each path as one log and give one report (spec §10).

    A path is a file, a ledger directory, a foreign log, an excerpt, or `-` for standard input. It
    gives a report for every input, whatever the bytes. It writes nothing but the pin file, which is
    made, or moved on, after a verdict of VERIFIED (spec §16.2); raises PinRefused where that cannot
    be used. `vkeys` are keys of signers, or files of them; `checkpoint_files` are checkpoints and
    consistency proofs that were kept; `required` are words of §16.1; `allow_withheld` lets openings
    be absent. `extra_keys` are keys that the caller holds already. `expect_head` with
    `expect_count` N is required at seq N - 1.
    `profile_files` are profiles that cards name; `floor` is the evidence class that every
    approved card must reach (spec §8.7). `wanted` says of which cards, by their hash in hex, the
    report holds the histories; without it of none. `since` is a left edge that the auditor kept:
    what stands before it is passed over; or the file of a checkpoint, which is given like the
    others: what stands below its size is only hashed (spec §15.2). With `jobs` above 1 so many
    other processes prove records; the report is the same. `progress` is told how far it is.
    Without `moves_pin` the pin file is left to `move_pin`, once the report is where it belongs.
    """
    started_at = now()
    files = list(key_files)
    ring = keys.load(files, os.environ if environ is None else environ)
    for key in extra_keys:
        ring.add(key)
    expectation = Expectation(expect_head, expect_count)
    library, unused = load_profiles(profile_files)
    ring.warnings += unused
    policy = library, EVIDENCE_CLASSES.index(floor)
    edge, kept = (None, since) if isinstance(since, str) else (since, None)
    auditor, unused = _auditor(list(vkeys), list(checkpoint_files), kept)
    ring.warnings += unused
    pin = None if pin_file is None else read_pin(pin_file)
    auditor = auditor._replace(pin=pin, allow_withheld=allow_withheld)
    manner = Manner(edge, pool(jobs, ring), progress)
    logs: list[LogReport] = []
    sights: list[Sight] = []
    with closing(manner):
        for path in paths:
            if path == "-" or _is_ours(path):
                log, seen = verify_log(
                    path, ring, expectation, policy, auditor, len(paths) > 1, wanted, manner
                )
            else:
                log, seen = _verify_foreign(path, files, expectation, wanted), Sight({})
                log = auditing.foreign(log, auditor)
            logs.append(log)
            sights.append(seen)
    logs = _with_forks(logs, [sight.digests for sight in sights])
    logs = with_apart(logs, sights)
    if pin_file is not None:
        logs = with_pin(logs, sights, pin)
    judged = [
        with_assurance(log, sight, pin, required) for log, sight in zip(logs, sights, strict=True)
    ]
    result = Report(tuple(judged), header(started_at))
    problem = move_pin(result, pin_file, pin) if pin_file is not None and moves_pin else ""
    if problem:
        warned = (log._replace(warnings=(*log.warnings, problem)) for log in result.logs)
        result = result._replace(logs=tuple(warned))
    return result


def keep_head(report: Report, pin_file: str) -> str:
    """Move the pin file on after a report was written; gives a sentence where it was not (§16.2).

    It is read again, since another run may have moved it on.
    """
    try:
        return move_pin(report, pin_file, read_pin(pin_file))
    except PinRefused as error:
        return f"the pin file {pin_file} was not moved on: {error}"


def _auditor(vkeys: list[str], files: list[str], since: str | None) -> tuple[Auditor, list[str]]:
    if not vkeys and not files and since is None:
        return Auditor(), []
    from verifier.anchorfiles import load_anchors  # starting takes longer with it

    return load_anchors(vkeys, files, since)


def _is_ours(path: str) -> bool:
    if os.path.isdir(path):
        return source.is_ledger(path)
    return not path.endswith((".jsonl", ".jsonl.gz"))


def _verify_foreign(
    path: str,
    files: list[str],
    expectation: Expectation,
    wanted: Callable[[str], bool] | None,
) -> LogReport:
    from verifier.readers import reader_for

    reader = reader_for(path)
    if reader is None:
        replay = Replay(State(keys.Ring()))
        replay.take(_unreadable(path, "neither a ledger nor a log of another kind"))
        return report(path, replay, Reading(Expectation(), is_directory=False))
    head = None if expectation.head is None else expectation.head.hex()
    log = reader.verify_log(path, files, head, expectation.records)
    return log if wanted is None else log._replace(histories=reader.histories(log, wanted))


def verify_log(
    path: str,
    ring: keys.Ring,
    expectation: Expectation,
    policy: tuple[Library, int],
    auditor: Auditor,
    keep_digests: bool = False,
    wanted: Callable[[str], bool] | None = None,
    manner: Manner = ALONE,
) -> tuple[LogReport, Sight]:
    """Verify one cardchain log; give its report, and what else was seen of it.

    `policy` holds the profiles at hand and the floor of the auditor.
    """
    file = None if source.is_ledger(path) else source.Segment(path)
    if file is not None and source.is_excerpt(file):
        from verifier.partial import verify_excerpt  # starting takes longer with it

        return verify_excerpt(file, ring, expectation, policy, auditor, keep_digests, wanted)
    anchors, aside = auditing.anchors_of(path, auditor)
    lookout = Lookout(expectation.head, auditor.pin and auditor.pin.seq, keep_digests)
    skipped = ("opening_missing",) if auditor.allow_withheld else ()
    coverage = auditing.coverage_of(path, anchors)
    replay = Replay(State(ring, *policy), lookout, coverage, skipped)
    reading = Reading(expectation, is_directory=source.is_ledger(path))
    reading.warnings += [*ring.warnings, *aside]
    if wanted is not None:
        from verifier.histories import Collector

        reading.collector = Collector(wanted)
    reading.manner = manner
    if manner.since is not None or auditor.since is not None:
        from verifier.since import before

        reading.before = before(replay, manner.since, auditor.since)
    try:
        _replay(path, file, replay, reading)
        held = auditing.hold(replay, reading, anchors)
        replay.finish(reading.end(replay))
    except TooManyFindings:
        reading.not_read.append(f"what follows: reading stopped after {MAX_FINDINGS} findings")
        replay.settle()
        held = Held()
    auditing.note(replay, reading, auditor)
    return report(path, replay, reading), auditing.sight(replay, reading, held)


def _replay(path: str, file: source.Segment | None, replay: Replay, reading: Reading) -> None:
    try:
        parts, others = source.segments(path) if file is None else ([file], [])
    except source.Unreadable as error:
        reading.unreadable = True
        replay.take(_unreadable(path, str(error)))
        return
    for other in others:
        stray = Evidence(other, -1, b"")
        stray.name = ("the name of a segment", os.path.basename(other))
        replay.take(stray)
    if reading.before is not None:
        parts = reading.before.segments(parts)
    while parts:
        part, *parts = parts
        try:
            _replay_segment(part, replay, reading)
        except source.Unreadable as error:
            reading.unreadable = True
            replay.take(_unreadable(part.path, str(error)))
        except Lost:
            reading.not_read.append(f"the rest of {part.path}: too many bytes are no record")
        finally:
            reading.inputs += [part.input()] if part.opened else []
        if not parts and part.seq is not None and not part.live:
            parts = source.later(part)  # a writer began them after the folder was listed
    if reading.before is not None:
        reading.before.end()


def _replay_segment(segment: source.Segment, replay: Replay, reading: Reading) -> None:
    frames = reading.manner.frames(segment, lambda: replay.tally.records)
    collector = reading.collector
    skipping = reading.before
    if skipping is not None and not skipping.done and not skipping.take(frames):
        return
    reading.manner.share(frames)
    while True:
        start = frames.pos
        try:
            broke = _advance(frames, replay)
        finally:
            if collector is not None:
                collector.passed(frames, start)
        if not broke and frames.read_on():
            continue
        record = frames.next()
        if record is None:
            break
        if record.torn is not None and segment.live:
            reading.warnings.append(
                f"{segment.path} ends inside a record at offset {record.offset}: "
                "a writer may be at work, or was interrupted"
            )
        else:
            sound = replay.take(record, broke=broke)
            if collector is not None:
                collector.take(record, sound)
    if segment.seq is not None and frames.offset == 0:
        _take_empty(segment, segment.seq, replay)


def _advance(frames: Frames, replay: Replay) -> bool:
    """Accept what is plainly right: nothing is before the first record, and after the last one."""
    if not replay.begun or frames.pos == len(frames.buffer):
        return False
    from verifier.fast import advance  # starting takes longer with it

    return advance(frames, replay)


def _take_empty(segment: source.Segment, seq: int, replay: Replay) -> None:
    """Judge a segment without a byte: allowed as the last one, under the next seq (spec §7.1)."""
    expected = max(replay.state.expected_seq or 0, replay.passed_to)
    if segment.live and seq == expected:
        return
    empty = Evidence(segment.path, -1, b"")
    empty.name = (f"records from seq {expected}, or no file", f"an empty segment {seq}")
    replay.take(empty)


def _unreadable(path: str, problem: str) -> Evidence:
    record = Evidence(path, -1, b"")
    record.unreadable = ("a log that can be read", problem)
    return record


def _with_forks(logs: list[LogReport], digests: list[dict[int, bytes]]) -> list[LogReport]:
    """Add to each log the first place where it parts from an earlier one of its chain."""
    (row,) = (check for check in checks.CHECKS if check.scope == checks.LOGS)
    for number, log in enumerate(logs):
        for earlier in range(number):
            if log.chain is None or log.chain != logs[earlier].chain:
                continue
            found = _fork(row, digests[number], digests[earlier])
            if found is not None:
                logs[number] = with_finding(log, found._replace(file=log.path))
                break
            logs[number] = with_row(logs[number], row.id, Outcome.PASS, "")
    return logs


def _fork(row: checks.Check, ours: dict[int, bytes], theirs: dict[int, bytes]) -> Finding | None:
    for seq in sorted(ours.keys() & theirs.keys()):
        problem = row.function(ours[seq], theirs[seq])
        if problem is not None:
            return finding(row, problem, None)._replace(seq=seq)
    return None
