"""What must hold of a ledger after anything: nothing answered is lost, nothing is invented."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import verifier
from ledger import Ledger, Proposal, Record
from verifier import Verdict

AT = 1_700_000_000_000


@dataclass
class Known:
    """What is known of a life from outside: who was answered for, and what was asked.

    `answered` are chain digests by seq. `before` are the digests of all records that stood there
    at first. `wanted` are the kinds of records that may have come since, and how many of each;
    where `ever` is given, it holds the digests of those that may have.
    """

    answered: dict[int, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    wanted: Counter[str] = field(default_factory=Counter)
    ever: frozenset[str] | None = None


def keys_of(state: Path) -> list[str]:
    return [str(path) for path in state.glob("cardchain/*/keys")]


def verdict(path: Path, state: Path, count: int | None = None) -> verifier.Report:
    return verifier.verify([str(path)], keys_of(state), environ={}, expect_count=count)


def require_verified(path: Path, state: Path, count: int | None = None) -> None:
    report = verdict(path, state, count)
    assert report.verdict is Verdict.VERIFIED, verifier.render_text(report)


def require_truth(
    folder: Path, known: Known, *, sound_before: bool = True, forgot: bool = False
) -> list[Record]:
    """Hold a ledger against what is known of it, go on with it, and verify it and an export.

    With `sound_before` it must verify as it was left, before any writer put it right; without, what
    does not verify must be moved aside and told. Only where the host `forgot` may it warn so.
    """
    path, state = folder / "approvals", folder / "state"
    found = verdict(path, state)
    sound = found.verdict is Verdict.VERIFIED
    assert sound or not sound_before, verifier.render_text(found)
    with Ledger.open(path, clock=lambda: AT) as ledger:
        assert forgot or ledger.warnings == ()
        records = list(ledger.records())
        ledger.issue(
            Proposal.for_tool_call(
                task=("run", "afterwards"), tool_name="t", arguments={}, reasoning="", ttl=60
            )
        )
        after = list(ledger.records())
        assert after[:-1] == records
        export = folder / "checked.cbor"
        ledger.export(export, overwrite=True)
    assert sound or any(record.kind == "recovered" for record in records)
    require_chain(after)
    require_answered(records, known)
    require_nothing_invented(records, known)
    require_torn_bytes_kept(path, records)
    require_verified(path, state, len(after))
    require_verified(export, state, len(after))
    return records


def require_chain(records: list[Record]) -> None:
    assert [record.seq for record in records] == list(range(len(records)))
    assert [record.prev for record in records] == [bytes(32), *(r.digest for r in records[:-1])]


def require_answered(records: list[Record], known: Known) -> None:
    digests = [record.digest.hex() for record in records]
    assert digests[: len(known.before)] == known.before
    assert {seq: digests[seq] for seq in known.answered if seq < len(digests)} == known.answered


def require_nothing_invented(records: list[Record], known: Known) -> None:
    came = [record for record in records[len(known.before) :] if record.kind != "recovered"]
    if known.ever is None:
        assert Counter(record.kind for record in came) <= known.wanted
    else:
        assert {record.digest.hex() for record in came} <= known.ever


def require_torn_bytes_kept(path: Path, records: Iterable[Record]) -> None:
    told = {record.body["sha256"] for record in records if record.kind == "recovered"}
    pieces = filter(None, (file.read_bytes() for file in (path / "quarantine").iterdir()))
    assert told == {hashlib.sha256(piece).digest() for piece in pieces}


def refill(folder: Path, source: Path) -> None:
    """Put a folder back as it was; the ledger in it stays the directory that a host knows."""
    clear(folder, ledger=(source / "approvals").exists())
    shutil.copytree(source, folder, dirs_exist_ok=True)


def fill(folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Have a folder hold these files, and a directory for each None."""
    clear(folder, ledger="approvals" in files)
    for name, data in files.items():
        path = folder / name
        if data is None:
            path.mkdir(mode=0o700, exist_ok=True)
        else:
            path.write_bytes(data)
            path.chmod(0o600)


def clear(folder: Path, *, ledger: bool) -> None:
    """Empty a folder, but for the directory of the ledger; without `ledger` that waits aside."""
    path, aside = folder / "approvals", folder.with_name("aside")
    if ledger and aside.exists():
        _remove(path)
        aside.rename(path)
    elif not ledger and path.exists() and not aside.exists():
        path.rename(aside)
    for file in folder.iterdir():
        if not ledger or file != path:
            _remove(file)
    for inner in path.iterdir() if path.exists() else ():
        _remove(inner)


def _remove(file: Path) -> None:
    if file.is_dir():
        shutil.rmtree(file)
    elif file.exists():
        file.unlink()


def digest_of(folder: Path) -> str:
    """Give a digest of every name and byte below a folder."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        found.update(f"{file.relative_to(folder)}\0".encode())
        found.update(hashlib.sha256(file.read_bytes() if file.is_file() else b"").digest())
    return found.hexdigest()
