"""Checks of checkpoints, of proofs about them and of what they say of a log (spec §13, §14)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from verifier.anchors import DELIVERED, ENCLOSED, Anchor
from verifier.evidence import Evidence
from verifier.shape import Problem
from verifier.state import State

if TYPE_CHECKING:
    from verifier.pinfile import Head


class Ground(NamedTuple):
    """What a checkpoint is held against.

    `reached` is how many records the log holds, None where nobody knows. `roots` are those known
    by size: of the log itself, or for an excerpt those that are signed.
    """

    chain: bytes | None
    reached: int | None
    roots: Mapping[int, bytes]
    is_log: bool = True


class Sighting(NamedTuple):
    """What a log shows of a pinned head: the digest `found` at its seq, and how far it goes."""

    chain: bytes | None
    found: bytes | None
    reached: int


def check_excerpt(problem: Problem | None) -> Problem | None:
    """An excerpt has its one form (spec §14.1), or its reader found a problem."""
    return problem


def check_checkpoint(anchor: Anchor, ground: Ground) -> Problem | None:
    """A checkpoint is a well-formed note of this chain (spec §13.2)."""
    if anchor.malformed is not None or anchor.checkpoint is None or ground.chain is None:
        return anchor.malformed
    if anchor.checkpoint.chain == ground.chain:
        return None
    from verifier.checkpoint import origin  # starting takes longer with it

    return f"a checkpoint of {origin(ground.chain)}", anchor.checkpoint.origin


def check_checkpoint_key(anchor: Anchor, _ground: Ground) -> Problem | None:
    """A given checkpoint is signed under a given vkey, and signatures can be checked."""
    if anchor.no_library:
        return "the package cryptography, which checks signatures", anchor.no_library
    if anchor.checkpoint is None or anchor.vkey is not None:
        return None
    if anchor.role in (DELIVERED, ENCLOSED):
        return None
    return f"a signature of {anchor.checkpoint.origin} under a given vkey", "none"


def check_checkpoint_signature(anchor: Anchor, _ground: Ground) -> Problem | None:
    """The signature under a given vkey holds (spec §13.2)."""
    if anchor.signed is not False or anchor.vkey is None:
        return None
    return f"a signature under {anchor.vkey.text}", "one that does not hold"


def check_checkpoint_size(anchor: Anchor, ground: Ground) -> Problem | None:
    """The log holds as many records as the checkpoint says (spec §13.7)."""
    if ground.reached is None or anchor.size <= ground.reached:
        return None
    return f"at least {anchor.size} records", f"{ground.reached}"


def check_checkpoint_root(anchor: Anchor, ground: Ground) -> Problem | None:
    """The root over the records is the signed one (spec §13.7)."""
    return _other_root(anchor, ground) if ground.is_log else None


def _other_root(anchor: Anchor, ground: Ground) -> Problem | None:
    root = ground.roots.get(anchor.size)
    if anchor.checkpoint is None or root in (None, anchor.checkpoint.root):
        return None
    return (
        f"the signed root {anchor.checkpoint.root.hex()} at size {anchor.size}",
        "" if root is None else root.hex(),
    )


def check_consistency(anchor: Anchor, ground: Ground) -> Problem | None:
    """A newer checkpoint extends an older one (spec §13.7)."""
    if anchor.unproven is not None or anchor.checkpoint is None:
        return anchor.unproven
    conflict = None if ground.is_log else _other_root(anchor, ground)
    proof = anchor.proof
    if conflict is not None or proof is None or proof.old not in ground.roots:
        return conflict
    from verifier.merkle import is_consistent

    old, new = ground.roots[proof.old], anchor.checkpoint.root
    if is_consistent(proof.old, anchor.size, old, new, proof.hashes):
        return None
    return f"a proof that size {anchor.size} extends size {proof.old}", "one that does not hold"


def check_inclusion(record: Evidence, state: State) -> Problem | None:
    """A record of an excerpt stands in the signed tree (spec §14.3)."""
    proof = state.proofs.get(-1 if record.seq is None else record.seq)
    if proof is None:
        return None
    from verifier.merkle import root_of_inclusion

    hashes, size, root = proof
    found = root_of_inclusion(record.seq or 0, size, record.digest, hashes)
    if found == root:
        return None
    return f"the root {root.hex()}", "no root" if found is None else found.hex()


def check_pinned_head(pin: Head, log: Sighting) -> Problem | None:
    """The log holds the head that the auditor pinned (spec §16.2)."""
    if log.chain != pin.chain:
        return f"chain {pin.chain.hex()}", "none" if log.chain is None else log.chain.hex()
    expected = f"digest {pin.digest.hex()} at seq {pin.seq}"
    if log.found is None:
        return None if pin.seq < log.reached else (expected, f"{log.reached} records")
    return None if log.found == pin.digest else (expected, log.found.hex())


def check_required(required: Collection[str], reached: Collection[str]) -> Problem | None:
    """The assurance that the auditor asked for is reached (spec §16.3)."""
    if set(required) <= set(reached):
        return None
    return f"a log that is {' and '.join(required)}", " and ".join(reached) or "none"
