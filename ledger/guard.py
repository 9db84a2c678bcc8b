"""The guard around one effect: dispatch before it, settle after it (spec §6.3)."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from ledger import request
from ledger.answers import Ticket
from ledger.codec import Record
from ledger.errors import LedgerError
from ledger.request import OUTCOMES


class EffectFailed(Exception):
    """To be raised in the block of a guard that knows that its effect did not happen.

    It speaks of the innermost guard that it leaves; to one around that it is any other error.
    """

    told = False


Dispatch = Callable[[], Ticket]
Settle = Callable[..., Record]


class Effect:
    """One run of an approved call.

    The block of the guard runs `arguments`, the approved ones. It may set `outcome` once it knows
    it, which then stands whatever happens afterwards, and `receipt_digest`, the SHA-256 of what
    the system that committed the effect answered.
    """

    def __init__(self, ticket: Ticket) -> None:
        """Take the ticket whose `dispatched` record is durable."""
        self.ticket = ticket
        self._outcome: str | None = None
        self._receipt_digest: bytes | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """A fresh copy of the approved arguments."""
        return self.ticket.arguments

    @property
    def effect_key(self) -> str:
        """The idempotency key to hand to the system that commits the effect (spec §2.5)."""
        return self.ticket.effect_key

    @property
    def outcome(self) -> str | None:
        """How it ended, None until the block says so."""
        return self._outcome

    @outcome.setter
    def outcome(self, value: str) -> None:
        self._outcome = request.one_of("outcome", value, OUTCOMES)

    @property
    def receipt_digest(self) -> bytes | None:
        """The SHA-256 of a receipt, None without one."""
        return self._receipt_digest

    @receipt_digest.setter
    def receipt_digest(self, value: bytes) -> None:
        self._receipt_digest = request.digest("receipt_digest", value)


class Guard:
    """A context manager that dispatches on entry and settles on exit; made by `Ledger.guard`.

    It can be entered once. A process that dies in the block leaves the outcome open, which counts
    as unknown: only a new card that names the attempt can run it again (spec §6.4).
    """

    def __init__(self, dispatch: Dispatch, settle: Settle) -> None:
        """Take the two gates; nothing happens before entry."""
        self._dispatch = dispatch
        self._settle = settle

    def __enter__(self) -> Effect:
        """Dispatch, or raise the refusal before anything runs."""
        self._effect = Effect(self._dispatch())
        return self._effect

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Settle; an error of the block goes on, with a note where it could not be settled."""
        effect = self._effect
        outcome = effect.outcome or _outcome_of(error)
        if isinstance(error, EffectFailed):
            error.told = True
        try:
            self._settle(effect.ticket, outcome, receipt_digest=effect.receipt_digest)
        except LedgerError as failure:
            if error is None:
                raise
            error.add_note(f"the outcome {outcome} could not be recorded: {failure}")


def _outcome_of(error: BaseException | None) -> str:
    if error is None:
        return "succeeded"
    return "failed" if isinstance(error, EffectFailed) and not error.told else "unknown"
