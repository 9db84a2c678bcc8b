"""Checks of a record against the chain before it: order, links, keys, time (spec §3 to §5)."""

from __future__ import annotations

from hmac import compare_digest

from verifier import cbor
from verifier.evidence import Evidence
from verifier.keys import Hmac
from verifier.shape import Problem
from verifier.state import State


def check_chain(record: Evidence, state: State) -> Problem | None:
    """Every record names the chain of the first (spec §3.2)."""
    if record.chain is None or state.chain is None or record.chain == state.chain:
        return None
    return state.chain.hex(), record.chain.hex()


def check_sequence(record: Evidence, state: State) -> Problem | None:
    """Seq runs 0, 1, 2, … without a gap (spec §3.2; §10.3, rule 3)."""
    expected = state.expected_seq
    if record.seq is None or expected is None or record.seq == expected:
        return None
    if record.seq < expected:
        return None if state.belongs(record.seq) else (f"seq {expected}", f"seq {record.seq} again")
    if state.gap_explained or (state.surplus is not None and record.seq == expected + 1):
        return None
    last = record.seq - 1
    missing = f"seq {expected}" if last == expected else f"seq {expected} to {last}"
    return f"seq {expected}", f"seq {record.seq}; missing: {missing}"


def check_link(record: Evidence, state: State) -> Problem | None:
    """Prev is the chain digest of the record before (spec §3.3; §10.3, rule 4)."""
    if record.prev is None or record.seq is None or record.prev == state.prev:
        return None
    if state.link_explained or state.belongs(record.seq):
        return None
    if state.expected_seq is None and record.seq != 0:
        return None  # the log does not start at seq 0: check_left_edge says so
    return state.prev.hex(), record.prev.hex()


def check_kid(record: Evidence, state: State) -> Problem | None:
    """Every record is under the kid in force (spec §4.2)."""
    if state.kid is None or not record.kid or record.kid == state.kid:
        return None
    if state.belongs(record.seq):
        return None
    return f"kid {state.kid.hex()}", f"kid {record.kid.hex()}"


def check_key_missing(record: Evidence, state: State) -> Problem | None:
    """A secret for the kid is at hand, and for the new one of a rekeyed (spec §4.2)."""
    chain = record.chain or state.chain
    if chain is None or not record.kid or record.seq in state.covered:
        return None
    for kid in (record.kid, record.body.get("kid", record.kid)):
        if state.ring.hmac(chain, kid) is None:
            return f"the secret of kid {kid.hex()}", "none"
    return None


def check_tag(record: Evidence, state: State) -> Problem | None:
    """The tag holds under the secret that the kid names (spec §3.1)."""
    chain = record.chain or state.chain
    hmac = None if chain is None else state.ring.hmac(chain, record.kid)
    if hmac is None or compare_digest(hmac.digest(record.mac_input()), record.tag):
        return None
    return "the HMAC of the payload under its kid", f"{record.tag.hex()[:16]}…"


def check_rekey(record: Evidence, state: State) -> Problem | None:
    """A new kid was never in force, and its proof holds (spec §4.2)."""
    if record.kind != "rekeyed":
        return None
    kid = record.body["kid"]
    if kid in state.kids or kid == record.kid:
        return "a kid that was never in force", f"kid {kid.hex()}"
    hmac = state.ring.hmac(record.chain or b"", kid)
    if hmac is None or compare_digest(_proof(hmac, record), record.body["proof"]):
        return None
    return "a proof made with the new secret", f"{record.body['proof'].hex()[:16]}…"


def _proof(hmac: Hmac, record: Evidence) -> bytes:
    kid = record.body["kid"]
    parts = (record.chain or b"", record.seq or 0, record.prev or b"", record.kid, kid)
    items = [
        cbor.head(0, part) if isinstance(part, int) else cbor.head(2, len(part)) + part
        for part in parts
    ]
    return hmac.digest(cbor.head(4, 6) + cbor.text("cardchain/rekeyed") + b"".join(items))


def check_pruned(record: Evidence, state: State) -> Problem | None:
    """Pruned names the left edge, and forgets only ended cards (spec §15.2)."""
    if record.kind != "pruned" or record.seq is None:
        return None
    before, digest = record.body["before"], record.body["digest"]
    if not 0 < before <= record.seq:
        return f"before from 1 to {record.seq}", f"before {before}"
    if before < state.pruned:
        return f"before of at least {state.pruned}", f"before {before}"
    edge = state.left_edge
    named = edge is None or edge.seq != before or edge.prev == digest
    if not named or state.digests.matches(before - 1, digest) is False:
        return f"the chain digest of record {before - 1}", digest.hex()
    card = state.cards.unended(before, record.at or 0, state.sure_from)
    if card is None:
        return None
    return f"only ended cards below {before}", f"card {state.cards.hash_of(card).hex()}"


def check_pin(record: Evidence, state: State) -> Problem | None:
    """The record that a key file pins is the one in the log (spec §4.3)."""
    for pin in state.pins.get(-1 if record.seq is None else record.seq, ()):
        if pin.digest != record.digest:
            return pin.digest.hex(), record.digest.hex()
    return None


def check_time(record: Evidence, state: State) -> Problem | None:
    """At never goes back but in a clock_reset, whose was is the at before (spec §5)."""
    if record.at is None or state.at is None or state.belongs(record.seq):
        return None
    if record.kind != "clock_reset":
        return None if record.at >= state.at else (f"at {state.at} or later", f"at {record.at}")
    was = record.body["was"]
    if was != state.at:
        return f"was {state.at}", f"was {was}"
    return None if record.at < was else (f"at before {was}", f"at {record.at}")
