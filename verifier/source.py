"""Where the bytes of a log come from: a file, a directory of segments, standard input (spec §7).

Reads only, takes no lock and writes nothing. Each file is hashed as it is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import BinaryIO

from verifier import cbor
from verifier.report import Input

CHUNK = 1 << 20
GZIP_CHUNK = 1 << 16  # what follows the end of a member is copied once for each member
EXCERPT_FORMATS = b"cardchain-excerpt/"  # of any version
GZIP_MAGIC = b"\x1f\x8b"
SEGMENT_DIGITS = 20


class Unreadable(Exception):
    """A file cannot be read, or not to its end; the message says why."""


class Segment:
    """One file of a log: its bytes in chunks, and afterwards its size and SHA-256.

    `seq` is the number in the name of a segment. `live` is true for the last segment of a
    directory, to which a writer may be appending.
    """

    def __init__(self, path: str, seq: int | None = None, live: bool = False) -> None:
        """Name a file; nothing is opened yet."""
        self.path = path
        self.seq = seq
        self.live = live
        self._size = 0
        self._ended = False
        self.opened = False  # whether there was a file that could be read
        self._ahead: Iterator[bytes] | None = None  # what `lead` has begun to read
        self._sha256 = hashlib.sha256()

    def lead(self) -> bytes:
        """Give the first chunk; `chunks` gives it again. Empty where nothing can be read."""
        chunks = self._chunks()
        try:
            first = next(chunks, b"")
        except Unreadable as error:
            self._ahead = _raising(error)
            return b""
        self._ahead = chain((first,), chunks) if first else chunks
        return first

    def chunks(self) -> Iterator[bytes]:
        """Give the bytes of the log in this file, decompressed where it is gzip.

        Raises Unreadable, also after some chunks.
        """
        return self._chunks() if self._ahead is None else self._ahead

    def _chunks(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = 0
        failure = None
        try:
            for piece in self._pieces():
                parts.append(piece)
                size += len(piece)
                if size >= CHUNK:
                    yield b"".join(parts)
                    parts, size = [], 0
        except Unreadable as error:
            failure = error
        except OSError as error:
            failure = Unreadable(error.strerror or "it cannot be read")
        if parts:
            yield b"".join(parts)
        if failure is not None:
            raise failure from None

    def _pieces(self) -> Iterator[bytes]:
        """Give the bytes as they come; a pipe and small gzip members give them in small pieces."""
        with self._open() as stream:
            data = self._read(stream)
            while 0 < len(data) < len(GZIP_MAGIC) and (more := self._read(stream)):
                data += more
            if data.startswith(GZIP_MAGIC):
                yield from self._decompressed(stream, data)
                return
            while data or self._is_followed():
                yield data
                data = self._read(stream)

    def _is_followed(self) -> bool:
        """Notice at the end of the last segment that a writer has begun another one since.

        The rest of this one was written before that, and is read too.
        """
        if self.live and self.path.endswith(".cbor") and later(self):
            self.live = False
            return True
        return False

    def input(self) -> Input:
        """Give the size and digest of the whole file, also where `chunks` was left early.

        Of standard input they are those of what was read.
        """
        if not self._ended and self._size and self.path != "-":
            again = Segment(self.path)
            with suppress(OSError, Unreadable), again._open() as stream:
                while again._read(stream):
                    pass
            return Input(self.path, again._size, again._sha256.hexdigest())
        return Input(self.path, self._size, self._sha256.hexdigest())

    def _open(self) -> BinaryIO:
        if self.path == "-":
            if sys.stdin is None:
                raise Unreadable("standard input is closed")
            return open(sys.stdin.fileno(), "rb", closefd=False, buffering=0)
        try:
            descriptor = _open_regular(self.path)
        except FileNotFoundError:
            other = self._compressed_meanwhile()
            if other is None:
                raise
            descriptor, self.path = _open_regular(other), other
        return open(descriptor, "rb", buffering=0)

    def _compressed_meanwhile(self) -> str | None:
        """Give the other name of a segment that was compressed after it was listed."""
        return f"{self.path}.gz" if self.seq is not None and self.path.endswith(".cbor") else None

    def _read(self, stream: BinaryIO, size: int = CHUNK) -> bytes:
        chunk = stream.read(size) or b""
        self._ended = not chunk
        self.opened = True
        self._size += len(chunk)
        self._sha256.update(chunk)
        return chunk

    def _decompressed(self, stream: BinaryIO, data: bytes) -> Iterator[bytes]:
        import zlib  # starting takes longer with it

        try:
            while data:
                member = zlib.decompressobj(wbits=31)
                while not member.eof:
                    data = data or self._read(stream, GZIP_CHUNK)
                    chunk = member.decompress(data, CHUNK)  # may still hold output without input
                    if not (data or chunk or member.eof):
                        raise Unreadable("the gzip data ends early")
                    data = member.unconsumed_tail
                    if chunk:
                        yield chunk
                data = member.unused_data or self._read(stream, GZIP_CHUNK)
                if data and data[:1] != GZIP_MAGIC[:1]:
                    raise Unreadable("there is other data after the gzip data")
        except zlib.error:
            raise Unreadable("the gzip data is damaged") from None


def _raising(error: Unreadable) -> Iterator[bytes]:
    yield from ()
    raise error


def _open_regular(path: str) -> int:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except ValueError:
        raise Unreadable("it is no path: it holds a null byte") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise Unreadable("it is not a regular file")
    return descriptor


def is_ledger(path: str) -> bool:
    """Say whether a path is a ledger: a directory with `segments/` (spec §7.1)."""
    return os.path.isdir(os.path.join(path, "segments"))


def is_excerpt(segment: Segment) -> bool:
    """Say whether a file is an excerpt, of whatever version, and not a log (spec §14.1)."""
    data = segment.lead()
    try:
        array, _, pos = cbor.decode_head(data, 0)
        text, _, pos = cbor.decode_head(data, pos)
    except (IndexError, cbor.NotDeterministic):
        return False
    return (array, text) == (4, 3) and data.startswith(EXCERPT_FORMATS, pos)


def segments(path: str) -> tuple[list[Segment], list[str]]:
    """Give the segments of a ledger in order, and the paths of files that are none.

    Raises Unreadable.
    """
    folder = os.path.join(path, "segments")
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise Unreadable(error.strerror or "it cannot be read") from None
    found: list[Segment] = []
    others = []
    for name in names:  # twenty digits sort as their numbers
        file = os.path.join(folder, name)
        seq = _segment_seq(name)
        if seq is None or (found and seq == found[-1].seq):  # one seq, one segment
            others.append(file)
        else:
            found.append(Segment(file, seq))
    if found:
        found[-1].live = True
    return found, others


def later(segment: Segment) -> list[Segment]:
    """Give the segments that stand behind one now; they may have been begun since it was listed.

    Openings that are gone may be accounted for there (spec §15.3).
    """
    ledger = os.path.dirname(os.path.dirname(segment.path))
    found, _ = segments(ledger)
    return [each for each in found if (each.seq or 0) > (segment.seq or 0)]


def _segment_seq(name: str) -> int | None:
    digits, dot, rest = name.partition(".")
    if rest not in ("cbor", "cbor.gz") or not dot or len(digits) != SEGMENT_DIGITS:
        return None
    return int(digits) if digits.isascii() and digits.isdigit() else None
