"""Segments that an archive holds are removed, and can be put back (spec §15.2)."""

from __future__ import annotations

import itertools
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ledger import archive, edge, export, reading
from ledger.archive import ArchiveUnfit
from ledger.codec import Record
from ledger.errors import LedgerError
from ledger.index import Covered, Index
from ledger.log import Log
from ledger.projection import Card, ended, state_at
from ledger.redaction import NotEnded
from ledger.store import rewriting
from ledger.store.contract import Tail
from ledger.store.files import SEGMENT_BYTES
from ledger.store.rewriting import Part
from ledger.store.segments import Segments
from ledger.tree import Frontier
from ledger.turn import Turn
from ledger.view import NO_CARD

_SETS: Final = ("opened", "configured")


class ProfileLost(LedgerError):
    """A card that is not ended is held to a profile that would be gone (spec §8.5, §15.2)."""

    exit_status = 2
    hint = "wait until that card is ended, or prune below it; nothing was changed"

    def __init__(self, card: bytes, seq: int) -> None:
        """Take the card and the seq at which it was issued."""
        super().__init__(
            f"card {card.hex()}, issued at seq {seq}, is not ended, and is held to a profile that "
            "stands in a record to be pruned and was replaced since"
        )
        self.card = card
        self.seq = seq


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed: the records below `before`, in so many segments."""

    before: int
    segments: int
    record: Record | None


@dataclass(slots=True)
class Held:
    """What was found in an archive: the seq behind its last record, and digests at boundaries.

    `digests` gives the chain digest of the record before each segment that begins in it or at its
    end, `frontiers` the tree there, where it is known.
    """

    before: int
    digests: dict[int, bytes] = field(default_factory=dict)
    frontiers: dict[int, Frontier] = field(default_factory=dict)


def hold(files: Segments, log: Log, path: Path) -> Held:
    """Hold an archive against the segments, byte for byte, up to where it ends.

    Raises:
        ArchiveUnfit: It is another one, or does not end where a segment does.

    """
    first = log.store.origin()
    numbers = set(files.numbers())
    held = Held(0)
    with archive.records(path, log) as records, closing(log.store.read(first)) as stored:
        tree: Frontier | None = None
        for number, record in enumerate(records):
            if number == 0:
                if record.seq > first.seq:
                    reason = f"it begins at seq {record.seq}, the ledger at seq {first.seq}"
                    raise ArchiveUnfit(path, reason)
                tree = edge.read(files.ledger, record.seq)
            if record.seq >= first.seq:
                found = next(stored, None)
                if found is None or found.data != record.raw:
                    reason = f"the ledger holds other bytes at seq {record.seq}"
                    raise ArchiveUnfit(path, reason)
            held.before = record.seq + 1
            tree = None if tree is None else tree.add(record.digest)
            if held.before in numbers:
                held.digests[held.before] = record.digest
                if tree is not None:
                    held.frontiers[held.before] = tree
    if held.before not in numbers:
        raise ArchiveUnfit(path, f"no segment begins at seq {held.before}, where it ends")
    return held


def say(turn: Turn, held: Held, by: str) -> Record | None:
    """Append what must be said before records go: the rules in force, and up to where they go.

    A `pruned` record is made for each segment, so that the left edge is a named one at every
    instant of the removal. Gives the last of them, None where all was said before.

    Raises:
        NotEnded: Something is still to come of a card issued below the edge.
        ProfileLost: A card above it is held to a profile that would be gone.

    """
    views, before = turn.views, held.before
    below = views.pruned_below()
    if before <= below:
        return None
    card = archive.first_unended(views, before, turn.at)
    if card is not None:
        raise NotEnded(card.hash, state_at(card, turn.at, views.last_reset()), "not pruned")
    rules, kept = _rules_below(turn, before)
    _require_profiles(turn, before, rules.get("profile"))
    if rules:
        turn.append("configured", None, {"by": by, **rules}, kept)
    record = None
    for number in sorted(each for each in held.digests if each > below):
        body = {"before": number, "digest": held.digests[number], "by": by}
        record = turn.append("pruned", None, body)
    return record


def remove(files: Segments, log: Log, held: Held) -> int:
    """Remove the segments below the edge, oldest first, and keep its frontier (spec §13.5)."""
    for frontier in held.frontiers.values():
        edge.write(files.ledger, frontier)

    def gone(tail: Tail, index: Index, covered: Covered) -> int:
        count = 0
        numbers = files.numbers()
        if held.before > index.pruned_below() or held.before not in numbers:
            raise LedgerError(f"seq {held.before} is no edge any more; nothing was removed")
        for number in numbers:
            if number < held.before:
                rewriting.remove(files, number)
                count += 1
        return count

    count = log.alone(gone)
    edge.keep_only(files.ledger, held.before)
    return count


def restore(files: Segments, log: Log, path: Path) -> int:
    """Put the records of an archive back before the first that is left; gives how many.

    What was redacted since the archive was made is not put back.

    Raises:
        ArchiveUnfit: It does not lead to the first record that is left.

    """
    origin = log.store.origin()
    if origin.seq == 0:
        raise ArchiveUnfit(path, "the ledger begins at seq 0: nothing is to be put back")
    named = _edges(log)
    erased = _erased(log, path)
    with ExitStack() as stack:
        parts: list[Part] = []
        count = 0
        before: Record | None = None
        with archive.records(path, log) as records:
            for record in itertools.takewhile(lambda each: each.seq < origin.seq, records):
                data = export.without(record, erased.get(record.seq, frozenset()))
                if not parts or record.seq in named or _full(parts[-1], len(data)):
                    parts.append(stack.enter_context(rewriting.new(files, record.seq)))
                parts[-1].raw.write(data)
                before, count = record, count + 1
        last = log.replay.read(origin).prev
        if before is None or before.seq != origin.seq - 1 or before.digest != last:
            reason = f"it does not hold the record before seq {origin.seq}, where the ledger begins"
            raise ArchiveUnfit(path, reason)
        for part in parts:
            part.finish()

        def put(tail: Tail, index: Index, covered: Covered) -> None:
            if log.store.origin() != origin:
                raise LedgerError("the ledger was pruned or restored meanwhile; try again")
            for part in reversed(parts):
                rewriting.put_before(files, part)
            index.begins_again_at(parts[0].number)

        log.alone(put)
    return count


def require_edge(log: Log, path: Path, held: Held) -> None:
    """Refuse an edge below one that was given up before, where no record names it (spec §15.2).

    It was put back by `restore`, and no `pruned` record may be written for it any more.
    """
    below = log.look(lambda view: view.views.pruned_below())
    if held.before < below and held.before not in _edges(log):
        reason = f"it ends at seq {held.before}, and the ledger was pruned below seq {below} before"
        raise ArchiveUnfit(path, reason)


def _edges(log: Log) -> set[int]:
    """Give every seq that a `pruned` record in the ledger names."""
    end = log.look(lambda view: view.covered.end.seq)
    records = reading.records(log, 0, end)
    return {record.body["before"] for record in records if record.kind == "pruned"}


def _full(part: Part, size: int) -> bool:
    return part.raw.tell() + size > SEGMENT_BYTES


def _erased(log: Log, path: Path) -> dict[int, frozenset[str]]:
    """Give what is said to be erased of the records of an archive, in the ledger or in there."""
    found: dict[int, set[str]] = {}
    for seq, name in log.look(lambda view: view.views.all_redactions()):
        found.setdefault(seq, set()).add(name)
    with archive.records(path, log) as records:
        for record in records:
            if record.kind == "redacted":
                found.setdefault(record.body["seq"], set()).update(record.body["openings"])
    return {seq: frozenset(names) for seq, names in found.items()}


def _rules_below(turn: Turn, before: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Give the profile and vkey in force that stand in records below a seq, and their opening."""
    rules: dict[str, Any] = {}
    kept: dict[str, bytes] = {}
    configured = turn.views.configured()
    if configured and configured[-1][0] < before:
        digest = configured[-1][1]
        rules["profile"] = digest
        text = turn.views.profile_bytes(digest)
        if text is not None:
            kept["profile"] = text
    for place in reversed(turn.views.events(NO_CARD)):
        record = turn.source.replay.read(place)
        if record.kind in _SETS and "vkey" in record.body:
            if record.seq < before:
                rules["vkey"] = record.body["vkey"]
            break
    return rules, kept


def _require_profiles(turn: Turn, before: int, repeated: bytes | None) -> None:
    """Refuse where a card that is not ended would be held to another profile (spec §15.2).

    Who reads the ledger from the edge on knows only the first profile put in force from there on.
    """
    first = next(((seq, each) for seq, each in turn.views.configured() if seq >= before), None)
    end, profile = first or (turn.covered.end.seq, repeated)
    for card in turn.views.going_on(end):
        if card.seq >= before and card.profile != profile and not _over(turn, card):
            raise ProfileLost(card.hash, card.seq)


def _over(turn: Turn, card: Card) -> bool:
    return ended(card, turn.at, turn.views.last_reset())
