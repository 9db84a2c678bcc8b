from __future__ import annotations

import pytest

from verifier.refusals import Refusals

NAME = b"\x10" + bytes(32)


@pytest.mark.parametrize("count", [*range(1, 9), *(1 << power for power in range(4, 54))])
def test_every_count_that_is_recorded_is_kept(count: int) -> None:
    refusals = Refusals()
    refusals.note(NAME, count, 2**53 - 1)
    assert refusals.last(NAME) == count


@pytest.mark.parametrize("count", [9, 11, 24, 2**53 - 1])
def test_a_wrong_count_is_kept_as_it_stands(count: int) -> None:
    refusals = Refusals()
    refusals.note(NAME, count, 7)
    assert refusals.last(NAME) == count
    refusals.note(NAME, 2, 8)
    assert refusals.last(NAME) == 2


def test_what_was_not_refused_has_no_count() -> None:
    refusals = Refusals()
    assert refusals.last(NAME) is None
    refusals.note(NAME, 1, 7)
    refusals.clear()
    assert refusals.last(NAME) is None


def test_counts_last_recorded_below_a_seq_begin_again() -> None:
    refusals = Refusals()
    refusals.note(b"old", 2, 6)
    refusals.note(b"new", 3, 7)
    refusals.forget(7)
    assert (refusals.last(b"old"), refusals.last(b"new")) == (None, 3)
    refusals.forget(3)
    assert refusals.last(b"old") is None
    refusals.note(b"old", 1, 9)
    assert refusals.last(b"old") == 1
