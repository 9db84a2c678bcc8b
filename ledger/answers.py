"""The values that a ledger hands out and takes in; they hold no file and no key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ledger.codec import Record
from ledger.envelope import Envelope, parse
from ledger.projection import Card, State
from ledger.proposal import Facts
from ledger.render import render_card_text, render_changes


@dataclass(frozen=True, slots=True)
class Opening:
    """Bytes kept beside a record and bound by their digest (spec §3.4).

    `media_type` and `renderer` are labels of 1 to 256 bytes; `truncated` says that a channel
    showed less than the whole.
    """

    data: bytes
    media_type: str | None = None
    renderer: str | None = None
    truncated: bool = False

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the bytes."""
        return hashlib.sha256(self.data).digest()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What shows who decided: its type, and the SHA-256 of what stands elsewhere (spec §3.5)."""

    type: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Now:
    """What a caller says at dispatch: the facts, and what it asked policy and identity again.

    `policy_outcome` is a word of the policy engine, of which `deny` refuses and `allow` may let a
    basis drift (spec §8.6); `approver_check` says how the approver was looked up again.
    """

    facts: Facts
    policy_outcome: str | None = None
    approver_check: str | None = None
    approver_authorised: bool = True

    def said(self) -> dict[str, str]:
        """Give what the record keeps of it beside the facts."""
        said = {"policy_outcome": self.policy_outcome, "approver_check": self.approver_check}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class IssuedCard:
    """A card whose `issued` record is durable; `replaced` is the envelope it supersedes."""

    envelope: Envelope
    record: Record
    replaced: bytes | None = None

    @property
    def text(self) -> str:
        """What the approver must see, all of it; it ends with the hash to echo (spec §9.1).

        For a card that supersedes another it begins with what changed since.
        """
        return text_of(self.envelope, self.replaced)

    @property
    def hash(self) -> str:
        """The card hash as the 64 digits that an approver echoes."""
        return self.envelope.card_hash.hex()

    @property
    def hash_bytes(self) -> bytes:
        """The card hash, 32 bytes."""
        return self.envelope.card_hash

    @property
    def seq(self) -> int:
        """The place of the `issued` record in the chain."""
        return self.record.seq


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to run one approved call once; its `dispatched` record is durable.

    What must run is `arguments`, the approved bytes, whatever became of the caller's own copy.
    """

    card_hash: bytes
    arguments_json: bytes
    effect_key: str
    record: Record

    @property
    def arguments(self) -> dict[str, Any]:
        """A fresh copy of the approved arguments."""
        arguments: dict[str, Any] = json.loads(self.arguments_json)
        return arguments


@dataclass(frozen=True, slots=True)
class Returned:
    """An earlier card of another task that asked for the same call, and how it ended."""

    hash: bytes
    state: State


@dataclass(frozen=True, slots=True)
class CardStatus:
    """A card as the chain has it at a time: `state` includes EXPIRED and LAPSED (spec §6.1).

    `replaced` is the envelope that it supersedes. `returned` are the newest earlier cards of other
    tasks that asked for the same call and were rejected, expired or lapsed.
    """

    card: Card
    state: State
    step_state: str
    envelope: Envelope
    replaced: bytes | None = None
    returned: tuple[Returned, ...] = ()

    @property
    def text(self) -> str:
        """What the approver must see, as `IssuedCard.text`."""
        return text_of(self.envelope, self.replaced)

    @property
    def hash(self) -> str:
        """The card hash as 64 digits."""
        return self.card.hash.hex()


@dataclass(frozen=True, slots=True)
class Status:
    """A ledger at a glance: `first` is the seq of its first record, `count` that of the next one.

    A ledger whose first record was pruned has no `name` any more. `guarded_from` is the seq from
    which a rollback would be noticed on this host, None if the host has no memory of this ledger.
    `warnings` are sentences for people.
    """

    name: str | None
    chain: bytes
    first: int
    count: int
    head: bytes
    at: int
    kid: bytes
    segments: int
    pending: int
    guarded_from: int | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """A finished export or excerpt: how many records and bytes, and the last chain digest.

    `note` is the file of its checkpoint, if one was put beside it.
    """

    count: int
    size: int
    head: bytes
    note: str | None = None


def text_of(envelope: Envelope, replaced: bytes | None) -> str:
    """Give what stands before an approver: what changed since the card it supersedes, then all."""
    text = render_card_text(envelope)
    if envelope.supersedes is None:
        return text
    if replaced is None:
        return f"changes: not shown, the envelope before is not at hand\n\n{text}"
    return f"{render_changes(parse(replaced), envelope)}\n{text}"
