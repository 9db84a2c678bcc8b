"""What could keep a ledger from working at this host, one check after another.

A check gives what it found, or raises the error that a command would raise, with its hint. None
changes anything.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ledger.cli.footing import Footing, Tail
from ledger.errors import (
    ClockWentBack,
    Copied,
    LedgerError,
    LockTimeout,
    LooseMode,
    RolledBack,
    StoreFailed,
)
from ledger.hidden import shown, word
from ledger.report.markup import duration
from ledger.store import directory as directories
from ledger.store.contract import NotALedger

_LEAST_FREE: Final = 64 * 1024 * 1024  # one segment (spec §7.1)
_REMOTE: Final = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "ceph", "afs")
_LOCK_WAIT_S: Final = 2.0
_HELD_BACK_MS: Final = 5_000  # how far a clock may go back (spec §5)
_LONG_MS: Final = 30 * 86_400_000


class Told(NamedTuple):
    """What a check found; a `note` is no failure, but something to know, with what to do."""

    detail: str
    note: bool = False
    hint: str = ""


def directory(footing: Footing) -> Told:
    """Only its owner can read and write the ledger, and that is who runs this."""
    path = footing.directory
    directories.require_ledger(path)
    count = 0
    for place, expected in _places(path):
        found = os.lstat(place)
        if stat.S_ISLNK(found.st_mode):
            raise StoreFailed(f"{place}: a symbolic link")
        if found.st_mode & 0o077:
            raise LooseMode(place, stat.S_IMODE(found.st_mode), expected)
        if found.st_uid != os.geteuid():
            who = _user(found.st_uid)
            hint = f"run as {who}, or: chown -R {_user(os.geteuid())} {word(path)}"
            raise LedgerError(f"{shown(str(place))}: owned by {who}", hint)
        count += 1
    return Told(f"only its owner can read and write it, {count} files and folders looked at")


def _places(path: Path) -> Iterator[tuple[Path, int]]:
    yield path, 0o700
    if os.path.lexists(path / "lock"):  # the check of the lock says so where it is missing
        yield path / "lock", 0o600
    for name in directories.PLACES:
        yield path / name, 0o700
        for file in sorted((path / name).iterdir()):
            yield file, 0o600


def _user(uid: int) -> str:
    with suppress(KeyError):
        return shown(pwd.getpwuid(uid).pw_name)
    return f"uid {uid}"


def segments(footing: Footing) -> Told:
    """Every name in `segments/` is a segment's."""
    numbers = footing.segments()
    first = min(numbers, default=0)
    begins = f", the first begins with seq {first}: older ones were pruned" if first else ""
    return Told(f"{len(numbers)}{begins}")


def state(footing: Footing) -> Told:
    """This host has a state directory for the chain, which only its owner can use."""
    path = footing.state
    try:
        found = os.lstat(path)
    except OSError as error:
        hint = "set CARDCHAIN_STATE as where it was written; on a new host restore the keys first"
        message = f"{shown(str(path))}: {error.strerror}: this host knows nothing of the ledger"
        raise LedgerError(message, hint) from error
    for place in (path, path / "keys"):
        with suppress(FileNotFoundError):
            found = os.lstat(place)
            if found.st_mode & 0o077:
                raise LooseMode(place, stat.S_IMODE(found.st_mode), 0o700)
    return Told(shown(str(path)))


def keys(footing: Footing) -> Told:
    """Each key file is one, and only its owner can read it."""
    found = footing.keys.files()
    if not found:
        hint = "restore the key file, or give it with --key FILE or CARDCHAIN_KEY"
        raise LedgerError(f"none for chain {footing.chain.hex()}", hint)
    return Told(f"{len(found)} at hand: {', '.join(each.key.kid.hex() for each in found)}")


def space(footing: Footing) -> Told:
    """There is room for a segment, and for the index."""
    said = []
    for name, path in (("the ledger", footing.directory), ("the state directory", footing.state)):
        if path.exists():
            free = shutil.disk_usage(path).free
            if free < _LEAST_FREE:
                raise StoreFailed(f"{free} bytes free for {name}, expected at least {_LEAST_FREE}")
            said.append(f"{free // 1024**2} MiB free for {name}")
    return Told(", ".join(said))


def file_system(footing: Footing) -> Told:
    """Locks and syncs are relied on where the file system is a local one (architecture.md)."""
    kind = _mounted(footing.directory.resolve())
    if kind.startswith(_REMOTE):
        hint = "move the ledger to a local disk: nothing else keeps two writers apart"
        raise LedgerError(f"{shown(str(footing.directory))} is on {shown(kind)}", hint)
    return Told(shown(kind))


def _mounted(path: Path) -> str:
    """Give the type of the file system that holds a path, as Linux tells it."""
    try:
        lines = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    except OSError:
        return "unknown"
    mounts = {fields[1]: fields[2] for fields in map(str.split, lines) if len(fields) > 2}
    return next((mounts[str(at)] for at in [path, *path.parents] if str(at) in mounts), "unknown")


def lock(footing: Footing) -> Told:
    """Nobody keeps the lock for longer than a write takes."""
    path = footing.directory / "lock"
    if not os.path.lexists(path):
        hint = f"stop every program that writes there, then run: touch {word(path)}"
        raise NotALedger(footing.directory, "lock does not exist", hint)
    with os.fdopen(directories.open_file(path, os.O_RDONLY), "rb") as file:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise _held(path, os.fstat(file.fileno()).st_ino) from None
                time.sleep(0.01)
            else:
                break
    if not os.access(path, os.W_OK):
        raise StoreFailed(f"{path}: this user cannot write to it")
    return Told("free")


def _held(path: Path, inode: int) -> LockTimeout:
    error = LockTimeout(path, _LOCK_WAIT_S)
    if holders := ", ".join(_holders(inode)):
        error.hint = f"held by {holders}; {error.hint}"
    return error


def _holders(inode: int) -> Iterator[str]:
    """Name the processes that hold a lock on a file, as Linux tells it."""
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if "->" not in fields and fields[5].endswith(f":{inode}"):
                pid = fields[4]
                name = Path(f"/proc/{pid}/comm")
                said = shown(name.read_text().strip()) if name.exists() else "another host or user"
                yield f"process {pid} ({said})"


def chain(footing: Footing) -> Told:
    """The last record is whole, linked and authentic, and nothing stands behind it."""
    tail = footing.tail
    how = f", {tail.read} of them read again" if tail.read else ""
    said = f"{tail.size} records{how}, the last one whole, linked"
    if tail.unkeyed:
        return Told(f"{said}, and its tag not checked for want of a key", note=True)
    if tail.torn:
        hint = "the next command moves them to quarantine/ and records that"
        return Told(f"{said} and authentic; {tail.torn} torn bytes behind it", True, hint)
    return Told(f"{said} and authentic")


def kid(footing: Footing) -> Told:
    """The key in force is at hand."""
    found = footing.tail.kid
    footing.keys.find(found)
    return Told(f"{found.hex()} is at hand")


def rollback(footing: Footing) -> Told:
    """The ledger is the one that this host wrote to, and holds what it has answered for."""
    head, tail, path = footing.head, footing.tail, footing.directory
    if head is None:
        hint = (
            "hold the ledger against an export or a head kept elsewhere: cardchain audit verify "
            f"{word(path)} --expect-head HEX; it is guarded again from the next command on"
        )
        raise LedgerError("this host remembers no record of this ledger", hint)
    if head.inode != os.stat(path).st_ino:
        raise Copied(path)
    if head.seq >= tail.size:
        raise RolledBack(path, head.seq)
    if footing.digest_at(head) != head.digest:
        raise RolledBack(path, head.seq, "another record stands there")
    return Told(f"guarded from seq {head.since}, seq {head.seq} is there")


def clock(footing: Footing) -> Told:
    """The clock has not gone back, nor far ahead."""
    now, tail = now_ms(), footing.tail
    ahead = now - tail.at
    if ahead < -_HELD_BACK_MS:
        raise ClockWentBack(footing.directory, tail.at, now)
    if ahead < 0:
        return Told(f"{duration(-ahead)} behind the last record, which is waited for", note=True)
    said = f"{duration(ahead)} after the last record"
    if ahead > _LONG_MS:
        hint = "date -u; a clock that is ahead ends cards too early, and cannot be put back quietly"
        return Told(f"{said}: an idle ledger, or a clock that went ahead", True, hint)
    return Told(said)


def now_ms() -> int:
    """Give the clock of this host in unix milliseconds."""
    return time.time_ns() // 1_000_000


def reading_time(tail: Tail) -> int:
    """Give the time at which states are told: never before the last record."""
    return max(now_ms(), tail.at)
