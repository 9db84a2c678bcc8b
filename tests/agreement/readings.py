"""One input, read by the writer and by the verifier: what each makes of it (spec §2, §3)."""

from __future__ import annotations

import hashlib

import cbor2

import ledger.jcs
import verifier.jcs
from ledger import codec, envelope
from ledger.errors import EnvelopeMalformed, Malformed, ProposalInvalid, VersionUnknown
from verifier import cbor, jcs
from verifier.envelope import is_well_formed
from verifier.evidence import frame, parse
from verifier.spec import HEADER


def read_by_ledger(raw: bytes) -> object:
    """What the writer reads, None where the record is malformed."""
    try:
        found = codec.decode(raw)
    except VersionUnknown as error:
        return error.found
    except Malformed:
        return None
    parts = found.chain, found.seq, found.prev, found.at, found.kind, found.card, found.body
    return (*parts, found.openings, found.kid, found.tag, found.digest, codec.to_be_maced(found))


def read_by_verifier(raw: bytes) -> object:
    """What the verifier reads; the frame of the writer takes byte strings only as openings."""
    try:
        if not raw.startswith(HEADER) or frame(raw, 0) != len(raw):
            return None
    except (cbor.Truncated, cbor.NotWellFormed):
        return None
    found = parse("log", 0, raw)
    if found.framing or found.form or found.limit or found.members:
        return None
    if not found.known_version:
        openings = cbor2.loads(raw[1:])[1]
        values = openings.values() if type(openings) is dict else [None]
        return found.version if all(type(value) is bytes for value in values) else None
    for name, value in found.openings.items():
        if hashlib.sha256(value).digest() != found.bound[name]:
            return None
    parts = found.chain, found.seq, found.prev, found.at, found.kind, found.card, found.body
    return (*parts, found.openings, found.kid, found.tag, found.digest, found.mac_input())


def taken_by_ledger(text: bytes) -> bool | str:
    try:
        envelope.parse(text)
    except VersionUnknown as error:
        return error.found
    except EnvelopeMalformed:
        return False
    return True


def taken_by_verifier(text: bytes) -> bool | str:
    try:
        document, encode = jcs.canonical(text)
    except jcs.JsonRefused:
        return False
    version = document.get("format") if type(document) is dict else None
    if type(version) is str and version != "cardchain-card/1":
        return version
    return is_well_formed(document, encode)


def by_ledger(text: bytes) -> bytes | None:
    """The canonical form, None where the document is refused."""
    try:
        return ledger.jcs.encode(ledger.jcs.parse(text))
    except ProposalInvalid:
        return None


def by_verifier(text: bytes) -> bytes | None:
    try:
        return verifier.jcs.encode(verifier.jcs.parse(text))
    except jcs.JsonRefused:
        return None


def taken_as_canonical(text: bytes) -> bool:
    try:
        verifier.jcs.canonical(text)
    except jcs.JsonRefused:
        return False
    return True


def assert_agreement(text: bytes) -> None:
    mine = by_ledger(text)
    assert mine == by_verifier(text)
    assert taken_as_canonical(text) == (mine == text)
