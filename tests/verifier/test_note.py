from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import Signer, base64, checkpoint, leaf

from verifier import signature
from verifier.note import NoteRefused, parse_note, parse_vkey

VECTORS = Path(__file__).parents[3] / "shared" / "vectors"
CHAIN = bytes(range(16))
SIGNER = Signer(f"cardchain/{CHAIN.hex()}")
VKEY = parse_vkey(SIGNER.vkey)
TEXT = checkpoint(CHAIN, [leaf(0), leaf(1)])
LINE = TEXT.splitlines()[-1]


def vectors(name: str) -> Any:
    file = VECTORS / name
    if file.is_file():
        return json.loads(file.read_bytes())
    if os.environ.get("CI") == "true":
        pytest.fail(f"{file} is not there")
    pytest.skip("the vectors are not beside the project")


def test_published_notes() -> None:
    judged = []
    for case in vectors("c2sp/notes.json"):
        if not case["sig"]:
            with pytest.raises(NoteRefused):
                parse_vkey(case["vkey"])
            judged.append(False)
            continue
        note = parse_note(f"{case['text']}\n{case['sig']}\n".encode())
        if case["vkey"] is None:
            judged.append(None)
            continue
        vkey = parse_vkey(case["vkey"])
        assert vkey.text == case["vkey"]
        line = note.signed_by(vkey)
        assert line is not None
        judged.append(signature.holds(vkey.public, line.signature, note.text))
        assert not signature.holds(vkey.public, line.signature, b"\n" + note.text)
    assert judged == [case["valid"] for case in vectors("c2sp/notes.json")]


def test_published_signatures() -> None:
    cases = [
        (bytes.fromhex(group["publicKey"]["pk"]), case)
        for group in vectors("wycheproof/ed25519_test.json")["testGroups"]
        for case in group["tests"]
    ]
    assert len(cases) == 151
    for public, case in cases:
        holds = signature.holds(public, bytes.fromhex(case["sig"]), bytes.fromhex(case["msg"]))
        assert holds is (case["result"] == "valid"), case["comment"]


def test_a_note_gives_its_text_and_lines() -> None:
    note = parse_note(TEXT.encode())
    assert note.text.decode() == TEXT.split("\n\n")[0] + "\n"
    (line,) = note.signatures
    assert (line.name, line.key_id) == (SIGNER.name, SIGNER.key_id)
    assert note.signed_by(VKEY) == line
    assert signature.holds(VKEY.public, line.signature, note.text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        TEXT[:-1],
        TEXT + "\n",
        TEXT + "more",
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\r"),
        TEXT.replace("\n\n", "\n"),
        TEXT.replace("cardchain/", "card\0chain/"),
        TEXT.replace("cardchain/", "card\tchain/"),
        TEXT.replace("cardchain/", "card\x85chain/"),
        TEXT.split("\n\n")[0] + "\n\n",
        "\n\n" + LINE + "\n",
        TEXT.replace("— ", "- "),
        TEXT.replace("— ", "—  "),
        TEXT.replace("— ", "—\u00a0"),
        TEXT.replace("— cardchain", "— card chain"),
        TEXT.replace("— cardchain", "— card+chain"),
        TEXT.replace("— cardchain", "— card\u3000chain"),
        TEXT.replace("— cardchain", "— card\u2028chain"),
        TEXT[:-1] + " \n",
        TEXT[:-2] + "\n",
        TEXT[:-1] + "=\n",
        TEXT[:-1].replace("+", "-").replace("/", "_") + "\n",
        TEXT + f"— {SIGNER.name} {base64(b'abcd')}\n",
        TEXT + f"— {SIGNER.name} \n",
        TEXT + LINE[:40] + "\n",
        TEXT + 64 * (LINE + "\n"),
    ],
    ids=range(28),
)
def test_a_note_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(NoteRefused):
        parse_note(text.encode())


def test_notes_that_are_not_text_or_too_long_are_refused() -> None:
    for data in (b"\xef\xbb", TEXT.encode() + b"\xff", bytes(65_537), b"x" * 65_537, b"\x80"):
        with pytest.raises(NoteRefused):
            parse_note(data)
    assert parse_note((TEXT + 63 * (LINE + "\n")).encode()).repeats(VKEY)


def test_base64_whose_last_bits_are_not_zero_is_refused() -> None:
    """Two texts for the same bytes: the one that decodes and encodes to itself is taken."""
    witness = "— w " + base64(bytes(35))
    assert witness.endswith("AA=")
    assert parse_note((TEXT + witness + "\n").encode()).signatures[1].name == "w"
    with pytest.raises(NoteRefused):
        parse_note((TEXT + witness[:-2] + "B=" + "\n").encode())


def test_a_key_id_alone_or_a_name_alone_is_another_key() -> None:
    other = Signer("witness.example", 96)
    lines = f"— {SIGNER.name} {base64(other.key_id + bytes(64))}\n"
    lines += f"— witness.example {base64(SIGNER.key_id + bytes(64))}\n"
    body = TEXT.split("\n\n")[0]
    assert parse_note(f"{body}\n\n{lines}".encode()).signed_by(VKEY) is None
    assert parse_note(f"{body}\n\n{lines}{LINE}\n".encode()).signed_by(VKEY) is not None
    assert not parse_note(f"{body}\n\n{lines}{LINE}\n".encode()).repeats(VKEY)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_a_note_or_refused(data: bytes) -> None:
    try:
        note = parse_note(data)
    except NoteRefused:
        return
    lines = "".join(f"— {s.name} {base64(s.key_id + s.signature)}\n" for s in note.signatures)
    assert note.text + b"\n" + lines.encode() == data


def test_a_vkey_comes_back_as_the_same_text() -> None:
    assert (VKEY.name, VKEY.key_id, VKEY.public) == (SIGNER.name, SIGNER.key_id, SIGNER.public)
    assert VKEY.text == SIGNER.vkey


NAME, DIGITS, ENCODED = SIGNER.vkey.split("+", 2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "++",
        NAME,
        f"{NAME}+{DIGITS}",
        f"+{DIGITS}+{ENCODED}",
        f"{NAME} +{DIGITS}+{ENCODED}",
        f"{NAME}+{DIGITS.upper()}+{ENCODED}",
        f"{NAME}+{DIGITS[:-1]}+{ENCODED}",
        f"{NAME}+{DIGITS}0+{ENCODED}",
        f"{NAME}+00000000+{ENCODED}",
        f"{NAME}x+{DIGITS}+{ENCODED}",
        f"{NAME}+{DIGITS}+{ENCODED[:-1]}",
        f"{NAME}+{DIGITS}+{ENCODED}\n",
        f"{NAME}+{DIGITS}+ {ENCODED}",
        f"{NAME}+{DIGITS}+{base64(bytes([4]) + SIGNER.public)}",
        f"{NAME}+{DIGITS}+{base64(bytes([1]) + SIGNER.public[:-1])}",
        f"{NAME}+{DIGITS}+",
        f"\udcff+{DIGITS}+{ENCODED}",
    ],
)
def test_a_vkey_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(NoteRefused):
        parse_vkey(text)
