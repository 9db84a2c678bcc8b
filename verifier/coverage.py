"""The tree of a log as it grows, held against the roots that are signed (spec §13.7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from verifier.merkle import Frontier


class Coverage:
    """How many records of a log a signed root covers, so that they need no secret (spec §16.1).

    `roots` are those at the sizes asked for. `size` is the largest at which the root is a signed
    one.
    """

    __slots__ = ("_coming", "_frontiers", "_signed", "_tree", "begins_at_frontier", "roots", "size")

    def __init__(
        self, signed: Mapping[int, Collection[bytes]], frontiers: Mapping[int, Frontier]
    ) -> None:
        """Start before the first record.

        `signed` holds by size the signed roots. `frontiers` are, by seq, those from which a log may
        go on that starts there; they are not trusted.
        """
        self._signed = signed
        self._coming = sorted(signed, reverse=True)
        self._frontiers = frontiers
        self._tree: Frontier | None = Frontier()
        self.roots: dict[int, bytes] = {}
        self.size = 0
        self.begins_at_frontier = False

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
                self.roots[size] = tree.root()
                if self.roots[size] in self._signed[size]:
                    self.size = size
        if coming:
            tree.extend(digests[done:])
        return self.size > covered

    def close(self, size: int) -> None:
        """Say that no more records stand below a size: fewer than it says have another root."""
        if self._tree is not None and self._tree.size < size:
            self.roots[size] = self._tree.root()

    def stop(self, doubted: int | None = None) -> None:
        """Give up at an unsound record: its finding explains every root above it.

        It also explains another root at the size `doubted`, where the last record is in doubt.
        """
        self._tree = None
        if doubted is not None and self.roots.get(doubted) not in self._signed.get(doubted, ()):
            self.roots.pop(doubted, None)
