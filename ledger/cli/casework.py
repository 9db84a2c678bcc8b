"""What waits in a ledger, and what its checkpoints and its index are up to: checks of `doctor`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from ledger.cli.checkup import Told, now_ms, reading_time
from ledger.cli.footing import Footing, Unknown
from ledger.errors import BrokenLedger, LedgerError, SignerRefuses
from ledger.hidden import shown, word
from ledger.projection import Card, State, state_at
from ledger.report.markup import duration

_NOTE: Final = re.compile(r"([0-9]{20})\.note")
_SOON_MS: Final = 15 * 60_000
_OLD_MS: Final = 86_400_000
_EVERY: Final = 2**53


def signer(footing: Footing) -> Told:
    """The signing key is usable, and the log announces its vkey."""
    announced = next(
        (event.body["vkey"] for event in reversed(footing.chain_events) if "vkey" in event.body),
        None,
    )
    make = f"cardchain keys signer {word(footing.directory)} --by ID"
    if not footing.signing.exists:
        if announced is None:
            return Told("none, so no checkpoint and no receipt can be made", True, make)
        hint = f"restore signer/key.pem of the state directory, or: {make}"
        return Told(f"the key of {shown(announced)} is not at this host", True, hint)
    vkey = str(footing.signing.key().vkey)
    if vkey != announced:
        said = "announces none" if announced is None else f"announces {shown(announced)}"
        raise LedgerError(f"this host signs as {vkey}, the log {said}", f"announce it: {make}")
    return Told(f"{vkey} is at hand and announced")


def checkpoint(footing: Footing) -> Told:
    """The newest checkpoint in the ledger, how far behind it is and how old."""
    size, path = _newest(footing)
    make = f"cardchain checkpoint {word(footing.directory)}"
    if path is None:
        signs = footing.signing.exists
        return Told("none yet", signs, make if signs else "")
    records = footing.tail.size
    if size > records:
        raise SignerRefuses(footing.directory, size, f"the ledger holds only {records}")
    age = max(0, now_ms() - int(path.stat().st_mtime * 1000))
    behind = records - size
    said = f"of {size} records, {behind} behind, made {duration(age)} ago"
    late = bool(behind) and age > _OLD_MS
    return Told(said, late, make if late else "")


def _newest(footing: Footing) -> tuple[int, Path | None]:
    folder = footing.directory / "checkpoints"
    found = max(filter(_NOTE.fullmatch, os.listdir(folder)), default=None)
    return (0, None) if found is None else (int(found[:20]), folder / found)


def index(footing: Footing) -> Told:
    """The index is there, fits the chain and covers it."""
    path = footing.state / "index.sqlite"
    anew = f"it is made anew by the next command; by hand: rm {word(path)}*"
    try:
        covered = footing.snapshot.covered()
    except Unknown as error:
        return Told(str(error), note=True)
    except LedgerError as error:
        footing.distrust("snapshot", str(error))
        return Told(str(error), True, anew)
    if covered is None or footing.digest(covered.position) != covered.digest:
        footing.distrust("snapshot", "it is not of this chain")
        return Told("it is not of this chain", True, anew)
    size = f"{path.stat().st_size / 1024**2:.1f} MiB"
    behind = footing.tail.size - covered.end.seq
    if behind > 0:
        return Told(f"{behind} records behind, {size}", True, "the next command reads them")
    return Told(f"covers all {covered.end.seq} records, {size}; a lost one is made anew")


def tree(footing: Footing) -> Told:
    """The cache of the tree reaches as far as the newest checkpoint."""
    have, (need, _) = footing.signing.tiles.count(), _newest(footing)
    if have < need:
        said = f"the hashes of {have} records, of {need} in the newest checkpoint"
        return Told(said, True, "the next proof computes them anew from the log")
    return Told(f"the hashes of {have} records")


def quarantine(footing: Footing) -> Told:
    """How often a crash was recovered from, and the torn bytes that are kept."""
    events = sum(event.kind == "recovered" for event in footing.chain_events)
    files = sorted((footing.directory / "quarantine").iterdir())
    size = sum(file.lstat().st_size for file in files)
    said = f"{events} recoveries, {size} torn bytes kept in {len(files)} files"
    hint = f"cardchain log {word(footing.directory)} --kind recovered"
    return Told(said, bool(events), hint if events else "")


def pending(footing: Footing) -> Told:
    """The cards that wait, and those whose window has passed with nobody deciding."""
    now = reading_time(footing.tail)
    waiting = footing.snapshot.count_open(now)
    ((undecided,),) = footing.snapshot.query("SELECT count(*) FROM cards WHERE state = 'OPEN'")
    over = undecided - waiting
    if not over:
        return Told(f"{waiting} cards wait for a decision")
    hint = f"issue them again where they are still wanted: cardchain log {word(footing.directory)}"
    said = f"{waiting} cards wait for a decision, {over} expired without one"
    return Told(said, True, f"{hint} --kind issued")


def grants(footing: Footing) -> Told:
    """The grants that are not spent, and the first of those that lapse soon."""
    now, reset = reading_time(footing.tail), footing.snapshot.last_reset()
    live = [
        each
        for each in footing.snapshot.granted_cards()
        if state_at(each, now, reset) is State.APPROVED
    ]
    soon = sorted((at, each) for each in live if (at := _lapses(each)) - now < _SOON_MS)
    if not soon:
        return Told(f"{len(live)} not spent")
    at, first = soon[0]
    said = f"{len(live)} not spent, {len(soon)} lapse soon, the first in {duration(at - now)}"
    return Told(said, True, f"cardchain show {word(footing.directory)} {first.hash.hex()}")


def _lapses(card: Card) -> int:
    if card.grant_ttl is None or card.resolved_at is None:
        return _EVERY
    return card.resolved_at + card.grant_ttl * 1000


def outcomes(footing: Footing) -> Told:
    """The dispatched cards of which nobody knows how they ended."""
    going = footing.snapshot.going_on(_EVERY)
    lost = [each for each in going if each.state in (State.DISPATCHED, State.UNKNOWN)]
    if not lost:
        return Told("every dispatched card has one")
    hint = "ask the system that ran it, then: cardchain settle"
    command = f"{hint} {word(footing.directory)} {lost[0].hash.hex()} --outcome OUTCOME"
    return Told(f"{len(lost)} dispatched cards have none, or an unknown one", True, command)


def openings(footing: Footing) -> Told:
    """No opening is gone without a `redacted` event, and what is to be erased is."""
    missing, left = footing.snapshot.missing(), footing.snapshot.to_erase()
    if missing:
        seq, name = missing[0]
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        reason = f"its {shown(name)} is gone and no redacted event names it{more}"
        segment = max((each for each in footing.segments() if each <= seq), default=0)
        error = BrokenLedger(footing.place(segment), 0, seq, reason)
        error.hint = f"find a copy that has it: cardchain audit verify {word(footing.directory)}"
        raise error
    if left:
        said = f"{len(left)} are said to be redacted and are still there"
        return Told(said, True, "the next command that opens the ledger takes them out")
    return Told("all are there, or said to be redacted")
