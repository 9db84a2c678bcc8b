from __future__ import annotations

import hashlib
from typing import Any

import pytest

from verifier import cbor
from verifier.evidence import Evidence, frame, parse


def test_a_record_is_taken_apart(log: Any) -> None:
    record = parse("log", 7, log.records[1])
    problems = (record.framing, record.torn, record.limit, record.form, record.members)
    assert problems == (None,) * 5
    assert (record.file, record.offset) == ("log", 7)
    assert (record.chain, record.seq, record.kind) == (log.chain, 1, "issued")
    assert (record.kid, record.prev) == (log.kid, log.digests[0])
    assert record.digest == log.digests[1]
    assert record.envelope is not None
    assert record.card == hashlib.sha256(record.envelope).digest()
    assert record.document() == log.envelope(issued_at=record.at // 1000, not_after=1767227401)


def test_frame_ends_where_the_record_ends(log: Any) -> None:
    assert frame(log.data, 0) == len(log.records[0])
    with pytest.raises(cbor.Truncated):
        frame(log.records[0][:-1], 0)


def test_digest_does_not_cover_the_openings(log: Any) -> None:
    whole, bare = parse("log", 0, log.records[1]), parse("log", 0, _without_openings(log, 1))
    assert whole.digest == bare.digest
    assert bare.envelope is None
    assert bare.document() is None


def _without_openings(log: Any, number: int) -> bytes:
    record: bytes = log.records[number]
    end = cbor.skip(record, 16)
    return record[:16] + b"\xa0" + record[end:]


def test_limits_are_noted(log: Any) -> None:
    log.add("opened", None, {"name": "n" * 66_000, "software": "s"})
    assert parse("log", 0, log.records[-1]).limit is not None
    card = hashlib.sha256(b"x" * 1_048_577).digest()
    log.add("issued", card, {"task": card, "not_after": 1}, {"envelope": b"x" * 1_048_577})
    assert parse("log", 0, log.records[-1]).limit is not None


def test_unknown_version_is_not_malformed(log: Any) -> None:
    log.add("anything", None, {"new": 1}, v="cardchain/2")
    record = parse("log", 0, log.records[-1])
    assert (record.form, record.members, record.version) == (None, None, "cardchain/2")
    assert not record.known_version


def test_seq_and_card_are_read_also_from_a_wrong_shape(log: Any) -> None:
    card = bytes(32)
    log.add("resolved", card, {"of": 1})
    record = parse("log", 0, log.records[-1])
    assert record.members is not None
    assert (record.seq, record.card, record.kind) == (3, card, None)


def test_envelope_that_is_no_json_has_no_document() -> None:
    record = Evidence("log", 0, b"")
    record.openings = {"envelope": b"{"}
    assert record.document() is None
    record.openings = {"envelope": b"[]"}
    assert record.document() is None
