"""The fused loop over records that are plainly right: proven by their bytes, then folded in.

It may only accept: it never makes a finding. `proof` shows what a record says by itself; here it is
held against the state, and the common events of cards are accepted by the bytes that their bodies
must have. What the loop does not accept it leaves to the table of checks.
"""

from __future__ import annotations

from typing import Any

from verifier import cbor, jcs, proof
from verifier.bodies import Bodies
from verifier.cards import Cards
from verifier.evidence import PROTECTED_END, Evidence
from verifier.framing import Frames
from verifier.proof import DIGEST, Links, Row
from verifier.replay import Replay
from verifier.shape import bindings
from verifier.spec import VERSION
from verifier.state import State, bound_bits
from verifier.tally import Run

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
        row = frames.proven_here()
        place = None if row is None else row.place(frames.offset, links)
        if row is None or place is None or row.tagged != (hmac is not None):
            place = 0
            row = proof.prove(
                frames.buffer,
                frames.pos,
                links,
                hmac,
                state.cards.is_judged,
                frames.offset,
                frames.next_proven(),
            )
        frames.row = row
    return row, place


class _Folding:
    """Holds the records of a row against the state, and folds them in."""

    __slots__ = ("_bodies", "_frames", "_governed", "_replay", "_row")

    def __init__(self, frames: Frames, replay: Replay, row: Row) -> None:
        self._frames = frames
        self._replay = replay
        self._row = row
        state = replay.state
        self._governed = state.governance.governs or state.floor > 0
        self._bodies = Bodies(state)

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
        state, bodies, governed = self._replay.state, self._bodies, self._governed
        numbers, kinds = state.cards.numbers, run.kinds
        digests, bound, pins = run.digests, run.bound, state.pins
        seq, at = run.first_seq + len(digests), run.at
        records = self._row.records
        for place in range(place, len(records)):  # noqa: B020
            _, kind, now, card, body, digest, more = records[place]
            if now < at or seq in pins:
                break
            number = numbers.get(card)
            if type(more) is tuple:
                if number is not None or governed or more[3] or not bodies.issued(card, seq, more):
                    break
                run.steps += 1
            elif number is None or more is not None:
                break
            elif not bodies.event(kind, number, card, seq, now, body):
                if kind != "refused" or not bodies.refused(number, card, seq, now, body):
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
        except (IndexError, cbor.NotDeterministic):  # a body whose bytes end early is neither
            return False
        except jcs.JsonRefused:
            found = None
        if found is None:
            return True
        record.card, record.body, document = found
        if document is not None:
            record.keep(document)
        record.is_judged = True
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
