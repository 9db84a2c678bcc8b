"""Opening the files of a ledger: never through a link, never readable by others (spec §7.1)."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from ledger.errors import BrokenLedger, LooseMode, StoreFailed, failing
from ledger.hidden import shown, word
from ledger.store.contract import AlreadyThere, NotALedger

PLACES = ("segments", "quarantine", "checkpoints")
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def require_free(path: Path) -> None:
    """Refuse a path where anything but an empty directory stands, with `AlreadyThere`."""
    if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
        raise AlreadyThere(path)


def make(path: Path) -> None:
    """Make the empty directories of a ledger, durably; `path` may exist if it is empty.

    Raises:
        AlreadyThere: Something stands there. Nothing was changed.
        StoreFailed: The disk refused. What was made of it is removed again.

    """
    with failing(f"make {path}"):
        require_free(path)
        grow(path.parent)
        made: list[Path] = []
        try:
            for place in (path, *(path / name for name in PLACES)):
                place.mkdir(mode=0o700, exist_ok=place == path)
                made.append(place)
                place.chmod(0o700)
            lock = create(path / "lock")
            made.append(path / "lock")
            os.close(lock)
            sync(path)
            sync(path.parent)
        except BaseException:  # another process may be at it too: what it made stays
            _remove(made)
            raise


def grow(path: Path, mode: int = 0o777) -> None:
    """Make a directory and those above it that are missing, each durable before the next."""
    missing = [place for place in (path, *path.parents) if not stands(place)]
    for place in reversed(missing):
        place.mkdir(mode=mode, exist_ok=True)
        sync(place.parent)


def stands(path: Path | str) -> bool:
    """Tell whether a name stands there, a link too; an error of the disk is no answer."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def unmake(path: Path) -> None:
    """Remove the directories that this process made a moment ago, and the files in them."""
    segments: list[Path] = []
    with suppress(OSError):
        segments += (path / "segments").iterdir()
    _remove([path, *(path / name for name in PLACES), path / "lock", *segments])


def _remove(made: list[Path]) -> None:
    """Remove files and empty directories, the last first, as far as the system lets it."""
    for place in reversed(made):
        with suppress(OSError):
            place.rmdir() if place.is_dir() else place.unlink()


def create(path: Path | str) -> int:
    """Make a file of mode 0600 that must not exist, and give it open for reading and writing."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        os.unlink(path)
        raise
    return descriptor


def sync(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_file(path: Path | str, flags: int) -> int:
    """Open a regular file, or raise `BrokenLedger` where a link or anything else stands."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise BrokenLedger(path, 0, None, "a symbolic link, expected a file") from error
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise BrokenLedger(path, 0, None, "not a regular file") from error
        if isinstance(error, FileNotFoundError):
            raise
        raise StoreFailed(f"open {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BrokenLedger(path, 0, None, "not a regular file")
    return descriptor


def require_private(path: Path | str, found: os.stat_result, expected: int) -> None:
    """Refuse a file or directory that others can write to."""
    if found.st_mode & WRITABLE_BY_OTHERS:
        raise LooseMode(path, stat.S_IMODE(found.st_mode), expected)


def require_ledger(path: Path) -> None:
    """Refuse a path that is no ledger directory, is a link, or can be written by others."""
    for place in (path, *(path / name for name in PLACES)):
        try:
            found = os.lstat(place)
        except FileNotFoundError as error:
            hint = f"run: mkdir -m 700 {word(place)}" if place.name in PLACES[1:] else ""
            raise NotALedger(path, f"{shown(place.name)} does not exist", hint) from error
        if stat.S_ISLNK(found.st_mode):
            raise BrokenLedger(place, 0, None, "a symbolic link, expected a directory")
        if not stat.S_ISDIR(found.st_mode):
            raise NotALedger(path, f"{shown(place.name)} is not a directory")
        require_private(place, found, 0o700)
