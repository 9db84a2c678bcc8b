"""Records proven in other processes too, piece by piece, while this one folds them in.

A process gets bytes and gives rows of proven records; it decides nothing. This process proves what
the others have not come to, and judges what nobody proved or what does not follow from the state
here, so the report is the same with any number of them. The bytes that are folded in are those that
were sent.
"""

from __future__ import annotations

import marshal
import select
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Any

from verifier import cbor
from verifier.evidence import frame
from verifier.keys import Key, Ring
from verifier.prefix import AT_SEQ, span
from verifier.proof import Links, Row, prove
from verifier.source import Unreadable
from verifier.spec import CHAIN_SIZE, DIGEST_SIZE, HEADER, KID_SIZE

PIECE = 1 << 18
PIECES_EACH = 16  # as many as make a process worth its start
_MAX_AHEAD = 16  # pieces proven here that wait for one that another process has
_MAX_JUDGED = 1 << 16  # cards that a process remembers
_PIPE_SIZE = 1 << 20
# Pieces that one process has at a time. Where its pipe can be made to hold them all, this process
# never waits to send one; elsewhere it sends to those that have nothing else to do.
_DEPTH = 3 if sys.platform == "linux" else 1


class Worker:
    """One process that proves the pieces it was sent, in order."""

    def __init__(self, keys: list[Key]) -> None:
        """Start it; it gets the keys through a pipe. Raises OSError.

        What keeps it from its work is said by this process, which then does the work.
        """
        start = f"import sys; sys.path[:] = {sys.path!r}; from verifier.jobs import main; main()"
        self._process = Popen(
            [sys.executable, "-I", "-S", "-c", start],
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            bufsize=0,
            pipesize=_PIPE_SIZE,
        )
        self._asked = 0
        self._has_ended = not self._sends(marshal.dumps([(key.chain, key.secret) for key in keys]))

    @property
    def has_room(self) -> bool:
        """Whether it takes another piece."""
        return self._asked < _DEPTH and not self._has_ended

    @property
    def has_answered(self) -> bool:
        """Whether there is something to receive."""
        answers = self._process.stdout
        try:
            return answers is None or bool(select.select([answers], [], [], 0)[0])
        except (OSError, ValueError):  # here a pipe, or one of so high a number, is waited for
            return True

    def ask(self, piece: bytes) -> bool:
        """Send a piece; False where the process has ended."""
        self._has_ended = not self._sends(piece)
        self._asked += not self._has_ended
        return not self._has_ended

    def receive(self) -> list[Any]:
        """Wait for the rows of the first piece that was sent; none where the process has ended."""
        self._asked -= 1
        answer = b"" if self._process.stdout is None else _read(self._process.stdout)
        self._has_ended = not answer
        return marshal.loads(answer) if answer else []

    def close(self) -> None:
        """Let the process end; what it is still proving nobody wants."""
        self._process.kill()
        self._process.communicate()

    def _sends(self, data: bytes) -> bool:
        try:
            if self._process.stdin is not None:
                _write(self._process.stdin, data)
        except OSError:
            return False
        return True


def _write(stream: IO[bytes], data: bytes) -> None:
    rest = memoryview(len(data).to_bytes(8, "big") + data)
    while rest:
        rest = rest[stream.write(rest) :]


def _read(stream: IO[bytes]) -> bytes:
    """Read a message; empty at the end of the stream."""
    size = int.from_bytes(_exactly(stream, 8), "big")
    return _exactly(stream, size)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    parts = []
    while size and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"" if size else b"".join(parts)


class Pool:
    """Processes that prove pieces of logs, beside this one."""

    def __init__(self, jobs: int, ring: Ring) -> None:
        """Name the number of processes, this one among them; they start when they are needed."""
        self.ring = ring
        self._left = jobs - 1
        self._workers: list[Worker] = []

    def workers(self, wanted: int) -> list[Worker]:
        """Give the other processes; as many as are wanted are started, as far as they can be."""
        while self._left and len(self._workers) < wanted:
            self._left -= 1
            with suppress(OSError):
                self._workers.append(Worker(self.ring.keys()))
        return self._workers

    def pieces(self, chunks: Iterator[bytes], offset: int) -> Pieces:
        """Give the bytes of a file in pieces that are proven by these processes."""
        return Pieces(self, chunks, offset)

    def close(self) -> None:
        """Let the processes end."""
        for worker in self._workers:
            worker.close()


@dataclass(slots=True)
class _Piece:
    """Bytes of a file, with the process that proves them or their rows."""

    offset: int
    data: bytes
    worker: Worker | None = None
    rows: list[Any] | None = None


class Pieces:
    """The bytes of a file in pieces, most of them proven by the time they are given.

    `rows` are the rows of the pieces given so far, by their offset; whoever reads on drops those
    that are behind.
    """

    def __init__(self, pool: Pool, chunks: Iterator[bytes], offset: int) -> None:
        """Read `chunks`, of which the first byte stands at `offset` of the file."""
        self.rows: dict[int, Row] = {}
        self._pool = pool
        self._cut = _cut(chunks, PIECE)
        self._offset = offset
        self._ahead: deque[_Piece] = deque()
        self._count = 0  # of pieces that were read
        self._judged: set[bytes] = set()
        self._failure: Exception | None = None

    def __iter__(self) -> Iterator[bytes]:
        """Give the pieces in order; raises what reading the chunks raised, in its place.

        The first ones are given unproven, since a process takes a while to start.
        """
        while self._hand_out():
            piece = self._ahead.popleft()
            for start, links, tagged, records, broke in self._rows(piece):
                row = Row(piece.offset + start, Links(*links), tagged, records, broke)
                self.rows[row.offset] = row
            yield piece.data
        if self._failure is not None:
            raise self._failure

    def _hand_out(self) -> bool:
        """Send pieces to the processes that take some; False where no piece is left to give."""
        if not self._ahead and self._read_ahead() is None:
            return False
        for worker in self._pool.workers((self._count - 1) // PIECES_EACH):
            while worker.has_room and (piece := self._read_ahead()) is not None:
                if worker.ask(piece.data):
                    piece.worker = worker
        return True

    def _rows(self, piece: _Piece) -> list[Any]:
        """Give the rows of a piece; as long as another process has it, those ahead are proven."""
        if piece.worker is None:
            return piece.rows or []
        most = len(self._ahead) + _MAX_AHEAD
        while not piece.worker.has_answered and len(self._ahead) < most:
            another = self._read_ahead()
            if another is None:
                break
            another.rows = prove_piece(another.data, self._pool.ring, self._judged)
        return piece.worker.receive()

    def _read_ahead(self) -> _Piece | None:
        data = self._next()
        if not data:
            return None
        self._count += 1
        self._ahead.append(_Piece(self._offset, data))
        self._offset += len(data)
        return self._ahead[-1]

    def _next(self) -> bytes:
        try:
            return next(self._cut, b"")
        except Unreadable as error:  # raised again once the pieces before it are read
            self._failure = error
            return b""


def _cut(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Cut bytes into pieces of at most `size` that begin with a record, where there are some.

    Raises what reading the chunks raised, after the bytes before it.
    """
    data, start = b"", 0
    failure: Exception | None = None
    try:
        for chunk in chunks:
            data, start = data[start:] + chunk, 0
            while len(data) - start > size:
                end = data.rfind(HEADER, start + 1, start + size)
                end = start + size if end < 0 else end
                yield data[start:end]
                start = end
    except Unreadable as error:
        failure = error
    if start < len(data):
        yield data[start:]
    if failure is not None:
        raise failure


def main() -> None:
    """Prove the pieces that come until there are no more; the life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    keys = marshal.loads(_read(sys.stdin.buffer))
    ring, judged = Ring(Key(*key) for key in keys), set[bytes]()
    with suppress(BrokenPipeError):
        while piece := _read(sys.stdin.buffer):
            _write(sys.stdout.buffer, marshal.dumps(prove_piece(piece, ring, judged)))
            sys.stdout.buffer.flush()


def prove_piece(data: bytes, ring: Ring, judged: set[bytes]) -> list[Any]:
    """Give the rows of proven records in a piece: start, links, tagged, records, broke.

    `judged` are cards whose envelopes were checked; it grows.
    """
    rows: list[Any] = []
    pos = 0
    while (pos := data.find(HEADER, pos)) >= 0:
        links = _links(data, pos)
        if links is not None:
            hmac = ring.hmac(links.chain, links.kid)
            row = prove(data, pos, links, hmac, judged.__contains__)
            if row.records:
                rows.append((pos, tuple(links), row.tagged, row.records, row.broke))
                pos += row.records[-1][0]
                if len(judged) > _MAX_JUDGED:
                    judged.clear()
                judged.update(record[3] for record in row.records if record[1] == "issued")
        pos = _past(data, pos)
    return rows


def _links(data: bytes, pos: int) -> Links | None:
    """Read what a record says it follows from."""
    found = span(data, pos)
    if found is None:
        return None
    at_seq = found[1] + data[found[1]] - 0x56 + AT_SEQ
    seq, at = cbor.decode_item(data, at_seq, 1)
    chain, prev = data[at_seq - CHAIN_SIZE : at_seq], data[at + 2 : at + 2 + DIGEST_SIZE]
    return Links(chain, data[pos + len(HEADER) : pos + len(HEADER) + KID_SIZE], seq, prev)


def _past(data: bytes, pos: int) -> int:
    """Give a place behind a record that was not proven."""
    try:
        return frame(data, pos)
    except (cbor.Truncated, cbor.NotWellFormed):
        return pos + 1
