"""Readers beside a writer (spec §7.4, §10): a live ledger is never called broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import Popen

from ledger import Ledger

WRITE = """
import functools, sys
from ledger import Ledger, Proposal, assembly
from ledger.store.files import FileStore
path, rotations = sys.argv[1], int(sys.argv[2])
assembly.FileStore = functools.partial(FileStore, segment_bytes=3_000)
with Ledger.open(path) as ledger:
    number = 0
    while ledger.status().segments <= rotations:
        proposal = Proposal.for_tool_call(
            task=("run", str(number)), tool_name="t", arguments={}, reasoning="x" * 400, ttl=600
        )
        card = ledger.issue(proposal)
        ledger.resolve(card.hash, "approve", approver="user:approver-1")
        number += 1
print(ledger.path)
"""

READ = """
import json, os, sys, time
import verifier
path, done, key = sys.argv[1:]
print("ready", flush=True)
verdicts = {}
grew = []
while True:
    last = os.path.exists(done)
    report = verifier.verify([path], [key], environ={})
    (log,) = report.logs
    name = report.verdict.value
    verdicts[name] = verdicts.get(name, 0) + 1
    grew.append(log.counts.records)
    if name == "BROKEN":
        print(json.dumps({"broken": verifier.render_text(report)}))
        break
    if last:
        print(json.dumps({"verdicts": verdicts, "first": grew[0], "last": grew[-1]}))
        break
"""


def test_readers_never_call_a_growing_and_rotating_ledger_broken(
    tmp_path: Path,
    start: Callable[..., Popen[str]],
    soak: Callable[[int, int], int],
    environ: Mapping[str, str],
) -> None:
    path, done = tmp_path / "ledger", tmp_path / "done"
    Ledger.init(path, name="test").close()
    (keys,) = Path(environ["CARDCHAIN_STATE"]).glob("cardchain/*/keys")
    rotations = soak(60, 200)
    readers = [start(READ, path, done, keys) for _ in range(soak(3, 8))]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    writer = start(WRITE, path, rotations)
    writer.communicate()
    assert writer.returncode == 0
    done.touch()
    found = [json.loads(reader.communicate()[0]) for reader in readers]
    with Ledger.open(path) as ledger:
        status = ledger.status()
    assert status.segments > rotations
    for read in found:
        assert "broken" not in read, read
        assert set(read["verdicts"]) == {"VERIFIED"}
        assert read["verdicts"]["VERIFIED"] > 2
        assert read["first"] < read["last"] == status.count
