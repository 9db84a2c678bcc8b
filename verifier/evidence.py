"""One stretch of an input as evidence: a whole record, or bytes that are none (spec §3).

`frame` finds where a record ends. `parse` takes a whole record apart and notes what is wrong with
it; it never judges. The checks read the notes.
"""

from __future__ import annotations

import hashlib
from typing import Any

from verifier import cbor, jcs
from verifier.shape import Problem, bindings, openings_problem, payload_problem
from verifier.spec import (
    CARD_FORMAT,
    DIGEST_SIZE,
    HEADER,
    KID_SIZE,
    MAX_BARE,
    MAX_OPENING,
    MAX_RECORD,
    VERSION,
)

MAC_HEAD = b"\x84\x64MAC0"
PROTECTED_HEAD = HEADER[2:]
PROTECTED_END = len(HEADER) + KID_SIZE


class Evidence:
    """What the bytes at one place of an input say, unchecked.

    `name`, `framing`, `torn`, `limit`, `form`, `members` and `unreadable` are the problems that can
    be seen without any other record. A file that is no segment, or that cannot be read, is evidence
    without bytes.
    `seq`, `card` and the other members of the payload are None where they could not be read.
    """

    __slots__ = (
        "_document",
        "at",
        "body",
        "bound",
        "card",
        "chain",
        "data",
        "digest",
        "file",
        "form",
        "framing",
        "is_judged",
        "kid",
        "kind",
        "limit",
        "members",
        "name",
        "offset",
        "openings",
        "payload",
        "payload_item",
        "prev",
        "segment_seq",
        "seq",
        "tag",
        "torn",
        "unreadable",
        "version",
    )

    def __init__(self, file: str, offset: int, data: bytes) -> None:
        """Start from bytes at a place, nothing read yet."""
        self.file = file
        self.offset = offset
        self.data = data
        self.segment_seq: int | None = None  # of the name, where this is a segment's first record
        self.name: Problem | None = None
        self.framing: Problem | None = None
        self.torn: Problem | None = None
        self.limit: Problem | None = None
        self.form: Problem | None = None
        self.members: Problem | None = None
        self.unreadable: Problem | None = None
        self.kid = b""
        self.openings: dict[str, bytes] = {}
        self.bound: dict[str, bytes] = {}
        self.payload = b""
        self.payload_item = b""  # the payload with its CBOR head, as the tag covers it
        self.tag = b""
        self.digest = b""
        self.version: str | None = None
        self.chain: bytes | None = None
        self.seq: int | None = None
        self.prev: bytes | None = None
        self.at: int | None = None
        self.kind: str | None = None
        self.card: bytes | None = None
        self.body: dict[str, Any] = {}
        self.is_judged = False  # its envelope is known to be canonical and of the schema
        self._document: Any = None

    @property
    def known_version(self) -> bool:
        """Whether the payload was read as one of this version."""
        return self.version == VERSION

    @property
    def envelope(self) -> bytes | None:
        """The bytes of the envelope, where its opening is there."""
        return self.openings.get("envelope")

    def document(self) -> dict[str, Any] | None:
        """Give the envelope as a value, or None where it is absent or not strict JSON."""
        if self._document is None and self.envelope is not None:
            try:
                read = jcs.reload if self.is_judged else jcs.load
                self._document = read(self.envelope)
            except jcs.JsonRefused:
                return None
        return self._document if type(self._document) is dict else None

    def known_document(self) -> dict[str, Any] | None:
        """Give the envelope as a value where it is of this version (spec §2.3)."""
        document = self.document()
        return None if document is None or is_later_format(document) else document

    def keep(self, document: dict[str, Any]) -> None:
        """Keep the value of the envelope, which was read already."""
        self._document = document

    def mac_input(self) -> bytes:
        """Give ToBeMaced, the bytes that the tag covers (spec §3.1)."""
        return MAC_HEAD + PROTECTED_HEAD + self.kid + b"\x40" + self.payload_item


def is_later_format(document: dict[str, Any]) -> bool:
    """Say whether an envelope says that it is of another version of the format."""
    version = document.get("format")
    return type(version) is str and version != CARD_FORMAT


def frame(data: bytes, pos: int) -> int:
    """Give the end of the record that begins at `pos` with a record header.

    Raises cbor.Truncated and cbor.NotWellFormed.
    """
    if len(data) < pos + PROTECTED_END:
        raise cbor.Truncated(pos + PROTECTED_END)
    end = pos + PROTECTED_END
    for _ in range(3):
        end = cbor.skip(data, end)
    return end


def parse(file: str, offset: int, data: bytes) -> Evidence:
    """Take apart `data`, the bytes of one whole record as found by `frame`."""
    record = Evidence(file, offset, data)
    record.kid = data[len(HEADER) : PROTECTED_END]
    payload_at = cbor.skip(data, PROTECTED_END)
    tag_at = cbor.skip(data, payload_at)
    record.payload_item = data[payload_at:tag_at]
    bare = HEADER + record.kid + b"\xa0" + data[payload_at:]
    record.digest = hashlib.sha256(b"\x00" + bare).digest()
    record.limit = _limit_problem(data, bare)
    try:
        openings = cbor.decode(data[PROTECTED_END:payload_at])
        payload = cbor.decode(record.payload_item)
        tag = cbor.decode(data[tag_at:])
    except cbor.NotDeterministic as error:
        record.framing = ("openings, payload and tag in deterministic CBOR", str(error))
        return record
    if type(payload) is not bytes or type(tag) is not bytes or len(tag) != DIGEST_SIZE:
        record.members = ("a payload and a tag of 32 bytes", "something else in their place")
        return record
    record.payload, record.tag = payload, tag
    _read_payload(record, openings)
    if record.limit is None and type(openings) is dict:
        record.limit = _opening_limit_problem(openings)
    return record


def _limit_problem(data: bytes, bare: bytes) -> Problem | None:
    if len(data) > MAX_RECORD:
        return f"a record of at most {MAX_RECORD} bytes", f"{len(data)} bytes"
    if len(bare) > MAX_BARE:
        return f"a bare record of at most {MAX_BARE} bytes", f"{len(bare)} bytes"
    return None


def _opening_limit_problem(openings: dict[Any, Any]) -> Problem | None:
    for name, value in openings.items():
        if isinstance(value, bytes) and len(value) > MAX_OPENING:
            return f"an opening of at most {MAX_OPENING} bytes", f"{name} of {len(value)} bytes"
    return None


def _read_payload(record: Evidence, openings: Any) -> None:
    try:
        fields = cbor.decode(record.payload)
    except cbor.NotDeterministic as error:
        record.form = ("a payload in deterministic CBOR", str(error))
        return
    if type(fields) is not list or not fields or type(fields[0]) is not str:
        record.members = ("a payload that is an array with a version", "something else")
        return
    record.version = fields[0]
    if record.version != VERSION:
        return
    record.members = payload_problem(fields)
    _keep_readable(record, fields)
    if record.members is None:
        _, record.chain, _, record.prev, record.at, record.kind, _, record.body = fields
        record.bound = bindings(fields[5], fields[6], record.body)
        record.members = openings_problem(openings, record.bound)
        if record.members is None:
            record.openings = openings


def _keep_readable(record: Evidence, fields: list[Any]) -> None:
    """Keep seq and card even of a payload with a wrong member, for the rules of spec §10.3."""
    if len(fields) > 6 and type(fields[6]) is bytes and len(fields[6]) == DIGEST_SIZE:
        record.card = fields[6]
    if len(fields) > 2 and type(fields[2]) is int and fields[2] >= 0:
        record.seq = fields[2]
