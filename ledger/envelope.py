"""The envelope: everything an approver decides about, as one JSON document (spec §2)."""

from __future__ import annotations

import builtins
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger import jcs, schema
from ledger.errors import EnvelopeMalformed, ProposalInvalid, VersionUnknown
from ledger.jcs import JSON

_CUT_MARK: Final = "…"
_NOT_OF_THE_ASK: Final = ("reasoning", "issued_at", "not_after")


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
    def from_json(cls, text: bytes) -> Proposal:
        """Read a proposal as JSON, however it is spelled, or raise `ProposalInvalid`."""
        return cls(jcs.encode(jcs.parse(text)))

    def to_json(self) -> bytes:
        """Give the proposal as canonical JSON."""
        return self.canonical

    @property
    def document(self) -> dict[str, JSON]:
        """A fresh copy of the document: changing it changes nothing here."""
        return _loaded(self.canonical)


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
        )
        return cls(jcs.encode(facts))

    @classmethod
    def from_json(cls, text: bytes) -> Facts:
        """Read facts as JSON, however they are spelled, or raise `ProposalInvalid`."""
        return cls(jcs.encode(jcs.parse(text)))

    @property
    def document(self) -> dict[str, JSON]:
        """A fresh copy of the document: changing it changes nothing here."""
        return _loaded(self.canonical)


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope that keeps every rule of spec §2, and its hash.

    Made by `project`, `rebuild` and `parse` only. Digests are raw bytes but for
    `effect_key`, which is handed out as text. Times are unix seconds.
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
    def document(self) -> dict[str, JSON]:
        """A fresh copy of the document: changing it changes nothing here."""
        return _loaded(self.bytes)


def project(proposal: Proposal, issued_at: int) -> Envelope:
    """Give the envelope of a proposal issued at a time in unix seconds (spec §2.6).

    A pure projection: the same inputs give the same bytes on every machine.
    Raises `ProposalInvalid` where the envelope would break a limit.
    """
    document = _members(proposal)
    not_after = issued_at + proposal.document["ttl"]
    if not_after > schema.MAX_TIME:
        raise ProposalInvalid("/ttl", f"would end at {not_after}, limit {schema.MAX_TIME}")
    return _complete({**document, "issued_at": issued_at, "not_after": not_after})


def rebuild(envelope: Envelope, facts: Facts) -> Envelope:
    """Give the issued terms with the facts of now (spec §2.4).

    Nothing is filled in from the card. Raises `ProposalInvalid` where the result
    would break a limit.
    """
    terms = {k: v for k, v in envelope.document.items() if k not in schema.FACTS}
    return _complete({**terms, **facts.document})


def parse(text: bytes) -> Envelope:
    """Read stored envelope bytes by every rule of spec §2.

    Raises `EnvelopeMalformed` with a JSON pointer, or `VersionUnknown` where the document
    names another format.
    """
    try:
        document = jcs.parse(text)
        if jcs.encode(document) != text:
            raise ProposalInvalid("", "not in canonical form")
        version = document.get("format") if type(document) is dict else None
        if type(version) is str and version != schema.FORMAT:
            raise VersionUnknown(version, schema.FORMAT)
        schema.check_envelope(document)
        _check_digests(document)
    except ProposalInvalid as error:
        raise EnvelopeMalformed(error.pointer, error.reason) from error
    return _envelope(text, document)


def differing_pointers(a: Envelope, b: Envelope) -> tuple[str, ...]:
    """Give the JSON pointers of the leaves in which two envelopes differ, sorted.

    A leaf is a scalar, `{}` or `[]`; one that only one of the two has differs.
    The digests that follow from other members are named like any other leaf.
    """
    left = dict(_leaves(a.document, ()))
    right = dict(_leaves(b.document, ()))
    paths = (path for path in left.keys() | right.keys() if left.get(path) != right.get(path))
    return tuple(sorted({jcs.pointer(path) for path in paths}))


def same_ask(envelope: Envelope, proposal: Proposal) -> bool:
    """Tell whether the proposal asks again for what the envelope holds (spec §2.6).

    Reasoning and times do not count: runtimes run a node again when they resume.
    """
    asked = _with_digests(_members(proposal))
    held = envelope.document
    for name in _NOT_OF_THE_ASK:
        asked.pop(name, None)
        held.pop(name, None)
    return jcs.encode(asked) == jcs.encode(held)


def _canonical(text: bytes) -> JSON:
    document = jcs.parse(text)
    if jcs.encode(document) != text:
        raise ProposalInvalid("", "not in canonical form")
    return document


def _loaded(canonical: bytes) -> dict[str, JSON]:
    document: dict[str, JSON] = json.loads(canonical)
    return document


def _present(members: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in members.items() if value is not None}


def _tool_facts(
    *,
    subject: dict[str, JSON] | None,
    preconditions: list[dict[str, JSON]] | None,
    **action: JSON,
) -> dict[str, JSON]:
    return _present(
        {"action": _present(action), "subject": subject, "preconditions": preconditions}
    )


def _members(proposal: Proposal) -> dict[str, JSON]:
    """Give what a proposal says of an envelope, the reasoning cut to its limit."""
    document = proposal.document
    del document["ttl"]
    if len(document["reasoning"]) > schema.MAX_REASONING:
        document["reasoning"] = document["reasoning"][: schema.MAX_REASONING - 1] + _CUT_MARK
    return {**document, "format": schema.FORMAT}


def _complete(document: dict[str, JSON]) -> Envelope:
    document = _with_digests(document)
    schema.check_envelope(document)
    return _envelope(jcs.encode(document), document)


def _with_digests(document: dict[str, JSON]) -> dict[str, JSON]:
    """Set the digests that follow from other members (spec §2.5)."""
    action = {
        **document["action"],
        "args_digest": jcs.digest(document["action"]["arguments"]).hex(),
    }
    return {**document, "action": action, "effect_key": _effect_key(document["task"], action)}


def _effect_key(task: JSON, action: dict[str, JSON]) -> str:
    return jcs.digest(
        {
            "args_digest": action["args_digest"],
            "capability": action.get("capability"),
            "format": "effect-key/1",
            "task": task,
            "tool_name": action["tool_name"],
        }
    ).hex()


def _check_digests(document: dict[str, JSON]) -> None:
    again = _with_digests(document)
    if document["action"]["args_digest"] != again["action"]["args_digest"]:
        raise ProposalInvalid("/action/args_digest", "does not follow from the arguments")
    if document["effect_key"] != again["effect_key"]:
        raise ProposalInvalid(
            "/effect_key", "does not follow from task, tool_name, capability and arguments"
        )


def _envelope(text: bytes, document: dict[str, JSON]) -> Envelope:
    supersedes, prior = document.get("supersedes"), document.get("prior_attempt")
    return Envelope(
        bytes=text,
        card_hash=hashlib.sha256(text).digest(),
        task=Task(document["task"]["id"], document["task"]["step"]),
        task_digest=jcs.digest(document["task"]),
        issued_at=document["issued_at"],
        not_after=document["not_after"],
        grant_ttl=document.get("grant_ttl"),
        supersedes=supersedes and bytes.fromhex(supersedes),
        prior_attempt=prior and PriorAttempt(bytes.fromhex(prior["card_hash"]), prior["outcome"]),
        effect_key=document["effect_key"],
        arguments_bytes=jcs.encode(document["action"]["arguments"]),
    )


def _leaves(value: JSON, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], bytes]]:
    if type(value) is dict and value:
        return [leaf for name in value for leaf in _leaves(value[name], (*path, name))]
    if type(value) is list and value:
        return [leaf for i, element in enumerate(value) for leaf in _leaves(element, (*path, i))]
    return [(path, jcs.encode(value))]
