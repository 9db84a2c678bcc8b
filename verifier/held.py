"""A log or an excerpt, held against checkpoints and proofs (spec §13.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from verifier import checks
from verifier.anchors import ENCLOSED, GIVEN, PROOF, Anchor
from verifier.checks import Check
from verifier.checks.checkpoint import Ground
from verifier.shape import Problem

# of several checkpoints that a log does not agree with, the smallest tells the most
_ONCE = ("checkpoint_size", "checkpoint_root")


class Failure(NamedTuple):
    """A row that an anchor fails."""

    check: Check
    problem: Problem
    file: str


class Held(NamedTuple):
    """How anchors and a log agree.

    `apart` are given anchors of another chain, which were not held against this log.
    `signed_to` is the size of the largest checkpoint that holds, `pinned_to` that of the largest
    one among those that the auditor kept; each is 0 without one. `reasons` says by row why it was
    not checked, where it did not fail.
    """

    failures: tuple[Failure, ...] = ()
    signed_to: int = 0
    pinned_to: int = 0
    reasons: Mapping[str, str] = MappingProxyType({})
    apart: tuple[Anchor, ...] = ()


def signed_roots(anchors: Iterable[Anchor]) -> dict[int, set[tuple[bytes, bytes]]]:
    """Give the sizes at which a root is needed, each with the roots signed there, by their chain.

    Where signatures cannot be checked at all, that is a finding of its own, and no key is missing
    because of it.
    """
    wanted: dict[int, set[tuple[bytes, bytes]]] = {}
    for anchor in anchors:
        if anchor.checkpoint is None:
            continue
        roots = wanted.setdefault(anchor.size, set())
        if anchor.signed or anchor.no_library:
            roots.add((anchor.checkpoint.chain, anchor.checkpoint.root))
        if anchor.proof is not None:
            wanted.setdefault(anchor.proof.old, set())
    return wanted


def hold_log(
    anchors: Sequence[Anchor], chain: bytes | None, reached: int | None, roots: Mapping[int, bytes]
) -> Held:
    """Hold a log of a chain, with `reached` records and these roots by size, against anchors."""
    ours, apart = _split(anchors, chain)
    failures, sound = _judge(ours, Ground(chain, reached, roots), set())
    holding = [one for one in sound if one.signed and one.size in roots]
    return Held(
        failures,
        max((one.size for one in holding), default=0),
        max((one.size for one in holding if one.role == GIVEN), default=0),
        _reasons(ours, roots, apart),
        apart,
    )


def _split(
    anchors: Iterable[Anchor], chain: bytes | None
) -> tuple[list[Anchor], tuple[Anchor, ...]]:
    """Take out what was given and is of another chain: another input may be of that (§13.7)."""
    ours: list[Anchor] = []
    apart: list[Anchor] = []
    for one in anchors:
        named = one.checkpoint and one.checkpoint.chain
        is_apart = one.role in (GIVEN, PROOF) and named and chain and named != chain
        (apart if is_apart else ours).append(one)
    return ours, tuple(apart)


def hold_excerpt(anchors: Sequence[Anchor], chain: bytes | None) -> Held:
    """Hold the checkpoint in an excerpt against those that the auditor kept."""
    roots: dict[int, bytes] = {}
    failures: list[Failure] = []
    sound: list[Anchor] = []
    said: set[str] = set()
    ours, others = _split(anchors, chain)
    for anchor in sorted(ours, key=lambda one: (one.role != ENCLOSED, one.role == PROOF)):
        failed, good = _judge([anchor], Ground(chain, None, roots, is_log=False), said)
        failures += failed
        for one in good:
            sound.append(one)
            if one.checkpoint is not None and one.signed:
                roots.setdefault(one.size, one.checkpoint.root)
    enclosed = next((one for one in sound if one.role == ENCLOSED and one.signed), None)
    given = [one for one in sound if one.role == GIVEN]
    joined = [one for one in given if enclosed and _joins(one, enclosed, sound)]
    apart = len(joined) < len(given)
    reasons = _unmade(ours, others) | {
        "checkpoint_size": "an excerpt does not say how many records the log holds",
        "checkpoint_root": "an excerpt does not hold every record",
    }
    if apart or not joined:
        reasons["consistency"] = (
            "no given proof holds a given checkpoint and that of the excerpt together"
            if apart and enclosed
            else "no checkpoint to compare"
        )
    return Held(
        tuple(failures),
        0 if enclosed is None else enclosed.size,
        max((min(one.size, enclosed.size) for one in joined if enclosed), default=0),
        reasons,
        others,
    )


def _joins(given: Anchor, enclosed: Anchor, sound: Iterable[Anchor]) -> bool:
    """Say whether two checkpoints are the same, or held together by a proof that holds."""
    old, new = sorted((given.size, enclosed.size))
    return old == new or any(
        one.proof is not None and (one.proof.old, one.size) == (old, new) for one in sound
    )


def _judge(
    anchors: Iterable[Anchor], ground: Ground, said: set[str]
) -> tuple[tuple[Failure, ...], list[Anchor]]:
    """Give the first row that each anchor fails, and the anchors that fail none.

    `said` are the rows that have said all that they can.
    """
    rows = [check for check in checks.CHECKS if check.scope == checks.ANCHOR]
    failures: list[Failure] = []
    sound = []
    for anchor in sorted(anchors, key=lambda one: (one.role == PROOF, one.size)):
        failure = _first(rows, anchor, ground)
        if failure is None:
            sound.append(anchor)
            continue
        once = failure.check.id in _ONCE or bool(anchor.no_library)
        if not (once and failure.check.id in said):
            failures.append(failure)
        if once:
            said.update(_ONCE if failure.check.id in _ONCE else (failure.check.id,))
    return tuple(failures), sound


def _first(rows: Iterable[Check], anchor: Anchor, ground: Ground) -> Failure | None:
    for check in rows:
        problem = check.function(anchor, ground)
        if problem is not None:
            return Failure(check, problem, anchor.file)
    return None


def _reasons(
    anchors: Sequence[Anchor], roots: Mapping[int, bytes], apart: Sequence[Anchor]
) -> dict[str, str]:
    reasons = _unmade(anchors, apart)
    if "checkpoint" in reasons:
        reasons |= dict.fromkeys(("checkpoint_size", "checkpoint_root"), reasons["checkpoint"])
    elif not any(one.signed and one.size in roots for one in anchors):
        reasons["checkpoint_root"] = "the records leave no root at a size that is signed"
    if not any(one.proof is not None and one.proof.old in roots for one in anchors):
        reasons["consistency"] = "no consistency proof"
    return reasons


def _unmade(anchors: Sequence[Anchor], apart: Sequence[Anchor]) -> dict[str, str]:
    """Say which rows about checkpoints by themselves had none to look at, and why."""
    if not any(one.checkpoint or one.malformed for one in anchors):
        why = "no checkpoint of this chain" if apart else "no checkpoint"
        return dict.fromkeys(("checkpoint", "checkpoint_key", "checkpoint_signature"), why)
    reasons = {}
    if all(one.role == ENCLOSED for one in anchors):
        reasons["checkpoint_key"] = "no checkpoint was given"
    if all(one.signed is None for one in anchors):
        reasons["checkpoint_signature"] = "no signature under a given vkey"
    return reasons
