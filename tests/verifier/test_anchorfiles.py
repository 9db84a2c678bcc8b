from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from trees import Signer, base64, consistency, root, signed

from verifier.anchorfiles import anchor, delivered, frontiers, load_anchors
from verifier.anchors import DELIVERED, GIVEN, PROOF
from verifier.note import parse_vkey

OTHER = Signer("cardchain/000102030405060708090a0b0c0d0e0f", 96)


@pytest.fixture
def signer(log: Any) -> Signer:
    return Signer(f"cardchain/{log.chain.hex()}")


def write(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_vkeys_are_texts_and_files(signer: Signer, tmp_path: Path) -> None:
    file = write(tmp_path, "keys", f"# signers\n\n{signer.vkey}\n{OTHER.vkey}")
    auditor, warnings = load_anchors([OTHER.vkey, file], [])
    texts = [vkey.text for vkey in auditor.vkeys]
    assert (texts, warnings) == ([OTHER.vkey, signer.vkey, OTHER.vkey], [])


@pytest.mark.parametrize("data", [b"", b"# none\n", b"x\n", b"\xff\n", b"a+00000000+AAAA\n"])
def test_a_file_without_a_vkey_is_a_warning(data: bytes, tmp_path: Path) -> None:
    auditor, warnings = load_anchors([write(tmp_path, "keys", data)], [])
    assert (auditor.vkeys, len(warnings)) == ((), 1)


def test_what_is_neither_vkey_nor_file_is_a_warning(signer: Signer, tmp_path: Path) -> None:
    texts = [signer.vkey + "A", "absent", str(tmp_path), "a\0b", signer.vkey.replace("+", " ")]
    auditor, warnings = load_anchors(texts, [])
    assert (auditor.vkeys, len(warnings)) == ((), len(texts))


def test_checkpoints_and_proofs_are_read(log: Any, signer: Signer, tmp_path: Path) -> None:
    note = write(tmp_path, "note", signed(log, 2))
    proof = write(tmp_path, "proof", consistency(log, 2, signed(log)))
    auditor, _ = load_anchors([signer.vkey], [note, proof])
    first, second = auditor.given
    assert (first.role, first.size, first.signed, first.proof) == (GIVEN, 2, True, None)
    assert (second.role, second.size, second.signed) == (PROOF, 3, True)
    assert second.proof is not None
    assert second.proof.old == 2


def test_files_that_cannot_be_read_are_said_so(log: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    files = [str(tmp_path), str(tmp_path / "absent"), str(tmp_path / "pipe"), "a\0b"]
    auditor, _ = load_anchors([], files)
    assert [one.checkpoint for one in auditor.given] == [None] * 4
    assert all(one.unreadable for one in auditor.given)


def test_huge_files_are_not_read_to_their_end(tmp_path: Path) -> None:
    file = tmp_path / "huge"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    for begin in (b"", b"old 3\n"):
        with file.open("r+b") as stream:
            stream.write(begin)
        auditor, _ = load_anchors([], [str(file)])
        assert auditor.given[0].malformed or auditor.given[0].unproven


def test_who_signed_is_told_by_name_and_id(log: Any, signer: Signer) -> None:
    vkeys = [parse_vkey(OTHER.vkey), parse_vkey(signer.vkey)]
    both = signed(log, None, OTHER, signer).encode()
    assert anchor("f", GIVEN, both, vkeys).signed is True
    assert anchor("f", GIVEN, both, vkeys[:1]).vkey == vkeys[0]
    assert anchor("f", GIVEN, both, []).vkey is None
    assert anchor("f", GIVEN, both, []).signed is None


def test_one_line_of_a_given_key_that_fails_is_enough(log: Any, signer: Signer) -> None:
    vkeys = [parse_vkey(signer.vkey), parse_vkey(OTHER.vkey)]
    good, text = signed(log), signed(log, 2, OTHER).split("\n\n")[1]
    assert anchor("f", GIVEN, (good + text).encode(), vkeys).signed is False
    assert anchor("f", GIVEN, (good + text).encode(), vkeys[:1]).signed is True


def test_two_lines_of_one_given_key_are_malformed(log: Any, signer: Signer) -> None:
    note = signed(log)
    twice = note + note.split("\n\n")[1]
    assert anchor("f", GIVEN, twice.encode(), [parse_vkey(signer.vkey)]).malformed
    assert anchor("f", GIVEN, twice.encode(), []).malformed is None


def test_a_witness_with_the_right_name_and_no_origin_signs_nothing(log: Any) -> None:
    witness = Signer("witness.example/1", 96)
    found = anchor("f", GIVEN, signed(log, None, witness).encode(), [parse_vkey(witness.vkey)])
    assert (found.vkey, found.signed) == (None, None)


def test_delivered_checkpoints_are_read_with_a_vkey_only(
    log: Any, signer: Signer, tmp_path: Path
) -> None:
    write(tmp_path, f"checkpoints/{2:020}.note", signed(log, 2))
    write(tmp_path, f"checkpoints/{3:020}.note", signed(log, 3, Signer("other.example")))
    write(tmp_path, f"checkpoints/{4:020}.note", "no note\n")
    write(tmp_path, "checkpoints/5.note", "not read\n")
    write(tmp_path, f"checkpoints/{6:020}.note.part", "not read\n")
    os.mkdir(tmp_path / "checkpoints" / f"{7:020}.note")
    assert delivered(str(tmp_path), []) == ([], [])
    found, warnings = delivered(str(tmp_path), [parse_vkey(signer.vkey)])
    assert [one.role for one in found] == [DELIVERED] * 3
    assert [one.size for one in found] == [2, 0, 0]
    assert [bool(one.malformed or one.unreadable) for one in found] == [False, True, True]
    assert len(warnings) == 1
    assert delivered(str(tmp_path / "absent"), [parse_vkey(signer.vkey)]) == ([], [])


def test_frontiers_are_read_where_they_fit_their_size(log: Any, tmp_path: Path) -> None:
    whole = base64(root(log.digests[:2]))
    write(tmp_path, f"checkpoints/{2:020}.frontier", f"{whole}\n")
    write(tmp_path, f"checkpoints/{3:020}.frontier", f"{whole}\n")
    write(tmp_path, f"checkpoints/{4:020}.frontier", whole)
    write(tmp_path, f"checkpoints/{8:020}.frontier", "x\n")
    write(tmp_path, f"checkpoints/{0:020}.frontier", "\n")
    write(tmp_path, f"checkpoints/{16:020}.frontier", b"\xff\n")
    found = frontiers(str(tmp_path))
    assert list(found) == [2]
    assert found[2].root() == root(log.digests[:2])
