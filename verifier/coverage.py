"""The tree of a log as it grows, held against the roots that are signed (spec §13.7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from verifier.merkle import Frontier


class Coverage:
    """How many records of a log a signed root covers, so that they need no secret (spec §16.1).

    `roots` are those at the sizes asked for. `chain` is that of the log, once it is known, and
    `size` the largest at which the root is one that is signed for it. A frontier alone has any root
    that is known, so its own is one only below a larger root that is signed.
    """

    __slots__ = (
        "_coming",
        "_edge",
        "_frontiers",
        "_signed",
        "_tree",
        "begins_at_frontier",
        "chain",
        "roots",
        "size",
    )

    def __init__(
        self,
        signed: Mapping[int, Collection[tuple[bytes, bytes]]],
        frontiers: Mapping[int, Frontier],
    ) -> None:
        """Start before the first record.

        `signed` holds by size the signed roots, each behind its chain. `frontiers` are, by seq,
        those from which a log may go on that starts there; they are not trusted.
        """
        self._signed = signed
        self._coming = sorted(signed, reverse=True)
        self._frontiers = frontiers
        self._tree: Frontier | None = Frontier()
        self.roots: dict[int, bytes] = {}
        self.size = 0
        self.begins_at_frontier = False
        self.chain = b""  # empty as long as nobody knows it
        self._edge: tuple[int, bytes] | None = None  # size and root of the frontier, if asked for

    @property
    def sizes(self) -> Collection[int]:
        """The sizes asked for: the records after them are to be looked at one by one."""
        return self._signed.keys()

    def extend(self, first_seq: int, digests: Sequence[bytes]) -> bool:
        """Add the chain digests of sound records in a row; say whether more are covered now."""
        if self._tree is not None and first_seq != self._tree.size:
            self._tree = None if self._tree.size else self._frontiers.get(first_seq)
            self.begins_at_frontier = self._tree is not None
        tree, coming, done, covered = self._tree, self._coming, 0, self.size
        if tree is None:
            return False
        while coming and coming[-1] <= first_seq + len(digests):
            size = coming.pop()
            if size >= tree.size:
                tree.extend(digests[done : size - first_seq])
                done = size - first_seq
                self._take(size, tree.root(), is_frontier=not done)
        if coming:
            tree.extend(digests[done:])
        return self.size > covered

    def _take(self, size: int, root: bytes, is_frontier: bool) -> None:
        if is_frontier:
            self._edge = size, root
            return
        self.roots[size] = root
        if self._is_signed(size, root):
            self.size = size
            if self._edge is not None:
                self.roots.setdefault(*self._edge)

    def _is_signed(self, size: int, root: bytes) -> bool:
        return (self.chain, root) in self._signed[size]

    def close(self, size: int) -> None:
        """Say that no more records stand below a size: fewer than it says have another root."""
        if self._tree is not None and self._tree.size < size:
            self.roots[size] = self._tree.root()

    def stop(self, doubted: int | None = None) -> None:
        """Give up at an unsound record: its finding explains every root above it.

        It also explains another root at the size `doubted`, where the last record is in doubt.
        """
        self._tree = None
        if doubted in self.roots and not self._is_signed(doubted, self.roots[doubted]):
            del self.roots[doubted]
