from __future__ import annotations

from verifier.keys import Ring
from verifier.shape import OPENINGS
from verifier.state import Digests, State, bound_bits


def test_digests_are_found_by_seq_across_gaps() -> None:
    digests = Digests()
    rows = {seq: bytes([seq]) * 32 for seq in (3, 4, 5, 9, 10)}
    for seq, digest in rows.items():
        digests.add(seq, digest)
    digests.extend(11, [b"x" * 32, b"y" * 32], bytes([1, 3]))
    for seq, digest in {**rows, 11: b"x" * 32, 12: b"y" * 32}.items():
        assert digests.matches(seq, digest) is True
        assert digests.matches(seq, digest[:16] + bytes(16)) is False
    assert digests.bound(10) == []
    assert digests.bound(12) == ["envelope", "presented"]
    for seq in (0, 2, 6, 8, 13, 2**60):
        assert digests.matches(seq, bytes(32)) is None
        assert digests.bound(seq) is None


def test_every_opening_has_its_own_bit() -> None:
    assert len({bound_bits([name]) for name in OPENINGS}) == len(OPENINGS) == 7
    assert bound_bits(OPENINGS) == 127


def test_a_seq_that_comes_too_late_changes_no_digest() -> None:
    digests = Digests()
    digests.add(5, b"a" * 32)
    digests.add(3, b"b" * 32)
    digests.add(6, b"c" * 32)
    assert digests.matches(3, b"b" * 32) is None
    assert digests.matches(6, b"c" * 32) is True


def test_a_late_record_belongs_to_the_gap_it_fills() -> None:
    state = State(Ring())
    state.expected_seq = 10
    state.gaps = [(3, 6)]
    assert [seq for seq in range(12) if state.belongs(seq)] == [3, 4, 5]
    state.close_gap(4)
    assert [seq for seq in range(12) if state.belongs(seq)] == [3, 5]


def test_a_stretch_of_repeated_records_belongs_together() -> None:
    state = State(Ring())
    state.expected_seq = 10
    state.surplus = 4
    assert [seq for seq in range(12) if state.belongs(seq)] == [5]


def test_cards_and_steps_before_an_unsound_record_are_not_judged() -> None:
    state = State(Ring())
    state.cards.issue(b"a" * 32, 1, b"t" * 32, 1, None)
    assert state.judges_card(0)
    assert state.judges_step(b"t" * 32)
    assert state.judges_step(b"u" * 32)
    state.disturbed, state.sure_from = True, 1
    assert not state.judges_card(0)
    assert not state.judges_step(b"t" * 32)
    assert not state.judges_step(b"u" * 32)
    state.cards.issue(b"b" * 32, 2, b"u" * 32, 1, None)
    assert state.judges_step(b"u" * 32)
    state.unsure_steps.add(1)
    assert not state.judges_step(b"u" * 32)


def test_a_gap_that_is_filled_from_within_stays_two_gaps() -> None:
    state = State(Ring())
    state.expected_seq = 10
    state.gaps = [(1, 4), (5, 9)]
    state.close_gap(6)
    assert state.gaps == [(1, 4), (5, 6), (7, 9)]
    assert [seq for seq in range(11) if state.belongs(seq)] == [1, 2, 3, 5, 7, 8]
