"""The logs and ledgers that the benchmarks read, in a folder of their own."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from generator import PROFILE, Card, Chain, key_file

SEGMENT_BYTES = 64 * 1024 * 1024


def export(folder: Path, records: int) -> tuple[Path, Path]:
    """Write an export and its key file; give both paths."""
    log, key = folder / f"{records}.cbor", folder / "key.json"
    if log.exists():
        return log, key
    with log.open("wb") as stream:
        for record in Chain().records(records):
            stream.write(record)
    key.write_bytes(key_file())
    key.chmod(0o600)
    return log, key


def governed(folder: Path, records: int) -> Path:
    """Write an export of cards under a profile."""
    log = folder / f"governed-{records}.cbor"
    with log.open("wb") as stream:
        for record in Chain(profile=PROFILE).records(records):
            stream.write(record)
    return log


def flipped(log: Path, at: int | None = None) -> Path:
    """Write a copy with one bit changed: of its middle, or of the byte at an offset."""
    copy = log.with_name(f"flipped-{log.name}")
    shutil.copyfile(log, copy)
    _flip(copy, log.stat().st_size // 2 if at is None else at)
    return copy


def _flip(path: Path, at: int) -> None:
    with path.open("r+b") as stream:
        stream.seek(at)
        (byte,) = stream.read(1)
        stream.seek(at)
        stream.write(bytes([byte ^ 1]))


def check(path: Path, records: int | None = None) -> None:
    """A ledger holds so many records, is VERIFIED, and BROKEN with one bit of it changed.

    The bit stays changed: nothing more can be measured in this ledger.
    """
    from verifier import verify

    state = Path(os.environ["CARDCHAIN_STATE"], "cardchain")
    keys = [str(key) for key in state.glob("*/keys/*.json")]
    report = verify([str(path)], keys, jobs=2)
    assert report.verdict.value == "VERIFIED", report
    count = report.logs[0].counts.records
    assert records in (count, None), (count, records)
    *_, last = sorted((path / "segments").iterdir())
    _flip(last, last.stat().st_size // 2)
    assert verify([str(path)], keys, jobs=2).verdict.value == "BROKEN"


def ledger(folder: Path, records: int) -> tuple[Path, list[Card]]:
    """Make a ledger, put lawful records behind its first one, and let its index be built.

    Give its path and cards that are open. The caller sets CARDCHAIN_STATE first.
    """
    from ledger import Ledger
    from ledger.keys import read

    path = folder / f"ledger-{records}"
    start = time.time_ns() // 1_000_000 - records - 60_000
    with Ledger.init(path, name="benchmark", clock=lambda: start) as made:
        (first,) = made.records()
        state = Path(os.environ["CARDCHAIN_STATE"], "cardchain", made.chain.hex())
    (key,) = (state / "keys").iterdir()
    chain = Chain(first.chain, read(key).key.secret, 1, first.digest, start + 1)
    _append(path / "segments", chain, records - 1)
    with Ledger.open(path) as opened:
        assert opened.status().count == records
        opened.make_signer(by="user:operator-1")
        opened.checkpoint()
    return path, chain.open


def _append(segments: Path, chain: Chain, count: int) -> None:
    """Fill segments as a writer would, by size."""
    (segment,) = segments.iterdir()
    size = segment.stat().st_size
    stream = segment.open("ab")
    for seq, record in enumerate(chain.records(count), chain.seq):
        if size + len(record) > SEGMENT_BYTES:
            stream.close()
            segment = segments / f"{seq:020d}.cbor"
            segment.touch(0o600)
            stream, size = segment.open("ab"), 0
        stream.write(record)
        size += len(record)
    stream.close()
