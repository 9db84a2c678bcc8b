"""The fused loop over records that are plainly right: proven by their bytes, then folded in.

It may only accept: it never makes a finding. `proof` shows what a record says by itself; here it is
held against the state, and the common events of cards are accepted by the bytes that their bodies
must have. What the loop does not accept it leaves to the table of checks.
"""

from __future__ import annotations

from typing import Any

from verifier import cbor, jcs, proof
from verifier.cards import APPROVED, DISPATCHED, GOVERNED, JUDGED, RESOLVED, Cards
from verifier.checks.refusals import count_name, next_count
from verifier.escape import is_blank
from verifier.evidence import PROTECTED_END, Evidence
from verifier.framing import Frames
from verifier.proof import DIGEST, Links, Row
from verifier.replay import Replay
from verifier.shape import bindings, body_problem
from verifier.spec import DIGEST_SIZE, VERSION
from verifier.state import State, bound_bits
from verifier.tally import Run

_OF = b"\x62of"
_ECHO = b"\x64echo\x58\x20"
_REBUILT = b"\x67rebuilt\x58\x20"
_TARGET = b"\x66target\x58\x20"
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
    if frames.begins_segment or state.link_explained or state.gap_explained:
        return False
    if state.chain is None or state.kid is None or state.at is None:
        return False
    links = Links(state.chain, state.kid, state.expected_seq or 0, state.prev)
    row, place = _row(frames, state, links)
    if row is None:
        return False
    folding = _Folding(frames, replay, row)
    while place < len(row.records):
        place, stop = folding.run(place)
        if stop is not None:
            return stop and not state.disturbed
        if state.link_explained:
            return False
    return row.broke and not state.disturbed


def _row(frames: Frames, state: State, links: Links) -> tuple[Row | None, int]:
    """Give records that were proven, and the place among them of the one that is next.

    A kid without its secret is a finding once; what follows is proven without its tags.
    """
    hmac = state.ring.hmac(links.chain, links.kid)
    if hmac is None and links.kid not in state.keyless:
        return None, 0
    row = frames.row
    place = None if row is None else row.place(frames.offset, links)
    if row is None or place is None or place == len(row.records):
        row = proof.prove(
            frames.buffer, frames.pos, links, hmac, state.cards.is_judged, frames.offset
        )
        frames.row, place = row, 0
    return row, place


class _Folding:
    """Holds the records of a row against the state, and folds them in."""

    __slots__ = ("_folds", "_frames", "_governed", "_replay", "_row")

    def __init__(self, frames: Frames, replay: Replay, row: Row) -> None:
        self._frames = frames
        self._replay = replay
        self._row = row
        state = replay.state
        self._governed = state.governance.governs or state.floor > 0
        self._folds = _Folds(state.cards, state.sure_from)

    def run(self, place: int) -> tuple[int, bool | None]:
        """Fold in records from a place on; give the place reached, and why it stopped there.

        None is the end of the row, or a record that the table has judged. Else the next record is
        left to the table: True where it breaks a rule.
        """
        state, replay, records = self._replay.state, self._replay, self._row.records
        run = Run(state.expected_seq or 0, state.prev, state.at or 0)
        stop: bool | None = None
        rest: Evidence | None = None
        while stop is None and rest is None and (place := self._accept(place, run)) < len(records):
            record = self._evidence(place, run)
            if not isinstance(record, Evidence):
                stop = record
                continue
            place += 1
            if self._passes(record):
                replay.fold_card(record)
                run.add(record.kind or "", record.at or 0, record.digest, bound_bits(record.bound))
            else:
                rest = record
        replay.accept(run)
        if place:
            self._frames.go_to(self._row.offset + records[place - 1][0])
        if rest is not None:
            replay.take(rest, proven=True)
        return place, stop

    def _accept(self, place: int, run: Run) -> int:
        """Fold in records by their bytes; give the place of the first that needs more."""
        state, folds, governed = self._replay.state, self._folds, self._governed
        numbers, counts, kinds = state.cards.numbers, state.counts, run.kinds
        digests, bound, pins = run.digests, run.bound, state.pins
        seq, at = run.first_seq + len(digests), run.at
        records = self._row.records
        for place in range(place, len(records)):  # noqa: B020
            _, kind, now, card, body, digest, more = records[place]
            if now < at or seq in pins:
                break
            number = numbers.get(card)
            if type(more) is tuple:
                if number is not None or governed or not folds.issued(card, seq, more):
                    break
            elif number is None or more is not None:
                break
            elif not folds.event(kind, number, card, seq, now, body):
                if kind != "refused" or not folds.refused(number, card, now, body, counts):
                    break
                run.contained += 1
            digests.append(digest)
            bound.append(_ENVELOPE_ONLY)
            kinds[kind] += 1
            seq += 1
            run.at = at = now
        else:
            return len(records)
        return place

    def _evidence(self, place: int, run: Run) -> Evidence | bool:
        """Read a record of which all is proven that its own bytes can show.

        Gives a bool where it is left to the table: True where it breaks a rule.
        """
        state, row = self._replay.state, self._row
        end, kind, now, card, body, digest, more = row.records[place]
        seq = run.first_seq + len(run.digests)
        if seq in state.pins or (state.claims and card in state.claims):
            return False
        if now < run.at:
            return True
        start = row.offset + (row.records[place - 1][0] if place else 0)
        record = Evidence(self._frames.file, start, self._frames.between(start, row.offset + end))
        record.openings, _ = cbor.decode_item(record.data, PROTECTED_END, 0)
        record.kind, record.seq, record.at = kind, seq, now
        try:
            found = _read(record, card, body, more, state.cards)
        except cbor.NotDeterministic:
            return False
        except jcs.JsonRefused:
            found = None
        if found is None:
            return True
        record.card, record.body, document = found
        if document is not None:
            record.keep(document)
        record.bound = bindings(kind, record.card, record.body)
        record.version, record.chain, record.kid = VERSION, row.links.chain, row.links.kid
        record.prev = run.digests[-1] if run.digests else run.prev
        record.digest = digest
        return record

    def _passes(self, record: Evidence) -> bool:
        """Say whether the rest of the table has nothing against a record that lacks nothing."""
        if record.envelope is None or len(record.openings) < len(record.bound):
            return False
        if not self._replay.passes(record):
            return False
        return record.kind != "resolved" or self._replay.echoed(record)


def _read(record: Evidence, card: bytes, body: bytes, more: Any, cards: Cards) -> Any:
    """Give card, body and envelope as values; None where the body or envelope is wrong."""
    kind = record.kind or ""
    if type(more) is list:
        return more
    if more is None:
        rest = DIGEST + card + body
        return proof.read(kind, record.at or 0, record.openings, rest, cards.is_judged)
    return card, cbor.decode(body), None


class _Folds:
    """Accepts the common events of cards by their bytes, and folds them in.

    Each method gives False where it does not accept; nothing is folded in then.
    """

    __slots__ = ("cards", "decisions", "refusals", "sure_from")

    def __init__(self, cards: Cards, sure_from: int) -> None:
        self.cards = cards
        self.sure_from = sure_from
        self.decisions: dict[tuple[int, bool, bytes], str | None] = {}
        self.refusals: dict[tuple[int, bytes, bytes | None], tuple[str, int, bytes]] = {}

    def issued(self, card: bytes, seq: int, body: tuple[bytes, int, int | None]) -> bool:
        """Accept the first card of a step."""
        task, not_after, grant_ttl = body
        if task in self.cards.steps:
            return False
        self.cards.issue(card, seq, task, not_after, grant_ttl)
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
        if not self._is_sure(number) or not body.startswith(begin, 1):
            return False
        echo = body[at_echo:at_rest]
        before, target, after = body[at_rest:].partition(_TARGET + card)
        if not target and echo != card:
            return False
        key = body[0], before, after if target else None
        known = self.refusals.get(key)
        if known is None:
            known = _read_refusal(body, card)
            if len(self.refusals) >= _MAX_KNOWN:
                self.refusals.clear()
            self.refusals[key] = known
        reason, count, name = known
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
    value = _decoded(body)
    if type(value) is not dict or body_problem("resolved", card, value):
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
    value = _decoded(body)
    if type(value) is not dict or body_problem("refused", card, value):
        return "", 0, b""
    if value["gate"] != "resolve":
        return "", 0, b""
    return value["reason"], value["count"], count_name("resolve", value["reason"])


def _decoded(body: bytes) -> Any:
    try:
        return cbor.decode(body)
    except cbor.NotDeterministic:
        return None
