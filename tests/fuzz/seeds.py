"""Where fuzzing begins: pieces of the fixtures, and the small corpus of what it found since."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import cbor2

FIXTURES = Path(__file__).parents[2] / "fixtures"
FUZZ = FIXTURES / "fuzz"
_LARGEST = 16384
_FOREIGN = (
    b'{"actor": "a", "details": {}, "event_type": "task.created", "hmac": "%s", '
    b'"prev_hmac": "%s", "resource_id": "r", "resource_type": "t", '
    b'"timestamp": "2026-01-01T00:00:00.000000Z"}\n' % (b"0" * 64, b"0" * 64)
)


def seeds(target: str) -> list[bytes]:
    """Give the inputs that a target starts from, each once."""
    found = {
        "decoder": _records,
        "boundary": _documents,
        "readers": _logs,
        "anchors": _anchors,
        "commands": lambda: [*_documents(), *_keys(), *_logs()],
    }[target]()
    return sorted({seed for seed in found if len(seed) <= _LARGEST})


def corpus(target: str) -> list[Path]:
    """Give the files that fuzzing left in the fixtures."""
    return sorted((FUZZ / target).glob("*"))


def _logs() -> Iterator[bytes]:
    yield _FOREIGN
    yield gzip.compress(_FOREIGN, mtime=0)
    for ending in ("cbor", "cbor.gz", "excerpt"):
        for path in sorted((FIXTURES / "cases").glob(f"*/*.{ending}")):
            yield path.read_bytes()


def _records() -> Iterator[bytes]:
    """Give the records of the intact logs, and the whole logs of the wrong ones."""
    for path in sorted((FIXTURES / "cases").glob("intact_*/*.cbor")):
        raw = path.read_bytes()
        stream = io.BytesIO(raw)
        while (start := stream.tell()) < len(raw):
            cbor2.load(stream)
            yield raw[start : stream.tell()]


def _documents() -> Iterator[bytes]:
    """Give the envelopes and profiles of the intact logs, and the documents of the scenarios."""
    for record in _records():
        yield from cbor2.loads(record[1:])[1].values()
    for path in sorted((FIXTURES / "cases").glob("*/profiles/*")):
        yield path.read_bytes()


def _anchors() -> Iterator[bytes]:
    for ending in ("note", "vkey", "txt", "json"):
        for path in sorted((FIXTURES / "cases").glob(f"*/*.{ending}")):
            if path.name != "case.json":
                yield path.read_bytes()


def _keys() -> Iterator[bytes]:
    for path in sorted((FIXTURES / "keys").glob("*.json")):
        yield path.read_bytes()
