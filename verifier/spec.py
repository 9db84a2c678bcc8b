"""The constants of the format (docs/spec.md)."""

from __future__ import annotations

VERSION = "cardchain/1"  # spec §3.2
CARD_FORMAT = "cardchain-card/1"  # spec §2.3
KEY_FORMAT = "cardchain-key/1"  # spec §4.3
PROFILE_FORMAT = "cardchain-profile/1"  # spec §8.5
EXCERPT_FORMAT = "cardchain-excerpt/1"  # spec §14.1
PIN_FORMAT = "cardchain-pin/1"  # spec §16.2

HEADER = bytes.fromhex("d1844da201050448")  # spec §3.1: tag 17, array of 4, protected up to kid
KID_SIZE = 8
CHAIN_SIZE = 16
DIGEST_SIZE = 32
NO_PREVIOUS = bytes(DIGEST_SIZE)  # prev of record 0 (spec §3.2)

MAX_INTEGER = 2**53 - 1  # spec §1
MAX_TIME = 253402300799  # spec §1: the end of the year 9999, in unix seconds
MAX_BARE = 65_535  # spec §3.3
MAX_OPENING = 1_048_576  # spec §3.3
MAX_RECORD = 5_242_880  # spec §3.3
MAX_DOCUMENT = 1_048_576  # spec §2.1
MAX_DEPTH = 64  # spec §2.1
MAX_PROFILE = 65_536  # spec §8.5

EVIDENCE_CLASSES = ("none", "fired_rules", "selection", "whole_policy")  # spec §8.4, from the least
ASSURANCES = ("label", "authenticated", "signed")  # spec §3.5, from the least
BASIS_DRIFT = "basis_drift"  # spec §8.6: the only exception

GATES = ("issue", "resolve", "withdraw", "dispatch", "settle")

# spec §6.4, in the order in which the first that holds is recorded
REASONS = {
    "issue": (
        "profile_unknown",
        "claimed_above_derived",
        "evidence_below_floor",
        "manifest_mismatch",
        "fixed_parameter_supplied",
        "open_exists",
        "supersedes_wrong",
        "attempt_unnamed",
    ),
    "resolve": (
        "hash_mismatch",
        "missing_approver",
        "already_resolved",
        "expired",
        "withdrawn",
        "not_latest",
        "self_approval",
        "approver_unverified",
    ),
    "withdraw": (
        "hash_mismatch",
        "missing_approver",
        "already_dispatched",
        "already_resolved",
        "withdrawn",
        "not_latest",
        "expired",
    ),
    "dispatch": (
        "unknown_card",
        "not_approved",
        "already_dispatched",
        "withdrawn",
        "not_latest",
        "grant_expired",
        "mismatch",
        "policy_denied",
        "approver_not_authorised",
        "evidence_below_floor",
    ),
    "settle": ("unknown_card", "not_dispatched", "already_settled"),
}
ASSERTED = frozenset(
    {"profile_unknown", "approver_unverified", "policy_denied", "approver_not_authorised"}
)

# spec §9.2, as (first, last) code points
HIDDEN_RANGES = (
    (0x0000, 0x001F),
    (0x007F, 0x009F),
    (0x00A0, 0x00A0),
    (0x00AD, 0x00AD),
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x20D0, 0x20FF),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x302A, 0x302F),
    (0x3099, 0x309A),
    (0x3164, 0x3164),
    (0xD800, 0xF8FF),
    (0xFDD0, 0xFDEF),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFC),
    (0xFFFE, 0xFFFF),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1345F),
    (0x16FE4, 0x16FE4),
    (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159),
    (0x1D165, 0x1D169),
    (0x1D16D, 0x1D182),
    (0xE0000, 0xE0FFF),
    (0xF0000, 0x10FFFF),
)
