"""The two JSON boundaries and the two encoders, written twice, say the same (spec §2.1, §2.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from readings import assert_agreement

import ledger.jcs
import verifier.jcs

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(
    allow_nan=False, allow_infinity=False
).filter(lambda n: not (2**53 <= abs(n) < 1e21) and str(n) != "-0.0")
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_both_encoders_give_the_same_bytes(value: Any) -> None:
    canonical = ledger.jcs.encode(value)
    assert verifier.jcs.encode(verifier.jcs.parse(canonical)) == canonical
    assert_agreement(canonical)


NUMBER_TEXTS = st.from_regex(r"-?[0-9]{1,24}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@given(NUMBER_TEXTS)
@example("1000000000000000000000")
@example("-123123123123123123123123123123")
@example("999999999999999999999")
@example("9007199254740993")
@example("9007199254740992.0")
@example("-1e-400")
@example("1e400")
@example("-0e5")
def test_both_boundaries_read_the_same_numbers(spelled: str) -> None:
    assert_agreement(spelled.encode())


PIECES = (
    rb'"',
    rb"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"-",
    b"0",
    b"1e999",
    b"1e20",
    b"-0",
    b"NaN",
    b"null",
    b" ",
    b"//",
    rb"\ud800",
    rb"\udc00",
    rb"\u0000",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\x0b",
    b"\xc2",
    b"\xc2\xa0",
    b"\xf0\x9f\x98\x80",
    b'"a":1,',
    b"[" * 64,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """JSON text with a few pieces cut, doubled or put in."""
    value = draw(VALUES)
    text = json.dumps(
        value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))
    )
    found = text.encode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(found)))
        end = draw(st.integers(start, min(len(found), start + 6)))
        piece = draw(st.sampled_from(PIECES) | st.just(b"") | st.just(found[start:end] * 2))
        found = found[:start] + piece + found[end:]
    return found


@given(mutated())
def test_both_boundaries_accept_and_refuse_the_same_text(text: bytes) -> None:
    assert_agreement(text)


@given(st.binary(max_size=24))
def test_both_boundaries_say_the_same_of_any_bytes(text: bytes) -> None:
    assert_agreement(text)


EDGES = {
    "depth 64": b"[" * 64 + b"]" * 64,
    "depth 65": b"[" * 65 + b"]" * 65,
    "depth 65 of objects": b'{"a":' * 65 + b"1" + b"}" * 65,
    "depth 100,000": b"[" * 100_000,
    "65 arrays side by side": b"[" + b",".join([b"[]"] * 65) + b"]",
    "the largest document": b'"' + b"a" * 1_048_574 + b'"',
    "a document that is too large": b'"' + b"a" * 1_048_575 + b'"',
    "names that sort apart": '{"\U0001f600":1,"\ufb33":2}'.encode(),
    "names sorted by code point": '{"\ufb33":2,"\U0001f600":1}'.encode(),
    "DEL and U+2028": '"\x7f\u2028"'.encode(),
    "digits of another script": "[١]".encode(),
    "white space of another kind": b"\x0c1",
    "a name repeated by an escape": b'{"a":1,"\\u0061":1}',
}


@pytest.mark.parametrize("name", EDGES)
def test_both_boundaries_say_the_same_at_an_edge(name: str) -> None:
    assert_agreement(EDGES[name])
