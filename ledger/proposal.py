"""What a caller hands in: a proposal before an approval, the facts before an effect (spec §2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ledger import jcs, schema
from ledger.errors import ProposalInvalid
from ledger.jcs import JSON


class _Document(Protocol):
    @property
    def document(self) -> dict[str, JSON]: ...


class Superseded(Protocol):
    """A card as the ledger hands it out, by its hash in hexadecimal and its envelope."""

    @property
    def hash(self) -> str:
        """The card hash as 64 digits."""

    @property
    def envelope(self) -> _Document:
        """The envelope."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a caller asks for, before the ledger sets the time (spec §2.6).

    Holds canonical JSON, so nothing that the caller still has can change it.
    """

    canonical: bytes

    def __post_init__(self) -> None:
        """Refuse what is not the canonical JSON of a proposal, as `ProposalInvalid`."""
        schema.check_proposal(_canonical(self.canonical))

    @classmethod
    def for_tool_call(
        cls,
        *,
        task: tuple[str, str],
        tool_name: str,
        arguments: dict[str, JSON],
        reasoning: str,
        ttl: int,
        grant_ttl: int | None = None,
        kind: str = "tool_call",
        capability: JSON = None,
        spec_digest: str | None = None,
        artifact_digest: str | None = None,
        subject: dict[str, JSON] | None = None,
        preconditions: list[dict[str, JSON]] | None = None,
        approval_basis: dict[str, JSON] | None = None,
        review_manifest: dict[str, JSON] | None = None,
        **terms: JSON,
    ) -> Proposal:
        """Propose one call of a tool.

        `task` is (id, step), `ttl` and `grant_ttl` are seconds, and `terms` are other
        members of spec §2.3 by their names, such as `impact=` and `supersedes=`.
        None stands for an absent member. Raises `ProposalInvalid`.
        """
        if not isinstance(task, tuple | list) or len(task) != 2:
            raise ProposalInvalid("/task", "expected (id, step)")
        if "action" in terms:
            raise ProposalInvalid(
                "/action", "give tool_name, arguments and the like, not the whole"
            )
        facts = _tool_facts(
            tool_name=tool_name,
            arguments=arguments,
            capability=capability,
            spec_digest=spec_digest,
            artifact_digest=artifact_digest,
            subject=subject,
            preconditions=preconditions,
            approval_basis=approval_basis,
            review_manifest=review_manifest,
        )
        own = {
            "kind": kind,
            "task": {"id": task[0], "step": task[1]},
            "reasoning": reasoning,
            "ttl": ttl,
            "grant_ttl": grant_ttl,
        }
        return cls(jcs.encode({**_present(terms), **_present(own), **facts}))

    @classmethod
    def for_elicitation(
        cls,
        message: str,
        schema: dict[str, JSON],
        server: str,
        *,
        task: tuple[str, str],
        ttl: int,
        reasoning: str = "",
        **members: JSON,
    ) -> Proposal:
        """Ask a person what an MCP server asks in `elicitation/create`.

        `message` and `schema` are its `message` and `requestedSchema`, `server` names the server;
        `members` are as in `for_tool_call`. `Ledger.answer` takes what the person answers.
        """
        return cls.for_tool_call(
            task=task,
            tool_name="elicitation/create",
            arguments={"message": message, "requestedSchema": schema},
            capability={"server": server},
            kind="elicitation",
            reasoning=reasoning,
            ttl=ttl,
            **members,
        )

    @classmethod
    def for_input_required(
        cls,
        message: dict[str, JSON],
        agent: str,
        *,
        task: tuple[str, str],
        ttl: int,
        reasoning: str = "",
        **members: JSON,
    ) -> Proposal:
        """Ask a person what an A2A agent asks when its task is `input-required`.

        `message` is the message of the task's status as JSON, `agent` names the agent; the rest
        is as in `for_elicitation`.
        """
        return cls.for_tool_call(
            task=task,
            tool_name="input-required",
            arguments={"message": message},
            capability={"agent": agent},
            kind="input_required",
            reasoning=reasoning,
            ttl=ttl,
            **members,
        )

    def superseding(self, card: Superseded, *, outcome: str | None = None) -> Proposal:
        """Give the same proposal for the step of `card`, which it replaces (spec §2.3).

        `outcome` says how the dispatched `card` ended, `"unknown"` while it is not settled; None
        says that it was not dispatched, and keeps the attempt that it names itself.
        """
        document, held = self.document, card.envelope.document
        attempt = held.get("prior_attempt")
        if outcome is not None:
            attempt = {"card_hash": card.hash, "outcome": outcome}
        own = {"task": held["task"], "supersedes": card.hash, "prior_attempt": attempt}
        return Proposal(jcs.encode({**document, **_present(own)}))

    @classmethod
    def from_json(cls, text: bytes) -> Proposal:
        """Read a proposal as JSON, however it is spelled, or raise `ProposalInvalid`."""
        return cls(jcs.encode(jcs.parse(text)))

    def to_json(self) -> bytes:
        """Give the proposal as canonical JSON."""
        return self.canonical

    @property
    def document(self) -> dict[str, JSON]:
        """A fresh copy of the document: changing it changes nothing here."""
        document: dict[str, JSON] = jcs.load(self.canonical)
        return document


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true now, built from the call about to run and never from the card (spec §2.4).

    A fact that is left out is absent from the rebuilt envelope.
    """

    canonical: bytes

    def __post_init__(self) -> None:
        """Refuse what is not the canonical JSON of facts, as `ProposalInvalid`."""
        schema.check_facts(_canonical(self.canonical))

    @classmethod
    def for_tool_call(
        cls,
        tool_name: str,
        arguments: dict[str, JSON],
        *,
        capability: JSON = None,
        spec_digest: str | None = None,
        artifact_digest: str | None = None,
        subject: dict[str, JSON] | None = None,
        preconditions: list[dict[str, JSON]] | None = None,
        approval_basis: dict[str, JSON] | None = None,
        review_manifest: dict[str, JSON] | None = None,
    ) -> Facts:
        """Gather the facts of one call of a tool, or raise `ProposalInvalid`."""
        facts = _tool_facts(
            tool_name=tool_name,
            arguments=arguments,
            capability=capability,
            spec_digest=spec_digest,
            artifact_digest=artifact_digest,
            subject=subject,
            preconditions=preconditions,
            approval_basis=approval_basis,
            review_manifest=review_manifest,
        )
        return cls(jcs.encode(facts))

    @classmethod
    def from_json(cls, text: bytes) -> Facts:
        """Read facts as JSON, however they are spelled, or raise `ProposalInvalid`."""
        return cls(jcs.encode(jcs.parse(text)))

    @property
    def document(self) -> dict[str, JSON]:
        """A fresh copy of the document: changing it changes nothing here."""
        document: dict[str, JSON] = jcs.load(self.canonical)
        return document


def _canonical(text: bytes) -> JSON:
    document = jcs.parse(text)
    if jcs.encode(document) != text:
        raise ProposalInvalid("", "not in canonical form")
    return document


def _present(members: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in members.items() if value is not None}


def _tool_facts(
    *,
    subject: dict[str, JSON] | None,
    preconditions: list[dict[str, JSON]] | None,
    approval_basis: dict[str, JSON] | None,
    review_manifest: dict[str, JSON] | None,
    **action: JSON,
) -> dict[str, JSON]:
    return _present(
        {
            "action": _present(action),
            "subject": subject,
            "preconditions": preconditions,
            "approval_basis": approval_basis,
            "review_manifest": review_manifest,
        }
    )
