"""What this host keeps of its signer: the key, its vkeys, the last checkpoint (spec §13.4).

    signer/key.pem    the signing key, mode 0600
    signer/vkeys      the vkeys of this host, one a line, the newest last: a vkey file
    signer/last.json  the last checkpoint signed, and where to go on from it
    signer/lock       held while something is signed, so that no two processes sign two trees
    tree/             the cache of hashes that proofs are made of

All of it stands in the state directory and is trusted like the key.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger import note, signer, wholefile
from ledger.errors import SignerExists, SignerMissing, StoreFailed, failing
from ledger.note import Checkpoint, NoteMalformed, Signature
from ledger.signer import SigningKey, Vkey, VkeyMalformed
from ledger.state import folder, state_directory
from ledger.store import directory
from ledger.store.contract import Position
from ledger.tiles import Tiles
from ledger.tree import Frontier

FORMAT: Final = "cardchain-signed/1"
_MAX_PLACE: Final = 2**53 - 1
_WRONG_FORM: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Last:
    """The last checkpoint signed, and how to go on from it without reading its records again.

    `before` is the frontier without the last record, and `position` where that record begins.
    Only with that very record does the frontier lead to the signed root.
    """

    note: bytes
    checkpoint: Checkpoint
    before: Frontier
    position: Position


class Signing:
    """The signer of one chain on this host, held by one process at a time."""

    def __init__(self, chain: bytes, state: Path) -> None:
        """Take the chain and its state directory; use `held`."""
        self.chain = chain
        self.tiles = Tiles(state / "tree")
        self._folder = state / "signer"

    @property
    def exists(self) -> bool:
        """Whether there is a signing key."""
        with failing(self._folder):
            return directory.stands(self._folder / "key.pem")

    def key(self) -> SigningKey:
        """Give the signing key; raises `SignerMissing`."""
        try:
            return signer.read(self._folder / "key.pem", note.origin(self.chain))
        except FileNotFoundError:
            raise SignerMissing(self.chain) from None

    def make_key(self, *, replace: bool) -> Vkey:
        """Make a signing key, durably, and give its vkey.

        What a key before it has signed is not forgotten: its vkey stays.

        Raises:
            SignerExists: There is one, and `replace` is false.

        """
        if self.exists and not replace:
            raise SignerExists(str(self.key().vkey))
        made = SigningKey.generate(note.origin(self.chain))
        lines = "".join(f"{each}\n" for each in (*self.vkeys(), made.vkey))
        wholefile.write(self._folder / "vkeys", [lines.encode()], overwrite=True)
        wholefile.write(self._folder / "key.pem", [made.pem()], overwrite=True)
        return made.vkey

    def vkeys(self) -> tuple[Vkey, ...]:
        """Give every vkey that this host has signed under, the newest last.

        Raises:
            StoreFailed: The file is damaged.

        """
        path = self._folder / "vkeys"
        try:
            lines = path.read_text("utf-8").splitlines()
            return tuple(Vkey.parse(line) for line in lines if line and not line.startswith("#"))
        except FileNotFoundError:
            return (self.key().vkey,) if self.exists else ()
        except (UnicodeDecodeError, VkeyMalformed):
            error = StoreFailed(f"{path}: damaged")
            error.hint = "put there the vkeys that auditors were given, one a line, the newest last"
            raise error from None

    def sign(self, checkpoint: Checkpoint) -> bytes:
        """Give the signed note of a checkpoint; whether it may be signed is for the caller."""
        key = self.key()
        text = checkpoint.text
        vkey = key.vkey
        signature = Signature(vkey.name, vkey.key_id, key.sign(text.encode()))
        return bytes(note.Note(text, (signature,)))

    def signed(self, data: bytes) -> Checkpoint | None:
        """Give the checkpoint in a note if this host has signed it, None if not."""
        try:
            found = note.parse(data)
            checkpoint = note.checkpoint(found, self.chain)
            for vkey in self.vkeys():
                signature = found.signature(vkey.name, vkey.key_id)
                if signature is not None and vkey.verifies(found.text.encode(), signature):
                    return checkpoint
        except NoteMalformed:
            return None
        return None

    def last(self) -> Last | None:
        """Give the last checkpoint signed, None if there is none.

        Raises:
            StoreFailed: The file is damaged, or what it holds was not signed by this host.

        """
        path = self._folder / "last.json"
        try:
            return self._parse(path.read_bytes())
        except FileNotFoundError:
            return None
        except (*_WRONG_FORM, NoteMalformed):
            error = StoreFailed(f"{path}: damaged")
            error.hint = "remove it: the signer then goes on from checkpoints/ of the ledger"
            raise error from None
        except OSError as error:
            raise StoreFailed(f"read {path}: {error.strerror}") from error

    def remember(self, last: Last) -> None:
        """Keep what is about to be handed out, durably, before anybody can have it."""
        document = {
            "format": FORMAT,
            "note": last.note.decode(),
            "before": [note.encode(each) for each in last.before.hashes],
            "segment": last.position.segment,
            "offset": last.position.offset,
        }
        text = json.dumps(document, indent=2).encode() + b"\n"
        wholefile.write(self._folder / "last.json", [text], overwrite=True)

    def _parse(self, text: bytes) -> Last:
        found = json.loads(text)
        signed, segment, offset = found["note"].encode(), found["segment"], found["offset"]
        if not _is_place(segment) or not _is_place(offset):
            raise ValueError
        checkpoint = self.signed(signed)
        if found["format"] != FORMAT or checkpoint is None:
            raise ValueError
        seq = checkpoint.size - 1
        before = Frontier(seq, tuple(map(note.decode, found["before"])))
        return Last(signed, checkpoint, before, Position(seq, segment, offset))


def _is_place(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_PLACE


@contextmanager
def held(chain: bytes) -> Iterator[Signing]:
    """Hold the signer of a chain, alone among all processes of this host."""
    place = folder(chain, "signer")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with failing(f"signer in {place}"):
        lock = os.open(place / "lock", flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for part in place.glob(".*.part"):  # of a process that died; it may hold a key
                part.unlink(missing_ok=True)
            yield Signing(chain, place.parent)
        finally:
            with suppress(OSError):  # a child of a fork in between has the descriptor too
                fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)


def exists(chain: bytes) -> bool:
    """Tell whether this host has a signing key for a chain."""
    return Signing(chain, state_directory(chain)).exists
