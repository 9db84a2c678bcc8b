"""Signed notes and checkpoints have one form (spec §13.2)."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import note
from ledger.note import Checkpoint, NoteMalformed

CHAIN = bytes(range(16))
ROOT = bytes(range(32))
NAME = "cardchain/000102030405060708090a0b0c0d0e0f"
TEXT = f"{NAME}\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
BASE64 = base64.b64encode(bytes(68)).decode()
LINE = f"— {NAME} {BASE64}\n"
WHOLE = f"{TEXT}\n{LINE}"


def test_a_checkpoint_is_three_lines() -> None:
    assert Checkpoint(CHAIN, 7, ROOT).text == TEXT


def test_a_note_is_read_and_written_as_the_same_bytes() -> None:
    found = note.parse(WHOLE.encode())
    assert bytes(found) == WHOLE.encode()
    assert note.checkpoint(found, CHAIN) == Checkpoint(CHAIN, 7, ROOT)
    assert found.signature(NAME, bytes(4)) == bytes(64)
    assert found.signature(NAME, b"\0\0\0\1") is None
    assert found.signature("witness", bytes(4)) is None


def test_lines_of_others_ride_along() -> None:
    cosigned = f"{WHOLE}— witness.example/w1 {BASE64}\n"
    found = note.parse(cosigned.encode())
    assert bytes(found) == cosigned.encode()
    assert found.signature("witness.example/w1", bytes(4)) == bytes(64)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        TEXT,
        f"{TEXT}\n",
        f"\n{LINE}",
        f"{TEXT}{LINE}",
        f"{TEXT}\n{LINE}"[:-1],
        f"{TEXT}\n{LINE}\n",
        f"{TEXT}\n{LINE} ",
        f"{TEXT}\n{LINE}extra\n",
        f"{TEXT}\n- {NAME} {BASE64}\n",
        f"{TEXT}\n—{NAME} {BASE64}\n",
        f"{TEXT}\n— {NAME}  {BASE64}\n",
        f"{TEXT}\n—  {BASE64}\n",
        f"{TEXT}\n— a+b {BASE64}\n",
        f"{TEXT}\n— a\u2003b {BASE64}\n",
        f"{TEXT}\n— {NAME}\n",
        f"{TEXT}\n— {NAME} \n",
        f"{TEXT}\n— {NAME} AAAA\n",
        f"{TEXT}\n— {NAME} AAAAAA==\n",
        f"{TEXT}\n— {NAME} {BASE64[:-1]}\n",
        f"{TEXT}\n— {NAME} {BASE64[:-2]}B=\n",
        f"{TEXT}\n— {NAME} {BASE64[:-5]}-AAA=\n",
        f"{TEXT}\n— {NAME} {BASE64} \n",
        WHOLE.replace("\n", "\r\n"),
        f"{TEXT}\t\n\n{LINE}",
        f"{TEXT}\x7f\n\n{LINE}",
        f"{TEXT}\n{LINE * 65}",
        f"{'x' * 65_536}\n\n{LINE}",
    ],
)
def test_anything_else_is_no_note(text: str) -> None:
    with pytest.raises(NoteMalformed):
        note.parse(text.encode())


def test_bytes_that_are_no_utf8_are_no_note() -> None:
    with pytest.raises(NoteMalformed):
        note.parse(b"\xff" + WHOLE.encode())


def test_the_most_signatures_are_read_and_two_of_one_key_are_malformed() -> None:
    found = note.parse(f"{TEXT}\n{LINE * 64}".encode())
    assert len(found.signatures) == 64
    with pytest.raises(NoteMalformed):
        found.signature(NAME, bytes(4))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NAME, "cardchain/000102030405060708090A0B0C0D0E0F"),
        (NAME, "cardchain/010102030405060708090a0b0c0d0e0f"),
        (NAME, "other/000102030405060708090a0b0c0d0e0f"),
        ("\n7\n", "\n0\n"),
        ("\n7\n", "\n07\n"),
        ("\n7\n", "\n+7\n"),
        ("\n7\n", "\n-7\n"),
        ("\n7\n", "\n7 \n"),
        ("\n7\n", "\n٧\n"),
        ("\n7\n", "\n9007199254740992\n"),
        ("\n7\n", f"\n{'9' * 5000}\n"),
        ("\n7\n", "\n"),
        ("Hh8=\n", "Hh8=\nextension\n"),
        ("Hh8=\n", "Hh8=\n\n"),
        ("Hh8=\n", "Hh9=\n"),
        ("Hh8=\n", "Hh8\n"),
        ("AAEC", ""),
        ("AAEC", "AAAAAAEC"),
    ],
)
def test_anything_else_is_no_checkpoint(old: str, new: str) -> None:
    text = TEXT.replace(old, new, 1)
    assert text != TEXT
    with pytest.raises(NoteMalformed):
        note.checkpoint(note.parse(f"{text}\n{LINE}".encode()), CHAIN)


def test_the_greatest_size_is_read() -> None:
    text = TEXT.replace("\n7\n", "\n9007199254740991\n")
    assert note.checkpoint(note.parse(f"{text}\n{LINE}".encode()), CHAIN).size == 2**53 - 1


@given(st.integers(0, len(WHOLE.encode()) - 1), st.integers(1, 255))
def test_no_other_byte_string_says_the_same(place: int, change: int) -> None:
    """A note that is read is the only one that reads so."""
    data = bytearray(WHOLE.encode())
    data[place] ^= change
    try:
        found = note.parse(bytes(data))
    except NoteMalformed:
        return
    assert bytes(found) == bytes(data)
    assert found != note.parse(WHOLE.encode())
