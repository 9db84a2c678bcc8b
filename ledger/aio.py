"""The ledger for asyncio: the same calls, in threads, so that no loop waits for a lock or a disk.

A call that was begun is never given up. Where the awaiting task is cancelled, the call goes on and
is recorded as it would have been; one that no thread had begun is not made. The one answer that
nothing can give again is a ticket, so that of a cancelled dispatch is kept: `claim` hands it out,
and one that nobody claims is settled `unknown` when the ledger is closed. A process that ends
before leaves the card dispatched and not settled, which reads as unknown too (spec §6.4).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

from ledger import request
from ledger.answers import CardStatus, IssuedCard, Status, Ticket
from ledger.codec import Record
from ledger.errors import Dead, LedgerError, Refused
from ledger.proposal import Facts, Proposal
from ledger.request import Hash
from ledger.writer import Ledger

T = TypeVar("T")

THREADS: Final = 32
"""How many calls run at one time; those that wait for the lock share one write and one sync."""
_LOST: Final = "unclaimed ticket"


class AsyncLedger:
    """One ledger, for the tasks of one or more loops. Close it with `aclose`, or use `async with`.

    Arguments, answers and errors of each call are those of `Ledger`. The ledger is at hand as
    `ledger`, for what is not here; its calls block.
    """

    def __init__(self, ledger: Ledger, *, threads: int = THREADS) -> None:
        """Take an open ledger, which this object closes, and how many calls may run at one time."""
        self.ledger = ledger
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="cardchain")
        self._cancelled: dict[bytes, list[Future[Ticket]]] = {}

    @classmethod
    async def open(
        cls, path: str | os.PathLike[str], *, threads: int = THREADS, **options: Any
    ) -> Self:
        """Open a ledger with the options of `Ledger.open`."""
        return cls(await asyncio.to_thread(Ledger.open, path, **options), threads=threads)

    async def __aenter__(self) -> Self:
        """Give the ledger itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Let every call that was begun end, settle the tickets that nobody claimed, and close."""
        await asyncio.shield(asyncio.to_thread(self._close))

    def _close(self) -> None:
        self._threads.shutdown()
        for calls in self._cancelled.values():
            for call in calls:
                with suppress(LedgerError):
                    self.ledger.settle(call.result(), "unknown", by=_LOST)
        self._cancelled.clear()
        self.ledger.close()

    # The life of a card

    async def issue(self, proposal: Proposal, **asked: Any) -> IssuedCard:
        """Issue a card, as `Ledger.issue`."""
        return await self._call(self.ledger.issue, proposal, **asked)

    async def issue_many(
        self, proposals: Iterable[Proposal], *, runtime: Mapping[str, str] | None = None
    ) -> list[IssuedCard | Refused]:
        """Issue cards with one write and one sync, as `Ledger.issue_many`."""
        return await self._call(self.ledger.issue_many, tuple(proposals), runtime=runtime)

    async def resolve(
        self, echo: Hash, decision: str, *, approver: str | None, **asked: Any
    ) -> Record:
        """Take a decision, as `Ledger.resolve`."""
        return await self._call(self.ledger.resolve, echo, decision, approver=approver, **asked)

    async def answer(
        self, echo: Hash, action: str, content: Any = None, *, approver: str | None, **asked: Any
    ) -> Record:
        """Take the answer to an elicitation, as `Ledger.answer`."""
        return await self._call(
            self.ledger.answer, echo, action, content, approver=approver, **asked
        )

    async def withdraw(self, echo: Hash, *, by: str | None, reason: str, **asked: Any) -> Record:
        """Withdraw a card, as `Ledger.withdraw`."""
        return await self._call(self.ledger.withdraw, echo, by=by, reason=reason, **asked)

    async def dispatch(self, card: Hash, facts: Facts, **asked: Any) -> Ticket:
        """Spend the grant of a card, as `Ledger.dispatch`.

        If the task is cancelled while it waits, the grant may be spent all the same: `claim`.
        """
        target = request.card_hash("card", card)
        call = self._submit(self.ledger.dispatch, target, facts, **asked)
        try:
            return await asyncio.shield(_awaited(call))
        except asyncio.CancelledError:
            if not call.cancel():
                self._cancelled.setdefault(target, []).append(call)
            raise

    async def claim(self, card: Hash) -> Ticket | None:
        """Give the ticket of a dispatch whose task was cancelled, once; None if there is none.

        Raises:
            Refused: The dispatch was refused; any other error that it ended with, too.

        """
        target = request.card_hash("card", card)
        refused: Refused | None = None
        while calls := self._cancelled.get(target):
            call = calls[0]
            await asyncio.wait([_awaited(call)])
            if call not in calls:
                continue  # another claim was told
            calls.remove(call)
            try:
                return call.result()
            except Refused as error:
                refused = error
        self._cancelled.pop(target, None)
        if refused is not None:
            raise refused
        return None

    async def settle(self, card: Hash, outcome: str, **said: Any) -> Record:
        """Record how a dispatched call ended, as `Ledger.settle`."""
        return await self._call(self.ledger.settle, card, outcome, **said)

    # Questions

    async def card(self, card: Hash, *, now: int | None = None) -> CardStatus:
        """Give a card, as `Ledger.card`."""
        return await self._call(self.ledger.card, card, now=now)

    async def state(self, card: Hash, *, now: int | None = None) -> tuple[str, str]:
        """Give the state of a card and that of its step, as `Ledger.state`."""
        return await self._call(self.ledger.state, card, now=now)

    async def redactions(self, card: Hash) -> tuple[Record, ...]:
        """Give what says that openings of a card were erased, as `Ledger.redactions`."""
        return await self._call(self.ledger.redactions, card)

    async def events(self, card: Hash) -> tuple[Record, ...]:
        """Give every record about a card, as `Ledger.events`."""
        return await self._call(self.ledger.events, card)

    async def pending(self, now: int | None = None) -> tuple[CardStatus, ...]:
        """Give the cards that wait for a decision, as `Ledger.pending`."""
        return await self._call(self.ledger.pending, now)

    async def status(self) -> Status:
        """Give the ledger at a glance, as `Ledger.status`."""
        return await self._call(self.ledger.status)

    async def _call(self, act: Callable[..., T], *args: Any, **named: Any) -> T:
        """Run a call in a thread; once begun, it goes on when the awaiting task is cancelled."""
        call = self._submit(act, *args, **named)
        try:
            return await asyncio.shield(_awaited(call))
        except asyncio.CancelledError:
            call.cancel()
            raise

    def _submit(self, act: Callable[..., T], *args: Any, **named: Any) -> Future[T]:
        try:
            return self._threads.submit(act, *args, **named)
        except RuntimeError as error:  # the threads were shut down
            raise Dead("it was closed") from error


def _awaited(call: Future[T]) -> asyncio.Future[T]:
    """Give the call for this loop; that nobody asks for its error any more is no news."""
    over = asyncio.wrap_future(call)
    over.add_done_callback(lambda done: done.cancelled() or done.exception())
    return over
