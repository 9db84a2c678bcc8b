"""The envelope: everything an approver decides about, as one JSON document (spec §2)."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any, NamedTuple

from ledger.jcs import JSON


class Task(NamedTuple):
    """The durable identity of what is to be done (spec §2.3)."""

    id: str
    step: str


class PriorAttempt(NamedTuple):
    """The last dispatched card of the step: its hash, 32 bytes, and its outcome."""

    card_hash: bytes
    outcome: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a caller asks for, before the ledger sets the time (spec §2.6)."""

    document: bytes
    ttl: int

    @classmethod
    def for_tool_call(
        cls,
        *,
        task: tuple[str, str],
        tool_name: str,
        arguments: dict[str, Any],
        reasoning: str,
        ttl: int,
        grant_ttl: int | None = None,
        kind: str = "tool_call",
        capability: JSON = None,
        spec_digest: str | None = None,
        artifact_digest: str | None = None,
        **terms: Any,
    ) -> Proposal:
        """Propose one call of a tool; `terms` are the other members of an envelope by name."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, text: bytes) -> Proposal:
        """Read a proposal (spec §2.6), or raise `ProposalInvalid`."""
        raise NotImplementedError

    def to_json(self) -> bytes:
        """Give the canonical JSON of the proposal."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true now, built from the call about to run and never from the card (spec §2.4)."""

    document: bytes

    @classmethod
    def for_tool_call(
        cls,
        tool_name: str,
        arguments: dict[str, Any],
        *,
        capability: JSON = None,
        spec_digest: str | None = None,
        artifact_digest: str | None = None,
        subject: dict[str, Any] | None = None,
        preconditions: list[dict[str, Any]] | None = None,
    ) -> Facts:
        """Gather the facts of one call of a tool."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, text: bytes) -> Facts:
        """Read facts (spec §2.6), or raise `ProposalInvalid`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope that keeps every rule of spec §2, with its hash.

    Digests are raw bytes; `effect_key` is text, since it is handed out as the
    idempotency key. Times are unix seconds.
    """

    bytes: builtins.bytes
    card_hash: builtins.bytes
    task: Task
    task_digest: builtins.bytes
    issued_at: int
    not_after: int
    grant_ttl: int | None
    supersedes: builtins.bytes | None
    prior_attempt: PriorAttempt | None
    effect_key: str
    arguments_bytes: builtins.bytes

    @property
    def document(self) -> dict[str, Any]:
        """A fresh copy of the document: changing it changes nothing here."""
        raise NotImplementedError


def project(proposal: Proposal, issued_at: int) -> Envelope:
    """Give the envelope of a proposal issued at a time in unix seconds (spec §2.6)."""
    raise NotImplementedError


def rebuild(envelope: Envelope, facts: Facts) -> Envelope:
    """Give the issued terms with the facts of now (spec §2.4)."""
    raise NotImplementedError


def parse(text: bytes) -> Envelope:
    """Read stored envelope bytes (spec §2), or raise `Malformed` or `VersionUnknown`."""
    raise NotImplementedError


def differing_pointers(a: Envelope, b: Envelope) -> tuple[str, ...]:
    """Give the JSON pointers of the leaves in which two envelopes differ, sorted."""
    raise NotImplementedError


def same_ask(envelope: Envelope, proposal: Proposal) -> bool:
    """Tell whether the proposal asks again for what the envelope holds (spec §2.6)."""
    raise NotImplementedError
