"""How results look: one JSON document, or lines in which hostile text is escaped (spec §9.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import click

from ledger.codec import Record
from ledger.errors import LedgerError
from ledger.hidden import shown

_NOT_PLAIN: Final = re.compile("[^ -~]")


class OutputFailed(LedgerError):
    """Standard output takes no more, a full disk for one."""

    hint = "what was recorded stays recorded: look with cardchain log DIR"

    def __init__(self, error: OSError) -> None:
        """Take the error of the operating system."""
        super().__init__(f"cannot write standard output: {error.strerror}")


def put(text: str) -> None:
    """Print a result and hand it to the operating system, or raise `OutputFailed`."""
    try:
        click.echo(text)
    except OSError as error:
        raise OutputFailed(error) from error


def put_bytes(data: bytes) -> None:
    """Print bytes as they are, or raise `OutputFailed`."""
    try:
        click.echo(data, nl=False)
    except OSError as error:
        raise OutputFailed(error) from error


def emit(json_: bool, document: Mapping[str, Any], *lines: str) -> None:
    """Print the document as one line of JSON, or else the lines. The lines are safe already."""
    put(to_json(document) if json_ else "\n".join(lines))


def emit_record(json_: bool, word: str, record: Record, **more: Any) -> None:
    """Print what a durable record says was done: `word HASH seq N`."""
    emit(json_, {**summary(record), **more}, f"{word} {hexadecimal(record.card)} seq {record.seq}")


def to_json(document: Mapping[str, Any]) -> str:
    """Give JSON of printable ASCII alone, so that no text in it can act on a terminal."""
    return plain_json(json.dumps(document, default=bytes.hex))


def plain_json(text: str) -> str:
    """Give a JSON text in printable ASCII; what it says stays the same."""
    return _NOT_PLAIN.sub(lambda match: _as_escape(match[0]), text)


def _as_escape(character: str) -> str:
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]


def summary(record: Record) -> dict[str, Any]:
    """Give what names a record: its place, its time, its kind and its card."""
    return {
        "seq": record.seq,
        "at": record.at,
        "kind": record.kind,
        "card_hash": record.card,
        "chain_digest": record.digest,
    }


def full(record: Record) -> dict[str, Any]:
    """Give everything in a record but its tag; bytes are hexadecimal."""
    openings = dict(record.openings)
    envelope = openings.pop("envelope", None)
    return {
        **summary(record),
        "prev_chain_digest": record.prev,
        "chain": record.chain,
        "kid": record.kid,
        "body": dict(record.body),
        "envelope": None if envelope is None else json.loads(envelope),
        "openings": openings_json(openings),
    }


def openings_json(openings: Mapping[str, bytes]) -> dict[str, dict[str, str]]:
    """Give openings as text where they are UTF-8, else as hexadecimal."""
    return {name: _text_or_hex(data) for name, data in openings.items()}


def _text_or_hex(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def hexadecimal(digest: bytes | None) -> str:
    """Give a digest in full, `-` where there is none."""
    return "-" if digest is None else digest.hex()


def quoted(text: object) -> str:
    """Give a text in quotes and escaped, so that it cannot pass for a word of ours (spec §9.1)."""
    return f'"{shown(str(text))}"'


def utc(at_ms: int) -> str:
    """Give unix milliseconds as UTC; a time after the year 9999 stays a number."""
    try:
        moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{at_ms}ms"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def utc_seconds(at: int) -> str:
    """Give unix seconds as UTC."""
    return utc(at * 1000).replace(".000Z", "Z")
