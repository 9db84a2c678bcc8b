"""Published vectors of RFC 6962 proofs, signed notes and Ed25519, against the writer.

They are read where they lie, beside the project, and never copied into it.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ledger import note, tree
from ledger.note import NoteMalformed
from ledger.signer import Vkey, VkeyMalformed

VECTORS = Path(__file__).parents[3] / "shared" / "vectors"


def files(pattern: str) -> list[Path]:
    """The files of a suite; without the folder one path, so that the test is seen to skip."""
    return sorted(VECTORS.glob(pattern)) or [VECTORS / pattern]


def document(path: Path) -> Any:
    if path.is_file():
        return json.loads(path.read_bytes())
    reason = f"{'/'.join(path.parts[-3:])} is not beside the project"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def name_of(path: Path) -> str:
    return "/".join(path.parts[-2:])


def hashes(texts: list[str] | None) -> list[bytes]:
    return [base64.b64decode(each) for each in texts or []]


INCLUSION = files("merkle/testdata/inclusion/**/*.json")
CONSISTENCY = files("merkle/testdata/consistency/**/*.json")


def test_all_merkle_vectors_are_found() -> None:
    document(INCLUSION[0])
    assert (len(INCLUSION), len(CONSISTENCY)) == (98, 98)


@pytest.mark.parametrize("path", INCLUSION, ids=name_of)
def test_inclusion(path: Path) -> None:
    case = document(path)
    leaf, root = hashes([case["leafHash"], case["root"]])
    proof = hashes(case["proof"])
    holds = tree.proves_inclusion(case["leafIdx"], case["treeSize"], leaf, proof, root)
    assert holds is not case["wantErr"]


@pytest.mark.parametrize("path", CONSISTENCY, ids=name_of)
def test_consistency(path: Path) -> None:
    case = document(path)
    old, new = hashes([case["root1"], case["root2"]])
    proof = hashes(case["proof"])
    holds = tree.proves_consistency(case["size1"], case["size2"], proof, old, new)
    assert holds is not case["wantErr"]


NOTES = files("c2sp/notes.json")


def notes() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = document(NOTES[0])
    return cases


def signed(case: dict[str, Any]) -> bytes:
    return f"{case['text']}\n{case['sig']}\n".encode()


def test_notes_that_are_signed_verify_and_with_another_text_do_not() -> None:
    cases = [case for case in notes() if case["valid"]]
    assert len(cases) == 7
    for case in cases:
        vkey, found = Vkey.parse(case["vkey"]), note.parse(signed(case))
        signature = found.signature(vkey.name, vkey.key_id)
        assert signature is not None
        message = case.get("cosign_prefix", "") + found.text
        assert vkey.verifies(message.encode(), signature), case["name"]
        assert not vkey.verifies(b"\n" + message.encode(), signature)


def test_notes_come_back_as_the_same_bytes() -> None:
    cases = [case for case in notes() if case["text"]]
    assert len(cases) == 9
    assert [bytes(note.parse(signed(case))) for case in cases] == [*map(signed, cases)]


def test_a_vkey_comes_back_as_the_same_text_and_a_bad_one_is_refused() -> None:
    cases = [case for case in notes() if case["vkey"]]
    good = [case["vkey"] for case in cases if case["valid"]]
    assert [str(Vkey.parse(text)) for text in good] == good
    bad = [case["vkey"] for case in cases if case["valid"] is False]
    assert len(bad) == 2
    for text in bad:
        with pytest.raises(VkeyMalformed):
            Vkey.parse(text)


def test_a_note_of_another_log_is_no_checkpoint_of_ours() -> None:
    for case in notes():
        if case["text"]:
            with pytest.raises(NoteMalformed):
                note.checkpoint(note.parse(signed(case)), bytes(16))


def test_ed25519() -> None:
    (path,) = files("wycheproof/ed25519_test.json")
    cases = [(group, case) for group in document(path)["testGroups"] for case in group["tests"]]
    assert len(cases) == 151
    for group, case in cases:
        vkey = Vkey("example", bytes.fromhex(group["publicKey"]["pk"]))
        holds = vkey.verifies(bytes.fromhex(case["msg"]), bytes.fromhex(case["sig"]))
        assert holds is (case["result"] == "valid"), (case["tcId"], case["comment"])
