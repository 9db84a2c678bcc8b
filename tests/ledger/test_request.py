"""What callers hand in: one form each, and everything else refused with its name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Evidence, Opening, ProposalInvalid, request

HEX = "0123456789abcdef"


@given(st.binary(min_size=32, max_size=32))
def test_a_hash_is_32_bytes_or_their_digits(value: bytes) -> None:
    assert request.card_hash("echo", value) == request.card_hash("echo", value.hex()) == value


@given(st.text() | st.text(HEX, max_size=70) | st.binary(max_size=40) | st.integers() | st.none())
def test_anything_else_is_no_hash(value: Any) -> None:
    if isinstance(value, bytes) and len(value) == 32:
        return
    if isinstance(value, str) and len(value) == 64 and set(value) <= set(HEX):
        return
    with pytest.raises(ProposalInvalid, match="echo: expected 64 lower-case"):
        request.card_hash("echo", value)


@given(st.text(HEX, min_size=1, max_size=64), st.binary(min_size=32, max_size=32))
def test_a_prefix_is_the_range_of_the_hashes_that_begin_so(digits: str, card: bytes) -> None:
    first, last = request.prefix(digits)
    assert (first <= card <= last) == card.hex().startswith(digits)


def test_a_line_is_measured_in_bytes() -> None:
    assert request.line("name", "é" * 128) == "é" * 128
    for wrong in ("", "é" * 129, "\ud800", b"x", 7, None):
        with pytest.raises(ProposalInvalid, match="name"):
            request.line("name", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("blank", [None, "", " ", "\t", "\u200b", "\u2060 \u00a0", "\u3164"])
def test_a_blank_person_is_nobody(blank: str | None) -> None:
    assert request.person("approver", blank) is None
    if blank is not None:
        with pytest.raises(ProposalInvalid):
            request.named("by", blank)


def test_a_person_is_kept_as_written() -> None:
    assert request.person("approver", " user:approver-1") == " user:approver-1"


def test_hostile_text_is_escaped_in_the_message() -> None:
    with pytest.raises(ProposalInvalid) as caught:
        request.one_of("decision", "\x1b[2Japprove\u202e", ("approve", "reject"))
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)
    assert "\\u{1b}" in str(caught.value)


def test_openings_leave_out_what_is_not_there() -> None:
    note = Opening(b"n")
    assert request.openings(note=note, presented=None) == {"note": note}


def test_a_body_says_of_an_opening_what_is_known() -> None:
    opening = Opening(b"n", "text/plain", "page/1", truncated=True)
    assert request.bound(opening) == {
        "digest": opening.digest,
        "media_type": "text/plain",
        "renderer": "page/1",
        "truncated": True,
    }
    assert request.bound(Opening(b"n")) == {"digest": Opening(b"n").digest}


def test_evidence_needs_a_type_and_a_digest() -> None:
    said = request.approver("user:approver-1", "authenticated", Evidence("oidc", bytes(32)))
    assert said == {
        "id": "user:approver-1",
        "assurance": "authenticated",
        "evidence": {"type": "oidc", "digest": bytes(32)},
    }
    assert request.approver(None) is None
    for wrong in (Evidence("", bytes(32)), Evidence("oidc", b"short")):
        with pytest.raises(ProposalInvalid, match="evidence"):
            request.approver("user:approver-1", "authenticated", wrong)
    with pytest.raises(ProposalInvalid, match="assurance"):
        request.approver("user:approver-1", "signed")
