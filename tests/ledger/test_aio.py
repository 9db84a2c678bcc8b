"""The ledger for asyncio: no call blocks the loop, and no ticket is lost (spec §6.3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ledger import AsyncLedger, Facts, Ledger, Proposal, Refused
from ledger.errors import Dead

Propose = Callable[..., Proposal]
Rebuild = Callable[..., Facts]


class Gate:
    """A sync that waits while it is shut."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.waits = threading.Event()

    def __call__(self, descriptor: int) -> None:
        if not self.open.is_set():
            self.waits.set()
        assert self.open.wait(20)

    def shut(self) -> None:
        self.waits.clear()
        self.open.clear()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def path(ledger: Ledger) -> Path:
    ledger.close()
    return ledger.path


@asynccontextmanager
async def opened(path: Path, clock: Any, gate: Gate, **options: Any) -> AsyncIterator[AsyncLedger]:
    async with await AsyncLedger.open(path, clock=clock, sync=gate, **options) as ledger:
        yield ledger


def run(test: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(test, 60)

    asyncio.run(limited())


async def granted(ledger: AsyncLedger, proposal: Proposal) -> bytes:
    card = await ledger.issue(proposal)
    await ledger.resolve(card, "approve", approver="user:approver-1")
    return card.hash_bytes


async def cancelled_dispatch(ledger: AsyncLedger, gate: Gate, card: bytes, facts: Facts) -> None:
    """Cancel a task that dispatches while its record is written and not yet synced."""
    gate.shut()
    task = asyncio.create_task(ledger.dispatch(card, facts))
    await asyncio.to_thread(gate.waits.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_life_of_a_card(
    path: Path, clock: Any, gate: Gate, proposal: Propose, facts: Rebuild
) -> None:
    async def test() -> None:
        async with opened(path, clock, gate) as ledger:
            card = await granted(ledger, proposal())
            assert (await ledger.card(card)).state == "APPROVED"
            ticket = await ledger.dispatch(card, facts())
            assert ticket.arguments == {"order": "SO-1001", "amount": "199.00"}
            await ledger.settle(ticket, "succeeded")
            kinds = [record.kind for record in await ledger.events(card)]
            assert kinds == ["issued", "resolved", "dispatched", "settled"]
            many = await ledger.issue_many(proposal(step) for step in ("a", "b"))
            assert [status.hash for status in await ledger.pending()] == [
                each.hash for each in many if not isinstance(each, Refused)
            ]
            asked = await ledger.issue(proposal("c"))
            answered = await ledger.answer(
                asked, "accept", {"ok": True}, approver="user:approver-1"
            )
            assert answered.kind == "resolved"
            withdrawn = await ledger.withdraw(asked, by="user:operator-1", reason="revoked")
            assert withdrawn.kind == "withdrawn"
            with pytest.raises(Refused):
                await ledger.dispatch(card, facts())
            assert (await ledger.status()).count == 11

    run(test())


def test_tasks_share_their_syncs(path: Path, clock: Any, proposal: Propose) -> None:
    syncs: list[int] = []

    def sync(descriptor: int) -> None:
        syncs.append(descriptor)
        threading.Event().wait(0.02)

    async def test() -> None:
        async with await AsyncLedger.open(path, clock=clock, sync=sync, threads=64) as ledger:
            syncs.clear()
            cards = await asyncio.gather(*(ledger.issue(proposal(str(n))) for n in range(64)))
            assert sorted(card.seq for card in cards) == list(range(1, 65))
            assert len(syncs) < 32

    run(test())


def test_the_loop_goes_on_while_the_lock_is_held_elsewhere(
    path: Path, clock: Any, gate: Gate, proposal: Propose
) -> None:
    async def test() -> None:
        async with opened(path, clock, gate) as ledger:
            with Ledger.open(path, clock=clock)._log.store.exclusive():
                task = asyncio.create_task(ledger.issue(proposal()))
                for _ in range(50):
                    await asyncio.sleep(0.002)
                assert not task.done()
            assert (await task).seq == 1

    run(test())


def test_the_ticket_of_a_cancelled_dispatch_is_claimed_once(
    path: Path, clock: Any, gate: Gate, proposal: Propose, facts: Rebuild
) -> None:
    async def test() -> None:
        async with opened(path, clock, gate) as ledger:
            card = await granted(ledger, proposal())
            assert await ledger.claim(card) is None
            await cancelled_dispatch(ledger, gate, card, facts())
            claim = asyncio.create_task(ledger.claim(card))
            await asyncio.sleep(0.02)
            assert not claim.done()  # nothing is handed out before it is durable
            gate.open.set()
            ticket = await claim
            assert ticket is not None
            assert ticket.arguments["order"] == "SO-1001"
            assert await ledger.claim(card) is None
            await ledger.settle(ticket, "succeeded")
        with Ledger.open(path, clock=clock) as again:
            assert again.card(card).state == "SETTLED"

    run(test())


def test_a_claim_that_is_cancelled_loses_no_ticket(
    path: Path, clock: Any, gate: Gate, proposal: Propose, facts: Rebuild
) -> None:
    async def test() -> None:
        async with opened(path, clock, gate) as ledger:
            card = await granted(ledger, proposal())
            await cancelled_dispatch(ledger, gate, card, facts())
            claims = [asyncio.create_task(ledger.claim(card)) for _ in range(3)]
            await asyncio.sleep(0.02)
            claims[0].cancel()
            gate.open.set()
            found = await asyncio.gather(*claims, return_exceptions=True)
            assert isinstance(found[0], asyncio.CancelledError)
            (ticket,) = (each for each in found[1:] if each is not None)
            assert ticket.card_hash == card  # type: ignore[union-attr]

    run(test())


def test_a_ticket_that_nobody_claims_is_settled_unknown(
    path: Path, clock: Any, gate: Gate, proposal: Propose, facts: Rebuild
) -> None:
    async def test() -> None:
        async with opened(path, clock, gate) as ledger:
            card = await granted(ledger, proposal())
            await cancelled_dispatch(ledger, gate, card, facts())
            gate.open.set()
        with Ledger.open(path, clock=clock) as again:
            last = again.events(card)[-1]
            assert (last.kind, last.body["outcome"]) == ("settled", "unknown")
            assert last.body["by"] == "unclaimed ticket"
            assert again.card(card).state == "UNKNOWN"

    run(test())


def test_a_cancelled_dispatch_that_was_refused_says_so(
    path: Path, clock: Any, gate: Gate, proposal: Propose, facts: Rebuild
) -> None:
    async def test() -> None:
        async with opened(path, clock, gate) as ledger:
            card = await granted(ledger, proposal())
            await cancelled_dispatch(ledger, gate, card, facts("200.00"))
            gate.open.set()
            with pytest.raises(Refused, match="mismatch"):
                await ledger.claim(card)
            assert await ledger.claim(card) is None
            assert (await ledger.dispatch(card, facts())).card_hash == card

    run(test())


def test_of_two_cancelled_dispatches_the_ticket_is_found(
    path: Path, clock: Any, gate: Gate, proposal: Propose, facts: Rebuild
) -> None:
    async def test() -> None:
        async with opened(path, clock, gate) as ledger:
            card = await granted(ledger, proposal())
            gate.shut()
            tasks = [asyncio.create_task(ledger.dispatch(card, facts())) for _ in range(2)]
            await asyncio.to_thread(gate.waits.wait, 20)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            gate.open.set()
            ticket = await ledger.claim(card)
            assert ticket is not None
            assert ticket.record.kind == "dispatched"

    run(test())


def test_a_call_that_no_thread_has_begun_is_not_made_when_it_is_cancelled(
    path: Path, clock: Any, gate: Gate, proposal: Propose
) -> None:
    async def test() -> None:
        async with opened(path, clock, gate, threads=1) as ledger:
            gate.shut()
            first = asyncio.create_task(ledger.issue(proposal("a")))
            await asyncio.to_thread(gate.waits.wait, 20)
            second = asyncio.create_task(ledger.issue(proposal("b")))
            await asyncio.sleep(0.02)
            first.cancel()
            second.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
            gate.open.set()
            (waiting,) = await ledger.pending()
            assert waiting.envelope.task.step == "a"

    run(test())


def test_a_closed_ledger_says_so(path: Path, clock: Any, gate: Gate, proposal: Propose) -> None:
    async def test() -> None:
        async with opened(path, clock, gate) as ledger:
            await ledger.status()
        await ledger.aclose()
        with pytest.raises(Dead, match="closed"):
            await ledger.issue(proposal())

    run(test())
