"""The fused loop over records that are plainly right.

It may only accept: it never makes a finding. What a sound record must say is known before it is
read, so most of it is checked by comparing bytes: equal bytes are in the one deterministic form and
have the right values. What the loop does not accept it leaves to the table of checks.
"""

from __future__ import annotations

import hashlib

from verifier import cbor, jcs, plain
from verifier.cards import (
    APPROVED,
    DISPATCHED,
    GOVERNED,
    JUDGED,
    RESOLVED,
    Cards,
)
from verifier.checks.refusals import count_name, next_count
from verifier.envelope import is_well_formed, repeats_problem
from verifier.escape import is_blank
from verifier.evidence import MAC_HEAD, PROTECTED_END, PROTECTED_HEAD, Evidence
from verifier.framing import Frames
from verifier.keys import Hmac
from verifier.replay import Replay
from verifier.shape import CARD_KINDS, bindings, body_problem, is_runtime, openings_problem
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
from verifier.state import bound_bits
from verifier.tally import Run

_KINDS = {cbor.text(kind): kind for kind in (*CARD_KINDS, "refused")}
_ENVELOPE = b"\xa1\x68envelope\x59"  # no other opening, and one of 256 to 65535 bytes
_DIGEST = b"\x58\x20"
_OF = b"\x62of"
_ECHO = b"\x64echo\x58\x20"
_REBUILT = b"\x67rebuilt\x58\x20"
_TARGET = b"\x66target\x58\x20"
_TASK = b"\x64task\x58\x20"
_OUTCOMES = {
    b"\x67outcome" + cbor.text(outcome): outcome for outcome in ("succeeded", "failed", "unknown")
}
_DISPATCHED = APPROVED | DISPATCHED
_MAX_KNOWN = 4096
_ENVELOPE_ONLY = bound_bits(("envelope",))


def advance(frames: Frames, replay: Replay) -> bool:
    """Accept records from the buffer of `frames` as long as they are plainly right.

    Stops at the end of the buffer and at a record that it does not accept. Gives True where that
    record breaks a rule that this loop tests, so that the table has to find which.
    """
    state = replay.state
    if state.chain is None or state.kid is None or state.at is None:
        return False
    hmac = state.ring.hmac(state.chain, state.kid)
    if hmac is None or frames.begins_segment or state.link_explained or state.gap_explained:
        return False
    run = Run(state.expected_seq or 0, state.prev, state.at)
    try:
        while True:
            record = _accept(frames, replay, hmac, run)
            replay.accept(run)
            if not isinstance(record, Evidence):
                return record and not state.disturbed
            replay.take(record, proven=True)
            if state.link_explained:
                return False
            run = Run(state.expected_seq or 0, state.prev, state.at or 0)
    except (IndexError, cbor.NotDeterministic):  # the buffer may end inside a record
        replay.accept(run)
        return False
    except jcs.JsonRefused:
        replay.accept(run)
        return not state.disturbed


def _accept(frames: Frames, replay: Replay, hmac: Hmac, run: Run) -> Evidence | bool:
    """Accept records into `run`.

    Gives a record of which all is proven that its own bytes can show, or else whether the record at
    the place reached breaks a rule.
    """
    state = replay.state
    begin = HEADER + (state.kid or b"")
    payload_begin = b"\x88" + cbor.text(VERSION) + b"\x50" + (state.chain or b"")
    inner_keyed = hmac.inner.copy()
    inner_keyed.update(MAC_HEAD + PROTECTED_HEAD + begin[len(HEADER) :] + b"\x40")
    outer_keyed = hmac.outer
    bare_begun = hashlib.sha256(b"\x00" + begin + b"\xa0")
    sha256, decode_item, uint = hashlib.sha256, cbor.decode_item, cbor.uint
    buffer, size = frames.buffer, len(frames.buffer)
    governed = state.governance.governs or state.floor > 0
    folds = _Folds(state.cards, state.sure_from)
    numbers, digests, bound, kinds = state.cards.numbers, run.digests, run.bound, run.kinds
    pins, seq, prev = state.pins, run.first_seq, run.prev

    while True:
        pos = frames.pos
        at_payload = pos + PROTECTED_END
        if buffer[pos:at_payload] != begin or seq in pins:
            return False
        # the openings: an envelope alone, or any map
        openings = None
        if buffer.startswith(_ENVELOPE, at_payload):
            first = at_payload + 13
            length = buffer[first - 2] << 8 | buffer[first - 1]
            at_payload = first + length
            envelope = buffer[first:at_payload]
            if length < 256:
                return True
        else:
            openings, at_payload = decode_item(buffer, at_payload, 0)

        # where payload and tag stand
        head = buffer[at_payload]
        if head == 0x59:
            at = at_payload + 3
            at_tag = at + (buffer[at_payload + 1] << 8 | buffer[at_payload + 2])
        elif head == 0x58:
            at = at_payload + 2
            at_tag = at + buffer[at_payload + 1]
        else:
            return False
        end = at_tag + 34
        if end > size:
            return False
        if (
            at_tag - at < (256 if head == 0x59 else 24)
            or end - at_payload + PROTECTED_END + 1 > MAX_BARE
            or end - pos > MAX_RECORD
            or seq > MAX_INTEGER
        ):
            return True

        # version, chain, seq and prev in one comparison; then the tag
        expected = payload_begin + uint(seq) + _DIGEST + prev
        if not buffer.startswith(expected, at):
            return True
        inner = inner_keyed.copy()
        inner.update(buffer[at_payload:at_tag])
        outer = outer_keyed.copy()
        outer.update(inner.digest())
        if buffer[at_tag:end] != _DIGEST + outer.digest():
            return True
        bare = bare_begun.copy()
        bare.update(buffer[at_payload:end])

        # at, kind and card
        at += len(expected)
        if buffer[at] == 0x1B and buffer[at + 1 : at + 5] != b"\x00\x00\x00\x00":
            now = int.from_bytes(buffer[at + 1 : at + 9], "big")
            at += 9
        else:
            now, at = decode_item(buffer, at, 1)
        at_card = at + 1 + (buffer[at] & 31)
        kind = _KINDS.get(buffer[at:at_card])
        if kind is None:
            return False
        if type(now) is not int or not run.at <= now <= MAX_INTEGER:
            return True
        at = at_card + 34
        card = buffer[at_card + 2 : at]

        # an event of a card with no other opening, by the bytes that its body must have
        if openings is None and buffer.startswith(_DIGEST, at_card):
            if sha256(envelope).digest() != card:
                return True
            number = numbers.get(card)
            if number is None:
                folded = (
                    kind == "issued"
                    and not governed
                    and folds.issued(card, seq, now, buffer[at:at_tag], envelope)
                )
            else:
                body = buffer[at:at_tag]
                folded = folds.event(kind, number, card, seq, now, body) or (
                    kind == "refused" and folds.refused(number, card, now, body, state.counts)
                )
                run.contained += folded and kind == "refused"
            if folded:
                frames.pos = end
                seq += 1
                prev = bare.digest()
                digests.append(prev)
                bound.append(_ENVELOPE_ONLY)
                kinds[kind] += 1
                run.at = now
                continue

        if state.claims and card in state.claims:
            return False
        record = Evidence(frames.file, frames.offset, buffer[pos:end])
        record.openings = {"envelope": envelope} if openings is None else openings
        record.kind, record.seq, record.at = kind, seq, now
        if not _is_proven(record, at_card - pos, at_tag - pos, state.cards):
            return True
        record.version, record.chain, record.prev = VERSION, state.chain, prev
        record.kid, record.digest = begin[-KID_SIZE:], bare.digest()
        frames.pos = end
        if record.envelope is None or len(record.openings) < len(record.bound):
            return record
        if not replay.passes(record) or (kind == "resolved" and not replay.echoed(record)):
            return record
        replay.fold_card(record)
        seq += 1
        prev = record.digest
        digests.append(prev)
        bound.append(bound_bits(record.bound))
        kinds[kind] += 1
        run.at = now


def _is_proven(record: Evidence, at_card: int, at_tag: int, cards: Cards) -> bool:
    """Read card and body of a record; say whether all holds that its own bytes can show."""
    kind = record.kind or ""
    card, at = cbor.decode_item(record.data, at_card, 1)
    body, at = cbor.decode_item(record.data, at, 1)
    if at != at_tag or type(body) is not dict or body_problem(kind, card, body):
        return False
    record.card, record.body, record.bound = card, body, bindings(kind, card, body)
    if openings_problem(record.openings, record.bound):
        return False
    for name, value in record.openings.items():
        if len(value) > MAX_OPENING or hashlib.sha256(value).digest() != record.bound[name]:
            return False
    if record.envelope is None:
        return True
    if kind != "issued" and body.get("gate") != "issue" and cards.is_judged(card):
        return True
    document, encode = jcs.canonical(record.envelope)
    if not is_well_formed(document, encode):
        return False
    record.keep(document)
    return not repeats_problem(kind, body, record.at or 0, document)


class _Folds:
    """Accepts the common events of cards by their bytes, and folds them in.

    Each method gives False where it does not accept; nothing is folded in then.
    """

    __slots__ = ("cards", "decisions", "refusals", "sure_from")

    def __init__(self, cards: Cards, sure_from: int) -> None:
        self.cards = cards
        self.sure_from = sure_from
        self.decisions: dict[tuple[int, bool, bytes], str | None] = {}
        self.refusals: dict[tuple[int, bytes, bytes], tuple[str, int, bytes]] = {}

    def issued(self, card: bytes, seq: int, now: int, body: bytes, envelope: bytes) -> bool:
        """Accept the first card of a step."""
        found = plain.read(envelope)
        if found is None or found.issued_at != now // 1000 or found.task_digest in self.cards.steps:
            return False
        begin = _TASK + found.task_digest
        rest = b"\x69not_after" + cbor.uint(found.not_after)
        count = 0xA2
        if found.grant_ttl is not None:
            rest = b"\x69grant_ttl" + cbor.uint(found.grant_ttl) + rest
            count = 0xA3
        if body[1:] == begin + rest:
            if body[0] != count:
                return False
        elif body[0] != count + 1 or not _has_runtime(body, begin, rest):
            return False
        self.cards.issue(card, seq, found.task_digest, found.not_after, found.grant_ttl)
        self.cards.flags[-1] |= JUDGED
        return True

    def _is_sure(self, number: int) -> bool:
        """Say whether a card's envelope was checked and no unsound record stands after it.

        A decision on a governed card is for the table, as its other events are by their flags.
        """
        return number >= self.sure_from and self.cards.flags[number] & (JUDGED | GOVERNED) == JUDGED

    def event(self, kind: str, number: int, card: bytes, seq: int, now: int, body: bytes) -> bool:
        """Accept a decision, dispatch or outcome in its time and order."""
        cards = self.cards
        flags = cards.flags[number] ^ JUDGED
        if number < self.sure_from or flags & JUDGED:
            return False
        of = _OF + cbor.uint(cards.last[number])
        if kind == "settled":
            outcome = _OUTCOMES.get(body[1 + len(of) :])
            if outcome is None or body[: 1 + len(of)] != b"\xa2" + of or flags != _DISPATCHED:
                return False
            cards.settle(number, seq, outcome)
            return True
        if cards.over(number, now):
            return False
        if kind == "resolved":
            decision = None if flags else self._decision(body, of + _ECHO + card, card)
            if decision is None:
                return False
            cards.resolve(number, seq, now, decision)
            return True
        if kind == "dispatched" and flags == APPROVED and body == b"\xa2" + of + _REBUILT + card:
            cards.dispatch(number, seq)
            return True
        return False

    def refused(
        self, number: int, card: bytes, now: int, body: bytes, counts: dict[bytes, int]
    ) -> bool:
        """Accept a refused decision on the card asked about, for one of the usual reasons."""
        begin = _OF + cbor.uint(self.cards.last[number]) + _ECHO
        at_echo = 1 + len(begin)
        at_rest = at_echo + DIGEST_SIZE
        at_target = body.find(_TARGET + card, at_rest)
        if not self._is_sure(number) or at_target < 0 or not body.startswith(begin, 1):
            return False
        key = body[0], body[at_rest:at_target], body[at_target + len(_TARGET) + DIGEST_SIZE :]
        known = self.refusals.get(key)
        if known is None:
            known = _read_refusal(body, card)
            if len(self.refusals) >= _MAX_KNOWN:
                self.refusals.clear()
            self.refusals[key] = known
        reason, count, name = known
        echo = body[at_echo:at_rest]
        if not self._refusal_holds(reason, number, now, echo, card):
            return False
        if count != next_count(counts.get(name + card, 0)):
            return False
        counts[name + card] = count
        return True

    def _refusal_holds(self, reason: str, number: int, now: int, echo: bytes, card: bytes) -> bool:
        if reason == "hash_mismatch" or echo != card:
            return reason == "hash_mismatch" and echo != card
        decided = bool(self.cards.flags[number] & RESOLVED)
        if reason == "already_resolved" or decided:
            return reason == "already_resolved" and decided
        return reason == "expired" and self.cards.over(number, now)

    def _decision(self, body: bytes, begin: bytes, card: bytes) -> str | None:
        """Give the decision of a body that begins as it must, else None.

        What follows is the same for many cards, so it is read once.
        """
        if not body.startswith(begin, 1):
            return None
        targeted = body.startswith(_TARGET + card, 1 + len(begin))
        rest = body[1 + len(begin) + (len(_TARGET) + DIGEST_SIZE if targeted else 0) :]
        key = body[0], targeted, rest
        known = self.decisions.get(key)
        if known is None:
            known = _read_decision(body, card)
            if len(self.decisions) >= _MAX_KNOWN:
                self.decisions.clear()
            self.decisions[key] = known
        return known


def _read_decision(body: bytes, card: bytes) -> str | None:
    value, end = cbor.decode_item(body, 0, 1)
    if end != len(body) or type(value) is not dict or body_problem("resolved", card, value):
        return None
    approver = value["approver"]
    if approver["assurance"] == "signed" or is_blank(approver["id"]):
        return None
    if value.get("target", card) != card or len(bindings("resolved", card, value)) > 1:
        return None
    decision: str = value["decision"]
    return decision


def _read_refusal(body: bytes, card: bytes) -> tuple[str, int, bytes]:
    """Give reason, count and what refusals are counted by; no reason where it is not usual."""
    value, end = cbor.decode_item(body, 0, 1)
    if end != len(body) or type(value) is not dict or body_problem("refused", card, value):
        return "", 0, b""
    if value["gate"] != "resolve":
        return "", 0, b""
    return value["reason"], value["count"], count_name("resolve", value["reason"])


def _has_runtime(body: bytes, begin: bytes, rest: bytes) -> bool:
    """Say whether a body is its known beginning and rest, with a runtime between them."""
    begin += b"\x67runtime"
    if not body.startswith(begin, 1) or not body.endswith(rest):
        return False
    runtime, end = cbor.decode_item(body, 1 + len(begin), 2)
    return end == len(body) - len(rest) and is_runtime(runtime)
