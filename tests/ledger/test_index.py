"""The projection on disk: all of a transaction or nothing, and never trusted when damaged."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ledger.codec import Record
from ledger.database import IndexContradicts
from ledger.errors import StoreFailed
from ledger.index import Index
from ledger.projection import Card, Flood, State
from ledger.store.contract import Position, Stored

CARDS = [bytes([number]) + bytes(31) for number in range(4)]


def card(number: int, state: State = State.OPEN) -> Card:
    return Card(CARDS[number], number, bytes(32), 100, None, state, number)


def record(seq: int, card: bytes | None) -> Record:
    return Record(
        b"", b"", b"", b"", seq, b"", 7 + seq, "issued", card, {}, {}, bytes([seq % 256]) * 32, b""
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


@pytest.fixture
def index(path: Path) -> Iterator[Index]:
    with closing(Index(path)) as opened:
        yield opened


def test_a_new_index_is_private_and_covers_nothing(index: Index, path: Path) -> None:
    assert index.covered() is None
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {0o600}


def test_what_is_covered_is_the_last_record_and_where_the_next_begins(index: Index) -> None:
    for seq in range(3):
        place = Position(seq, 0, 100 * seq)
        with index.transaction():
            index.cover(Stored(place, place, bytes(100)), record(seq, None), bytes(8))
    covered = index.covered()
    assert covered is not None
    assert covered.position == Position(2, 0, 200)
    assert covered.end == Position(3, 0, 300)
    assert (covered.digest, covered.at, covered.kid) == (b"\x02" * 32, 9, bytes(8))


def test_a_transaction_that_fails_changes_nothing(index: Index, path: Path) -> None:
    def fail() -> None:
        with index.transaction():
            index.put_card(card(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert index.card(CARDS[1]) is None
    with index.transaction():
        index.put_card(card(1))
    with closing(Index(path)) as again:
        assert again.card(CARDS[1]) == card(1)


def test_events_of_a_card_are_given_in_order_with_their_places(index: Index) -> None:
    places = [Position(0, 0, 0), Position(1, 0, 50), Position(300, 200, 70)]
    with index.transaction():
        for place in places:
            index.cover(Stored(place, place, b"x"), record(place.seq, CARDS[1]), bytes(8))
        other = Position(2, 0, 60)
        index.cover(Stored(other, other, b"x"), record(2, None), bytes(8))
    assert index.events(CARDS[1]) == places
    assert index.event(CARDS[1], 300) == places[2]
    assert index.event(CARDS[1], 2) is None


def test_cards_are_found_by_the_range_of_their_hashes(index: Index) -> None:
    with index.transaction():
        for number in range(4):
            index.put_card(card(number))
    assert index.cards_from(CARDS[1], CARDS[2]) == CARDS[1:3]
    assert index.cards_from(bytes(32), b"\xff" * 32) == CARDS


def test_open_cards_are_given_in_the_order_of_issue(index: Index) -> None:
    with index.transaction():
        index.put_card(card(3))
        index.put_card(card(1))
        index.put_card(card(2, State.REJECTED))
    assert index.open_cards(99_999) == [card(1), card(3)]
    assert index.count_open(99_999) == 2


def test_open_cards_are_those_in_time_and_not_before_a_reset(index: Index) -> None:
    """A card is late from its second on, and all before a `clock_reset` are (spec §5)."""
    with index.transaction():
        index.put_card(card(0))
        index.put_card(card(2))
        index.put_reset(1)
    assert index.open_cards(99_999) == [card(2)]
    assert index.count_open(99_999) == 1
    assert index.open_cards(100_000) == []
    assert index.count_open(100_000) == 0


def test_counts_and_kids_are_kept(index: Index) -> None:
    flood = Flood("resolve", "expired", CARDS[1])
    with index.transaction():
        index.put_refusals(flood, 12)
        index.put_kid(b"k" * 8)
    assert index.refusals(flood) == 12
    assert index.refusals(Flood("resolve", "expired", b"")) == 0
    assert index.was_in_force(b"k" * 8)
    assert not index.was_in_force(b"o" * 8)


@pytest.mark.parametrize("content", [b"not a database" * 400, bytes(8192)])
def test_a_file_that_is_no_index_is_replaced(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with closing(Index(path)) as index:
        assert index.covered() is None


def test_an_index_of_another_version_is_replaced(index: Index, path: Path) -> None:
    with index.transaction():
        index.put_card(card(1))
    index.close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 1")
    database.close()
    with closing(Index(path)) as again:
        assert again.card(CARDS[1]) is None


def test_a_missing_table_is_a_contradiction(index: Index, path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE cards")
    database.close()
    with pytest.raises(IndexContradicts):
        index.card(CARDS[1])
    index.renew()
    assert index.card(CARDS[1]) is None


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").mkdir()
    with pytest.raises(StoreFailed):
        Index(tmp_path / "index.sqlite")


def test_the_newest_profile_is_in_force_and_no_bytes_are_forgotten(index: Index) -> None:
    assert index.profile() is None
    assert index.profile_bytes(CARDS[1]) is None
    with index.transaction():
        index.put_profile(CARDS[1], b"one", 0)
        index.put_profile(CARDS[2], None, 3)
    assert index.profile() == CARDS[2]
    assert index.profile_bytes(CARDS[2]) is None
    with index.transaction():
        index.put_profile(CARDS[1], None, 5)
    assert index.profile() == CARDS[1]
    assert index.profile_bytes(CARDS[1]) == b"one"


def test_grants_are_given_in_the_order_of_issue(index: Index) -> None:
    with index.transaction():
        index.put_card(card(3, State.APPROVED))
        index.put_card(card(1, State.APPROVED))
        index.put_card(card(2))
    assert index.granted_cards() == [card(1, State.APPROVED), card(3, State.APPROVED)]
