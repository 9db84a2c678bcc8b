"""Records proven in other processes, piece by piece, while this one folds them in.

A process gets bytes and gives rows of proven records; it decides nothing. What it does not prove,
or what does not follow from the state here, is proven or judged here, so the report is the same
with any number of processes. The bytes that are folded in are those that were sent.
"""

from __future__ import annotations

import marshal
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Any

from verifier import cbor
from verifier.evidence import frame
from verifier.keys import Key, Ring
from verifier.prefix import AT_SEQ, span
from verifier.proof import Links, Row, prove
from verifier.source import Unreadable
from verifier.spec import CHAIN_SIZE, DIGEST_SIZE, HEADER, KID_SIZE

PIECE = 1 << 19
_MAX_JUDGED = 1 << 16  # cards that a process remembers


class Worker:
    """One process that proves the piece it was sent last."""

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
        )
        self.send(marshal.dumps([(key.chain, key.secret) for key in keys]))

    def send(self, data: bytes) -> None:
        """Send a message; raises OSError where the process has ended."""
        if self._process.stdin is not None:
            _write(self._process.stdin, data)

    def receive(self) -> bytes:
        """Wait for the answer; empty where the process has ended."""
        return b"" if self._process.stdout is None else _read(self._process.stdout)

    def close(self) -> None:
        """Let the process end; what it is still proving nobody wants."""
        self._process.kill()
        self._process.communicate()


def _write(stream: IO[bytes], data: bytes) -> None:
    rest = memoryview(len(data).to_bytes(8, "big") + data)
    while rest:
        rest = rest[stream.write(rest) :]


def _read(stream: IO[bytes]) -> bytes:
    """Read a message; empty at the end of the stream."""
    size = int.from_bytes(_exactly(stream, 8), "big")
    return _exactly(stream, size)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (more := stream.read(min(size - len(data), 1 << 18))):
        data += more
    return bytes(data) if len(data) == size else b""


class Pool:
    """Processes that prove pieces of logs; each has one piece at a time."""

    def __init__(self, jobs: int, ring: Ring) -> None:
        """Name the number of processes and their keys; they are started when they are needed."""
        self._keys = ring.keys()
        self._left = jobs
        self._idle: list[Worker] = []
        self._all: list[Worker] = []

    def take(self) -> Worker | None:
        """Give a process that has nothing to do, or None where there is none."""
        if not self._idle and self._left:
            self._left -= 1
            with suppress(OSError):
                self._all.append(Worker(self._keys))
                self._idle.append(self._all[-1])
        return self._idle.pop() if self._idle else None

    def give_back(self, worker: Worker) -> None:
        """Take back a process that has done its piece."""
        self._idle.append(worker)

    def pieces(self, chunks: Iterator[bytes], offset: int) -> Pieces:
        """Give the bytes of a file in pieces that are proven by these processes."""
        return Pieces(self, chunks, offset)

    def close(self) -> None:
        """Let the processes end."""
        for worker in self._all:
            worker.close()


class Pieces:
    """The bytes of a file in pieces, each proven by the time it is given.

    `rows` are the rows of the pieces given so far, by their offset; whoever reads on drops those
    that are behind.
    """

    def __init__(self, pool: Pool, chunks: Iterator[bytes], offset: int) -> None:
        """Read `chunks`, of which the first byte stands at `offset` of the file."""
        self.rows: dict[int, Row] = {}
        self._pool = pool
        self._cut = _cut(chunks, PIECE)
        self._ahead: deque[bytes] = deque()
        self._offset = offset
        self._sent: deque[tuple[int, bytes, Worker | None]] = deque()
        self._failure: Exception | None = None

    def __iter__(self) -> Iterator[bytes]:
        """Give the pieces in order; raises what reading the chunks raised, in its place.

        A single piece is proven here: no process is worth its start then.
        """
        first, second = self._next(), self._next()
        if second:
            self._ahead += (first, second)
        elif first:
            yield first
        while second and self._send():
            offset, piece, worker = self._sent.popleft()
            if worker is not None:
                self._receive(offset, worker)
                self._send()
            yield piece
        if self._failure is not None:
            raise self._failure

    def _send(self) -> bool:
        """Hand pieces to the processes that have nothing to do; say whether one is on its way.

        Without a process a piece is on its way unproven.
        """
        while (worker := self._pool.take()) is not None or not self._sent:
            piece = self._next()
            if not piece:
                if worker is not None:
                    self._pool.give_back(worker)
                break
            if worker is not None and not _sends(worker, piece):
                worker = None
            self._sent.append((self._offset, piece, worker))
            self._offset += len(piece)
        return bool(self._sent)

    def _next(self) -> bytes:
        if self._ahead:
            return self._ahead.popleft()
        if self._failure is not None:
            return b""
        try:
            return next(self._cut, b"")
        except Unreadable as error:  # raised again once the pieces before it are read
            self._failure = error
            return b""

    def _receive(self, offset: int, worker: Worker) -> None:
        answer = worker.receive()
        if not answer:
            return  # the process has ended: its piece is proven here
        self._pool.give_back(worker)
        for start, links, tagged, records, broke in marshal.loads(answer):
            self.rows[offset + start] = Row(offset + start, Links(*links), tagged, records, broke)


def _sends(worker: Worker, piece: bytes) -> bool:
    try:
        worker.send(piece)
    except OSError:
        return False
    return True


def _cut(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Cut bytes into pieces of at most `size` that begin with a record, where there are some.

    Raises what reading the chunks raised, after the bytes before it.
    """
    data = b""
    failure: Exception | None = None
    try:
        for chunk in chunks:
            data += chunk
            while len(data) > size:
                end = data.rfind(HEADER, 1, size)
                end = size if end < 0 else end
                yield data[:end]
                data = data[end:]
    except Unreadable as error:
        failure = error
    if data:
        yield data
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
