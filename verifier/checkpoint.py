"""Checkpoints, and proofs about their trees, as text (spec §13.2, §13.6).

Each is unchecked: its form is right, and nothing more is known.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from verifier.merkle import MAX_HASHES
from verifier.note import Note, NoteRefused, base64_to, parse_note
from verifier.spec import CHAIN_SIZE, DIGEST_SIZE, MAX_INTEGER

ORIGIN = "cardchain/"
INCLUSION = "c2sp.org/tlog-proof@v1\n"
_INDEX = "index "
_OLD = "old "
MAX_PROOF = 1 << 17  # bytes: a note and 63 hashes


class Checkpoint(NamedTuple):
    """What a note says: of which chain, how many records, under which root (spec §13.2)."""

    chain: bytes
    size: int
    root: bytes
    note: Note

    @property
    def origin(self) -> str:
        """The first line, which is also the name of the key."""
        return origin(self.chain)


class Inclusion(NamedTuple):
    """A proof that the record `seq` stands in the tree of a checkpoint, which is left unread."""

    seq: int
    hashes: tuple[bytes, ...]
    note: str


class Consistency(NamedTuple):
    """A proof that the tree of a checkpoint, left unread, extends that of an older size."""

    old: int
    hashes: tuple[bytes, ...]
    note: str


def origin(chain: bytes) -> str:
    """Give the origin of a chain (spec §13.2)."""
    return ORIGIN + chain.hex()


def parse_checkpoint(data: bytes) -> Checkpoint:
    """Read a checkpoint; raises NoteRefused."""
    note = parse_note(data)
    lines = note.text.decode().split("\n")
    if len(lines) != 4:
        raise NoteRefused("origin, size and root in three lines", f"{len(lines) - 1} lines")
    name, size, root = lines[:3]
    if not re.fullmatch(f"{ORIGIN}[0-9a-f]{{{2 * CHAIN_SIZE}}}", name):
        raise NoteRefused("an origin cardchain/<32 hexadecimal digits>", f'"{name[:64]}"')
    chain = bytes.fromhex(name.removeprefix(ORIGIN))
    return Checkpoint(chain, _size(size, "a size"), base64_to(root, DIGEST_SIZE, "a root"), note)


def is_consistency(data: bytes) -> bool:
    """Say whether what was given as a checkpoint is a consistency proof (spec §13.6)."""
    return data.startswith(_OLD.encode())


def parse_consistency(data: bytes) -> Consistency:
    """Read a consistency proof; its checkpoint is left as it is written. Raises NoteRefused."""
    lines, note = _parts(_text(data))
    if not lines[0].startswith(_OLD):
        raise NoteRefused("a line: old <size>", f'"{lines[0][:64]}"')
    old = _size(lines[0].removeprefix(_OLD), "an old size")
    return Consistency(old, _hashes(lines[1:]), note)


def parse_inclusion(text: str) -> Inclusion:
    """Read a tlog-proof; its checkpoint is left as it is written. Raises NoteRefused."""
    if not text.startswith(INCLUSION):
        raise NoteRefused(f'a first line "{INCLUSION[:-1]}"', f'"{text[:32]}"')
    if len(text) > MAX_PROOF:
        raise NoteRefused(f"a proof of at most {MAX_PROOF} bytes", f"{len(text)}")
    lines, note = _parts(text[len(INCLUSION) :])
    if not lines[0].startswith(_INDEX):
        raise NoteRefused("a line: index <seq>", f'"{lines[0][:64]}"')
    seq = _size(lines[0].removeprefix(_INDEX), "an index", least=0)
    return Inclusion(seq, _hashes(lines[1:]), note)


def _text(data: bytes) -> str:
    if len(data) > MAX_PROOF:
        raise NoteRefused(f"a proof of at most {MAX_PROOF} bytes", f"at least {len(data)} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NoteRefused("a proof in UTF-8", "other bytes") from None


def _parts(text: str) -> tuple[list[str], str]:
    head, between, note = text.partition("\n\n")
    if not between:
        raise NoteRefused("lines of a proof, an empty line and a checkpoint", "no such parts")
    return head.split("\n"), note


def _size(text: str, what: str, least: int = 1) -> int:
    if re.fullmatch("0|[1-9][0-9]{0,15}", text) and least <= int(text) <= MAX_INTEGER:
        return int(text)
    raise NoteRefused(f"{what} from {least} to 2^53 - 1", f'"{text[:64]}"')


def _hashes(lines: list[str]) -> tuple[bytes, ...]:
    if len(lines) > MAX_HASHES:
        raise NoteRefused(f"at most {MAX_HASHES} hashes", f"{len(lines)}")
    return tuple(base64_to(line, DIGEST_SIZE, "a hash") for line in lines)
