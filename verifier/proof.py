"""What records in a row show by their own bytes: the first half of the fused loop (spec §2, §3).

It may only accept: it never makes a finding. What a sound record must say is known before it is
read, so most of it is checked by comparing bytes: equal bytes are in the one deterministic form and
have the right values. It knows no card but those it has seen itself, so that records can be proven
in another process than the one that replays them; what it gives holds no object but plain values.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from verifier import cbor, jcs, plain
from verifier.envelope import is_well_formed, repeats_problem
from verifier.evidence import MAC_HEAD, PROTECTED_HEAD
from verifier.keys import Hmac
from verifier.shape import CARD_KINDS, bindings, body_problem, is_runtime, openings_problem
from verifier.spec import HEADER, MAX_BARE, MAX_INTEGER, MAX_OPENING, MAX_RECORD, VERSION

# the rows of the table that hold for a record which the fused loop proved
PROVEN = frozenset(
    {
        "segment_name",
        "framing",
        "torn_tail",
        "limits",
        "deterministic",
        "shape",
        "version",
        "chain",
        "sequence",
        "link",
        "kid",
        "key_missing",
        "tag",
        "rekey",
        "pin",
        "time",
        "inclusion",
        "card_hash",
        "opening_digest",
        "envelope_canonical",
        "envelope_schema",
        "args_digest",
        "effect_key",
        "issued_body",
        "unreadable",
    }
)

KINDS = {cbor.text(kind): kind for kind in (*CARD_KINDS, "refused")}
ENVELOPE = b"\xa1\x68envelope\x59"  # no other opening, and one of 256 to 65535 bytes
DIGEST = b"\x58\x20"
_TASK = b"\x64task\x58\x20"
_MAX_SEQ = MAX_INTEGER - (1 << 32)  # so far that no buffer reaches the limit
_end_of = itemgetter(0)

Issued = tuple[bytes, int, int | None, bool]
Proven = tuple[int, str, int, bytes, bytes, bytes, Any]
"""A record: its end, counted from the first one of its row; kind, at, card, body, chain digest.

The last member is what else was read. None: the only opening is the envelope, which hashes to the
card; what the body says is unread. A tuple of task digest, not_after, grant_ttl and whether there
is a basis: an issued record, of which all is proven. A list of card, body and envelope as values:
any record of which all is proven; the envelope is None where it was not read.
"""


class Links(NamedTuple):
    """What the first record of a row is held against: its place in the chain, and the kid."""

    chain: bytes
    kid: bytes
    seq: int
    prev: bytes


class Row(NamedTuple):
    """Records in a row from `offset` of a file on, each linked to the one before.

    `tagged` says that the tags were checked too. `broke` says that the record after them breaks a
    rule that this loop tests.
    """

    offset: int
    links: Links
    tagged: bool
    records: list[Proven]
    broke: bool

    def place(self, offset: int, links: Links) -> int | None:
        """Give the place of the record that begins at `offset`, if it follows from `links`.

        The place after the last one is where the row ends.
        """
        if offset == self.offset:
            return 0 if links == self.links else None
        place = bisect_left(self.records, offset - self.offset, key=_end_of)
        if place == len(self.records) or self.records[place][0] != offset - self.offset:
            return None
        seq, prev = self.links.seq + place + 1, self.records[place][5]
        return place + 1 if links == self.links._replace(seq=seq, prev=prev) else None


def prove(
    buffer: bytes,
    start: int,
    links: Links,
    hmac: Hmac | None,
    is_judged: Callable[[bytes], bool],
    offset: int = 0,
    end: int | None = None,
) -> Row:
    """Prove records from `buffer[start]` on, up to one that is not plainly right.

    Without `hmac` tags are not checked. `is_judged` says of a card whether its envelope was checked
    before, so that its hash is enough. `offset` is the place of the first record in its file, and
    `end` the place in the buffer up to which records are wanted.
    """
    records: list[Proven] = []
    if links.seq > _MAX_SEQ:
        return Row(offset, links, hmac is not None, records, broke=False)
    judged: set[bytes] = set()

    def is_known(card: bytes) -> bool:
        return card in judged or is_judged(card)

    try:
        broke = _prove(buffer, start, end, links, hmac, records, judged, is_known)
    except (IndexError, cbor.NotDeterministic):  # the buffer may end inside a record
        broke = False
    except jcs.JsonRefused:
        broke = True
    return Row(offset, links, hmac is not None, records, broke)


def _prove(
    buffer: bytes,
    start: int,
    wanted: int | None,
    links: Links,
    hmac: Hmac | None,
    records: list[Proven],
    judged: set[bytes],
    is_known: Callable[[bytes], bool],
) -> bool:
    """Add records to `records`; say whether the one at the place reached breaks a rule."""
    chain, kid, seq, prev = links
    begin = HEADER + kid
    plain_begin = begin + ENVELOPE
    payload_begin = b"\x88" + cbor.text(VERSION) + b"\x50" + chain
    keyed = hashlib.sha256() if hmac is None else hmac.inner.copy()
    keyed.update(MAC_HEAD + PROTECTED_HEAD + kid + b"\x40")
    outer_keyed = None if hmac is None else hmac.outer
    bare_begun = hashlib.sha256(b"\x00" + begin + b"\xa0")
    sha256, decode_item, uint = hashlib.sha256, cbor.decode_item, cbor.uint
    add, pos = records.append, start
    size = len(buffer) if wanted is None else wanted
    most_after = MAX_BARE - len(begin) - 1  # bytes of payload and tag

    while True:
        # the openings: an envelope alone, or any map
        if buffer.startswith(plain_begin, pos):
            first = pos + 29
            length = buffer[first - 2] << 8 | buffer[first - 1]
            at_payload = first + length
            envelope = buffer[first:at_payload]
            openings = None
            if length < 256:
                return True
        elif buffer.startswith(begin, pos):
            openings, at_payload = decode_item(buffer, pos + len(begin), 0)
        else:
            return False

        # where payload and tag stand
        head = buffer[at_payload]
        if head == 0x58:
            at = at_payload + 2
            at_tag = at + buffer[at_payload + 1]
            least = 24
        elif head == 0x59:
            at = at_payload + 3
            at_tag = at + (buffer[at_payload + 1] << 8 | buffer[at_payload + 2])
            least = 256
        else:
            return False
        end = at_tag + 34
        if end > size:
            return False
        if at_tag - at < least or end - at_payload > most_after or end - pos > MAX_RECORD:
            return True

        # version, chain, seq and prev in one comparison; then the tag
        expected = payload_begin + uint(seq) + DIGEST + prev
        if not buffer.startswith(expected, at):
            return True
        if outer_keyed is not None:
            inner = keyed.copy()
            inner.update(buffer[at_payload:at_tag])
            outer = outer_keyed.copy()
            outer.update(inner.digest())
            if not buffer.startswith(DIGEST + outer.digest(), at_tag):
                return True
        elif not buffer.startswith(DIGEST, at_tag):
            return True
        bare = bare_begun.copy()
        bare.update(buffer[at_payload:end])

        # at, kind and card
        at += len(expected)
        if buffer[at] == 0x1B:
            now = int.from_bytes(buffer[at + 1 : at + 9], "big")
            at += 9
            if not 0xFFFFFFFF < now <= MAX_INTEGER:
                return True
        else:
            now, at = decode_item(buffer, at, 1)
            if type(now) is not int or now < 0:
                return True
        at_card = at + 1 + (buffer[at] & 31)
        kind = KINDS.get(buffer[at:at_card])
        if kind is None:
            return False

        # an event with the envelope alone: it hashes to the card, and an issued one repeats it
        more: Any = None
        if openings is None and buffer.startswith(DIGEST, at_card):
            at = at_card + 34
            card = buffer[at_card + 2 : at]
            if sha256(envelope).digest() != card:
                return True
            body = buffer[at:at_tag]
            if kind == "issued":
                more = _issued(envelope, body, now)
                judged.add(card)
        else:
            card = body = b""
        if more is None and (kind == "issued" or not card):
            opened = {"envelope": envelope} if openings is None else openings
            more = read(kind, now, opened, buffer[at_card:at_tag], is_known)
            if more is None:
                return True
            if openings is not None:
                card = more[0] or b""
            if card and "envelope" in opened:
                judged.add(card)
        prev = bare.digest()
        add((end - start, kind, now, card, body, prev, more))
        pos = end
        seq += 1


def _issued(envelope: bytes, body: bytes, now: int) -> Issued | None:
    """Read a plain envelope that the body of an issued record repeats."""
    found = plain.read(envelope)
    if found is None or found.issued_at != now // 1000:
        return None
    begin = _TASK + found.task_digest
    rest = b"\x69not_after" + cbor.uint(found.not_after)
    count = 0xA2
    if found.grant_ttl is not None:
        rest = b"\x69grant_ttl" + cbor.uint(found.grant_ttl) + rest
        count = 0xA3
    if body[1:] == begin + rest:
        if body[0] != count:
            return None
    elif body[0] != count + 1 or not _has_runtime(body, begin, rest):
        return None
    return found.task_digest, found.not_after, found.grant_ttl, found.has_basis


def _has_runtime(body: bytes, begin: bytes, rest: bytes) -> bool:
    """Say whether a body is its known beginning and rest, with a runtime between them."""
    begin += b"\x67runtime"
    if not body.startswith(begin, 1) or not body.endswith(rest):
        return False
    runtime, end = cbor.decode_item(body, 1 + len(begin), 2)
    return end == len(body) - len(rest) and is_runtime(runtime)


def read(
    kind: str,
    now: int,
    openings: Any,
    rest: bytes,
    is_known: Callable[[bytes], bool],
) -> list[Any] | None:
    """Read card and body of a record, which are `rest`, and its envelope.

    Gives None where something does not hold that its own bytes can show.
    """
    card, body = _read_body(kind, rest)
    if body is None:
        return None
    bound = bindings(kind, card, body)
    if openings_problem(openings, bound):
        return None
    for name, value in openings.items():
        if len(value) > MAX_OPENING or hashlib.sha256(value).digest() != bound[name]:
            return None
    data = openings.get("envelope")
    is_first = kind == "issued" or body.get("gate") == "issue"
    if data is None or (not is_first and is_known(card)):
        return [card, body, None]
    document, encode = jcs.canonical(data)
    if not is_well_formed(document, encode) or repeats_problem(kind, body, now, document):
        return None
    return [card, body, document]


def _read_body(kind: str, rest: bytes) -> tuple[Any, dict[str, Any] | None]:
    """Read card and body of a kind; None in place of a body that is not of it."""
    card, at = cbor.decode_item(rest, 0, 1)
    body, at = cbor.decode_item(rest, at, 1)
    if at != len(rest) or type(body) is not dict or body_problem(kind, card, body):
        return card, None
    return card, body
