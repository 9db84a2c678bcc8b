"""Segments are rewritten, compressed, removed and put back beside writers and readers (§15)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import Popen

import pytest

from ledger import Ledger

SMALL = """
import functools
from ledger import assembly
from ledger.store.files import FileStore
assembly.FileStore = functools.partial(FileStore, segment_bytes=4_000)
"""

APPEND = f"""{SMALL}
import json, os, sys
from ledger import Ledger, Opening, Proposal
path, name, done = sys.argv[1:]
with Ledger.open(path) as ledger:
    print("ready", flush=True)
    seqs, number = [], 0
    while not os.path.exists(done):
        proposal = Proposal.for_tool_call(
            task=(name, str(number)), tool_name="t", arguments={{}}, reasoning="x" * 300, ttl=600
        )
        card = ledger.issue(proposal)
        seqs.append([card.seq, card.record.digest.hex()])
        record = ledger.resolve(card.hash, "reject", approver="user:approver-1", note="HUSH")
        seqs.append([record.seq, record.digest.hex()])
        number += 1
    print(json.dumps(seqs))
"""

UPKEEP = f"""{SMALL}
import sys
from pathlib import Path
from ledger import Ledger
from contextlib import suppress
from ledger.archive import ArchiveUnfit, NothingToArchive, sha256
path, rounds, acts = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
by, files, redacted = "user:operator-1", [], 0
with Ledger.open(path) as ledger:
    for number in range(rounds):
        if "redact" in acts:
            cards = [r.card for r in ledger.records() if r.kind == "resolved" and r.openings]
            for card in cards[:3] + cards[-3:]:
                redacted += len(ledger.redact(card, by=by, reason="retention").records)
        if "compress" in acts:
            ledger.compress()
        if "prune" in acts:
            file = path.parent / f"{{number}}.cbor.gz"
            try:
                ledger.archive(file)
            except NothingToArchive:
                continue
            ledger.prune(file, by=by, verified=sha256(file))
            files.append(file)
            if number % 3 == 0:
                ledger.restore(file)
    for file in reversed(files):
        with suppress(ArchiveUnfit):  # the last one may have been put back
            ledger.restore(file)
print(redacted, len(files))
"""

READ = """
import json, os, sys
import verifier
path, done, key = sys.argv[1:]
print("ready", flush=True)
verdicts = {}
while True:
    last = os.path.exists(done)
    report = verifier.verify([path], [key], environ={})
    name = report.verdict.value
    if name != "VERIFIED":
        name += " " + ",".join(sorted({each.check for each in report.logs[0].findings}))
    verdicts[name] = verdicts.get(name, 0) + 1
    if last:
        print(json.dumps(verdicts))
        break
"""


@pytest.mark.parametrize(
    ("acts", "may_be"),
    [
        ("redact,compress", {"VERIFIED"}),
        # segments may go between the look into the folder and the look into the files
        (
            "redact,compress,prune",
            {"VERIFIED", "CANNOT VERIFY unreadable", "CANNOT VERIFY left_edge,unreadable"},
        ),
    ],
)
def test_upkeep_beside_writers_and_readers_loses_nothing_and_breaks_nothing(
    tmp_path: Path,
    start: Callable[..., Popen[str]],
    soak: Callable[[int, int], int],
    environ: Mapping[str, str],
    acts: str,
    may_be: set[str],
) -> None:
    path, stop, done = tmp_path / "approvals", tmp_path / "stop", tmp_path / "done"
    Ledger.init(path, name="test").close()
    (keys,) = Path(environ["CARDCHAIN_STATE"]).glob("cardchain/*/keys")
    readers = [start(READ, path, done, keys) for _ in range(soak(2, 8))]
    writers = [start(APPEND, path, f"writer {number}", stop) for number in range(soak(2, 4))]
    for process in (*readers, *writers):
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    upkeep = start(UPKEEP, path, soak(3, 40), acts)
    said = upkeep.communicate()[0].split()
    stop.touch()
    answered = [json.loads(process.communicate()[0]) for process in writers]
    done.touch()
    verdicts = [json.loads(process.communicate()[0]) for process in readers]
    assert [each.returncode for each in (upkeep, *writers, *readers)] == [0] * (
        1 + len(writers) + len(readers)
    )
    assert int(said[0]) > 10
    assert (int(said[1]) > 0) == ("prune" in acts)
    assert set().union(*verdicts) <= may_be, verdicts
    assert sum(each["VERIFIED"] for each in verdicts) > len(readers)
    with Ledger.open(path) as ledger:
        records = list(ledger.records())
    assert [record.seq for record in records] == list(range(len(records)))
    digests = [bytes(32), *(record.digest for record in records)]
    assert [record.prev for record in records] == digests[:-1]
    by_seq = {record.seq: record.digest.hex() for record in records}
    for seqs in answered:
        assert len(seqs) > 10
        assert [by_seq[seq] for seq, _ in seqs] == [digest for _, digest in seqs]
