"""The fused loop over records that are plainly right.

It may only accept: it never makes a finding. Where it cannot accept, it leaves the record to the
table of checks. It proves the rows named in `PROVES` and, for the common events, those of the
lifecycle; what it did not prove of a record is judged by the remaining rows.
"""

from __future__ import annotations

import hashlib
from typing import Any

from verifier import cbor, jcs
from verifier.cards import (
    APPROVED,
    DISPATCHED,
    JUDGED,
    NOT_LATEST,
    RESOLVED,
    SETTLED,
    WITHDRAWN,
)
from verifier.envelope import is_well_formed, repeats_problem
from verifier.escape import is_blank
from verifier.evidence import MAC_HEAD, PROTECTED_END, PROTECTED_HEAD, Evidence
from verifier.framing import Frames
from verifier.keys import Hmac
from verifier.replay import Replay
from verifier.shape import CARD_KINDS, bindings, body_problem
from verifier.spec import (
    DIGEST_SIZE,
    HEADER,
    KID_SIZE,
    MAX_BARE,
    MAX_INTEGER,
    MAX_OPENING,
    MAX_RECORD,
    VERSION,
)
from verifier.state import State

_KINDS = {cbor.text(kind): kind for kind in (*CARD_KINDS, "refused")}
_ENVELOPE = b"\xa1\x68envelope\x59"  # no other opening, and one of 256 to 65535 bytes
_DIGEST_HEAD = b"\x58\x20"
_OVER = RESOLVED | WITHDRAWN | NOT_LATEST | DISPATCHED | SETTLED
_NEEDS_TABLE = ("supersedes", "prior_attempt", "approval_basis", "review_manifest")


def advance(frames: Frames, replay: Replay) -> bool:
    """Accept records from the buffer of `frames` as long as they are plainly right.

    Stops at the end of the buffer and at a record that it does not accept. Gives True where that
    record breaks a rule that this loop tests, so that the table has to find which.
    """
    state = replay.state
    if state.chain is None or state.kid is None or state.at is None or state.pins:
        return False
    hmac = state.ring.hmac(state.chain, state.kid)
    if hmac is None or frames.begins_segment or state.link_explained or state.gap_explained:
        return False
    try:
        return _advance(frames, replay, hmac) and not state.disturbed
    except IndexError:
        return False
    except (cbor.NotDeterministic, jcs.JsonRefused):
        return not state.disturbed


def _advance(frames: Frames, replay: Replay, hmac: Hmac) -> bool:
    state = replay.state
    begin = HEADER + (state.kid or b"")
    payload_begin = b"\x88" + cbor.text(VERSION) + b"\x50" + (state.chain or b"")
    inner_keyed = hmac.inner.copy()
    inner_keyed.update(MAC_HEAD + PROTECTED_HEAD + begin[len(HEADER) :] + b"\x40")
    outer_keyed = hmac.outer
    bare_begun = hashlib.sha256(b"\x00" + begin + b"\xa0")
    decode_item, head_of = cbor.decode_item, cbor.head
    buffer = frames.buffer

    while True:
        pos = frames.pos
        at_payload = pos + PROTECTED_END
        if buffer[pos:at_payload] != begin:
            return False
        # the openings: an envelope alone, or any map
        openings = None
        if buffer.startswith(_ENVELOPE, at_payload):
            first = at_payload + len(_ENVELOPE) + 2
            length = buffer[first - 2] << 8 | buffer[first - 1]
            at_payload = first + length
            opened = buffer[first:at_payload]
            if length < 256:
                return True
        else:
            openings, at_payload = decode_item(buffer, at_payload, 0)

        # where payload and tag stand
        head = buffer[at_payload]
        if head == 0x59:
            at_items = at_payload + 3
            at_tag = at_items + (buffer[at_payload + 1] << 8 | buffer[at_payload + 2])
        elif head == 0x58:
            at_items = at_payload + 2
            at_tag = at_items + buffer[at_payload + 1]
        else:
            return False
        at_mac = at_tag + 2
        end = at_mac + DIGEST_SIZE
        if end > len(buffer):
            return False
        if (
            at_tag - at_items < (256 if head == 0x59 else 24)
            or buffer[at_tag:at_mac] != _DIGEST_HEAD
            or end - at_payload + PROTECTED_END + 1 > MAX_BARE
            or end - pos > MAX_RECORD
        ):
            return True

        # version, chain, seq and prev in one comparison; then the tag
        seq = state.expected_seq or 0
        expected = payload_begin + head_of(0, seq) + _DIGEST_HEAD + state.prev
        at = at_items + len(expected)
        if buffer[at_items:at] != expected:
            return True
        inner = inner_keyed.copy()
        inner.update(buffer[at_payload:at_tag])
        outer = outer_keyed.copy()
        outer.update(inner.digest())
        if outer.digest() != buffer[at_mac:end]:
            return True
        bare = bare_begun.copy()
        bare.update(buffer[at_payload:end])

        # at, kind, card, body, and what the openings are bound by
        now, at = decode_item(buffer, at, 1)
        at_card = at + 1 + (buffer[at] & 31)
        kind = _KINDS.get(buffer[at:at_card])
        if kind is None:
            return False
        if type(now) is not int or not (state.at or 0) <= now <= MAX_INTEGER:
            return True
        card, at = decode_item(buffer, at_card, 1)
        body, at = decode_item(buffer, at, 1)
        if at != at_tag or type(body) is not dict or body_problem(kind, card, body):
            return True
        if openings is None:
            openings = {"envelope": opened}
        bound = bindings(kind, card, body)
        if not _openings_hold(openings, bound):
            return True

        # the envelope, once for each card; then the state of the card
        document = None
        if "envelope" in openings and (
            kind == "issued" or not state.cards.is_judged(card) or body.get("gate") == "issue"
        ):
            document, encode = jcs.canonical(openings["envelope"])
            if not is_well_formed(document, encode) or repeats_problem(kind, body, now, document):
                return True
        digest = bare.digest()
        if len(openings) == len(bound) and _fold(state, kind, card, seq, now, body, document):
            replay.accept(kind, seq, now, digest)
        else:
            record = Evidence(frames.file, frames.offset, buffer[pos:end])
            record.version, record.chain, record.prev = VERSION, state.chain, state.prev
            record.kid, record.digest, record.seq, record.at = begin[-KID_SIZE:], digest, seq, now
            record.kind, record.card, record.body = kind, card, body
            record.openings, record.bound = openings, bound
            replay.take(record, proven=True)
            if state.link_explained:
                frames.pos = end
                return False
        frames.pos = end


def _openings_hold(openings: Any, bound: dict[str, bytes]) -> bool:
    if type(openings) is not dict:
        return False
    for name, value in openings.items():
        if type(value) is not bytes or len(value) > MAX_OPENING:
            return False
        if hashlib.sha256(value).digest() != bound.get(name):
            return False
    return True


def _fold(
    state: State,
    kind: str,
    card: bytes,
    seq: int,
    now: int,
    body: dict[str, Any],
    document: dict[str, Any] | None,
) -> bool:
    """Fold in an event that plainly keeps the rules of the lifecycle; False to ask the table."""
    cards = state.cards
    number = cards.numbers.get(card)
    if kind == "issued":
        task = body["task"]
        if number is not None or document is None or task in cards.steps:
            return False
        if any(name in document for name in _NEEDS_TABLE):
            return False
        cards.issue(card, seq, task, body["not_after"], body.get("grant_ttl"))
        cards.flags[-1] |= JUDGED
        return True
    if number is None or number < state.sure_from or body.get("of") != cards.last[number]:
        return False
    flags = cards.flags[number]
    if kind == "settled":
        if flags & (DISPATCHED | SETTLED) != DISPATCHED:
            return False
        cards.settle(number, seq, body["outcome"])
    elif cards.over(number, now):
        return False
    elif kind == "resolved":
        approver = body["approver"]
        if flags & _OVER or body["echo"] != card or body.get("target", card) != card:
            return False
        if approver["assurance"] == "signed" or is_blank(approver["id"]):
            return False
        cards.resolve(number, seq, now, body["decision"])
    elif kind == "dispatched":
        if flags & (_OVER ^ APPROVED) or not flags & APPROVED or body["rebuilt"] != card:
            return False
        cards.dispatch(number, seq)
    else:
        return False
    if document is not None:
        cards.flags[number] |= JUDGED
    return True
