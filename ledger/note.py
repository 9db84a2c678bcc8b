"""Signed notes and the statement in them, in their one form (spec §13.2; C2SP signed-note)."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from ledger.errors import LedgerError
from ledger.hidden import shown
from ledger.tree import HASH_SIZE

MAX_BYTES: Final = 65_536
MAX_SIGNATURES: Final = 64
_KEY_ID_SIZE: Final = 4
_DASH: Final = "— "
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_SIZE: Final = re.compile(r"[1-9][0-9]{0,15}")


class NoteMalformed(LedgerError):
    """The text is not a signed note, or not a checkpoint (spec §13.2)."""

    exit_status = 2
    hint = "give the note as it was made: cardchain checkpoint DIR -o FILE"

    def __init__(self, reason: str) -> None:
        """Take a safe reason."""
        super().__init__(f"malformed note: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line: whose it is, by name and 4-byte key id, and its bytes."""

    name: str
    key_id: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A text of whole lines, and the signatures over it, none of them checked here."""

    text: str
    signatures: tuple[Signature, ...]

    def __bytes__(self) -> bytes:
        """Give the note as it is stored and sent."""
        lines = [
            f"{_DASH}{each.name} {encode(each.key_id + each.data)}\n" for each in self.signatures
        ]
        return f"{self.text}\n{''.join(lines)}".encode()

    def signature(self, name: str, key_id: bytes) -> bytes | None:
        """Give the signature of one key, None if there is none; two of it are malformed."""
        found = [
            each.data for each in self.signatures if (each.name, each.key_id) == (name, key_id)
        ]
        if len(found) > 1:
            raise NoteMalformed(f"two signatures of {shown(name)}, key id {key_id.hex()}")
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a signer says: the tree of the first `size` records of a chain has this root."""

    chain: bytes
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The three lines that are signed."""
        return f"{origin(self.chain)}\n{self.size}\n{encode(self.root)}\n"


def origin(chain: bytes) -> str:
    """Give the first line of a checkpoint, which is the name of its keys too."""
    return f"cardchain/{chain.hex()}"


def parse(data: bytes) -> Note:
    """Read a note; raises `NoteMalformed`."""
    if len(data) > MAX_BYTES:
        raise NoteMalformed(f"over {MAX_BYTES} bytes")
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        raise NoteMalformed("not UTF-8") from None
    if _CONTROL.search(whole):
        raise NoteMalformed("a control character")
    text, gap, tail = whole.rpartition("\n\n")
    if not gap or not text or not tail.endswith("\n"):
        raise NoteMalformed("expected lines, an empty line, and signature lines to the end")
    lines = tail[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise NoteMalformed(f"over {MAX_SIGNATURES} signature lines")
    return Note(f"{text}\n", tuple(map(_signature, lines)))


def checkpoint(note: Note, chain: bytes) -> Checkpoint:
    """Read the checkpoint of a chain out of a note; raises `NoteMalformed`."""
    lines = note.text.split("\n")
    if len(lines) != 4:
        raise NoteMalformed("expected three lines: origin, size, root")
    if lines[0] != origin(chain):
        raise NoteMalformed(f"origin {shown(lines[0])}, expected {origin(chain)}")
    if not _SIZE.fullmatch(lines[1]) or int(lines[1]) > 2**53 - 1:
        raise NoteMalformed("size: expected a number from 1 to 2^53 - 1")
    root = decode(lines[2])
    if len(root) != HASH_SIZE:
        raise NoteMalformed(f"root: expected {HASH_SIZE} bytes")
    return Checkpoint(chain, int(lines[1]), root)


def encode(data: bytes) -> str:
    """Give base64 of RFC 4648 §4, with padding."""
    return base64.b64encode(data).decode()


def decode(text: str) -> bytes:
    """Read base64 in its one form; raises `NoteMalformed`."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise NoteMalformed("not base64") from None
    if encode(data) != text:
        raise NoteMalformed("base64 that is not in its one form")
    return data


def is_name(text: str) -> bool:
    """Tell whether a text can be the name of a key: no white space, no plus, not empty."""
    return text != "" and "+" not in text and not any(map(str.isspace, text))


def _signature(line: str) -> Signature:
    name, gap, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not gap or not is_name(name):
        raise NoteMalformed("expected a signature line: dash, key name, base64")
    data = decode(encoded)
    if len(data) <= _KEY_ID_SIZE:
        raise NoteMalformed("a signature without bytes")
    return Signature(name, data[:_KEY_ID_SIZE], data[_KEY_ID_SIZE:])
