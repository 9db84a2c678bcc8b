"""What a verification costs beside the usual one: without keys, under profiles, in part, in parts.

Each gives a ratio of processor times. It checks that the verdicts are what they should be, and that
one changed bit is seen.
"""

from __future__ import annotations

from pathlib import Path

import logs
from generator import CHAIN, SECRET
from measure import Spread, cpu, rounds

from verifier import Key, Report, verify
from verifier.framing import Frames
from verifier.prefix import chain_digests
from verifier.source import Segment
from verifier.state import Edge

KEY = Key(CHAIN, SECRET)


def without_key(folder: Path, records: int) -> Spread:
    """Everything but the tags, over everything."""
    log, _ = logs.export(folder, records)
    _check(log, records, "CANNOT VERIFY", keys=())
    return rounds(lambda: cpu(lambda: _run(log, ())), lambda: cpu(lambda: _run(log)))


def under_profile(folder: Path, records: int) -> Spread:
    """Cards with policy evidence, over cards of the same size without."""
    log, _ = logs.export(folder, records)
    governed = logs.governed(folder, records)
    _check(governed, records, "VERIFIED")
    return rounds(lambda: cpu(lambda: _run(governed)), lambda: cpu(lambda: _run(log)))


def since(folder: Path, records: int) -> Spread:
    """The last twentieth of the records of one file, over all of them."""
    log, _ = logs.export(folder, records)
    seq = records - records // 20
    *_, (last, digest) = chain_digests(Frames("log", Segment(str(log)).chunks()), seq)
    edge = Edge(seq, digest)
    assert last == seq - 1
    _check(log, records - seq, "VERIFIED", since=edge)
    return rounds(lambda: cpu(lambda: _run(log, since=edge)), lambda: cpu(lambda: _run(log)))


def grown(folder: Path, few: int, many: int) -> Spread:
    """A record of a large log, over one of a small log."""
    small, _ = logs.export(folder, few)
    large, _ = logs.export(folder, many)
    _check(large, many, "VERIFIED")
    return rounds(
        lambda: cpu(lambda: _run(large)) / many, lambda: cpu(lambda: _run(small)) / few, 3
    )


def shared(folder: Path, records: int) -> Spread:
    """What stays with this process where two others prove the records, over all of it."""
    log, _ = logs.export(folder, records)
    reports = [_run(log, jobs=jobs)._replace(header=None) for jobs in (1, 2)]
    assert reports[0] == reports[1]
    _check(log, records, "VERIFIED", jobs=2)
    return rounds(lambda: cpu(lambda: _run(log, jobs=2)), lambda: cpu(lambda: _run(log)))


def _run(
    log: Path, keys: tuple[Key, ...] = (KEY,), since: Edge | None = None, jobs: int = 1
) -> Report:
    return verify([str(log)], extra_keys=keys, environ={}, since=since, jobs=jobs)


def _check(
    log: Path,
    records: int,
    verdict: str,
    keys: tuple[Key, ...] = (KEY,),
    since: Edge | None = None,
    jobs: int = 1,
) -> None:
    report = _run(log, keys, since, jobs)
    assert report.verdict.value == verdict, report
    assert report.logs[0].counts.records == records
    data = bytearray(log.read_bytes())
    data[data.rindex(b'"reasoning":"') + 15] ^= 1
    changed = log.with_name(f"changed-{log.name}")
    changed.write_bytes(data)
    assert _run(changed, keys, since, jobs).verdict.value == "BROKEN"
