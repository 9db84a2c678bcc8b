"""What is fuzzed: each target takes any bytes, and raises only where a promise is broken.

The promises: both sides read a record and an envelope alike, the verifier has a verdict for every
input and says nothing raw, a command ends with one of its exit statuses and never in a traceback.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import readings

import ledger.cli
import verifier.cli
from ledger.report import render_page
from verifier import Verdict, every_card, render_json, render_text, verify

FIXTURES = Path(__file__).parents[2] / "fixtures"
RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
VERDICTS = {verdict.exit_code for verdict in Verdict}
_KEY, _VKEY = str(FIXTURES / "keys" / "a.json"), str(FIXTURES / "keys" / "signer.vkey")
_LOG = str(FIXTURES / "cases" / "intact_life" / "log.cbor")
_SCRATCH = Path(tempfile.mkdtemp(prefix="fuzz-"))
os.environ["CARDCHAIN_STATE"] = str(_SCRATCH / "state")


def decoder(data: bytes) -> None:
    """One record, read by the writer and by the verifier."""
    assert readings.read_by_ledger(data) == readings.read_by_verifier(data)


def boundary(data: bytes) -> None:
    """One JSON document and one envelope, read by both."""
    readings.assert_agreement(data)
    assert readings.taken_by_ledger(data) == readings.taken_by_verifier(data)


def readers(data: bytes) -> None:
    """A log, read as each kind that the verifier knows: a file, compressed, and a foreign one."""
    for name in ("log.cbor", "log.cbor.gz", "2026-01-01.jsonl"):
        path = _SCRATCH / name
        path.write_bytes(data)
        report = verify([str(path)], [_KEY], environ={}, vkeys=[_VKEY], wanted=every_card)
        assert report.verdict.exit_code in VERDICTS
        text = render_text(report, verbose=True)
        assert not RAW.search(text), ascii(text)
        assert text.splitlines()[-1].startswith(report.verdict.value)
        json.loads(render_json(report))
        assert not RAW.search("".join(render_page(report)))


def anchors(data: bytes) -> None:
    """A checkpoint, a proof, a vkey or a pin, given beside a log that needs one."""
    path = _SCRATCH / "anchor"
    path.write_bytes(data)
    for vkeys in ([_VKEY], [str(path)]):
        report = verify([_LOG], [], environ={}, checkpoint_files=[str(path)], vkeys=vkeys)
        assert report.verdict.exit_code in VERDICTS
        text = render_text(report, verbose=True)
        assert not RAW.search(text), ascii(text)
    status, said = _run(verifier.cli.status, ["--pin", str(path), "--key", _KEY, _LOG])
    assert status in VERDICTS | {2}, (status, said)
    assert not RAW.search(said), ascii(said)


def commands(data: bytes) -> None:
    """A file, given to the commands that read one from somebody else."""
    path = _SCRATCH / "input"
    path.write_bytes(data)
    for arguments in (["render"], ["hash", "--issued-at", "1767225600"]):
        status, said = _run(ledger.cli.run, [*arguments, str(path)])
        assert status in (0, 2, 3, 4), (status, said)
        assert not RAW.search(said), ascii(said)
    for arguments in ([], ["--key", str(path)], ["--profile", str(path)]):
        status, said = _run(verifier.cli.status, [*arguments, str(path)])
        assert status in VERDICTS | {2}, (status, said)
        assert not RAW.search(said), ascii(said)


def _run(command: Callable[[list[str]], int], arguments: list[str]) -> tuple[int, str]:
    """Run a command of this process; give its exit status and all that it printed."""
    said = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status = command(arguments)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
    return status, said.buffer.getvalue().decode()  # type: ignore[attr-defined]


TARGETS: dict[str, Callable[[bytes], None]] = {
    "decoder": decoder,
    "boundary": boundary,
    "readers": readers,
    "anchors": anchors,
    "commands": commands,
}
