"""Writer and verifier hold the same bytes for a record, and for an envelope (spec §2, §3).

The records are those of the fixtures, which neither made, changed at random.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import cbor2
from hypothesis import given
from hypothesis import strategies as st
from readings import read_by_ledger, read_by_verifier, taken_by_ledger, taken_by_verifier

from verifier import jcs

CASES = Path(__file__).parents[2] / "fixtures" / "cases"


def records() -> list[bytes]:
    """The different records of the intact logs, one of each kind and set of members."""
    found: dict[object, bytes] = {}
    for log in sorted(p for p in CASES.glob("intact_*/**/*") if ".cbor" in p.suffixes):
        raw = log.read_bytes()
        raw = gzip.decompress(raw) if log.suffix == ".gz" else raw
        stream = io.BytesIO(raw)
        while (start := stream.tell()) < len(raw):
            cbor2.load(stream)
            record = raw[start : stream.tell()]
            _, openings, payload, _ = cbor2.loads(record[1:])
            kind, _, body = cbor2.loads(payload)[5:8]
            found.setdefault((kind, *sorted(openings), *sorted(body), body.get("reason")), record)
    assert found, "fixtures are part of the project"
    return list(found.values())


RECORDS = records()
ENVELOPES = sorted(
    {
        cbor2.loads(raw[1:])[1]["envelope"]
        for raw in RECORDS
        if "envelope" in cbor2.loads(raw[1:])[1]
    }
)


def test_both_read_the_records_of_the_fixtures_alike() -> None:
    for raw in RECORDS:
        assert read_by_ledger(raw) is not None
        assert read_by_ledger(raw) == read_by_verifier(raw)


@st.composite
def changed_bytes(draw: st.DrawFn) -> bytes:
    raw = draw(st.sampled_from(RECORDS))
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, min(len(raw), start + 2)))
        raw = raw[:start] + draw(st.binary(max_size=2)) + raw[end:]
    return raw


@given(changed_bytes())
def test_both_read_changed_bytes_alike(raw: bytes) -> None:
    assert read_by_ledger(raw) == read_by_verifier(raw)


NAMES = sorted({name for raw in RECORDS for name in cbor2.loads(cbor2.loads(raw[1:])[2])[7]})
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-1, 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.sampled_from([b"", bytes(8), bytes(32), "a" * 256, "a" * 257, "é" * 129, " \u200b"])
    | st.sampled_from(["approve", "signed", "mismatch", "missing_approver", "resolve", "unknown"])
)
MEMBERS = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=9), SCALARS)


@st.composite
def changed_members(draw: st.DrawFn) -> bytes:
    """A record in deterministic CBOR whose payload, body or openings were changed."""
    protected, openings, payload, tag = cbor2.loads(draw(st.sampled_from(RECORDS))[1:])
    fields = cbor2.loads(payload)
    body = fields[7]
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from(["field", "body", "inside", "opening"]))
        value = copy.deepcopy(draw(MEMBERS))
        if place == "field":
            fields[draw(st.integers(0, 7))] = value
        elif place == "body":
            name = draw(st.sampled_from(NAMES) | st.text(max_size=4))
            body.pop(name, None) if draw(st.booleans()) else body.update({name: value})
        elif place == "inside":
            inner = draw(st.sampled_from([m for m in body.values() if type(m) is dict] or [body]))
            name = draw(st.sampled_from(["id", "assurance", "digest", "evidence", "other"]))
            inner.pop(name, None) if draw(st.booleans()) else inner.update({name: value})
        else:
            names = ["envelope", "presented", "note", "rebuilt", "profile", "signature", "other"]
            name = draw(st.sampled_from(names))
            openings.pop(name, None) if draw(st.booleans()) else openings.update({name: value})
    again = cbor2.dumps(fields, canonical=draw(st.booleans()))
    return b"\xd1" + cbor2.dumps([protected, openings, again, tag], canonical=draw(st.booleans()))


@given(changed_members())
def test_both_read_changed_members_alike(raw: bytes) -> None:
    assert read_by_ledger(raw) == read_by_verifier(raw)


JSON_VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-1, 2**53)
    | st.sampled_from([0.5, 253402300799, 253402300800, "", "a" * 257, "é" * 128, "a" * 4097])
    | st.sampled_from(["model", "unknown", "0" * 64, "A" * 64, "😀" * 2000, "a" * 2001, "/a~"])
    | st.sampled_from([[], {}, ["d"], ["d", "d"], [{"ref": "a", "version": "1"}] * 2])
)
MEMBER_NAMES = sorted(
    {name for text in ENVELOPES for name in json.loads(text)}
    | {"id", "tool_name", "arguments", "args_digest", "capability", "spec_digest", "source"}
    | {"score", "hard_one_way", "fired_detectors", "irreversible", "outcome", "ref", "salt"}
    | {"approval_basis", "review_manifest", "policy_version", "other"}
)


def places(value: Any) -> list[Any]:
    """The object, and all objects and arrays in it."""
    inner = value.values() if type(value) is dict else value if type(value) is list else []
    return [value, *(p for v in inner if type(v) in (dict, list) for p in places(v))]


@st.composite
def changed_envelope(draw: st.DrawFn) -> bytes:
    document = json.loads(draw(st.sampled_from(ENVELOPES)))
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from(places(document)))
        value = copy.deepcopy(draw(JSON_VALUES))
        if type(place) is list:
            place.append(value)
        elif draw(st.booleans()):
            place[draw(st.sampled_from(MEMBER_NAMES + sorted(place)))] = value
        elif place:
            del place[draw(st.sampled_from(sorted(place)))]
    if draw(st.booleans()) and type(document.get("action")) is dict:
        digest = hashlib.sha256(jcs.encode(document["action"].get("arguments"))).hexdigest()
        document["action"]["args_digest"] = digest
    return jcs.encode(document)


def test_both_take_the_envelopes_of_the_fixtures() -> None:
    for text in ENVELOPES:
        assert taken_by_ledger(text) is True
        assert taken_by_verifier(text) is True


@given(changed_envelope())
def test_both_take_or_refuse_a_changed_envelope_alike(text: bytes) -> None:
    assert taken_by_ledger(text) == taken_by_verifier(text)
