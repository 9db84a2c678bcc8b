"""What a verification costs: over the least work, and beside the usual one.

That is without keys, under profiles, in part, in parts, as a page, and of a log of Bernstein. Each
gives a ratio of processor times. It checks that the verdicts are what they should be, and that one
changed bit is seen.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable
from pathlib import Path

import bernstein
import cbor2
import logs
from generator import CHAIN, SECRET, Chain
from measure import Spread, clock, cpu, exactly, python, rounds

from verifier import Key, Report, every_card, verify
from verifier.framing import Frames
from verifier.prefix import chain_digests
from verifier.source import Segment
from verifier.state import Edge

KEY = Key(CHAIN, SECRET)
Piece = tuple[tuple[bytes, ...], bytes]
"""What of a record is hashed, and what of it is under the tag."""
_PEAK = """
import sys
from verifier.verify import verify
report = verify([sys.argv[1]], [sys.argv[2]])
print(report.verdict.value, report.logs[0].counts.cards)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


def whole(folder: Path, records: int) -> Spread:
    """Everything the verifier does, over the digests and HMACs that it cannot avoid."""
    log, _ = logs.export(folder, records)
    _check(log, records, "VERIFIED")
    pieces: list[Piece] = []
    for raw in Chain().records(records):
        _, openings, payload, _ = cbor2.loads(raw).value
        bare = b"\0" + raw[:16] + b"\xa0" + raw[-(len(cbor2.dumps(payload)) + 34) :]
        message = b"\x84\x64MAC0" + raw[2:16] + b"\x40" + cbor2.dumps(payload)
        pieces.append(((openings.get("envelope", b""), bare), message))
    floor = _floor(pieces, SECRET)
    return rounds(lambda: cpu(lambda: _run(log)), lambda: cpu(floor))


def of_bernstein(folder: Path, records: int) -> Spread:
    """A log of Bernstein, half of it about cards, over its digests and HMACs."""
    log, key = folder / f"bernstein-{records}", folder / f"bernstein-{records}" / "audit.key"
    if not log.exists():
        log.mkdir()
        bernstein.written(log, records, daily=True, others=10)
    names = sorted((log / ".sdd" / "audit").iterdir())

    def run() -> Report:
        return verify([str(log)], [str(key)], environ={})

    report = run()
    assert report.verdict.value == "VERIFIED", report
    assert report.logs[0].counts.records == records
    sound = names[0].read_bytes()
    logs.flipped(names[0]).replace(names[0])
    assert run().verdict.value == "BROKEN"
    names[0].write_bytes(sound)
    lines = [line for name in names for line in name.read_bytes().splitlines()]
    floor = _floor(list(map(_bernstein_piece, lines)), bernstein.derived())
    return rounds(lambda: cpu(run), lambda: cpu(floor))


def _bernstein_piece(line: bytes) -> Piece:
    entry = json.loads(line)
    envelope = entry["details"].get("envelope")
    hashed = () if envelope is None else (bernstein.canonical(envelope),)
    del entry["hmac"]
    return hashed, bernstein.message(entry)


def _floor(pieces: list[Piece], secret: bytes) -> Callable[[], None]:
    """Give the least work: the digests of each record, and one HMAC of it."""
    keyed = hmac.new(secret, digestmod=hashlib.sha256)

    def floor() -> None:
        sha256 = hashlib.sha256
        for hashed, message in pieces:
            for data in hashed:
                sha256(data).digest()
            tag = keyed.copy()
            tag.update(message)
            tag.digest()

    return floor


def page(folder: Path, records: int) -> Spread:
    """The report page of a log with every card, over verifying the log."""
    from ledger.report import render_page

    log, _ = logs.export(folder, records)
    _check(log, records, "VERIFIED")

    def made(path: Path) -> str:
        report = verify([str(path)], extra_keys=(KEY,), environ={}, wanted=every_card)
        return "".join(render_page(report))

    sound = made(log)
    assert sound.count('<article class="card"') == records // 2
    assert "<title>VERIFIED" in sound
    assert "<title>BROKEN" in made(logs.flipped(log))
    return rounds(lambda: cpu(lambda: made(log)), lambda: cpu(lambda: _run(log)), 3)


def memory(folder: Path, records: int) -> Spread:
    """The bytes of the peak of a verification over 40 MB, per card."""
    peak, cards = _peak(folder, records)
    return exactly(max(0, peak - 40_000_000) / cards)


def memory_grown(folder: Path, few: int, many: int) -> Spread:
    """The bytes of the peak that each further card adds."""
    (low, less), (high, more) = _peak(folder, few), _peak(folder, many)
    return exactly((high - low) / (more - less))


def _peak(folder: Path, records: int) -> tuple[int, int]:
    """Give the peak of a process that verifies a log, in bytes, and the number of cards."""
    log, key = logs.export(folder, records)
    _, output = python("-c", _PEAK, str(log), str(key))
    verdict, cards, peak = output.split()
    assert verdict == "VERIFIED", output
    _, output = python("-c", _PEAK, str(logs.flipped(log)), str(key))
    assert output.startswith("BROKEN"), output
    return int(peak) * 1024, int(cards)


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
    """The time of the clock with two processes, over that with one."""
    log, _ = logs.export(folder, records)
    reports = [_run(log, jobs=jobs)._replace(header=None) for jobs in (1, 2)]
    assert reports[0] == reports[1]
    _check(log, records, "VERIFIED", jobs=2)
    return rounds(lambda: clock(lambda: _run(log, jobs=2)), lambda: clock(lambda: _run(log)), 5)


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
    with log.open("rb") as stream:
        end = stream.seek(-4_096, os.SEEK_END)
        last = end + stream.read().rindex(b'"reasoning":"')
    changed = logs.flipped(log, last + 15)
    assert _run(changed, keys, since, jobs).verdict.value == "BROKEN"
