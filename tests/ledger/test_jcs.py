"""The JSON boundary and the canonical form of the writer (spec §2.1, §2.2)."""

from __future__ import annotations

import hashlib
import json
import re
from enum import IntEnum, StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ledger import jcs
from ledger.errors import ProposalInvalid

LIMIT = 1_048_576
BIGGEST = 2**53 - 1

REFUSED = {
    "bytes that are not UTF-8": (b'"\xff"', ""),
    "an encoded surrogate": (b'"\xed\xa0\x80"', ""),
    "UTF-16": ('{"a":1}'.encode("utf-16"), ""),
    "UTF-16 without a mark": ('{"a":1}'.encode("utf-16-be"), ""),
    "a byte order mark": (b"\xef\xbb\xbf{}", ""),
    "a repeated name": (b'{"a":1,"a":1}', "/a"),
    "a repeated name inside": (b'{"x":[0,{"a":1,"b":2,"a":3}]}', "/x/1/a"),
    "a repeated name before another": (b'{"b":1,"a":1,"a":2,"c":3}', "/a"),
    "a name repeated by an escape": (b'{"a":1,"\\u0061":2}', "/a"),
    "a high surrogate": (b'["","\\ud83d"]', "/1"),
    "a low surrogate": (b'{"a":"\\ude00"}', "/a"),
    "surrogates in the wrong order": (b'["\\ude00\\ud83d"]', "/0"),
    "a surrogate in a name": (b'{"a":{"\\ud83d":1}}', "/a"),
    "NaN": (b'{"a":NaN}', "/a"),
    "Infinity": (b"[Infinity]", "/0"),
    "-Infinity": (b"[1,-Infinity]", "/1"),
    "a number that overflows": (b"[1e999]", "/0"),
    "a negative number that overflows": (b"[-1e999]", "/0"),
    "an integer that overflows": (b"[" + b"9" * 400 + b"]", "/0"),
    "an integer of 5,000 digits": (b"9" * 5_000, ""),
    "-0": (b"-0", ""),
    "-0.0": (b"[-0.0]", "/0"),
    "-0e5": (b"[-0e5]", "/0"),
    "a negative number that underflows": (b"[-1e-400]", "/0"),
    "2^53": (b"[9007199254740992]", "/0"),
    "-2^53": (b"[-9007199254740992]", "/0"),
    "2^53 with a fraction": (b"[9007199254740992.0]", "/0"),
    "2^53 + 1, which no double holds": (b"[9007199254740993]", "/0"),
    "an integer of 18 digits": (b"[100000000000000000]", "/0"),
    "an integer that would be printed as a float": (b"[1000000000000000000000]", "/0"),
    "1e20": (b"[1e20]", "/0"),
    "the last integer without an exponent": (b"[999999999999999900000]", "/0"),
    "trailing data": (b"{} {}", ""),
    "a trailing comma": (b'{"a":1,}', ""),
    "a comment": (b"[1]//", ""),
    "a control character in a text": (b'"\n"', ""),
    "a leading zero": (b"[01]", ""),
    "no value": (b"", ""),
    "only white space": (b" \n", ""),
    "white space that JSON does not know": (b"\x0c1", ""),
    "digits of another script": ("[١]".encode(), ""),
    "a place with ~ and / in its name": (b'{"a/b~c":-0}', "/a~1b~0c"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_text_is_refused_and_the_place_named(name: str) -> None:
    text, pointer = REFUSED[name]
    with pytest.raises(ProposalInvalid) as caught:
        jcs.parse(text)
    assert caught.value.pointer == pointer


REASONS = {
    "a byte order mark": "byte order mark",
    "bytes that are not UTF-8": "not UTF-8 at byte 1",
    "trailing data": "trailing data at byte 3",
    "a control character in a text": "invalid control character at byte 1",
    "a repeated name inside": "repeated name",
    "2^53": "write it as text",
    "NaN": "NaN is not a JSON number",
    "-0.0": "negative zero",
    "a high surrogate": "unpaired surrogate",
}


@pytest.mark.parametrize("name", REASONS)
def test_refused_text_is_told_why(name: str) -> None:
    with pytest.raises(ProposalInvalid, match=re.escape(REASONS[name])):
        jcs.parse(REFUSED[name][0])


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    ONE = "one"


class Members(dict[str, int]):
    pass


REFUSED_NATIVE: dict[str, tuple[Any, str]] = {
    "a name that is an integer": ({"x": {1: 2}}, "/x"),
    "a name that is None": ({None: 2}, ""),
    "a name of a subclass": ({"x": [{Word.ONE: 1}]}, "/x/0"),
    "bytes": ([b"a"], "/0"),
    "a set": ({"a": {1}}, "/a"),
    "an object of another type": ({"a": object()}, "/a"),
    "an integer of a subclass": ([Number.ONE], "/0"),
    "a text of a subclass": ([Word.ONE], "/0"),
    "an object of a subclass": ([Members(a=1)], "/0"),
    "NaN": ([float("nan")], "/0"),
    "infinity": ({"a": [float("-inf")]}, "/a/0"),
    "negative zero": ([-0.0], "/0"),
    "2^53": ([2**53], "/0"),
    "-2^53": ([-(2**53)], "/0"),
    "2^53 as a float": ([2.0**53], "/0"),
    "1e20": ([1e20], "/0"),
    "10^400": ([10**400], "/0"),
    "a surrogate": (["\ud800"], "/0"),
    "a surrogate in a name": ({"a": {"\udc00": 1}}, "/a"),
}


@pytest.mark.parametrize("name", REFUSED_NATIVE)
def test_native_value_is_refused_and_the_place_named(name: str) -> None:
    value, pointer = REFUSED_NATIVE[name]
    with pytest.raises(ProposalInvalid) as caught:
        jcs.encode(value)
    assert caught.value.pointer == pointer


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_64_is_the_deepest() -> None:
    assert jcs.parse(b"[" * 64 + b"]" * 64) == nested(64)
    assert jcs.encode(nested(64)) == b"[" * 64 + b"]" * 64


@pytest.mark.parametrize("depth", [65, 1_000, 500_000])
def test_deeper_text_is_refused_at_depth_65(depth: int) -> None:
    with pytest.raises(ProposalInvalid, match="deeper than 64") as caught:
        jcs.parse(b"[" * depth + b"]" * depth)
    assert caught.value.pointer == "/0" * 64


def test_deeper_native_value_is_refused_at_depth_65() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ProposalInvalid, match="deeper than 64") as caught:
        jcs.encode(value)
    assert caught.value.pointer == "/0" * 64


def test_pointer_to_what_is_too_deep_has_its_names() -> None:
    text = b'[1,"[{",{"a\\"b":' * 40 + b"1" + b"}]" * 40
    with pytest.raises(ProposalInvalid, match="deeper than 64") as caught:
        jcs.parse(text)
    assert caught.value.pointer == '/2/a"b' * 32


def test_brackets_in_a_text_are_not_depth() -> None:
    assert jcs.parse(b'"' + b"[" * 100 + b'\\""') == "[" * 100 + '"'


def test_arrays_and_objects_side_by_side_are_not_depth() -> None:
    assert jcs.parse(b"[" + b",".join([b"[]", b"{}"] * 65) + b"]") == [[], {}] * 65


def test_document_of_the_limit_is_read() -> None:
    assert len(jcs.parse(b'"' + b"a" * (LIMIT - 2) + b'"')) == LIMIT - 2


def test_document_over_the_limit_is_refused() -> None:
    with pytest.raises(ProposalInvalid, match="limit"):
        jcs.parse(b'"' + b"a" * (LIMIT - 1) + b'"')


def test_white_space_counts_as_read() -> None:
    with pytest.raises(ProposalInvalid, match="limit"):
        jcs.parse(b"1" + b" " * LIMIT)


def test_document_that_grows_over_the_limit_is_refused() -> None:
    count = LIMIT // 16
    with pytest.raises(ProposalInvalid, match="canonical form"):
        jcs.parse(b"[" + b",".join([b"9e15"] * count) + b"]")


def test_native_value_over_the_limit_is_refused() -> None:
    with pytest.raises(ProposalInvalid, match="canonical form"):
        jcs.encode("a" * LIMIT)


def test_shared_native_values_do_not_explode() -> None:
    value: Any = ["a"]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(ProposalInvalid, match="canonical form"):
        jcs.encode(value)


CANONICAL = {
    b'{"b":1, "a":2}': b'{"a":2,"b":1}',
    b"1.0": b"1",
    b"1.8e3": b"1800",
    b"1e21": b"1e+21",
    b"0.000001": b"0.000001",
    b"1e-7": b"1e-7",
    b"0.1e1": b"1",
    b"0e99": b"0",
    b"1e-400": b"0",
    b"9007199254740991.0": b"9007199254740991",
    b"4.50": b"4.5",
    b'"\\u000f\\n\\u0022\\/\\\\"': b'"\\u000f\\n\\"/\\\\"',
    b'"\\u0041\\u0000\\b\\t\\f\\r"': b'"A\\u0000\\b\\t\\f\\r"',
    b'"\\u007f\\u2028"': '"\x7f\u2028"'.encode(),
    b'"\\ud83d\\ude00"': '"\U0001f600"'.encode(),
    b"[true,false,null,{},[]]": b"[true,false,null,{},[]]",
    b'{"a":null}': b'{"a":null}',
    '{"\ufb33":1,"\U0001f600":2}'.encode(): '{"\U0001f600":2,"\ufb33":1}'.encode(),
    '{"é":1,"e\u0301":2}'.encode(): '{"e\u0301":2,"é":1}'.encode(),
}


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_form(text: bytes) -> None:
    assert jcs.encode(jcs.parse(text)) == CANONICAL[text]


def test_composed_and_decomposed_text_stay_different() -> None:
    assert jcs.digest("\u00e9") != jcs.digest("e\u0301")


def test_omitted_null_and_empty_stay_different() -> None:
    assert len({jcs.encode(value) for value in ({}, {"a": None}, {"a": ""}, {"a": []})}) == 4


def test_tuple_is_an_array() -> None:
    assert jcs.encode({"a": (1, 2)}) == b'{"a":[1,2]}'


def test_digest_is_sha256_of_the_canonical_form() -> None:
    assert jcs.digest({"b": 1.0, "a": True}) == hashlib.sha256(b'{"a":true,"b":1}').digest()


def test_parsed_numbers_have_the_type_of_their_canonical_form() -> None:
    assert [type(n) for n in jcs.parse(b"[1,1.0,1e2,1.5,1e21]")] == [int, int, int, float, float]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-BIGGEST, BIGGEST) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda n: not (2**53 <= abs(n) < 1e21) and str(n) != "-0.0"
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_encoding_is_that_of_the_published_package(value: Any) -> None:
    """Holds the fast path of the C encoder to the package, for names of any plane."""
    assert jcs.encode(value) == rfc8785.dumps(value)


@given(VALUES)
def test_what_is_encoded_reads_back_as_equal(value: Any) -> None:
    canonical = jcs.encode(value)
    assert jcs.parse(canonical) == value
    assert jcs.encode(jcs.parse(canonical)) == canonical


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_spelling_does_not_change_the_canonical_form(
    value: Any, escaped: bool, indent: int | None
) -> None:
    spelled = json.dumps(value, ensure_ascii=escaped, indent=indent).encode()
    assert jcs.encode(jcs.parse(spelled)) == jcs.encode(value)


@given(st.binary(max_size=40) | TEXTS.map(str.encode))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        value = jcs.parse(text)
    except ProposalInvalid:
        return
    assert jcs.parse(jcs.encode(value)) == value
