"""Signed notes and the keys under which they are signed, as text (C2SP signed-note; spec §13).

Nothing here checks a signature: `signature` does, and a note is unchecked until then.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from typing import NamedTuple

MAX_NOTE = 65_536  # bytes (spec §13.2)
MAX_SIGNATURES = 64
KEY_ID_SIZE = 4
PUBLIC_SIZE = 32
ED25519 = b"\x01"
_DASH = "— "


class NoteRefused(Exception):
    """A text is not what it should be; the message says what was expected and what is there."""

    def __init__(self, expected: str, found: str) -> None:
        """Keep both for a finding."""
        super().__init__(f"expected {expected}, found {found}")
        self.problem = (expected, found)


class Vkey(NamedTuple):
    """A public key with the name under which it signs (spec §13.3)."""

    name: str
    key_id: bytes
    public: bytes

    @property
    def text(self) -> str:
        """The key as it is written."""
        encoded = base64_of(ED25519 + self.public)
        return f"{self.name}+{self.key_id.hex()}+{encoded}"


class Signature(NamedTuple):
    """One signature line: under which name and key id, and the bytes, all unchecked."""

    name: str
    key_id: bytes
    signature: bytes


class Note(NamedTuple):
    """A text, ended by LF, and its signature lines; who signed it is unchecked."""

    text: bytes
    signatures: tuple[Signature, ...]

    def signed_by(self, vkey: Vkey) -> Signature | None:
        """Give the line under the name and id of a key, if there is one."""
        for line in self.signatures:
            if (line.name, line.key_id) == (vkey.name, vkey.key_id):
                return line
        return None

    def repeats(self, vkey: Vkey) -> bool:
        """Say whether two lines have the name and id of a key, which is malformed (spec §13.2)."""
        named = [line for line in self.signatures if line[:2] == (vkey.name, vkey.key_id)]
        return len(named) > 1


def base64_of(data: bytes) -> str:
    """Encode in base64 of RFC 4648 §4."""
    return binascii.b2a_base64(data, newline=False).decode()


def base64_to(text: str, size: int | None, what: str) -> bytes:
    """Decode base64 in its one form; `size` is the number of bytes, if it is known.

    Raises NoteRefused.
    """
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        data = b""
    if base64_of(data) != text or not text:
        raise NoteRefused(f"{what} in base64", _quoted(text))
    if size is not None and len(data) != size:
        raise NoteRefused(f"{what} of {size} bytes", f"{len(data)} bytes")
    return data


def _quoted(text: str) -> str:
    return f'"{text}"' if len(text) <= 64 else f'"{text[:64]}…"'


def is_name(name: str) -> bool:
    """Say whether a text can name a key: not empty, no space and no plus."""
    return bool(name) and "+" not in name and not re.search(r"[\s\ud800-\udfff]", name)


def key_id(name: str, public: bytes) -> bytes:
    """Give the id of a key, which follows from its name and bytes (spec §13.3)."""
    return hashlib.sha256(name.encode() + b"\n" + ED25519 + public).digest()[:KEY_ID_SIZE]


def parse_vkey(text: str) -> Vkey:
    """Read a vkey; raises NoteRefused."""
    name, plus, rest = text.partition("+")
    digits, second, encoded = rest.partition("+")
    if not plus or not second or not is_name(name) or not re.fullmatch("[0-9a-f]{8}", digits):
        raise NoteRefused("a vkey <name>+<8 hexadecimal digits>+<base64>", _quoted(text))
    data = base64_to(encoded, None, "the public key")
    if data[:1] != ED25519 or len(data) != 1 + PUBLIC_SIZE:
        raise NoteRefused("an Ed25519 key: 01 and 32 bytes", f"{len(data)} bytes of another form")
    public = data[1:]
    if key_id(name, public).hex() != digits:
        raise NoteRefused(f"the key id {key_id(name, public).hex()}", digits)
    return Vkey(name, bytes.fromhex(digits), public)


def parse_note(data: bytes) -> Note:
    """Read a signed note; raises NoteRefused."""
    if len(data) > MAX_NOTE:
        raise NoteRefused(f"a note of at most {MAX_NOTE} bytes", f"at least {len(data)} bytes")
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        raise NoteRefused("a note in UTF-8", "other bytes") from None
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", whole):
        raise NoteRefused("no control character but LF", "one")
    text, between, lines = whole.rpartition("\n\n")
    if not between or not text or not lines:
        raise NoteRefused("a text, an empty line and signature lines", "no such parts")
    if not lines.endswith("\n"):
        raise NoteRefused("a last line that ends with LF", "none")
    signatures = lines[:-1].split("\n")
    if len(signatures) > MAX_SIGNATURES:
        raise NoteRefused(f"at most {MAX_SIGNATURES} signature lines", f"{len(signatures)}")
    return Note(text.encode() + b"\n", tuple(_signature(line) for line in signatures))


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space or not is_name(name):
        raise NoteRefused("a line of a dash, a key name and a signature", _quoted(line))
    data = base64_to(encoded, None, "a signature")
    if len(data) <= KEY_ID_SIZE:
        raise NoteRefused("a key id and a signature", f"{len(data)} bytes")
    return Signature(name, data[:KEY_ID_SIZE], data[KEY_ID_SIZE:])
