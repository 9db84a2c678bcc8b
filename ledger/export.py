"""An export: the bytes of a ledger in one file, whole or not there at all (spec §7.2, §15.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ledger import wholefile
from ledger.answers import Exported
from ledger.codec import ZERO, Record, with_openings
from ledger.errors import LedgerError
from ledger.hidden import shown


class InsideLedger(LedgerError):
    """An export does not belong among the files of a ledger, where each name has a meaning."""

    exit_status = 2
    hint = "choose a path outside the ledger; nothing was changed"

    def __init__(self, path: Path, ledger: Path) -> None:
        """Take the path of the export, and the ledger directory."""
        super().__init__(f"{shown(str(path))}: inside the ledger {shown(str(ledger))}")
        self.path = path
        self.ledger = ledger


def require_outside(path: Path, ledger: Path) -> None:
    """Refuse a path inside a ledger directory with `InsideLedger`."""
    if path.absolute().parent.resolve().is_relative_to(ledger.resolve()):
        raise InsideLedger(path, ledger)


def note_beside(path: Path) -> Path:
    """Give where the checkpoint of an export stands (spec §13.5)."""
    return path.with_name(f"{path.name}.note")


def write(
    path: Path,
    records: Iterable[Record],
    *,
    overwrite: bool,
    withhold: frozenset[str] = frozenset(),
) -> Exported:
    """Write the records of a ledger to `path`, without the openings named in `withhold`.

    Raises:
        AlreadyThere: Something stands at `path`, and `overwrite` is false.
        StoreFailed: The disk refused. `path` is as it was.

    """
    count, size, head = 0, 0, ZERO

    def pieces() -> Iterator[bytes]:
        nonlocal count, size, head
        for record in records:
            data = without(record, withhold)
            yield data
            count, size, head = count + 1, size + len(data), record.digest

    wholefile.write(path, pieces(), overwrite=overwrite)
    return Exported(count, size, head)


def without(record: Record, withhold: frozenset[str]) -> bytes:
    """Give the bytes of a record with some openings left out; its digest stays the same."""
    if withhold.isdisjoint(record.openings):
        return record.raw
    kept = {name: data for name, data in record.openings.items() if name not in withhold}
    return with_openings(record.bare, kept)
