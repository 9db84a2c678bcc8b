"""Where a report goes: a terminal, a pipe, or a file that is there as a whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TextIO

from verifier.source import is_ledger


class PlaceRefused(Exception):
    """A report must not be written there; the message says why."""


def wants_colour(stream: TextIO | None) -> bool:
    """Say whether a stream is a terminal whose user did not refuse colour (`NO_COLOR`)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream is not None and stream.isatty()


def check_place(file: str, named: Iterable[str]) -> None:
    """Refuse a file that is one of those named, or lies in a folder named, or in a ledger.

    `named` are all paths that the command reads. Raises PlaceRefused.
    """
    try:
        target = os.path.realpath(file)
        if os.path.lexists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            raise PlaceRefused("it is there and is no regular file")
    except OSError as error:
        raise PlaceRefused(error.strerror or "it cannot be looked at") from None
    except ValueError:
        raise PlaceRefused("it is no path: it holds a null byte") from None
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise PlaceRefused("its folder is not there")
    if not os.access(folder, os.W_OK):
        raise PlaceRefused("its folder cannot be written")
    for path in named:
        if path != "-" and _overlaps(target, path):
            raise PlaceRefused(f"it would change what is read: {path}")
    if any(is_ledger(parent) for parent in _parents(target)):
        raise PlaceRefused("it lies in a ledger, which holds records and nothing else")


def _overlaps(target: str, path: str) -> bool:
    with suppress(OSError, ValueError):
        if os.path.samefile(target, path):
            return True
    with suppress(OSError, ValueError):
        real = os.path.realpath(path)
        return real == target or (os.path.isdir(real) and real in _parents(target))
    return False


def _parents(target: str) -> Iterator[str]:
    folder = os.path.dirname(target)
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def save(file: str, pieces: Iterable[str]) -> None:
    """Write a report in UTF-8 beside `file`, sync it, and give it the name.

    A file that was there is replaced only by a whole report. Raises OSError, which names `file`.
    """
    target = os.path.realpath(file)
    part = f"{target}.{os.urandom(4).hex()}.part"
    try:
        _write(part, pieces)
        os.replace(part, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or "it cannot be written", file) from error
        raise


def _write(part: str, pieces: Iterable[str]) -> None:
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(descriptor, "wb") as stream:
        for piece in pieces:
            stream.write(piece.encode("utf-8", "backslashreplace"))
        stream.flush()
        os.fsync(descriptor)
