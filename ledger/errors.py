"""Every way in which the ledger says no, one class per thing to do next.

Each error builds its own message, in lower case, holds what it says as typed
fields, and carries a hint and the exit status of the command line. Text from
outside is escaped here (spec §9.2), so that a message can go to a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from ledger.hidden import shown, word

_NEXT: Final = {
    "hash_mismatch": "show the card again, and echo the hash in its last line",
    "already_resolved": "see who decided: cardchain show DIR HASH",
    "expired": "issue a new card for the same task, which names this one in supersedes",
    "grant_expired": "issue a new card for the same task, which names this one in supersedes",
    "not_latest": "look at the newest card of the step: cardchain status DIR --task ID",
    "already_dispatched": "do not run it again, see how it ended: cardchain show DIR HASH",
    "already_settled": "see how it ended: cardchain show DIR HASH",
    "not_approved": "wait for the decision: cardchain show DIR HASH",
    "mismatch": "issue a new card for what should run now; what was approved may still run",
    "open_exists": "decide about the open card of the step, or name it in supersedes",
    "supersedes_wrong": "name the latest card of the step: cardchain log DIR --task ID",
    "attempt_unnamed": "name the attempt in prior_attempt: cardchain log DIR --task ID",
    "self_approval": "ask somebody else to decide",
}
"""What to do after a refusal, where its reason says more than the hint of `Refused`."""
_NAMED: Final = 5  # differing places that a message names; the error holds all


class LedgerError(Exception):
    """The ledger refuses, and says what to do next."""

    exit_status: ClassVar[int] = 6
    hint: str = ""

    def __init__(self, message: str, hint: str = "") -> None:
        """Take a message that is safe to print; `hint` replaces the one of the class."""
        super().__init__(message)
        if hint:
            self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive the way out of another process, where the classes take other arguments."""
        return _again, (type(self), self.args), self.__dict__


class ProposalInvalid(LedgerError, ValueError):
    """A proposal, facts or another JSON value breaks a rule of the caller (spec §2)."""

    exit_status = 2
    hint = "correct the value at this place; nothing was written"

    def __init__(self, pointer: str, reason: str) -> None:
        """Take the place as a JSON pointer (RFC 6901, `""` is the whole) and a safe reason."""
        super().__init__(f"{shown(pointer) or 'the whole document'}: {reason}")
        self.pointer = pointer
        self.reason = reason


class UnknownCard(LedgerError):
    """No issued card has this hash, or a hash that begins so."""

    exit_status = 2
    hint = "list the cards with: cardchain log DIR"

    def __init__(self, asked: str) -> None:
        """Take the hash or prefix that was asked for, in hexadecimal."""
        super().__init__(f"no card {shown(asked)} in this ledger")
        self.asked = asked


class AmbiguousPrefix(LedgerError):
    """More than one card has a hash that begins so."""

    exit_status = 2
    hint = "give more digits"

    def __init__(self, prefix: str, count: int) -> None:
        """Take the prefix and the number of cards that it matches."""
        super().__init__(f"{shown(prefix)} is the beginning of {count} card hashes, expected 1")
        self.prefix = prefix
        self.count = count


class Malformed(LedgerError):
    """The bytes of a record break a rule that can be seen in them alone (spec §3)."""

    exit_status = 3
    hint = "run: cardchain audit verify PATH"

    def __init__(self, reason: str, offset: int = 0, pointer: str = "") -> None:
        """Take a safe reason, the offset in the bytes read, and the place in the body."""
        super().__init__(f"malformed record, offset {offset}: {_at(pointer)}{reason}")
        self.reason = reason
        self.offset = offset
        self.pointer = pointer


class EnvelopeMalformed(Malformed):
    """The stored bytes of an envelope break a rule of spec §2."""

    hint = "give the bytes as they are stored: cardchain show DIR HASH --raw"

    def __init__(self, pointer: str, reason: str) -> None:
        """Take the place in the document as a JSON pointer, and a safe reason."""
        super().__init__(reason, pointer=pointer)
        self.args = (f"malformed envelope: {_at(pointer)}{reason}",)


class BrokenLedger(LedgerError):
    """The files of a ledger are not what this software wrote, so it does not go on."""

    exit_status = 3
    hint = "run: cardchain audit verify DIR; nothing was changed"

    def __init__(self, file: Path | str, offset: int, seq: int | None, reason: str) -> None:
        """Take where it broke and a safe reason; `seq` is None where it cannot be told."""
        number = "" if seq is None else f", seq {seq}"
        super().__init__(f"broken ledger: {shown(str(file))}, offset {offset}{number}: {reason}")
        self.file = file
        self.offset = offset
        self.seq = seq
        self.reason = reason


class VersionUnknown(LedgerError):
    """A record or an envelope is of a version that this software does not know (spec §3.2)."""

    exit_status = 4
    hint = "use a newer version of cardchain; nothing was changed"

    def __init__(self, found: str, expected: str) -> None:
        """Take the version as found and the one that is known."""
        super().__init__(f"unknown version {shown(found)}, expected {expected}")
        self.found = found
        self.expected = expected


class Refused(LedgerError):
    """A gate said no. Unless it was one of a flood, the refusal is on the chain (spec §6.4)."""

    exit_status = 5
    hint = "issue a new card, or correct the request; a refusal changes no state"

    def __init__(
        self,
        gate: str,
        reason: str,
        *,
        count: int,
        record: Any,
        pointers: tuple[str, ...] = (),
        drift: tuple[str, ...] = (),
    ) -> None:
        """Take the gate, the reason, its running count and its `codec.Record` (None: not recorded).

        `pointers` are the places where a rebuilt envelope differs from its card, `drift` the
        classes of spec §8.6 that these belong to.
        """
        told = f", seq {record.seq}" if record else f", not recorded again (count {count})"
        hint = f"{_NEXT[reason]}; a refusal changes no state" if reason in _NEXT else ""
        super().__init__(f"refused at {gate}: {reason}{places(pointers, drift)}{told}", hint)
        self.gate = gate
        self.reason = reason
        self.count = count
        self.record = record
        self.pointers = pointers
        self.drift = drift

    @property
    def recorded(self) -> bool:
        """Whether this very refusal has a record of its own."""
        return self.record is not None


class KeyMissing(LedgerError):
    """No secret is at hand for a kid of this chain (spec §4.2)."""

    hint = "give its key file with --key FILE or CARDCHAIN_KEY"

    def __init__(self, chain: bytes, kid: bytes) -> None:
        """Take the chain and the key id."""
        super().__init__(f"no key {kid.hex()} for chain {chain.hex()}")
        self.chain = chain
        self.kid = kid


class ProfileMissing(LedgerError):
    """The bytes of a profile that a card names are not at hand (spec §8.5)."""

    hint = "give its file with --profile FILE; nothing was recorded"

    def __init__(self, digest: bytes) -> None:
        """Take the digest of the profile."""
        super().__init__(f"no profile {digest.hex()}")
        self.digest = digest


class SignerMissing(LedgerError):
    """This host has no signing key for this chain (spec §13.3)."""

    hint = "make one with: cardchain keys signer DIR --by ID"

    def __init__(self, chain: bytes) -> None:
        """Take the chain."""
        super().__init__(f"no signing key for chain {chain.hex()}")
        self.chain = chain


class SignerExists(LedgerError):
    """This host has a signing key already; it was left as it is."""

    exit_status = 2
    hint = "go on with it, or put another in its place: cardchain keys signer DIR --by ID --replace"

    def __init__(self, vkey: str) -> None:
        """Take the vkey of the key that is there."""
        super().__init__(f"there is a signing key already: {shown(vkey)}")
        self.vkey = vkey


class SignerRefuses(LedgerError):
    """The ledger does not extend what this host has signed, so it signs nothing (spec §13.4)."""

    exit_status = 3
    hint = (
        "restore the ledger that was signed; keep this one as evidence, and run: "
        "cardchain audit verify DIR"
    )

    def __init__(self, path: Path | str, size: int, reason: str) -> None:
        """Take the ledger, the size of the checkpoint that it contradicts, and a safe reason."""
        super().__init__(f"{shown(str(path))}: checkpoint of {size} records: {reason}")
        self.path = path
        self.size = size
        self.reason = reason


class StoreFailed(LedgerError):
    """The disk did not do what was asked of it; nothing was reported as done."""

    hint = "check free space and the disk, then open the ledger again"

    def __init__(self, what: str) -> None:
        """Take what failed and how, in the words of the operating system."""
        super().__init__(f"store failed: {shown(what)}")
        self.what = what


class Dead(LedgerError):
    """This object is unusable after a failed sync: memory and disk may differ."""

    hint = "open the ledger again; it reads the truth from the disk"

    def __init__(self, what: str) -> None:
        """Take the failure that ended the object."""
        super().__init__(f"unusable after a failure: {shown(what)}")
        self.what = what


class LockTimeout(LedgerError):
    """Another writer held the lock for too long; nothing was written."""

    hint = "try again; if it stays, look for a process that hangs with the ledger open"

    def __init__(self, path: Path | str, seconds: float) -> None:
        """Take the lock file and how long was waited."""
        super().__init__(f"{shown(str(path))}: still locked after {seconds:g} seconds")
        self.path = path
        self.seconds = seconds


class LooseMode(LedgerError):
    """Others may read or write what only the owner may."""

    def __init__(self, path: Path | str, mode: int, expected: int = 0o600) -> None:
        """Take the path, the mode found and the mode expected."""
        super().__init__(
            f"{shown(str(path))}: mode {mode & 0o7777:04o}, expected {expected:04o}",
            f"run: chmod {expected:o} {word(path)}",
        )
        self.path = path
        self.mode = mode
        self.expected = expected


class RolledBack(LedgerError):
    """The ledger lacks a record that this host has answered for."""

    def __init__(self, path: Path | str, seq: int, reason: str = "it is not there") -> None:
        """Take the ledger, the seq of the record it lacks, and a safe reason."""
        super().__init__(
            f"{shown(str(path))}: this host has answered for seq {seq}: {reason}",
            "restore the newest copy of the ledger; append is refused until it is there, or until "
            f"these records are given up: cardchain adopt {word(path)} --rolled-back",
        )
        self.path = path
        self.seq = seq
        self.reason = reason


class Copied(LedgerError):
    """This is another directory than the one this host has written to."""

    def __init__(self, path: Path | str) -> None:
        """Take the ledger directory."""
        super().__init__(
            f"{shown(str(path))}: not the directory that this host wrote to, but a copy",
            f"if this copy is to be the ledger now, run: cardchain adopt {word(path)}",
        )
        self.path = path


class ClockWentBack(LedgerError):
    """The clock of this host is behind the last record (spec §5)."""

    def __init__(self, path: Path | str, last: int, now: int) -> None:
        """Take the ledger, the `at` of the last record and the clock, in unix milliseconds."""
        super().__init__(
            f"the clock reads {now} ms, the last record is of {last} ms",
            "correct the clock, or, if the last record was ahead of time, run: "
            f"cardchain clock-reset {word(path)} --by ID --reason clock_fixed",
        )
        self.path = path
        self.last = last
        self.now = now


class NoStateDirectory(LedgerError):
    """There is no place for what this host must remember."""

    hint = "set CARDCHAIN_STATE to a directory that only you can write to"

    def __init__(self, reason: str) -> None:
        """Take why none is usable."""
        super().__init__(f"no usable state directory: {shown(reason)}")
        self.reason = reason


@contextmanager
def failing(what: object) -> Iterator[None]:
    """Let what the system refuses in a block end as `StoreFailed`; `what` names file or act."""
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"{what}: {error.strerror or error}") from error


def places(pointers: tuple[str, ...], drift: tuple[str, ...]) -> str:
    """Give the classes and the first places of a mismatch in words, safe to print."""
    classes = f" ({', '.join(drift)})" if drift else ""
    named = f" at {', '.join(map(shown, pointers[:_NAMED]))}" if pointers else ""
    more = f" and {len(pointers) - _NAMED} more" if len(pointers) > _NAMED else ""
    return classes + named + more


def _at(pointer: str) -> str:
    return f"{shown(pointer)}: " if pointer else ""


def _again(kind: type[LedgerError], args: tuple[Any, ...]) -> LedgerError:
    return kind.__new__(kind, *args)
