"""A process that lives through one act of a ledger, with a fault at one call, again and again.

It reads commands from standard input, one JSON object a line: the act, the folder that holds the
ledger, the fault (null: none, only count). Each runs in a fork, which says on standard output, at
the very moment, what was answered, and which calls there were; then comes how the fork ended.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boundary import Fault, install

_say = os.write
boundary = install()  # before the product is imported

from ledger import Facts, Ledger, LedgerError, Proposal, assembly  # noqa: E402
from ledger.store.files import FileStore  # noqa: E402

AT = 1_700_000_000_000
SMALL = 4_000
THREADS = 4
BEGIN, END = "act-begins", "act-ends"
"""No such files: that they are asked for marks the act among the calls of the system."""


def say(**what: Any) -> None:
    """Say something outside the process, past the boundary."""
    _say(1, json.dumps(what).encode() + b"\n")


def clock() -> int:
    return AT


def proposal(step: str, **members: Any) -> Proposal:
    ordinary = {"tool_name": "pay", "arguments": {"n": 1}, "reasoning": "r", "ttl": 3600}
    return Proposal.for_tool_call(task=("run", step), **{**ordinary, **members})


def facts() -> Facts:
    return Facts.for_tool_call("pay", {"n": 1})


class Place:
    """The ledger of a command, and what stands in it already."""

    def __init__(self, folder: str, cards: dict[str, str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "approvals"
        self.cards = cards

    def open(self) -> Ledger:
        return Ledger.open(self.path, clock=clock)


def answered(*records: Any) -> None:
    """Say that records were answered for."""
    say(done=[[record.seq, record.digest.hex()] for record in records])


def tried(body: Callable[[], Any], number: int = 0) -> Any:
    """Say what a call ended with, if it did not give an answer; gives what it gave."""
    try:
        return body()
    except BaseException as error:
        say(
            call=number,
            error=type(error).__name__,
            hint=getattr(error, "hint", None),
            told=isinstance(error, LedgerError | KeyboardInterrupt),
            text=repr(error) + _where(error),
        )
        return None


def _where(error: BaseException) -> str:
    """Name the places that an error came through, nearest last."""
    frames = traceback.extract_tb(error.__traceback__)
    return " in " + " ".join(f"{Path(each.filename).name}:{each.lineno}" for each in frames[-6:])


# Acts: each is given the place and the ledger that was opened before the fault, if one was.


def init(place: Place, _: Any) -> None:
    ledger = Ledger.init(place.path, name="test", clock=clock)
    answered(next(iter(ledger.records())))


def opening(place: Place, _: Any) -> None:
    ledger = place.open()
    say(count=len(list(ledger.records())), warnings=ledger.warnings)


def issue(place: Place, ledger: Ledger) -> None:
    answered(ledger.issue(proposal("new")).record)


def resolve(place: Place, ledger: Ledger) -> None:
    answered(ledger.resolve(place.cards["open"], "approve", approver="user:a", target=None))


def dispatch(place: Place, ledger: Ledger) -> None:
    answered(ledger.dispatch(place.cards["approved"], facts()).record)


def settle(place: Place, ledger: Ledger) -> None:
    answered(ledger.settle(place.cards["dispatched"], "succeeded"))


def batch(place: Place, ledger: Ledger) -> None:
    """Issue from several threads that meet, so that some of them share a turn."""
    together = threading.Barrier(THREADS)

    def work(number: int) -> None:
        together.wait()
        card = tried(lambda: ledger.issue(proposal(f"new {number}")), number)
        if card is not None:
            answered(card.record)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    if any(thread.is_alive() for thread in threads):
        say(stuck=True)
        os._exit(7)


def segments(place: Place, ledger: Ledger) -> None:
    """Issue so many cards by one write that two new segments begin."""
    cards = ledger.issue_many([proposal(f"new {n}", reasoning="r" * 1_000) for n in range(7)])
    answered(*(card.record for card in cards))  # type: ignore[union-attr]


def rotate(place: Place, ledger: Ledger) -> None:
    answered(ledger.rotate())


def signer(place: Place, ledger: Ledger) -> None:
    say(vkey=ledger.make_signer(by="user:o"))


def checkpoint(place: Place, ledger: Ledger) -> None:
    signed = ledger.checkpoint()
    say(signed=[signed.checkpoint.size, signed.note.decode()])


def export(place: Place, ledger: Ledger) -> None:
    say(exported=ledger.export(place.folder / "export.cbor").count)


def look(place: Place, ledger: Ledger) -> None:
    """Open, and look something up without the lock."""
    say(state=ledger.card(place.cards["open"]).state, pending=len(ledger.pending()))


def adopt(place: Place, _: Any) -> None:
    ledger = Ledger.adopt(place.path, clock=clock)
    say(count=len(list(ledger.records())), warnings=ledger.warnings)


ACTS: dict[str, Callable[[Place, Any], None]] = {
    each.__name__: each
    for each in (
        init,
        opening,
        issue,
        resolve,
        dispatch,
        settle,
        batch,
        segments,
        rotate,
        signer,
        checkpoint,
        export,
        look,
        adopt,
    )
}
BEFORE_OPEN = ("init", "opening", "adopt")


def still_locked(place: Place) -> bool:
    """Tell whether the lock is held though nobody is at work: others would wait for ever."""
    try:
        descriptor = os.open(place.path / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def live(command: dict[str, Any]) -> None:
    """Go through one act, then try to append once more with the same object."""
    os.environ["CARDCHAIN_STATE"] = f"{command['folder']}/state"
    size = command.get("segment_bytes", SMALL)
    assembly.FileStore = functools.partial(FileStore, segment_bytes=size)  # type: ignore[misc]
    act, place = command["act"], Place(command["folder"], command["cards"])
    ledger = None if act in BEFORE_OPEN else place.open()
    if limit := command.get("limit"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    os.access(BEGIN, os.F_OK)
    boundary.arm(Fault(*command["fault"]) if command["fault"] else None)
    tried(lambda: ACTS[act](place, ledger))
    boundary.disarm()
    os.access(END, os.F_OK)
    say(calls=boundary.calls)
    if still_locked(place):
        say(locked=True)
    if ledger is not None and (command["fault"] or limit):
        card = tried(lambda: ledger.issue(proposal("again")), THREADS)
        if card is not None:
            answered(card.record)
            say(again=True)


def main() -> None:
    if len(sys.argv) > 1:  # one command, in this very process
        live(json.loads(sys.argv[1]))
        return
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                live(json.loads(line))
            except BaseException as error:
                say(broken=f"{error!r}")
                os._exit(8)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        say(ended=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
