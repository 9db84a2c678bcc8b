"""Key files: the secrets that tag the records of a chain (spec §4.3).

A secret is made by `init` and `rotate` only, stands in one file of mode 0600, and is never
printed, logged or put into an error.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from ledger import wholefile
from ledger.chain import Key, Tagger
from ledger.errors import KeyMissing, LedgerError, LooseMode
from ledger.hidden import shown
from ledger.state import folder, state_directory

FORMAT: Final = "cardchain-key/1"
VARIABLE: Final = "CARDCHAIN_KEY"
MAX_BYTES: Final = 4_096
_HEX = re.compile(r"(?:[0-9a-f]{2})*")


class KeyFileUnusable(LedgerError):
    """A key file is not one (spec §4.3)."""

    hint = "restore the key file; a key cannot be made from anything else"

    def __init__(self, path: Path, reason: str) -> None:
        """Take the file, and a safe reason that holds nothing of its content."""
        super().__init__(f"key file {shown(str(path))}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Pin:
    """The record that introduced a key: its seq and chain digest."""

    seq: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A key, the record that introduced it if that is known, and the file it was read from."""

    path: Path
    key: Key
    pin: Pin | None = None


class HeldKey(Protocol):
    """A key at hand. A key file is one; so can be a key in a device or a service."""

    @property
    def path(self) -> Path:
        """Where it was found, for people."""

    @property
    def key(self) -> Tagger:
        """What tags under it."""

    @property
    def pin(self) -> Pin | None:
        """The record that introduced it, if that is known."""


class KeySource(Protocol):
    """Where keys come from: files, a variable, a descriptor, or something that joins later."""

    def keys(self, chain: bytes) -> Iterable[HeldKey]:
        """Give the keys there, or at least those of a chain."""


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """A key file, or a folder of them, as a source."""

    path: Path

    def keys(self, chain: bytes) -> Iterable[HeldKey]:
        """Give all keys there."""
        members = sorted(self.path.glob("*.json")) if self.path.is_dir() else [self.path]
        return [read(path) for path in members]


class KeyRing:
    """The keys of one chain that this host has, by kid (spec §4.1)."""

    def __init__(self, chain: bytes, files: Iterable[HeldKey]) -> None:
        """Take the keys of all sources; those of other chains are left out."""
        self.chain = chain
        self._files = {file.key.kid: file for file in files if file.key.chain == chain}

    def find(self, kid: bytes) -> Tagger:
        """Give the key of a kid, or raise `KeyMissing`."""
        if (file := self._files.get(kid)) is None:
            raise KeyMissing(self.chain, kid)
        return file.key

    def files(self) -> tuple[HeldKey, ...]:
        """Give the keys, in the order of their pins, unpinned ones last."""
        return tuple(
            sorted(
                self._files.values(),
                key=lambda file: (file.pin is None, file.pin.seq if file.pin else 0, file.key.kid),
            ),
        )

    def add(self, file: KeyFile) -> None:
        """Take in a key that was made just now."""
        self._files[file.key.kid] = file


def find_keys(
    chain: bytes,
    given: Iterable[KeySource] = (),
    environ: Mapping[str, str] = os.environ,
) -> KeyRing:
    """Gather the keys of a chain from the sources given, `CARDCHAIN_KEY`, and the state."""
    sources = [*given]
    if value := environ.get(VARIABLE):
        sources.append(KeyFiles(Path(value)))
    own = state_directory(chain, environ) / "keys"
    if own.is_dir():
        sources.append(KeyFiles(own))
    return KeyRing(chain, [key for source in sources for key in source.keys(chain)])


def make(chain: bytes, environ: Mapping[str, str] = os.environ) -> KeyFile:
    """Make a new key of a chain, durable in the state directory before it is used."""
    key = Key.of(chain, secrets.token_bytes(32))
    file = KeyFile(folder(chain, "keys", environ) / f"{key.kid.hex()}.json", key)
    write(file)
    return file


def pin(file: KeyFile, seq: int, digest: bytes) -> None:
    """Name, in a key file, the durable record that introduced the key."""
    write(replace(file, pin=Pin(seq, digest)))


def write(file: KeyFile) -> None:
    """Write a key file with mode 0600, whole or not at all, and durably."""
    wholefile.write(file.path, [_format(file)], overwrite=True)


def remove(file: KeyFile) -> None:
    """Remove a key that was made a moment ago and put in force nowhere, if the system lets it."""
    with suppress(OSError):
        file.path.unlink()


def read(path: Path) -> KeyFile:
    """Read a key file.

    Raises:
        LooseMode: Others can read or write it.
        KeyFileUnusable: It does not have exactly the members of a key file, or its kid does not
            follow from its chain and secret.

    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(MAX_BYTES + 1) if stat.S_ISREG(mode) else b""
    except OSError as error:
        raise KeyFileUnusable(path, error.strerror or "it cannot be read") from error
    if not stat.S_ISREG(mode):
        raise KeyFileUnusable(path, "not a regular file")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise LooseMode(path, stat.S_IMODE(mode), 0o600)
    return parse(path, text)


def _format(file: KeyFile) -> bytes:
    document: dict[str, Any] = {
        "format": FORMAT,
        "chain": file.key.chain.hex(),
        "kid": file.key.kid.hex(),
        "secret": file.key.secret.hex(),
    }
    if file.pin is not None:
        document["pin"] = {"seq": file.pin.seq, "digest": file.pin.digest.hex()}
    return json.dumps(document, indent=2).encode() + b"\n"


def parse(path: Path, text: bytes) -> KeyFile:
    """Read the content of a key file that was found at `path`, or raise `KeyFileUnusable`."""
    try:
        document = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_int=_integer)
    except (ValueError, RecursionError):
        raise KeyFileUnusable(path, "not a JSON object with each name once") from None
    if not isinstance(document, dict):
        raise KeyFileUnusable(path, "not a JSON object")
    if set(document) - {"pin"} != {"format", "chain", "kid", "secret"}:
        raise KeyFileUnusable(path, "expected exactly format, chain, kid, secret and perhaps pin")
    if document["format"] != FORMAT:
        raise KeyFileUnusable(path, f"format is not {FORMAT}")
    key = Key.of(_hex(path, document, "chain", 16), _hex(path, document, "secret", 32))
    if _hex(path, document, "kid", 8) != key.kid:
        raise KeyFileUnusable(path, "the kid does not follow from chain and secret")
    return KeyFile(path, key, _pin(path, document["pin"]) if "pin" in document else None)


def _pin(path: Path, value: Any) -> Pin:
    if not isinstance(value, dict) or set(value) != {"seq", "digest"}:
        raise KeyFileUnusable(path, "pin: expected exactly seq and digest")
    seq = value["seq"]
    if type(seq) is not int or not 0 <= seq < 2**53:
        raise KeyFileUnusable(path, "pin: seq is not an integer from 0 to 2^53 - 1")
    return Pin(seq, _hex(path, value, "digest", 32))


def _hex(path: Path, document: Mapping[str, Any], name: str, size: int) -> bytes:
    value = document[name]
    if not isinstance(value, str) or len(value) != 2 * size or not _HEX.fullmatch(value):
        raise KeyFileUnusable(path, f"{name}: expected {2 * size} lower-case hexadecimal digits")
    return bytes.fromhex(value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError
    return document


def _integer(digits: str) -> int:
    if digits == "-0":
        raise ValueError
    return int(digits)
