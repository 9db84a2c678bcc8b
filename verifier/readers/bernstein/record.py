"""The shape of one record: its members, and what it repeats of the record before it."""

from __future__ import annotations

from typing import Any, Final

from verifier.readers.bernstein.envelope import HEX64
from verifier.readers.bernstein.findings import Problem
from verifier.readers.bernstein.text import seconds, shown

OLD: Final = (
    "actor",
    "details",
    "event_type",
    "hmac",
    "prev_hmac",
    "resource_id",
    "resource_type",
    "timestamp",
)
NEW: Final = (*OLD[:-1], "scheme", "timestamp")
_FREE_PREDECESSOR: Final = frozenset({"skill.catalog.install", "skill.catalog.upgrade"})


def shape_problem(record: dict[str, Any]) -> Problem | None:
    """A record has exactly the members of the format, each of its type."""
    names = tuple(record)
    if names not in (OLD, NEW):
        missing = [name for name in OLD if name not in record]
        unknown = [name for name in record if name not in NEW]
        found = f"no {missing[0]}" if missing else f"the member {shown(unknown[0])}"
        return Problem("bernstein.shape", "the members of a record", found)
    for name in OLD:
        if name != "details" and not isinstance(record[name], str):
            return Problem("bernstein.shape", f"text as {name}", shown(record[name]))
    if type(record["details"]) is not dict:
        return Problem("bernstein.shape", "an object as details", shown(record["details"]))
    for name in ("hmac", "prev_hmac"):
        if not HEX64.fullmatch(record[name]):
            return Problem("bernstein.shape", f"64 hex digits as {name}", shown(record[name]))
    if seconds(record["timestamp"]) is None:
        return Problem(
            "bernstein.shape", "a timestamp YYYY-MM-DDThh:mm:ss.ffffffZ", shown(record["timestamp"])
        )
    return None


def scheme_problem(record: dict[str, Any]) -> Problem | None:
    """A record is of scheme 1, which need not be named, or of scheme 2."""
    scheme = record.get("scheme", 1)
    if type(scheme) is int and scheme in (1, 2):
        return None
    return Problem("bernstein.scheme", "scheme 1 or 2", f"scheme {shown(scheme)}")


def predecessor_problem(record: dict[str, Any]) -> Problem | None:
    """A stated prev_chain_digest is prev_hmac; two events of skills state another one."""
    stated = record["details"].get("prev_chain_digest")
    if not isinstance(stated, str) or not stated or stated == record["prev_hmac"]:
        return None
    if record["event_type"] in _FREE_PREDECESSOR:
        return None
    return Problem(
        "bernstein.predecessor", f"prev_chain_digest {record['prev_hmac']}", shown(stated)
    )
