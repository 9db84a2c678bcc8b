"""The list of hidden characters, written twice, is one list (spec §9.2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledger.hidden import blank, shown
from verifier.escape import escaped, is_blank, quoted

ANY_TEXT = st.text(st.characters(codec=None, categories=None) | st.sampled_from(' \\"\n\u200b'))


def test_both_escape_every_code_point_alike() -> None:
    everything = [chr(n) for n in range(0x110000)]
    assert [shown(c) for c in everything] == [escaped(c) for c in everything]


def test_both_find_the_same_code_points_blank() -> None:
    everything = [chr(n) for n in range(0x110000)]
    assert [blank(c) for c in everything] == [is_blank(c) for c in everything]


@given(ANY_TEXT)
def test_both_show_a_text_alike(text: str) -> None:
    assert f'"{shown(text)}"' == quoted(text)
    assert blank(text) == is_blank(text)
