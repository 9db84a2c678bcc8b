"""The key of a Bernstein log: where it is looked for, and the HMACs made with it.

The content of the file, without white space around it, is the key as text: 64 hexadecimal
characters are 64 bytes. A file is never made, and one that lies beside the log is never taken:
who could write the log could have put it there.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_MAX_BYTES: Final = 65_536
_BLOCK: Final = 64
_SCHEME_2: Final = b"bernstein:audit:v2"


@dataclass(frozen=True, slots=True)
class Key:
    """A key, ready to make HMACs: inner and outer SHA-256 states for scheme 1 and 2."""

    file: str
    raw: bytes
    states: tuple[Any, Any, Any, Any]

    def begun(self, scheme: int) -> tuple[Any, Any]:
        """Give the inner and outer SHA-256 states of an HMAC of a scheme, to copy and go on."""
        first = 2 if scheme == 2 else 0
        return self.states[first], self.states[first + 1]

    def record_hmac(self, scheme: int, prev: str, body: bytes) -> str:
        """Give the HMAC (hex) of a record: its line without the member `hmac`, after `prev`."""
        begun, keyed = self.begun(scheme)
        inner = begun.copy()
        inner.update(prev.encode("utf-8", "surrogatepass") + body)
        outer = keyed.copy()
        outer.update(inner.digest())
        return str(outer.hexdigest())

    def checkpoint_hmac(self, payload: bytes) -> str:
        """Give the HMAC (hex) of a checkpoint, which is made with the key itself."""
        return hmac.new(self.raw, payload, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Keyring:
    """The usable keys, what to warn about, and why there is no key where there is none."""

    keys: tuple[Key, ...]
    warnings: tuple[str, ...]
    missing: str


def key_from(text: bytes, file: str = "") -> Key:
    """Make a key of the text of a key file."""
    extracted = hmac.new(bytes(32), text, hashlib.sha256).digest()
    derived = hmac.new(extracted, b"audit\x01", hashlib.sha256).digest()
    return Key(file, text, (*_states(text, b""), *_states(derived, _SCHEME_2)))


def find_keys(key_files: Sequence[str]) -> Keyring:
    """Read the key files given, else the one that Bernstein itself would use."""
    warnings: list[str] = []
    files = list(key_files)
    if not files:
        files = [default_file()]
        warnings.append(f"no key was given; Bernstein's own key file {files[0]} was looked for")
    keys: list[Key] = []
    problems: list[str] = []
    for file in files:
        text, problem = _read(file)
        if problem:
            problems.append(problem)
        else:
            keys.append(key_from(text, file))
            warnings.extend(_loose(file))
    return Keyring(tuple(keys), tuple(warnings), "" if keys else "; ".join(problems))


def default_file() -> str:
    """Give the path at which Bernstein keeps the key of this user."""
    named = os.environ.get("BERNSTEIN_AUDIT_KEY_PATH")
    if named:
        return os.path.expanduser(named)
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return str(Path(state, "bernstein", "audit.key"))


def _read(file: str) -> tuple[bytes, str]:
    """Give the text of a key file, and why it is not usable."""
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            return b"", f"{file} is not a regular file"
        with open(file, "rb") as stream:
            text = stream.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        return b"", f"{file} cannot be read: {reason}"
    if len(text) > _MAX_BYTES:
        return b"", f"{file} is too large for a key file"
    if not text.strip():
        return b"", f"{file} is empty"
    if text.lstrip().startswith(b"{"):
        return b"", f"{file} is not a key file of Bernstein"
    return text.strip(), ""


def _loose(file: str) -> list[str]:
    mode = os.stat(file).st_mode
    if mode & 0o077:
        return [f"others can read the key file {file}: mode {stat.S_IMODE(mode):04o}"]
    return []


def _states(secret: bytes, prefix: bytes) -> tuple[Any, Any]:
    if len(secret) > _BLOCK:
        secret = hashlib.sha256(secret).digest()
    padded = secret.ljust(_BLOCK, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded) + prefix)
    return inner, hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))
