"""The rows of the table about checkpoints and excerpts, in the order of spec §10.1."""

from __future__ import annotations

from verifier.checks import checkpoint
from verifier.checks.row import ANCHOR, EXCERPT, Check
from verifier.report import Verdict

CHECKPOINT_ROWS = (
    Check(
        "excerpt",
        "checkpoint",
        "§14.1",
        "an excerpt has its one form",
        checkpoint.check_excerpt,
        scope=EXCERPT,
    ),
    Check(
        "checkpoint",
        "checkpoint",
        "§13.2",
        "a checkpoint is a well-formed note of this chain",
        checkpoint.check_checkpoint,
        scope=ANCHOR,
    ),
    Check(
        "checkpoint_key",
        "checkpoint",
        "§13.3",
        "a given checkpoint is signed under a given vkey, and signatures can be checked",
        checkpoint.check_checkpoint_key,
        verdict=Verdict.CANNOT_VERIFY,
        scope=ANCHOR,
    ),
    Check(
        "checkpoint_signature",
        "checkpoint",
        "§13.2",
        "the signature under a given vkey holds",
        checkpoint.check_checkpoint_signature,
        scope=ANCHOR,
    ),
    Check(
        "checkpoint_size",
        "checkpoint",
        "§13.7",
        "the log holds as many records as the checkpoint says",
        checkpoint.check_checkpoint_size,
        scope=ANCHOR,
    ),
    Check(
        "checkpoint_root",
        "checkpoint",
        "§13.7",
        "the root over the records is the signed one",
        checkpoint.check_checkpoint_root,
        scope=ANCHOR,
    ),
    Check(
        "inclusion",
        "checkpoint",
        "§14.3",
        "the records of an excerpt stand in the signed tree",
        checkpoint.check_inclusion,
    ),
    Check(
        "consistency",
        "checkpoint",
        "§13.7",
        "a newer checkpoint extends an older one",
        checkpoint.check_consistency,
        scope=ANCHOR,
    ),
)
