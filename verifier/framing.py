"""A file as a row of whole records and of stretches that are none (spec §3.1, §7.4, §10.3).

The bytes come in chunks; no more of them are kept than one record may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Protocol

from verifier import cbor
from verifier.evidence import Evidence, frame, parse
from verifier.proof import Row
from verifier.shape import Problem
from verifier.spec import DIGEST_SIZE, HEADER, MAX_RECORD

MAX_DAMAGE = 1 << 24  # bytes that are no record, after which reading on tells nothing
MAX_CANDIDATES = 1 << 16  # record headers among them, each of which was tried


_TAG_HEAD = b"\x58\x20"
_TORN = "torn"
_NONE = "none"


class Lost(Exception):
    """So many bytes are no record that the rest of the file was not read."""


class Pieces(Protocol):
    """Bytes in pieces, and the rows of records in those given so far, by their offset."""

    rows: dict[int, Row]

    def __iter__(self) -> Iterator[bytes]:
        """Give the pieces in order."""


class Frames:
    """The pieces of one file, in order. `buffer[pos:]` is what was read and not given yet."""

    __slots__ = ("_chunks", "_lost", "_offset", "_seq", "buffer", "file", "pos", "proven", "row")

    def __init__(self, file: str, chunks: Iterator[bytes], seq: int | None = None) -> None:
        """Read `chunks` of `file`; `seq` is the number in the name of a segment."""
        self.file = file
        self._chunks = chunks
        self._offset = 0  # of buffer[0] in the file
        self._seq = seq
        self.buffer = b""
        self.pos = 0
        self.row: Row | None = None  # what was proven last
        self.proven: dict[int, Row] = {}  # what was proven elsewhere, by its offset
        self._lost = False

    @property
    def begins_segment(self) -> bool:
        """Whether the next record is the first of a segment, whose name gives its seq."""
        return self._seq is not None

    @property
    def offset(self) -> int:
        """The place in the file that is reached."""
        return self._offset + self.pos

    def go_to(self, offset: int) -> None:
        """Go on from a place in the buffer, given as a place in the file."""
        self.pos = offset - self._offset

    def pass_over(self, end: int) -> None:
        """Go on to a place in the buffer, of a record that nobody looks at."""
        self.pos = end
        self._seq = None

    def between(self, start: int, end: int) -> bytes:
        """Give bytes of the buffer, named by their places in the file."""
        return self.buffer[start - self._offset : end - self._offset]

    def more(self) -> bool:
        """Read a chunk more; False at the end of the file."""
        chunk = next(self._chunks, b"")
        if not chunk:
            return False
        self._offset += self.pos
        self.buffer = self.buffer[self.pos :] + chunk
        self.pos = 0
        for behind in sorted(offset for offset in self.proven if offset <= self._offset)[:-1]:
            del self.proven[behind]
        return True

    def read_on(self) -> bool:
        """Read a chunk more where the buffer ends inside a record of a size that is allowed.

        False where there is a whole record, none at all, or no more to read.
        """
        try:
            frame(self.buffer, self.pos)
        except cbor.Truncated as error:
            return error.needed - self.pos <= MAX_RECORD and self.more()
        except cbor.NotWellFormed:
            return False
        return False

    def proven_here(self) -> Row | None:
        """Give the row in which the record at the place reached may have been proven elsewhere."""
        before = [offset for offset in self.proven if offset <= self.offset]
        return self.proven[max(before)] if before else None

    def next_proven(self) -> int | None:
        """Give the place in the buffer from which on records were proven elsewhere."""
        if not self.proven:
            return None
        after = [offset for offset in self.proven if offset > self.offset]
        return min(after) - self._offset if after else None

    def read_from(self, pieces: Callable[[Iterator[bytes], int], Pieces]) -> None:
        """Go on with the same bytes in pieces whose records are proven elsewhere."""
        rest = pieces(chain((self.buffer[self.pos :],), self._chunks), self.offset)
        self._offset, self.buffer, self.pos = self.offset, b"", 0
        self._chunks, self.proven = iter(rest), rest.rows

    def next(self) -> Evidence | None:
        """Give the next whole record or stretch of other bytes; None at the end of the file.

        Raises Lost. `limits` of a record that is too long to be read to its end is noted on the
        stretch up to the next header.
        """
        if self._lost:
            raise Lost
        if self.pos == len(self.buffer) and not self.more():
            return None
        end = self._frame()
        if isinstance(end, int):
            record = parse(self.file, self.offset, self.buffer[self.pos : end])
            record.segment_seq, self._seq = self._seq, None
            self.pos = end
            return record
        self._seq = None
        return self._damage(end)

    def _frame(self) -> int | str | Problem:
        """Give the end of the record at `pos`; else why there is none, or what is over a limit."""
        while True:
            try:
                if not self.buffer.startswith(HEADER, self.pos):
                    rest = self.buffer[self.pos : self.pos + len(HEADER)]
                    if not HEADER.startswith(rest):
                        return _NONE
                    raise cbor.Truncated(self.pos + len(HEADER))
                end = frame(self.buffer, self.pos)
                return end if self._has_tag(end) else self._before_header(end)
            except cbor.NotWellFormed:
                return _NONE
            except cbor.Truncated as error:
                size = error.needed - self.pos
                if size > MAX_RECORD:
                    return f"a record of at most {MAX_RECORD} bytes", f"at least {size} bytes"
                if not self.more():
                    return _TORN

    def _damage(self, problem: str | Problem) -> Evidence:
        """Give the bytes up to the next whole record (spec §10.3, rule 5)."""
        start = self.offset
        piece = Evidence(self.file, start, b"")
        if problem == _TORN and self.buffer.find(HEADER, self.pos + 1) < 0:
            size = len(self.buffer) - self.pos
            piece.torn = ("the rest of the record", f"{size} bytes of it at the end of the file")
            self.pos = len(self.buffer)
            return piece
        candidates = 0
        while self._to_header(start + MAX_DAMAGE) and not self._begins_record():
            candidates += 1
            self._lost = self._lost or candidates > MAX_CANDIDATES
            if self._lost:
                break
        if isinstance(problem, tuple):
            piece.limit = problem
        else:
            piece.framing = ("a record", f"{self.offset - start} bytes that are none")
        return piece

    def _begins_record(self) -> bool:
        """Say whether bytes after others that are no record are one, down to a tag of 32 bytes."""
        end = self._frame()
        return isinstance(end, int) and self._has_tag(end)

    def _has_tag(self, end: int) -> bool:
        return self.buffer[end - len(_TAG_HEAD) - DIGEST_SIZE : end].startswith(_TAG_HEAD)

    def _before_header(self, end: int) -> int | str:
        """Give the end of a record without a tag of 32 bytes, if the next one begins there."""
        size = end - self.pos
        while len(self.buffer) < self.pos + size + len(HEADER) and self.more():
            pass
        end = self.pos + size
        return end if HEADER.startswith(self.buffer[end : end + len(HEADER)]) else _NONE

    def _to_header(self, last: int) -> bool:
        """Move on to the next record header after `pos`; False at the end, or beyond `last`."""
        self.pos += 1
        while True:
            if self.offset > last:
                self._lost = True
                return False
            place = self.buffer.find(HEADER, self.pos)
            if place >= 0:
                self.pos = place
                return True
            self.pos = max(self.pos, len(self.buffer) - len(HEADER) + 1)
            if not self.more():
                self.pos = len(self.buffer)
                return False
