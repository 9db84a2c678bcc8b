"""The last record that this host has answered for (architecture.md, host state).

It shows a ledger that was rolled back or copied. It is made durably, and then overwritten in place
by one write, without a sync: a host that loses power may remember an earlier record, never a later
one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.errors import Copied, StoreFailed
from ledger.store import directory

FORMAT: Final = "cardchain-head/1"
SIZE: Final = 512


@dataclass(frozen=True, slots=True)
class Head:
    """A record this host has answered for: where it begins, and in which directory (by inode).

    `since` is the seq from which this host remembers the ledger.
    """

    chain: bytes
    seq: int
    digest: bytes
    segment: int
    offset: int
    inode: int
    since: int


class HeadFile:
    """The file that holds one `Head`, shared by all processes of this host."""

    def __init__(self, path: Path, ledger: Path) -> None:
        """Take the path of the file, made by the first `advance`, and that of the ledger."""
        self._path = path
        self._ledger = ledger
        self._known = -1
        self._last: Head | None = None
        self._written = b""

    def read(self) -> Head | None:
        """Give what the file holds, None if it is missing or damaged."""
        try:
            with open(self._path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return _parse(file.read(SIZE + 1))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreFailed(f"read {self._path}: {error.strerror}") from error

    def advance(self, head: Head) -> None:
        """Remember `head`, unless a later record is remembered already.

        Raises:
            Copied: Another directory was adopted in the meantime; this one is the old copy.

        """
        if head.seq > self._known:
            self._write(head)
            self._known = head.seq

    def adopt(self, head: Head, *, lower: bool = False) -> None:
        """Remember `head` in another directory than before.

        It is never lower than before, but with `lower`, where an operator gave records up.
        """
        self._write(head, adopt=True, lower=lower)

    def _write(self, head: Head, *, adopt: bool = False, lower: bool = False) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                content = os.pread(descriptor, SIZE + 1, 0)
                old = self._last if content == self._written else _parse(content)
                if old is not None and old.inode != head.inode and not adopt:
                    raise Copied(self._ledger)
                if old is None or old.seq < head.seq or (adopt and old.seq == head.seq) or lower:
                    self._last, self._written = head, _format(head)
                    done = 0
                    while done < SIZE:
                        done += os.pwrite(descriptor, self._written[done:], done)
                    if not content:  # it was made just now
                        os.fsync(descriptor)
                        directory.sync(self._path.parent)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreFailed(f"write to {self._path}: {error.strerror}") from error


def _format(head: Head) -> bytes:
    text = (
        f'{{"format": "{FORMAT}", "chain": "{head.chain.hex()}", "seq": {head.seq}, '
        f'"digest": "{head.digest.hex()}", "segment": {head.segment}, "offset": {head.offset}, '
        f'"inode": {head.inode}, "since": {head.since}}}'
    ).encode()
    line = text + b"\n" + hashlib.sha256(text).hexdigest().encode()
    return line.ljust(SIZE - 1) + b"\n"


def _parse(content: bytes) -> Head | None:
    text, _, checksum = content.partition(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != checksum.strip():
        return None
    try:
        found = json.loads(text)
        return Head(
            chain=bytes.fromhex(found["chain"]),
            seq=found["seq"],
            digest=bytes.fromhex(found["digest"]),
            segment=found["segment"],
            offset=found["offset"],
            inode=found["inode"],
            since=found["since"],
        )
    except (KeyError, TypeError, ValueError):
        return None
