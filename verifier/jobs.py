"""Records proven in other processes, piece by piece, while this one folds them in.

A process gets bytes and gives rows of proven records; it decides nothing. What it does not prove,
or what does not follow from the state here, is proven or judged here, so the report is the same
with any number of processes. The bytes that are folded in are those that were sent.
"""

from __future__ import annotations

import marshal
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from verifier import cbor
from verifier.evidence import frame
from verifier.keys import Key, Ring
from verifier.prefix import AT_SEQ, span
from verifier.proof import Links, Row, prove
from verifier.spec import CHAIN_SIZE, DIGEST_SIZE, HEADER, KID_SIZE

PIECE = 1 << 19
_MAX_JUDGED = 1 << 16  # cards that a process remembers


class Pool:
    """Processes that prove pieces of logs; each has one piece at a time."""

    def __init__(self, jobs: int, ring: Ring, piece: int = PIECE) -> None:
        """Name the number of processes and their keys; they are started when they are needed."""
        self.piece = piece
        self._keys = ring.keys()
        self._left = jobs
        self._idle: list[Connection] = []
        self._all: list[Connection] = []

    def take(self) -> Connection | None:
        """Give a process that has nothing to do, or None where there is none."""
        if not self._idle and self._left:
            self._left -= 1
            self._start()
        return self._idle.pop() if self._idle else None

    def _start(self) -> None:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self._keys), daemon=True)
        with suppress(OSError):
            process.start()
            self._idle.append(ours)
            self._all.append(ours)
        theirs.close()

    def give_back(self, worker: Connection) -> None:
        """Take back a process that has done its piece."""
        self._idle.append(worker)

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
        self._cut = _cut(chunks, pool.piece)
        self._offset = offset
        self._sent: deque[tuple[int, bytes, Connection | None]] = deque()
        self._failure: Exception | None = None

    def __iter__(self) -> Iterator[bytes]:
        """Give the pieces in order; raises what reading the chunks raised, in its place."""
        while self._send() or self._sent:
            offset, piece, worker = self._sent.popleft()
            if worker is not None:
                self._receive(offset, worker)
                self._send()
            yield piece
        if self._failure is not None:
            raise self._failure

    def _send(self) -> bool:
        """Hand pieces to the processes that have nothing to do; say whether there was one more."""
        count = 0
        while not self._sent or len(self._sent) < 64:
            worker = self._pool.take()
            if worker is None and self._sent:
                break
            piece = self._next()
            if not piece:
                if worker is not None:
                    self._pool.give_back(worker)
                break
            count += 1
            if worker is not None and not _sends(worker, piece):
                worker = None
            self._sent.append((self._offset, piece, worker))
            self._offset += len(piece)
        return count > 0

    def _next(self) -> bytes:
        if self._failure is not None:
            return b""
        try:
            return next(self._cut, b"")
        except Exception as error:  # raised again once the pieces before it are read
            self._failure = error
            return b""

    def _receive(self, offset: int, worker: Connection) -> None:
        try:
            rows = marshal.loads(worker.recv_bytes())
        except (OSError, EOFError):  # the process has ended: its piece is proven here
            return
        self._pool.give_back(worker)
        for start, links, tagged, records, broke in rows:
            self.rows[offset + start] = Row(offset + start, Links(*links), tagged, records, broke)


def _sends(worker: Connection, piece: bytes) -> bool:
    try:
        worker.send_bytes(piece)
    except OSError:
        return False
    return True


def _cut(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Cut bytes into pieces of at most `size` that begin with a record, where there are some."""
    data = b""
    for chunk in chunks:
        data += chunk
        while len(data) > size:
            end = data.rfind(HEADER, 1, size)
            end = size if end < 0 else end
            yield data[:end]
            data = data[end:]
    if data:
        yield data


def serve(connection: Connection, keys: list[Key]) -> None:
    """Prove the pieces that come until there are no more; the life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    ring, judged = Ring(keys), set[bytes]()
    with suppress(OSError, EOFError):
        while True:
            rows = prove_piece(connection.recv_bytes(), ring, judged)
            connection.send_bytes(marshal.dumps(rows))


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
