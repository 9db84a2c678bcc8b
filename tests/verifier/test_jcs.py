from __future__ import annotations

import json
import math
import os
import struct
import time
from pathlib import Path

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from verifier.jcs import (
    JsonRefused,
    canonical,
    encode,
    judged,
    load,
    number_text,
    parse,
    plain_end,
    reload,
)

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=5)
    ),
    max_leaves=10,
)


def vectors(pattern: str) -> list[Path]:
    files = sorted(VECTORS.glob(pattern))
    if not files and os.environ.get("CI") != "true":
        pytest.skip("the published vectors are not at ../shared/vectors")
    return files


def test_published_documents_have_their_published_form() -> None:
    files = vectors("jcs/input/*.json")
    assert len(files) == 6
    for file in files:
        expected = (file.parents[1] / "output" / file.name).read_bytes().strip()
        assert encode(parse(file.read_bytes())) == expected, file.name


def test_published_parsing_cases_are_refused_where_they_must_be() -> None:
    files = vectors("jsontestsuite/test_parsing/*.json")
    assert len(files) == 318
    ours = {  # valid JSON that spec §2.1 refuses
        "y_number_minus_zero.json",
        "y_number_negative_zero.json",
        "y_object_duplicated_key.json",
        "y_object_duplicated_key_and_value.json",
    }
    for file in files:
        if file.name[0] == "i":
            continue
        try:
            parse(file.read_bytes())
            accepted = True
        except JsonRefused:
            accepted = False
        assert accepted is (file.name[0] == "y" and file.name not in ours), file.name


@given(JSON)
def test_canonical_form_is_that_of_the_reference(value: object) -> None:
    try:
        parsed = parse(json.dumps(value).encode())
    except JsonRefused as error:
        assert error.problem in ("negative zero", "an integer beyond 2^53 - 1")  # noqa: PT017
        return
    assert encode(parsed) == rfc8785.dumps(value)  # type: ignore[arg-type]


@given(JSON)
def test_quick_answer_is_that_of_the_judge(value: object) -> None:
    for data in (json.dumps(value, ensure_ascii=False).encode(), _sorted(value)):
        assert _outcome(canonical, data) == _outcome(judged, data)


@given(st.text(st.sampled_from('{}[]",:\\u0d8+-.e123 tfn\ud7ff\ue000\U00010000'), max_size=30))
def test_quick_answer_on_any_text_is_that_of_the_judge(text: str) -> None:
    assert _outcome(canonical, text.encode()) == _outcome(judged, text.encode())


def _sorted(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _outcome(function: object, data: bytes) -> object:
    try:
        value = function(data)  # type: ignore[operator]
    except JsonRefused:
        return "refused"
    return repr(value[0] if function is canonical else value)


@given(st.integers(0, 2**64 - 1))
def test_numbers_are_printed_as_the_reference_prints_them(bits: int) -> None:
    value = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
    if math.isfinite(value):
        assert number_text(value) == rfc8785.dumps(value).decode()


@pytest.mark.parametrize(
    ("text", "pointer", "problem"),
    [
        (b'{"a":1,"a":2}', "/a", "repeated name"),
        (b'{"a":{"b":1,"\\u0062":2}}', "/a/b", "repeated name"),
        (b'["\\ud800"]', "/0", "unpaired surrogate"),
        (b'["\\udc00\\ud800"]', "/0", "unpaired surrogate"),
        (b'["\\ud800\\u0041"]', "/0", "unpaired surrogate"),
        (b'"\xed\xa0\x80"', "", "not UTF-8"),
        (b"\xef\xbb\xbf{}", "", "byte order mark"),
        (b"[NaN]", "/0", "no JSON value"),
        (b"[-Infinity]", "/0", "no JSON value"),
        (b'{"a~/":1e999}', "/a~0~1", "overflows"),
        (b"[-0]", "/0", "negative zero"),
        (b"[-0.0]", "/0", "negative zero"),
        (b"[-0e5]", "/0", "negative zero"),
        (b"[9007199254740992]", "/0", "2\\^53"),
        (b"[1e20]", "/0", "2\\^53"),
        (b"[" + b"1" * 5000 + b"]", "/0", "2\\^53"),
        (b"[" * 65 + b"]" * 65, "/0" * 64, "nesting"),
        (b"[" * 100_000, "/0" * 64, "nesting"),
        (b"{} {}", "", "after the value"),
        (b'"' + b"a" * 1_048_576 + b'"', "", "1048578 bytes"),
        (b'{"a" 1}', "/a", "no colon"),
        (b"[1 2]", "", "no comma"),
        (b"[01]", "", "no comma"),
        (b'["\\x"]', "/0", "unknown escape"),
        (b'["a\nb"]', "/0", "bare control"),
        (b"{1:2}", "", "without a name"),
        (b"", "", "no JSON value"),
    ],
)
def test_refused_with_the_place(text: bytes, pointer: str, problem: str) -> None:
    with pytest.raises(JsonRefused, match=problem) as error:
        parse(text)
    assert error.value.pointer == pointer


def test_depth_64_is_read() -> None:
    assert judged(b"[" * 64 + b"]" * 64) == canonical(b"[" * 64 + b"]" * 64)[0]


def test_number_identity_is_that_of_ecmascript() -> None:
    assert encode(parse(b"[1e1,10.0,0.1e2,1e21,-1E-7,9007199254740991]")) == (
        b"[10,10,10,1e+21,-1e-7,9007199254740991]"
    )


def test_composed_and_decomposed_text_stay_different() -> None:
    assert parse('"\u00e9"'.encode()) != parse('"e\u0301"'.encode())


def test_names_sort_by_utf16_units() -> None:
    value = {"\U00010000": 1, "\ue000": 2}
    data = '{"\U00010000":1,"\ue000":2}'.encode()
    assert encode(value) == data
    assert canonical(data)[0] == value


def test_plain_end_stops_at_the_end_of_the_value() -> None:
    assert plain_end(b'xx{"a":[1]},"b"', 2) == 11
    assert plain_end(b'xx{"a": [1]},"b"', 2) is None
    assert plain_end(b'xx{"a":1.5}', 2) is None


@given(JSON)
def test_a_canonical_document_is_read_alike_at_any_speed(value: object) -> None:
    try:
        data = encode(parse(json.dumps(value).encode()))
    except JsonRefused:
        return
    assert load(data) == reload(data) == parse(data)


@given(JSON, st.integers(0, 99), st.binary(max_size=3))
def test_a_changed_document_is_read_as_the_judge_reads_it(
    value: object, place: int, other: bytes
) -> None:
    data = json.dumps(value).encode()
    data = data[:place] + other + data[place + len(other) :]
    try:
        expected = parse(data)
    except JsonRefused:
        with pytest.raises(JsonRefused):
            load(data)
    else:
        assert repr(load(data)) == repr(expected)


def test_a_long_name_above_many_values_costs_no_more_than_its_length() -> None:
    def seconds(name: bytes) -> float:
        data = b'{"' + name + b'":[' + b",".join([b'{"a":1}'] * 20_000) + b"]}"
        start = time.process_time()
        parse(data)
        return time.process_time() - start

    ratio = min(seconds(b"k" * 800_000) / seconds(b"k") for _ in range(3))
    assert ratio < 3


def test_a_place_is_named_with_its_escapes() -> None:
    with pytest.raises(JsonRefused) as caught:
        parse(b'{"a/b":[0,{"c~d":-0}]}')
    assert caught.value.pointer == "/a~1b/1/c~0d"
