"""The files of checkpoints, proofs, frontiers and vkeys, read into anchors (spec §13)."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence

from verifier.anchors import DELIVERED, GIVEN, PROOF, Anchor, Auditor
from verifier.checkpoint import is_consistency, parse_checkpoint, parse_consistency
from verifier.merkle import MAX_HASHES, Frontier
from verifier.note import NoteRefused, Vkey, base64_to, parse_vkey
from verifier.signature import NoLibrary, holds
from verifier.spec import DIGEST_SIZE

_MAX_FILE = 1 << 17
_NOTE_NAME = re.compile(r"[0-9]{20}\.note", re.ASCII)
_FRONTIER_NAME = re.compile(r"([0-9]{20})\.frontier", re.ASCII)


class _Unusable(Exception):
    """A file cannot be used; the message says why."""


def load_anchors(
    vkeys: Iterable[str], files: Iterable[str], since: str | None = None
) -> tuple[Auditor, list[str]]:
    """Read vkeys, each one itself or a file, and files of checkpoints and consistency proofs.

    `since` is the file of a checkpoint, which is given like the others. What is no vkey is left out
    with a warning.
    """
    warnings: list[str] = []
    known = tuple(vkey for text in vkeys for vkey in _vkeys(text, warnings))
    given = tuple(_given(file, known) for file in files)
    if since is None:
        return Auditor(known, given), warnings
    begin = _checkpoint(since, known)
    return Auditor(known, (begin, *given), since=begin), warnings


def _vkeys(text: str, warnings: list[str]) -> list[Vkey]:
    if text.count("+") >= 2 and not os.path.exists(text):
        lines, place = [text], "vkey"
    else:
        place = f"vkey file {text}"
        try:
            lines = _read(text).decode().split("\n")
        except UnicodeDecodeError:
            warnings.append(f"{place} is not used: it is not text")
            return []
        except _Unusable as error:
            warnings.append(f"{place} is not used: {error}")
            return []
    found = []
    for line in lines:
        if line and not line.startswith("#"):
            try:
                found.append(parse_vkey(line))
            except NoteRefused as error:
                warnings.append(f"{place}: a line is not used: {error}")
    if not found and not warnings:
        warnings.append(f"{place} holds no vkey")
    return found


def _checkpoint(file: str, vkeys: Sequence[Vkey]) -> Anchor:
    """Read what must be a checkpoint and no proof."""
    try:
        return anchor(file, GIVEN, _read(file), vkeys)
    except _Unusable as error:
        return Anchor(file, GIVEN, unreadable=("a checkpoint that can be read", str(error)))


def _given(file: str, vkeys: Sequence[Vkey]) -> Anchor:
    try:
        data = _read(file)
    except _Unusable as error:
        return Anchor(file, GIVEN, unreadable=("a checkpoint that can be read", str(error)))
    if not is_consistency(data):
        return anchor(file, GIVEN, data, vkeys)
    try:
        proof = parse_consistency(data)
    except NoteRefused as error:
        return Anchor(file, PROOF, unproven=error.problem)
    return anchor(file, PROOF, proof.note.encode(), vkeys)._replace(proof=proof)


def anchor(file: str, role: str, data: bytes, vkeys: Sequence[Vkey]) -> Anchor:
    """Read a checkpoint and check its signature, if a given vkey names it (spec §13.2)."""
    try:
        checkpoint = parse_checkpoint(data)
    except NoteRefused as error:
        return Anchor(file, role, malformed=error.problem)
    found = Anchor(file, role, checkpoint)
    for vkey in vkeys:
        line = checkpoint.note.signed_by(vkey) if vkey.name == checkpoint.origin else None
        if line is None:
            continue
        if checkpoint.note.repeats(vkey):
            return Anchor(file, role, malformed=("one line of each key", f"two of {vkey.text}"))
        try:
            signed = holds(vkey.public, line.signature, checkpoint.note.text)
        except NoLibrary as error:
            return found._replace(vkey=vkey, no_library=str(error))
        found = found._replace(vkey=vkey, signed=signed)
        if not signed:
            break  # a line of a given key that fails is no good note, whoever else signed
    return found


def delivered(ledger: str, vkeys: Sequence[Vkey]) -> tuple[list[Anchor], list[str]]:
    """Read the checkpoints of a ledger directory; those of unknown signers are only named.

    Nothing is read without a vkey (spec §13.7).
    """
    found, warnings = [], []
    for name in _names(ledger) if vkeys else ():
        if not _NOTE_NAME.fullmatch(name):
            continue
        file = os.path.join(ledger, "checkpoints", name)
        try:
            one = anchor(file, DELIVERED, _read(file), vkeys)
        except _Unusable as error:
            problem = ("a checkpoint that can be read", str(error))
            one = Anchor(file, DELIVERED, unreadable=problem)
        if one.checkpoint is not None and one.vkey is None:
            warnings.append(f"checkpoint {file} is left aside: no given vkey signed it")
        else:
            found.append(one)
    return found, warnings


def frontiers(ledger: str) -> dict[int, Frontier]:
    """Read the frontiers of a pruned ledger, by seq; they are not trusted (spec §13.5)."""
    found = {}
    for name in _names(ledger):
        named = _FRONTIER_NAME.fullmatch(name)
        frontier = named and _frontier(os.path.join(ledger, "checkpoints", name), int(named[1]))
        if frontier:
            found[frontier.size] = frontier
    return found


def _frontier(file: str, size: int) -> Frontier | None:
    try:
        lines = _read(file).decode().split("\n")
        if lines.pop() or len(lines) > MAX_HASHES:
            return None
        return Frontier.of(size, [base64_to(line, DIGEST_SIZE, "a hash") for line in lines])
    except (_Unusable, UnicodeDecodeError, NoteRefused):
        return None


def _names(ledger: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(ledger, "checkpoints")))
    except OSError:
        return []


def _read(file: str) -> bytes:
    """Read a small file, or so much of it that it is seen to be too long; raises _Unusable."""
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _Unusable("it is not a regular file")
            return stream.read(_MAX_FILE + 1)
    except OSError as error:
        raise _Unusable(error.strerror or "it cannot be read") from None
    except ValueError:
        raise _Unusable("it is no path: it holds a null byte") from None
