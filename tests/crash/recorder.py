"""A process that lives through the whole life of a small ledger, and records what it asks the disk.

    recorder.py FOLDER SEGMENT_BYTES

It prints one JSON array of what happened, in order: calls that change files, answers as they were
given, and the index as it stood, which SQLite writes past the boundary.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from boundary import install

boundary = install()  # before the product is imported

from ledger import Facts, Ledger, Proposal, assembly  # noqa: E402
from ledger.store.files import FileStore  # noqa: E402

AT = 1_700_000_000_000
FOLDER, SEGMENT_BYTES = Path(sys.argv[1]), int(sys.argv[2])
PATH = FOLDER / "approvals"
assembly.FileStore = functools.partial(FileStore, segment_bytes=SEGMENT_BYTES)  # type: ignore[misc]

happened: list[dict[str, Any]] = []
names: dict[int, str] = {}
places: dict[int, int] = {}
"""What each descriptor stands for, and where it writes next."""
_index: dict[str, str] = {}


def inside(path: Any) -> str:
    """Give a path relative to the folder, empty if it is the index or elsewhere."""
    found = os.path.relpath(os.path.abspath(os.fspath(path)), FOLDER)
    return "" if found.startswith("..") or "index.sqlite" in found else found


def watch(name: str, args: tuple[Any, ...], result: Any) -> None:
    """Take down a call that was done."""
    if name == "open":
        names.pop(result, None)
        if path := inside(args[0]):
            names[result], places[result] = path, 0
            if args[1] & os.O_CREAT:
                happened.append({"do": "create", "path": path})
    elif name == "close":
        names.pop(args[0], None)
    elif name in ("replace", "link"):
        happened.append({"do": name, "path": inside(args[0]), "to": inside(args[1])})
    elif name in ("unlink", "mkdir", "rmdir") and (path := inside(args[0])):
        happened.append({"do": name, "path": path})
    elif args and isinstance(args[0], int) and args[0] in names:
        _of_descriptor(name, args, result)


def _of_descriptor(name: str, args: tuple[Any, ...], result: Any) -> None:
    number, path = args[0], names[args[0]]
    if name == "write":
        data = bytes(args[1])[:result]
        at = -1 if path.startswith("approvals/segments") else places[number]
        places[number] += result
        happened.append({"do": "write", "path": path, "at": at, "data": _text(data)})
    elif name == "pwrite":
        happened.append({"do": "write", "path": path, "at": args[2], "data": _text(bytes(args[1]))})
    elif name == "ftruncate":
        happened.append({"do": "truncate", "path": path, "size": args[1]})
    elif name in ("fsync", "fdatasync"):
        keep_index()
        happened.append({"do": "sync", "path": path})


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def keep_index() -> None:
    """Take down the index as it stands now, if it changed."""
    boundary.disarm()
    found = {
        str(file.relative_to(FOLDER)): _text(file.read_bytes())
        for file in sorted(FOLDER.glob("state/cardchain/*/index.sqlite*"))
        if not file.name.endswith("-shm")
    }
    if found != _index:
        _index.clear()
        _index.update(found)
        happened.append({"do": "index", "files": found})
    go_on()


def go_on() -> None:
    """Watch on, without forgetting."""
    boundary.arm(None)


def answered(*records: Any) -> None:
    """Take down that records were answered for."""
    keep_index()
    said = [[record.seq, record.digest.hex()] for record in records]
    happened.append({"do": "answer", "records": said})


def proposal(step: str, size: int = 1) -> Proposal:
    return Proposal.for_tool_call(
        task=("run", step), tool_name="pay", arguments={"n": 1}, reasoning="r" * size, ttl=3600
    )


def clock() -> int:
    return AT


def begin() -> None:
    """Make a ledger, go through one card, rotate the key, sign, and be cut off in a write."""
    Ledger.init(PATH, name="test", clock=clock).close()
    with Ledger.open(PATH, clock=clock) as ledger:
        answered(next(iter(ledger.records())))
        card = ledger.issue(proposal("a"))
        answered(card.record)
        answered(ledger.resolve(card.hash, "approve", approver="user:a"))
        answered(ledger.dispatch(card.hash, Facts.for_tool_call("pay", {"n": 1})).record)
        answered(ledger.settle(card.hash, "succeeded"))
        answered(ledger.rotate())
        ledger.make_signer(by="user:o")
        sign(ledger)
        with cut_off("write", "segments/"):
            ledger.issue(proposal("cut off"))


@contextmanager
def cut_off(name: str, place: str) -> Iterator[None]:
    """Interrupt the process at the first call of this name on a file there; it did not end."""
    boundary.cut = lambda called, args: called == name and place in names.get(args[0], "")
    with suppress(KeyboardInterrupt):
        yield
        raise SystemExit("it was not cut off")
    keep_index()


def end() -> None:
    """Recover in a third attempt, issue cards by one write over segments, export, sign again."""
    for name in ("fsync", "ftruncate"):
        place = "segments/" if name == "ftruncate" else "quarantine/"
        with cut_off(name, place):
            Ledger.open(PATH, clock=clock)
    with Ledger.open(PATH, clock=clock) as ledger:
        answered(*ledger.records(7))
        cards = ledger.issue_many([proposal(f"many {n}", 700) for n in range(5)])
        answered(*(card.record for card in cards))  # type: ignore[union-attr]
        ledger.export(FOLDER / "export.cbor")
        happened.append({"do": "exported"})
        sign(ledger)


def sign(ledger: Ledger) -> None:
    signed = ledger.checkpoint()
    happened.append({"do": "signed", "note": signed.note.decode()})


def main() -> None:
    os.environ["CARDCHAIN_STATE"] = str(FOLDER / "state")
    boundary.watch = watch
    go_on()
    begin()
    end()
    boundary.disarm()
    print(json.dumps(happened))


if __name__ == "__main__":
    main()
