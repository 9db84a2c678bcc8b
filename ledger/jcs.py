"""JSON as the envelope needs it: a strict boundary and one canonical form (spec §2.1, §2.2)."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

JSON: TypeAlias = Any

MAX_BYTES: Final = 1_048_576
MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53 - 1


def parse(text: bytes) -> JSON:
    """Read a JSON document by the strict rules of the boundary (spec §2.1).

    Raises `ProposalInvalid`, naming the place.
    """
    raise NotImplementedError


def encode(value: JSON) -> bytes:
    """Give the canonical form of a native value (spec §2.1, §2.2).

    Raises `ProposalInvalid`, naming the place.
    """
    raise NotImplementedError


def digest(value: JSON) -> bytes:
    """Give the SHA-256 of the canonical form, 32 bytes."""
    raise NotImplementedError
