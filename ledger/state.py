"""Where this host remembers what stands in no ledger (spec §7.3, architecture.md)."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from ledger.errors import LooseMode, NoStateDirectory, failing
from ledger.store import directory


def state_directory(chain: bytes, environ: Mapping[str, str] = os.environ) -> Path:
    """Give the state directory of a chain, made with mode 0700, and durably, if missing.

    Raises:
        NoStateDirectory: It cannot be made, or is no directory.
        LooseMode: Others can write to it.

    """
    path = _home(environ) / "cardchain" / chain.hex()
    try:
        directory.grow(path, 0o700)
        found = os.lstat(path)
    except OSError as error:
        raise NoStateDirectory(f"{path}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise NoStateDirectory(f"{path}: a symbolic link, expected a directory")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise LooseMode(path, stat.S_IMODE(found.st_mode), 0o700)
    return path


def folder(chain: bytes, name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Give a folder in the state directory, made with mode 0700, and durably, if it is missing."""
    path = state_directory(chain, environ) / name
    with failing(f"folder {path}"):
        directory.grow(path, 0o700)
    return path


def _home(environ: Mapping[str, str]) -> Path:
    """Give `CARDCHAIN_STATE`, else `XDG_STATE_HOME`, else `~/.local/state`."""
    for name in ("CARDCHAIN_STATE", "XDG_STATE_HOME"):
        if value := environ.get(name):
            return Path(value).absolute()
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise NoStateDirectory("this user has no home directory") from error
