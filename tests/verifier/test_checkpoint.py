from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import base64, checkpoint, growth, leaf, path, root

from verifier.checkpoint import (
    is_consistency,
    parse_checkpoint,
    parse_consistency,
    parse_inclusion,
)
from verifier.note import NoteRefused

CHAIN = bytes(range(16))
LEAVES = [leaf(number) for number in range(5)]
NOTE = checkpoint(CHAIN, LEAVES)
NAME, SIZE, ROOT = NOTE.splitlines()[:3]


def signed(*lines: str) -> bytes:
    """A note of other lines; the signature is not looked at."""
    return ("".join(f"{line}\n" for line in lines) + "\n" + NOTE.split("\n\n")[1]).encode()


def test_a_checkpoint_gives_chain_size_and_root() -> None:
    found = parse_checkpoint(NOTE.encode())
    assert (found.chain, found.size, found.root) == (CHAIN, 5, root(LEAVES))
    assert found.origin == NAME


@pytest.mark.parametrize(
    "lines",
    [
        (NAME, SIZE),
        (NAME, SIZE, ROOT, "extension"),
        (NAME, SIZE, ROOT, ""),
        (NAME.upper(), SIZE, ROOT),
        (NAME[:-1], SIZE, ROOT),
        (f"{NAME}0", SIZE, ROOT),
        (f"{NAME} ", SIZE, ROOT),
        ("example.com/log", SIZE, ROOT),
        (NAME, "0", ROOT),
        (NAME, "05", ROOT),
        (NAME, "-5", ROOT),
        (NAME, "+5", ROOT),
        (NAME, " 5", ROOT),
        (NAME, "٥", ROOT),
        (NAME, "5.0", ROOT),
        (NAME, "", ROOT),
        (NAME, "9007199254740992", ROOT),
        (NAME, "9" * 5000, ROOT),
        (NAME, SIZE, base64(bytes(31))),
        (NAME, SIZE, base64(bytes(33))),
        (NAME, SIZE, ROOT[:-1]),
        (NAME, SIZE, root(LEAVES).hex()),
        (NAME, SIZE, ""),
    ],
)
def test_a_checkpoint_in_another_form_is_refused(lines: tuple[str, ...]) -> None:
    assert parse_checkpoint(signed(NAME, SIZE, ROOT)).size == 5
    with pytest.raises(NoteRefused):
        parse_checkpoint(signed(*lines))


def test_the_largest_size_is_read() -> None:
    assert parse_checkpoint(signed(NAME, "9007199254740991", ROOT)).size == 2**53 - 1


def written(first: str, hashes: list[bytes], note: str = NOTE) -> str:
    return first + "".join(f"{base64(one)}\n" for one in hashes) + "\n" + note


INCLUSION = written("c2sp.org/tlog-proof@v1\nindex 3\n", path(3, LEAVES))
CONSISTENCY = written("old 3\n", growth(3, LEAVES))


def test_proofs_give_their_hashes_and_checkpoints() -> None:
    inclusion = parse_inclusion(INCLUSION)
    assert (inclusion.seq, list(inclusion.hashes)) == (3, path(3, LEAVES))
    assert inclusion.note == NOTE
    consistency = parse_consistency(CONSISTENCY.encode())
    assert (consistency.old, list(consistency.hashes)) == (3, growth(3, LEAVES))
    assert consistency.note == NOTE
    assert is_consistency(CONSISTENCY.encode())
    assert not is_consistency(NOTE.encode())


def test_a_proof_without_hashes_is_read() -> None:
    assert parse_inclusion(written("c2sp.org/tlog-proof@v1\nindex 0\n", [])).hashes == ()
    assert parse_consistency(written("old 5\n", []).encode()).hashes == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        INCLUSION.replace("@v1", "@v2"),
        INCLUSION.replace("\nindex", "\nextra YQ==\nindex"),
        INCLUSION.replace("index 3", "index 03"),
        INCLUSION.replace("index 3", "index -3"),
        INCLUSION.replace("index 3", "index 9007199254740992"),
        INCLUSION.replace("index 3", "index  3"),
        INCLUSION.replace("index 3\n", ""),
        INCLUSION.replace("\n\ncard", "\ncard"),
        INCLUSION.replace("=\n", "\n", 1),
        INCLUSION.replace("index 3\n", "index 3\r\n"),
        written("c2sp.org/tlog-proof@v1\nindex 3\n", [bytes(31)]),
        written("c2sp.org/tlog-proof@v1\nindex 3\n", 64 * [bytes(32)]),
        "c2sp.org/tlog-proof@v1\nindex 3\n" + "x" * (1 << 18),
    ],
)
def test_an_inclusion_proof_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(NoteRefused):
        parse_inclusion(text)


@pytest.mark.parametrize(
    "text",
    [
        CONSISTENCY.replace("old 3", "old 0"),
        CONSISTENCY.replace("old 3", "old 03"),
        CONSISTENCY.replace("old 3", "old x"),
        CONSISTENCY.replace("old 3", "old"),
        CONSISTENCY.replace("\n\ncard", "\ncard"),
        CONSISTENCY.replace("=\n", "\n", 1),
        written("old 3\n", 64 * [bytes(32)]),
        "old 3\n" + "\n" * (1 << 18),
    ],
)
def test_a_consistency_proof_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(NoteRefused):
        parse_consistency(text.encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_without_a_crash(data: bytes) -> None:
    for begin in (b"", b"old 3\n", NOTE.encode()[:60]):
        with pytest.raises(NoteRefused):
            parse_checkpoint(begin + data)
    with pytest.raises(NoteRefused):
        parse_consistency(data)
    with pytest.raises(NoteRefused):
        parse_inclusion(data.decode("latin-1"))
