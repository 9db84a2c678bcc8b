"""The pin file: the largest head that an auditor has seen of a chain (spec §16.2).

It is the one thing that the verifier writes, after a verdict of VERIFIED and never downwards.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple

from verifier import jcs
from verifier.schema import is_hex32
from verifier.spec import CHAIN_SIZE, DIGEST_SIZE, MAX_INTEGER, PIN_FORMAT

_MAX_SIZE = 65_536


class PinRefused(Exception):
    """A pin file cannot be used; the message says why. It is left as it is."""


class Head(NamedTuple):
    """A record of a chain, by its seq and chain digest."""

    chain: bytes
    seq: int
    digest: bytes


def read_pin(file: str) -> Head | None:
    """Give the head that a pin file holds, None where there is no file; raises PinRefused."""
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise PinRefused("it is not a regular file")
            data = stream.read(_MAX_SIZE + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PinRefused(error.strerror or "it cannot be read") from None
    except ValueError:
        raise PinRefused("it is no path: it holds a null byte") from None
    if len(data) > _MAX_SIZE:
        raise PinRefused(f"it is over {_MAX_SIZE} bytes")
    return _parse(data)


def _parse(data: bytes) -> Head:
    try:
        members = jcs.parse(data)
    except jcs.JsonRefused as error:
        raise PinRefused(f"it is not strict JSON: {error.problem}") from None
    if type(members) is not dict or members.keys() != {"format", "chain", "seq", "digest"}:
        raise PinRefused("it is not an object of format, chain, seq and digest")
    if members["format"] != PIN_FORMAT:
        raise PinRefused(f"its format is not {PIN_FORMAT}")
    seq = members["seq"]
    if type(seq) is not int or not 0 <= seq <= MAX_INTEGER:
        raise PinRefused("its seq is not an integer from 0 to 2^53 - 1")
    chain = _hex(members["chain"], CHAIN_SIZE, "chain")
    return Head(chain, seq, _hex(members["digest"], DIGEST_SIZE, "digest"))


def _hex(value: object, size: int, name: str) -> bytes:
    if type(value) is str and len(value) == 2 * size and is_hex32(value.rjust(64, "0")):
        return bytes.fromhex(value)
    raise PinRefused(f"its {name} is not {2 * size} lower-case hexadecimal digits")


def write_pin(file: str, head: Head) -> None:
    """Put a head into a pin file, whole or not at all; it is on disk then. Raises OSError."""
    target = os.path.realpath(file)
    text = (
        f'{{"format": "{PIN_FORMAT}", "chain": "{head.chain.hex()}", '
        f'"seq": {head.seq}, "digest": "{head.digest.hex()}"}}\n'
    )
    part = f"{target}.{os.urandom(4).hex()}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(descriptor)
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
    _sync_folder(os.path.dirname(target))


def _sync_folder(folder: str) -> None:
    """Make the new name durable, where a folder can be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
