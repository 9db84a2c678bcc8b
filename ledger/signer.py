"""Signing keys of checkpoints, and the vkeys that name them (spec §13.3).

The only module that imports cryptography, and not before a key is used, so that commands without
a signature start fast. A signing key stands in one file of mode 0600 in the state directory.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ledger.errors import LedgerError, LooseMode, StoreFailed
from ledger.hidden import shown
from ledger.note import NoteMalformed, decode, encode, is_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ED25519: Final = b"\x01"
_PUBLIC_SIZE: Final = 32
_MAX_FILE: Final = 4_096
_KEY_ID: Final = re.compile(r"[0-9a-f]{8}")


class VkeyMalformed(LedgerError):
    """A text is not a vkey (spec §13.3)."""

    exit_status = 2
    hint = "give one line as printed by: cardchain keys signer DIR --by ID"

    def __init__(self, reason: str) -> None:
        """Take a safe reason."""
        super().__init__(f"malformed vkey: {reason}")
        self.reason = reason


class SigningKeyUnusable(LedgerError):
    """The file of a signing key does not hold one."""

    hint = "restore the file, or make another key: cardchain keys signer DIR --by ID --replace"

    def __init__(self, path: Path, reason: str) -> None:
        """Take the file, and a safe reason that holds nothing of its content."""
        super().__init__(f"signing key {shown(str(path))}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Vkey:
    """A public key with its name; its text form is what an auditor is given."""

    name: str
    public: bytes

    def __str__(self) -> str:
        """Give the vkey as text."""
        return f"{self.name}+{self.key_id.hex()}+{encode(_ED25519 + self.public)}"

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that follow from name and key."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:4]

    @classmethod
    def parse(cls, text: str) -> Vkey:
        """Read a vkey; raises `VkeyMalformed`."""
        name, _, rest = text.partition("+")
        key_id, _, encoded = rest.partition("+")
        if not is_name(name) or not _KEY_ID.fullmatch(key_id):
            raise VkeyMalformed("expected name, key id of 8 hexadecimal digits, and key")
        try:
            data = decode(encoded)
        except NoteMalformed as error:
            raise VkeyMalformed(error.reason) from None
        if data[:1] != _ED25519 or len(data) != 1 + _PUBLIC_SIZE:
            raise VkeyMalformed("not an Ed25519 key")
        found = cls(name, data[1:])
        if found.key_id.hex() != key_id:
            raise VkeyMalformed(f"key id {key_id} does not follow from name and key")
        return found

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Tell whether a signature is that of this key over a message (RFC 8032)."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key with its name. Never shown."""

    name: str
    private: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls, name: str) -> SigningKey:
        """Make a new key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(name, Ed25519PrivateKey.generate())

    @property
    def vkey(self) -> Vkey:
        """The public key."""
        return Vkey(self.name, self.private.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Give the 64-byte signature over a message."""
        return self.private.sign(message)

    def pem(self) -> bytes:
        """Give the key as it is kept: PKCS #8 in PEM, not encrypted."""
        from cryptography.hazmat.primitives import serialization as form

        return self.private.private_bytes(
            form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
        )


def read(path: Path, name: str) -> SigningKey:
    """Read the file of a signing key.

    Raises:
        FileNotFoundError: There is none.
        LooseMode: Others can read or write it.
        SigningKeyUnusable: It does not hold an Ed25519 key.

    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(_content(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SigningKeyUnusable(path, "not a private key in PEM") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise SigningKeyUnusable(path, "not an Ed25519 key")
    return SigningKey(name, private)


def _content(path: Path) -> bytes:
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise SigningKeyUnusable(path, "not a regular file")
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise LooseMode(path, stat.S_IMODE(mode), 0o600)
            return file.read(_MAX_FILE)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreFailed(f"read {path}: {error.strerror}") from error
