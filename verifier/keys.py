"""Key files and the secrets in them (spec §4).

A key file is only read, and a secret never leaves this module but as a keyed hash.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from verifier import jcs
from verifier.schema import is_hex32
from verifier.spec import CHAIN_SIZE, KEY_FORMAT, KID_SIZE, MAX_INTEGER

MAX_KEY_FILE = 65_536
_LABEL = b"cardchain/kid"
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class Pin(NamedTuple):
    """The record that introduced a key: its seq and chain digest."""

    seq: int
    digest: bytes


class Key(NamedTuple):
    """A secret of 32 bytes for one chain, and the record it is pinned to, if any."""

    chain: bytes
    secret: bytes
    pin: Pin | None = None
    file: str = "-"

    def __repr__(self) -> str:
        """Name the key, never its secret."""
        return f"Key(chain={self.chain.hex()}, kid={self.kid.hex()})"

    @property
    def kid(self) -> bytes:
        """The key id that follows from chain and secret (spec §4.1)."""
        return kid_of(self.chain, self.secret)


def kid_of(chain: bytes, secret: bytes) -> bytes:
    """Give the key id of a secret in a chain (spec §4.1)."""
    return hashlib.sha256(_LABEL + chain + secret).digest()[:KID_SIZE]


class Hmac:
    """HMAC-SHA-256 under one secret, its two keyed states made once (RFC 2104)."""

    __slots__ = ("inner", "outer")

    def __init__(self, secret: bytes) -> None:
        """Key the inner and the outer hash."""
        block = secret.ljust(64, b"\x00")
        self.inner = hashlib.sha256(block.translate(_INNER))
        self.outer = hashlib.sha256(block.translate(_OUTER))

    def digest(self, message: bytes) -> bytes:
        """Give the HMAC of a message."""
        inner = self.inner.copy()
        inner.update(message)
        outer = self.outer.copy()
        outer.update(inner.digest())
        return outer.digest()


class KeyUnusable(Exception):
    """A key file that cannot be used; the message says why, and never holds a secret."""


class Ring:
    """The keys at hand, selected by (chain, kid) only (spec §4.1)."""

    def __init__(self, keys: Iterable[Key] = (), warnings: Iterable[str] = ()) -> None:
        """Hold `keys` and the warnings that reading them gave."""
        self.warnings = list(warnings)
        self._keys: dict[tuple[bytes, bytes], Key] = {}
        self._hmacs: dict[tuple[bytes, bytes], Hmac] = {}
        self._pins: list[tuple[bytes, Pin]] = []
        for key in keys:
            self.add(key)

    def add(self, key: Key) -> None:
        """Take in a key; the same key from two sources counts once."""
        self._keys[key.chain, key.kid] = key
        if key.pin is not None and (key.chain, key.pin) not in self._pins:
            self._pins.append((key.chain, key.pin))

    def keys(self) -> list[Key]:
        """Give the keys at hand."""
        return list(self._keys.values())

    def hmac(self, chain: bytes, kid: bytes) -> Hmac | None:
        """Give the HMAC under the secret that (chain, kid) names, or None without it."""
        keyed = self._hmacs.get((chain, kid))
        if keyed is None:
            key = self._keys.get((chain, kid))
            if key is None:
                return None
            keyed = self._hmacs[chain, kid] = Hmac(key.secret)
        return keyed

    def chain_of(self, kid: bytes) -> bytes | None:
        """Give the chain of the key with this kid, if there is one."""
        return next((chain for chain, known in self._keys if known == kid), None)

    def chain_for(self, named: bytes | None, kid: bytes) -> bytes | None:
        """Give the chain of a record under a kid: the one that it names, if there is a key of it.

        Else that of the key with this kid; of a record of a later version only the kid can be read.
        """
        keyed = named is not None and self.hmac(named, kid) is not None
        return named if keyed else self.chain_of(kid) or named

    def pins(self, chain: bytes) -> list[Pin]:
        """Give the records that the keys of a chain pin."""
        return [pin for known, pin in self._pins if known == chain]


def load(paths: Iterable[str], environ: Mapping[str, str]) -> Ring:
    """Read the key files named, and those of `CARDCHAIN_KEY`; sources merge.

    A path is a key file or a folder of `*.json`. What cannot be used becomes a warning.
    """
    ring = Ring()
    sources = list(paths)
    if environ.get("CARDCHAIN_KEY"):
        sources.append(environ["CARDCHAIN_KEY"])
    for path in sources:
        for file in _files(path, ring.warnings):
            try:
                ring.add(_read(file, ring.warnings))
            except KeyUnusable as error:
                ring.warnings.append(f"key file {file} is not used: {error}")
    return ring


def _files(path: str, warnings: list[str]) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    try:
        names = sorted(name for name in os.listdir(path) if name.endswith(".json"))
    except OSError as error:
        warnings.append(f"key folder {path} is not used: {error.strerror}")
        return []
    if not names:
        warnings.append(f"key folder {path} holds no *.json")
    return [os.path.join(path, name) for name in names]


def _read(file: str, warnings: list[str]) -> Key:
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise KeyUnusable("it is not a regular file")
            data = stream.read(MAX_KEY_FILE + 1)
    except OSError as error:
        raise KeyUnusable(error.strerror or "it cannot be read") from None
    except ValueError:
        raise KeyUnusable("it is no path: it holds a null byte") from None
    if len(data) > MAX_KEY_FILE:
        raise KeyUnusable(f"it is over {MAX_KEY_FILE} bytes")
    key = _key(data, file)
    if os.name == "posix" and status.st_mode & 0o077:
        warnings.append(f"key file {file} can be read by others; run: chmod 600 {file}")
    return key


def _key(data: bytes, file: str) -> Key:
    try:
        members = jcs.parse(data)
    except jcs.JsonRefused as error:
        raise KeyUnusable(f"it is not strict JSON: {error.problem}") from None
    needed = {"format", "chain", "kid", "secret"}
    if type(members) is not dict or not needed <= members.keys() <= needed | {"pin"}:
        raise KeyUnusable("it is not an object of format, chain, kid, secret and perhaps pin")
    if members["format"] != KEY_FORMAT:
        raise KeyUnusable(f"its format is not {KEY_FORMAT}")
    chain = _hex(members["chain"], CHAIN_SIZE, "chain")
    kid = _hex(members["kid"], KID_SIZE, "kid")
    secret = _hex(members["secret"], 32, "secret")
    if kid_of(chain, secret) != kid:
        raise KeyUnusable("its kid does not follow from its chain and secret")
    return Key(chain, secret, _pin(members["pin"]) if "pin" in members else None, file)


def _hex(value: Any, size: int, name: str) -> bytes:
    if type(value) is str and len(value) == 2 * size and is_hex32(value.rjust(64, "0")):
        return bytes.fromhex(value)
    raise KeyUnusable(f"its {name} is not {2 * size} lower-case hexadecimal digits")


def _pin(value: Any) -> Pin:
    if type(value) is not dict or value.keys() != {"seq", "digest"}:
        raise KeyUnusable("its pin is not an object of seq and digest")
    seq = value["seq"]
    if type(seq) is not int or not 0 <= seq <= MAX_INTEGER:
        raise KeyUnusable("its pin has no usable seq")
    return Pin(seq, _hex(value["digest"], 32, "pin digest"))
