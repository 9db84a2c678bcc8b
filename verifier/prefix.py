"""What stands before the records to be verified: passed over, or only hashed (spec §15.2, §13.7).

Nothing here is checked. A record is found by its lengths alone; where they lead astray, the next
whole record is looked for as everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from verifier import cbor
from verifier.framing import Frames
from verifier.proof import ENVELOPE
from verifier.source import Segment
from verifier.spec import CHAIN_SIZE, HEADER, KID_SIZE, MAX_RECORD, VERSION

_AT_OPENINGS = len(HEADER) + KID_SIZE
AT_SEQ = 1 + len(cbor.text(VERSION)) + 1 + CHAIN_SIZE  # in a payload


def after(segments: list[Segment], seq: int) -> list[Segment]:
    """Leave out the segments that end before `seq`, as the names of the next ones say."""
    first = 0
    for place, segment in enumerate(segments):
        if segment.seq is not None and segment.seq <= seq:
            first = place
    return segments[first:]


def hop(frames: Frames, seq: int) -> bool:
    """Go on to the first record of at least `seq`; False at the end of the file."""
    for _ in _spans(frames, seq):
        pass
    return frames.pos < len(frames.buffer)


def chain_digests(frames: Frames, seq: int) -> Iterator[tuple[int, bytes]]:
    """Give seq and chain digest of each record before the first of at least `seq`."""
    begun = hashlib.sha256()
    kid = b""
    for start, at_payload, end, found in _spans(frames, seq):
        buffer = frames.buffer
        if buffer[start + len(HEADER) : start + _AT_OPENINGS] != kid:
            kid = buffer[start + len(HEADER) : start + _AT_OPENINGS]
            begun = hashlib.sha256(b"\x00" + HEADER + kid + b"\xa0")
        bare = begun.copy()
        bare.update(buffer[at_payload:end])
        yield found, bare.digest()


def first(frames: Frames, seq: int) -> tuple[bytes, bytes] | None:
    """Take the next record unless its seq is above `seq`; give its chain and its chain digest."""
    for start, at_payload, end, _ in _spans(frames, seq + 1):
        buffer = frames.buffer
        begun = b"\x00" + buffer[start : start + _AT_OPENINGS] + b"\xa0"
        at_seq = at_payload + buffer[at_payload] - 0x56 + AT_SEQ
        digest = hashlib.sha256(begun + buffer[at_payload:end]).digest()
        return buffer[at_seq - CHAIN_SIZE : at_seq], digest
    return None


def chain_there(frames: Frames) -> bytes | None:
    """Give the chain of the record at the place reached, without going on.

    None where none stands there in the usual form.
    """
    while (found := span(frames.buffer, frames.pos)) is None:
        if len(frames.buffer) - frames.pos >= MAX_RECORD or not frames.more():
            return None
    at_seq = found[1] + frames.buffer[found[1]] - 0x56 + AT_SEQ
    return frames.buffer[at_seq - CHAIN_SIZE : at_seq]


def _spans(frames: Frames, seq: int) -> Iterator[tuple[int, int, int, int]]:
    """Give where each record before `seq` begins, has its payload and ends, and its seq.

    The places are those in the buffer.
    """
    while True:
        found = span(frames.buffer, frames.pos)
        if found is not None and found[3] >= seq:
            return
        if found is None:
            if len(frames.buffer) - frames.pos < MAX_RECORD and frames.more():
                continue
            found = _next(frames, seq)
            if found is None:
                return
        frames.pass_over(found[2])
        yield found


def span(buffer: bytes, pos: int) -> tuple[int, int, int, int] | None:
    """Give where a record in the usual form begins, has its payload and ends, and its seq.

    Gives None where none stands whole in the buffer.
    """
    if not buffer.startswith(HEADER, pos):
        return None
    at = pos + _AT_OPENINGS
    try:
        if buffer.startswith(ENVELOPE, at):
            at += len(ENVELOPE) + 2
            at_payload = at + (buffer[at - 2] << 8 | buffer[at - 1])
        else:
            at_payload = cbor.skip(buffer, at)
        head = buffer[at_payload]
        at = at_payload + (head - 0x56)  # past a length of one byte, or of two
        if head not in (0x58, 0x59):
            return None
        end = at + int.from_bytes(buffer[at_payload + 1 : at], "big") + 34
        seq, _ = cbor.decode_item(buffer, at + AT_SEQ, 1)
    except (IndexError, cbor.NotDeterministic, cbor.NotWellFormed, cbor.Truncated):
        return None
    if end > len(buffer) or type(seq) is not int or seq < 0:
        return None
    return pos, at_payload, end, seq


def _next(frames: Frames, seq: int) -> tuple[int, int, int, int] | None:
    """Find the next record where none stands whole in the buffer in the usual form."""
    while True:
        piece = frames.next()
        if piece is None:
            return None
        if piece.seq is None:
            continue
        end = frames.pos
        start = end - len(piece.data)
        if piece.seq >= seq:
            frames.go_to(piece.offset)
            return None
        return start, end - 34 - len(piece.payload_item), end, piece.seq
