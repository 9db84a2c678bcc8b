"""Checkpoints and proofs at hand, as values whose form and signature were looked at.

What an auditor gives is told from what comes with a log: only the first can pin one (spec §16.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # starting takes longer with them
    from verifier.checkpoint import Checkpoint, Consistency
    from verifier.note import Vkey
    from verifier.pinfile import Head
    from verifier.shape import Problem

GIVEN, PROOF, DELIVERED, ENCLOSED = "given", "proof", "delivered", "enclosed"


class Anchor(NamedTuple):
    """A checkpoint at hand, alone or as the newer one of a consistency proof.

    `role` says where it is from: GIVEN by the auditor, newer one of a PROOF that was given,
    DELIVERED in a ledger, or ENCLOSED in an excerpt. `malformed`, `unproven` (of the proof) and
    `unreadable` are problems of its form. `vkey` is the given key that it names, `signed` says
    whether its signature holds; None is unknown, and `no_library` says why.
    """

    file: str
    role: str
    checkpoint: Checkpoint | None = None
    malformed: Problem | None = None
    unreadable: Problem | None = None
    proof: Consistency | None = None
    unproven: Problem | None = None
    vkey: Vkey | None = None
    signed: bool | None = None
    no_library: str = ""

    @property
    def size(self) -> int:
        """The size that it speaks of; 0 where it cannot be read."""
        return 0 if self.checkpoint is None else self.checkpoint.size


class Auditor(NamedTuple):
    """What an auditor holds logs against (spec §16).

    The keys of signers, checkpoints and proofs that were kept, the head that was pinned, whether
    openings may be withheld, and the one of the checkpoints after which verification begins.
    """

    vkeys: tuple[Vkey, ...] = ()
    given: tuple[Anchor, ...] = ()
    pin: Head | None = None
    allow_withheld: bool = False
    since: Anchor | None = None
