"""Any COSE library can check a record, and what it does not check (spec §3.1).

The library reads the logs of the fixtures, which neither package made.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2
import pytest
from pycose.algorithms import HMAC256
from pycose.headers import KID, Algorithm
from pycose.keys import SymmetricKey
from pycose.keys.keyparam import KpAlg
from pycose.messages import Mac0Message

from ledger.chain import Key, authentic, seal
from ledger.codec import Event, decode
from ledger.errors import Malformed

CASES = Path(__file__).parents[2] / "fixtures" / "cases"


def logs() -> list[Path]:
    found = [p for p in CASES.glob("intact_*/**/*") if ".cbor" in p.suffixes and p.stat().st_size]
    assert found, "fixtures are part of the project"
    return sorted(found)


def content(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def records(raw: bytes) -> Iterator[bytes]:
    """Cut a CBOR sequence with a CBOR library, not by our own framing."""
    stream = io.BytesIO(raw)
    while (start := stream.tell()) < len(raw):
        cbor2.load(stream)
        yield raw[start : stream.tell()]


def secrets(log: Path) -> dict[bytes, bytes]:
    """The secrets of the case of a log, by kid."""
    case = next(folder for folder in log.parents if (folder / "case.json").is_file())
    names = json.loads((case / "case.json").read_text("utf-8"))["keys"]
    files = [json.loads((case / name).read_text("utf-8")) for name in names]
    return {bytes.fromhex(file["kid"]): bytes.fromhex(file["secret"]) for file in files}


def message(raw: bytes) -> Any:
    """Read a record with the library. It is handed the array below the tag.

    Its own reader of tagged messages wants a list there; cbor2 6 gives a tuple.
    """
    assert raw[:1] == b"\xd1"
    return Mac0Message.from_cose_obj(cbor2.loads(raw[1:]), allow_unknown_attributes=True)


def accepts(raw: bytes, secret: bytes) -> bool:
    found = message(raw)
    found.key = SymmetricKey(k=secret, optional_params={KpAlg: HMAC256})
    return bool(found.verify_tag())


@pytest.mark.parametrize("log", logs(), ids=lambda log: str(log.relative_to(CASES)))
def test_library_accepts_every_record_of_an_intact_log(log: Path) -> None:
    ring = secrets(log)
    count = 0
    for raw in records(content(log)):
        headers = message(raw).phdr
        assert headers[Algorithm] is HMAC256
        assert accepts(raw, ring[headers[KID]])
        count += 1
    assert count > 0


@pytest.mark.parametrize("log", logs(), ids=lambda log: str(log.relative_to(CASES)))
def test_ledger_accepts_every_record_of_an_intact_log(log: Path) -> None:
    ring = secrets(log)
    for raw in records(content(log)):
        record = decode(raw)
        assert authentic(record, Key.of(record.chain, ring[record.kid]))


def test_library_accepts_what_the_ledger_seals() -> None:
    key = Key.of(bytes(range(16)), bytes(range(32)))
    event = Event(key.chain, 0, bytes(32), 1, "opened", None, {"name": "a", "software": "b"})
    assert accepts(seal(event, key).raw, key.secret)


def first_with_envelope() -> tuple[bytes, bytes, bytes]:
    """A record with an envelope, the envelope, and the secret."""
    log = CASES / "intact_life" / "log.cbor"
    for raw in records(log.read_bytes()):
        record = decode(raw)
        if "envelope" in record.openings:
            return raw, record.openings["envelope"], secrets(log)[record.kid]
    raise AssertionError("no envelope in the fixture")


def test_library_sees_a_changed_payload() -> None:
    raw, _, secret = first_with_envelope()
    place = raw.rindex(b"cardchain/1")
    assert not accepts(raw[:place] + b"cardchain/2" + raw[place + 11 :], secret)


def test_library_does_not_see_a_changed_opening_and_the_ledger_does() -> None:
    raw, envelope, secret = first_with_envelope()
    other = raw.replace(envelope, envelope[:-1] + b" ")
    assert accepts(other, secret)
    with pytest.raises(Malformed, match="does not hash"):
        decode(other)


def test_library_does_not_see_an_opening_that_nothing_binds_and_the_ledger_does() -> None:
    key = Key.of(bytes(range(16)), bytes(range(32)))
    event = Event(key.chain, 0, bytes(32), 1, "opened", None, {"name": "a", "software": "b"})
    raw = seal(event, key).raw
    other = raw[:16] + b"\xa1\x64note\x41a" + raw[17:]
    assert accepts(other, key.secret)
    with pytest.raises(Malformed, match="not bound"):
        decode(other)


def test_library_does_not_see_a_record_that_is_left_out() -> None:
    """Each record is a message of its own: the chain is not the library's business."""
    log = CASES / "intact_life" / "log.cbor"
    first, _, *rest = records(log.read_bytes())
    assert all(accepts(raw, secrets(log)[decode(raw).kid]) for raw in [first, *rest])
    assert decode(rest[0]).prev != decode(first).digest
