from __future__ import annotations

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.cbor import NotDeterministic, NotWellFormed, Truncated, decode, head, skip, text, uint

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.binary()
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=30), inner),
    max_leaves=8,
)


@given(VALUES)
def test_every_deterministic_item_is_read(value: object) -> None:
    assert decode(cbor2.dumps(value, canonical=True)) == value


@given(st.binary(max_size=60))
def test_what_is_read_is_the_one_form_of_its_value(data: bytes) -> None:
    try:
        value = decode(data)
    except NotDeterministic:
        return
    assert cbor2.dumps(value, canonical=True) == data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("1800", "shortest"),
        ("1900ff", "shortest"),
        ("1a0000ffff", "shortest"),
        ("1b00000000ffffffff", "shortest"),
        ("5800", "shortest"),
        ("5f4100ff", "indefinite"),
        ("7f6161ff", "indefinite"),
        ("9fff", "indefinite"),
        ("bfff", "indefinite"),
        ("1c", "indefinite or reserved"),
        ("f90000", "float"),
        ("fa00000000", "float"),
        ("fb0000000000000000", "float"),
        ("f7", "simple"),
        ("f8ff", "simple"),
        ("c000", "tag"),
        ("a26161006161 00", "repeated"),
        ("a2616200616100", "unsorted"),
        ("a262616100616200", "unsorted"),
        ("a1800000", "array or a map"),
        ("61ff", "UTF-8"),
        ("63eda080", "UTF-8"),
        ("0000", "after"),
        ("", "end inside"),
        ("42ff", "end inside"),
        ("a16161", "end inside"),
        ("9bffffffffffffffff", "end inside"),
        ("a1616158200000", "end inside"),
        ("81" * 17 + "00", "nesting"),
    ],
)
def test_any_other_form_is_refused(data: str, problem: str) -> None:
    with pytest.raises(NotDeterministic, match=problem):
        decode(bytes.fromhex(data))


@given(VALUES)
def test_skip_finds_the_end_of_what_is_well_formed(value: object) -> None:
    data = cbor2.dumps(value)
    try:
        end = skip(data + b"rest", 0)
    except NotWellFormed:  # more items than an opening can have
        return
    assert end == len(data)


@pytest.mark.parametrize("data", ["5f4100ff", "9f00ff", "bf616100ff", "f90000", "c11800", "f8ff"])
def test_skip_passes_over_other_forms(data: str) -> None:
    item = bytes.fromhex(data)
    assert skip(item + b"\x00", 0) == len(item)


def test_skip_says_how_far_the_item_reaches() -> None:
    with pytest.raises(Truncated) as error:
        skip(bytes.fromhex("5a00100000"), 0)
    assert error.value.needed == 5 + 0x100000


@pytest.mark.parametrize("data", ["1c", "ff", "81" * 40 + "00"])
def test_skip_refuses_what_is_no_item(data: str) -> None:
    with pytest.raises(NotWellFormed):
        skip(bytes.fromhex(data), 0)


@given(st.integers(0, 2**64 - 1))
def test_uint_is_the_shortest_form(value: int) -> None:
    assert uint(value) == head(0, value) == cbor2.dumps(value)


def test_an_integer_over_64_bits_has_no_head() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        head(0, 2**64)


@given(st.text(st.characters(codec="utf-8")))
def test_text_is_encoded_by_its_bytes(value: str) -> None:
    assert text(value) == cbor2.dumps(value)
