"""What callers hand in beside envelopes: hashes, ids, labels and openings, checked once.

A value that breaks a rule of the caller is `ProposalInvalid`, which is a `ValueError` too; nothing
is recorded then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

from ledger import jcs
from ledger.answers import CardStatus, Evidence, IssuedCard, Now, Opening, Ticket
from ledger.errors import ProposalInvalid
from ledger.hidden import blank, shown
from ledger.jcs import JSON
from ledger.kinds import MAX_INTEGER, MAX_OPENING, OPENINGS
from ledger.profile import parse as parse_profile
from ledger.proposal import Facts, Proposal

Hash: TypeAlias = str | bytes | IssuedCard | Ticket | CardStatus
"""A card hash: 64 lower-case hexadecimal digits, 32 bytes, or a value of ours that has one."""

ACTIONS: Final = ("accept", "decline", "cancel")
DECISIONS: Final = ("approve", "reject")
OUTCOMES: Final = ("succeeded", "failed", "unknown")
WITHDRAWALS: Final = ("revoked", "cancelled")
RESETS: Final = ("clock_fixed", "restored", "other")
ASSURANCES: Final = ("label", "authenticated")
LINE_BYTES: Final = 256
MOST_PROPOSALS: Final = 1_024
RUNTIME_MEMBERS: Final = ("name", "version", "run", "thread", "call", "trace")
_HASH = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{1,64}")


def card_hash(name: str, value: Hash) -> bytes:
    """Give the 32 bytes of a card hash."""
    if isinstance(value, IssuedCard):
        return value.envelope.card_hash
    if isinstance(value, Ticket):
        return value.card_hash
    if isinstance(value, CardStatus):
        return value.card.hash
    if isinstance(value, bytes) and len(value) == 32:
        return value
    if isinstance(value, str) and _HASH.fullmatch(value):
        return bytes.fromhex(value)
    raise ProposalInvalid(
        name, f"expected 64 lower-case hexadecimal digits or 32 bytes, found {_found(value)}"
    )


def prefix(value: str) -> tuple[bytes, bytes]:
    """Give the first and the last hash that begin with 1 to 64 lower-case hexadecimal digits."""
    if not isinstance(value, str) or not _PREFIX.fullmatch(value):
        expected = "1 to 64 lower-case hexadecimal digits"
        raise ProposalInvalid("hash", f"expected {expected}, found {_found(value)}")
    return bytes.fromhex(value.ljust(64, "0")), bytes.fromhex(value.ljust(64, "f"))


def digest(name: str, value: bytes) -> bytes:
    """Give a SHA-256 of 32 bytes."""
    if not isinstance(value, bytes) or len(value) != 32:
        raise ProposalInvalid(name, f"expected 32 bytes, found {_found(value)}")
    return value


def hexadecimal(name: str, value: str | bytes) -> str:
    """Give a SHA-256 as 64 lower-case hexadecimal digits."""
    return card_hash(name, value).hex()


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Give a value that is one of a few words, exactly."""
    if not isinstance(value, str) or value not in choices:
        raise ProposalInvalid(name, f"expected {' or '.join(choices)}, found {_found(value)}")
    return value


def count(name: str, value: int) -> int:
    """Take a number of records, at least 1."""
    if type(value) is not int or not 1 <= value <= MAX_INTEGER:
        raise ProposalInvalid(name, "expected an integer of at least 1")
    return value


def line(name: str, value: str) -> str:
    """Give a text of 1 to 256 bytes (spec §3.5)."""
    if not isinstance(value, str):
        raise ProposalInvalid(name, f"expected text, found {_found(value)}")
    size = len(_utf8(name, value))
    if not 0 < size <= LINE_BYTES:
        raise ProposalInvalid(name, f"expected 1 to {LINE_BYTES} bytes, found {size}")
    return value


def named(name: str, value: str) -> str:
    """Give the id of a person or system that must be named: a line that is not blank."""
    if blank(line(name, value)):
        raise ProposalInvalid(name, "expected an id, found a blank text")
    return value


def person(name: str, value: str | None) -> str | None:
    """Give the id of who acts, None where none or a blank one was given (spec §6.3)."""
    if value is None or (isinstance(value, str) and blank(value)):
        return None
    return line(name, value)


def approver(
    who: str | None, assurance: str = "label", evidence: Evidence | None = None
) -> dict[str, Any] | None:
    """Give what a body says of who decided, None where nobody is named (spec §3.5).

    Assurance `signed` is reserved (spec §8.3).
    """
    one_of("assurance", assurance, ASSURANCES)
    if who is None:
        return None
    said: dict[str, Any] = {"id": who, "assurance": assurance}
    if evidence is not None:
        if not isinstance(evidence, Evidence):
            raise ProposalInvalid("evidence", f"expected Evidence, found {_found(evidence)}")
        said["evidence"] = {
            "type": line("evidence/type", evidence.type),
            "digest": digest("evidence/digest", evidence.digest),
        }
    return said


def given(**members: Any) -> dict[str, Any]:
    """Give the members that are there."""
    return {name: value for name, value in members.items() if value is not None}


def now(
    facts: Facts, policy_outcome: str | None, approver_check: str | None, authorised: bool
) -> Now:
    """Give what a caller says at dispatch."""
    if not isinstance(facts, Facts):
        raise ProposalInvalid("facts", "expected Facts")
    if not isinstance(authorised, bool):
        raise ProposalInvalid(
            "approver_authorised", f"expected a boolean, found {_found(authorised)}"
        )
    outcome = None if policy_outcome is None else line("policy_outcome", policy_outcome)
    check = None if approver_check is None else line("approver_check", approver_check)
    return Now(facts, outcome, check, authorised)


def profile(text: bytes | None) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Give what a body says of a profile, and the opening that it binds."""
    if text is None:
        return {}, {}
    if not isinstance(text, bytes):
        raise ProposalInvalid("profile", f"expected bytes, found {_found(text)}")
    return {"profile": parse_profile(text).digest}, {"profile": text}


def text(name: str, value: str | None) -> Opening | None:
    """Give a text as an opening."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ProposalInvalid(name, f"expected text, found {_found(value)}")
    return Opening(_utf8(name, value), media_type="text/plain; charset=utf-8")


def openings(**named_openings: Opening | None) -> dict[str, Opening]:
    """Give the openings that are there, each at most 1 MiB (spec §3.3)."""
    found = given(**named_openings)
    for name, opening in found.items():
        if not isinstance(opening, Opening) or not isinstance(opening.data, bytes):
            raise ProposalInvalid(name, f"expected an Opening of bytes, found {_found(opening)}")
        if len(opening.data) > MAX_OPENING:
            size = len(opening.data)
            raise ProposalInvalid(name, f"expected at most {MAX_OPENING} bytes, found {size}")
        for label in ("media_type", "renderer"):
            if (value := getattr(opening, label)) is not None:
                line(f"{name}/{label}", value)
    return found


def withheld(names: Iterable[str]) -> frozenset[str]:
    """Take the names of openings that are left out of what is handed out (spec §15.4)."""
    return frozenset(one_of("withhold", name, OPENINGS) for name in names)


def view(proposal: Proposal, shown: Mapping[str, Opening]) -> None:
    """Refuse a presented text that is not the view which the manifest names (spec §8.2)."""
    presented = shown.get("presented")
    if presented is None:
        return
    named_view = proposal.document.get("review_manifest", {}).get("view_digest")
    if named_view is not None and presented.digest.hex() != named_view:
        reason = f"digest {presented.digest.hex()}, expected the view_digest {named_view}"
        raise ProposalInvalid("presented", reason)


def proposals(values: Iterable[Proposal]) -> tuple[Proposal, ...]:
    """Take the proposals of one call, at most 1,024, so that nobody waits long for its turn."""
    taken = tuple(islice(values, MOST_PROPOSALS + 1))
    if len(taken) > MOST_PROPOSALS:
        raise ProposalInvalid("proposals", f"expected at most {MOST_PROPOSALS} in one call")
    for number, value in enumerate(taken):
        if not isinstance(value, Proposal):
            raise ProposalInvalid(f"/{number}", f"expected a Proposal, found {_found(value)}")
    return taken


def response(content: JSON) -> Opening:
    """Give what a person answered as canonical JSON, or raise `ProposalInvalid`."""
    return Opening(jcs.encode(content), media_type="application/json")


def bound(opening: Opening) -> dict[str, Any]:
    """Give what a body says of an opening (spec §3.5)."""
    body: dict[str, Any] = {"digest": opening.digest}
    if opening.media_type is not None:
        body["media_type"] = opening.media_type
    if opening.renderer is not None:
        body["renderer"] = opening.renderer
    if opening.truncated:
        body["truncated"] = True
    return body


def runtime(value: Mapping[str, str] | None) -> dict[str, str] | None:
    """Give what a runtime says of itself: `name`, and what else it has (spec §3.5)."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not {"name"} <= set(value) <= set(RUNTIME_MEMBERS):
        expected = "name, and any of " + ", ".join(RUNTIME_MEMBERS[1:])
        raise ProposalInvalid("runtime", f"expected {expected}")
    return {member: line(f"runtime/{member}", item) for member, item in value.items()}


def _utf8(name: str, value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise ProposalInvalid(name, "an unpaired surrogate has no UTF-8 form") from error


def _found(value: object) -> str:
    if isinstance(value, str):
        return f'"{shown(value[:80])}"'
    return f"{len(value)} bytes" if isinstance(value, bytes) else type(value).__name__
