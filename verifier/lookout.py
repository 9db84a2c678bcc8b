"""What a replay looks out for: chain digests that somebody knows from elsewhere, by place."""

from __future__ import annotations

from collections.abc import Sequence


class Lookout:
    """Finds the seq of a digest, and the digest at a seq, among the records of a log.

    `head_at` is where the digest `head` stands, `found` the digest at `seq`; each is None where it
    was not met. `digests` are those of the sound records by seq, where they are kept.
    """

    __slots__ = ("digests", "found", "head", "head_at", "seq")

    def __init__(
        self, head: bytes | None = None, seq: int | None = None, keep: bool = False
    ) -> None:
        """Look out for the digest `head` and for what stands at `seq`; `keep` all if asked to."""
        self.head = head
        self.head_at: int | None = None
        self.seq = seq
        self.found: bytes | None = None
        self.digests: dict[int, bytes] | None = {} if keep else None

    def see(self, first_seq: int, digests: Sequence[bytes], sound: bool = True) -> None:
        """Take in the chain digests of records in a row."""
        if self.head is not None and self.head in digests:
            self.head_at = first_seq + digests.index(self.head)
        if self.seq is not None and 0 <= self.seq - first_seq < len(digests):
            self.found = digests[self.seq - first_seq]
        if self.digests is not None and sound:
            self.digests.update(enumerate(digests, first_seq))

    def see_before(self, seq: int, digest: bytes) -> None:
        """Take in the digest of the record before the left edge `seq`, which is not there."""
        if self.head == digest:
            self.head_at = seq - 1
