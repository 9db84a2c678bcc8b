"""The envelope: everything an approver decides about, as one JSON document (spec §2)."""

from __future__ import annotations

import builtins
import hashlib
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger import jcs, schema
from ledger.errors import EnvelopeMalformed, ProposalInvalid, VersionUnknown
from ledger.jcs import JSON
from ledger.proposal import Facts, Proposal

_CUT_MARK: Final = "…"
_NOT_OF_THE_ASK: Final = ("reasoning", "issued_at", "not_after")


class Task(NamedTuple):
    """The durable identity of what is to be done (spec §2.3)."""

    id: str
    step: str


class Difference(NamedTuple):
    """A leaf in which two envelopes differ: canonical JSON before and after, None where absent."""

    pointer: str
    before: bytes | None
    after: bytes | None


class PriorAttempt(NamedTuple):
    """The last dispatched card of the step: its hash, 32 bytes, and its outcome."""

    card_hash: bytes
    outcome: str


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
        document: dict[str, JSON] = jcs.load(self.bytes)
        return document


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


def differences(a: Envelope, b: Envelope) -> tuple[Difference, ...]:
    """Give the leaves in which two envelopes differ, sorted by their JSON pointers.

    A leaf is a scalar, `{}` or `[]`; one that only one of the two has differs.
    The digests that follow from other members are named like any other leaf.
    """
    left = dict(_leaves(a.document, ()))
    right = dict(_leaves(b.document, ()))
    differing = (path for path in left.keys() | right.keys() if left.get(path) != right.get(path))
    found = (Difference(jcs.pointer(p), left.get(p), right.get(p)) for p in differing)
    return tuple(sorted(found, key=lambda each: each.pointer))


def differing_pointers(a: Envelope, b: Envelope) -> tuple[str, ...]:
    """Give the JSON pointers of the leaves in which two envelopes differ, sorted."""
    return tuple(dict.fromkeys(each.pointer for each in differences(a, b)))


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
