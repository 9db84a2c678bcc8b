"""The same inputs give the same bytes on every machine (spec §2.6, §9.1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from ledger.envelope import Facts, Proposal, project, rebuild
from ledger.render import render_card_text

names = {f"name {n}": n / 7 for n in range(20)} | {"\\u00e9": "\\u0130I\\u0131i", "\\ufb33": 1}
proposal = Proposal.for_tool_call(
    task=("run-1", "refund"),
    tool_name="refund.create",
    arguments={"set": sorted({f"{n}" for n in range(20)}), "names": names, "\\U0001f600": [1e21]},
    reasoning="\\u202e" * 3000,
    capability=names,
    ttl=1800,
    grant_ttl=900,
)
envelope = project(proposal, 1700000000)
facts = Facts.for_tool_call("refund.create", {"names": dict(reversed(names.items()))})
for out in (envelope.bytes, rebuild(envelope, facts).bytes, render_card_text(envelope).encode()):
    sys.stdout.buffer.write(out + b"\\n")
"""


def run(**changes: str) -> bytes:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environ | changes,
        capture_output=True,
        check=True,
        timeout=60,
    )
    return found.stdout


def test_envelopes_and_texts_do_not_depend_on_the_machine() -> None:
    here = run(LC_ALL="C", TZ="UTC", PYTHONHASHSEED="0", PYTHONUTF8="0")
    there = run(LC_ALL="tr_TR.UTF-8", TZ="Pacific/Kiritimati", PYTHONHASHSEED="1", PYTHONUTF8="1")
    assert here == there
    assert b"cardchain-text/2" in here
