"""The signer signs one history (spec §13.4): what it gives, what it keeps, what it refuses."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import Ledger, Proposal, note
from ledger.errors import (
    BrokenLedger,
    ProposalInvalid,
    SignerExists,
    SignerMissing,
    SignerRefuses,
    StoreFailed,
)
from ledger.note import NoteMalformed, Signature
from ledger.signer import SigningKey, Vkey
from ledger.signing import Last, held
from ledger.store.contract import Position
from ledger.tree import Frontier, proves_consistency

NUMBERS = count()


def grow(ledger: Ledger, records: int) -> None:
    """Append records that no ledger had before."""
    for _ in range(records):
        task = ("run", str(next(NUMBERS)))
        ask = {"tool_name": "t", "arguments": {}, "reasoning": "r", "ttl": 60}
        ledger.issue(Proposal.for_tool_call(task=task, **ask))  # type: ignore[arg-type]


def mth(leaves: Sequence[bytes]) -> bytes:
    """Give MTH of RFC 6962 §2.1 by its definition, the leaves being hashed already."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def root_of(ledger: Ledger) -> bytes:
    return mth([record.digest for record in ledger.records()])


def state_of(ledger: Ledger) -> Path:
    return Path(os.environ["CARDCHAIN_STATE"], "cardchain", ledger.chain.hex())


def notes_of(ledger: Ledger) -> list[str]:
    return sorted(file.name for file in (ledger.path / "checkpoints").glob("*.note"))


@pytest.fixture
def signing(ledger: Ledger) -> Ledger:
    """A ledger of two records with a signer."""
    ledger.make_signer(by="user:operator-1")
    return ledger


# What is given.


def test_a_checkpoint_says_origin_size_and_root_under_the_vkey(ledger: Ledger) -> None:
    vkey = Vkey.parse(ledger.make_signer(by="user:operator-1"))
    grow(ledger, 5)
    signed = ledger.checkpoint()
    lines = signed.note.decode().split("\n")
    root = base64.b64encode(root_of(ledger)).decode()
    assert lines[:4] == [f"cardchain/{ledger.chain.hex()}", "7", root, ""]
    found = note.parse(signed.note)
    signature = found.signature(vkey.name, vkey.key_id)
    assert signature is not None
    assert vkey.verifies("\n".join([*lines[:3], ""]).encode(), signature)
    assert (ledger.path / "checkpoints" / f"{7:020}.note").read_bytes() == signed.note
    assert stat.S_IMODE(signed.path.stat().st_mode) == 0o600


def test_every_size_has_its_root_and_the_frontier_is_gone_on_from(signing: Ledger) -> None:
    for size in range(2, 40):
        signed = signing.checkpoint()
        assert (signed.checkpoint.size, signed.checkpoint.root) == (size, root_of(signing))
        grow(signing, 1)
    assert len(notes_of(signing)) == 38


def test_the_same_size_gives_the_same_note(signing: Ledger) -> None:
    first = signing.checkpoint()
    again = signing.checkpoint()
    assert (first.new, again.new) == (True, False)
    assert again.note == first.note
    assert notes_of(signing) == [first.path.name]


def test_every_gives_the_last_until_so_many_records_came(signing: Ledger) -> None:
    first = signing.checkpoint(every=3)
    grow(signing, 2)
    assert signing.checkpoint(every=3).note == first.note
    grow(signing, 1)
    assert signing.checkpoint(every=3).checkpoint.size == first.checkpoint.size + 3


def test_compressed_segments_are_gone_on_from(signing: Ledger) -> None:
    grow(signing, 3)
    signing.checkpoint()
    segment = signing.path / "segments" / f"{0:020}.cbor"
    content = segment.read_bytes()
    signing.close()
    Path(f"{segment}.gz").write_bytes(gzip.compress(content))
    segment.unlink()
    with Ledger.open(signing.path) as ledger:
        grow(ledger, 2)
        signed = ledger.checkpoint()
        assert (signed.checkpoint.size, signed.checkpoint.root) == (7, root_of(ledger))


# The key.


def test_without_a_signer_nothing_is_signed(ledger: Ledger) -> None:
    with pytest.raises(SignerMissing):
        ledger.checkpoint()
    assert notes_of(ledger) == []


def test_a_signer_is_made_once_and_announced(ledger: Ledger) -> None:
    vkey = ledger.make_signer(by="user:operator-1")
    (_, record) = ledger.records()
    assert (record.kind, record.body) == ("configured", {"by": "user:operator-1", "vkey": vkey})
    with pytest.raises(SignerExists):
        ledger.make_signer(by="user:operator-1")
    assert ledger.status().count == 2
    key = state_of(ledger) / "signer" / "key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


def test_a_key_that_a_crash_kept_from_the_log_is_announced(ledger: Ledger) -> None:
    with held(ledger.chain) as signer:
        vkey = str(signer.make_key(replace=False))
    assert ledger.make_signer(by="user:operator-1") == vkey
    assert [*ledger.records()][1].body["vkey"] == vkey


def test_a_key_in_the_place_of_another_goes_on_with_its_history(signing: Ledger) -> None:
    old = signing.checkpoint()
    vkey = Vkey.parse(signing.make_signer(by="user:operator-1", replace=True))
    new = signing.checkpoint()
    assert note.parse(new.note).signature(vkey.name, vkey.key_id)
    assert not note.parse(old.note).signature(vkey.name, vkey.key_id)
    proof, _ = signing.consistency(old.note)
    assert proof.endswith(new.note)
    vkeys = (state_of(signing) / "signer" / "vkeys").read_text().splitlines()
    assert len(vkeys) == 2
    assert vkeys[1] == str(vkey)


def test_a_name_that_is_blank_makes_no_signer(ledger: Ledger) -> None:
    with pytest.raises(ProposalInvalid):
        ledger.make_signer(by=" ")
    with pytest.raises(SignerMissing):
        ledger.checkpoint()


def test_a_child_that_was_forked_meanwhile_does_not_keep_the_signer(signing: Ledger) -> None:
    reading, writing = os.pipe()
    with held(signing.chain):
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # until the parent is done
            os._exit(0)
    with held(signing.chain) as signer:  # hangs where the child holds it
        assert signer.exists
    os.close(writing)
    os.close(reading)
    assert os.waitpid(child, 0)[1] == 0


def test_what_a_dead_signer_left_half_written_is_removed(signing: Ledger) -> None:
    part = state_of(signing) / "signer" / ".0123456789abcdef.part"
    part.write_bytes(b"half a key")
    signing.checkpoint()
    assert not part.exists()


# What is kept.


def test_an_edited_frontier_is_thrown_away(signing: Ledger) -> None:
    grow(signing, 4)
    signing.checkpoint()
    file = state_of(signing) / "signer" / "last.json"
    document = json.loads(file.read_text())
    document["before"][0] = base64.b64encode(bytes(32)).decode()
    file.write_text(json.dumps(document))
    grow(signing, 1)
    assert signing.checkpoint().checkpoint.root == root_of(signing)


@pytest.mark.parametrize("member", ["segment", "offset"])
def test_an_edited_place_is_thrown_away(signing: Ledger, member: str) -> None:
    grow(signing, 4)
    signing.checkpoint()
    file = state_of(signing) / "signer" / "last.json"
    document = json.loads(file.read_text())
    document[member] += 1
    file.write_text(json.dumps(document))
    grow(signing, 1)
    assert signing.checkpoint().checkpoint.root == root_of(signing)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"format": "cardchain-signed/2"}',
        "\x00",
        '{"format": "cardchain-signed/1"}',
        '{"format": "cardchain-signed/1", "note": 5, "segment": 0, "offset": 0}',
        "[" * 100_000,
    ],
)
def test_a_damaged_memory_is_said(signing: Ledger, content: str) -> None:
    signing.checkpoint()
    file = state_of(signing) / "signer" / "last.json"
    file.write_text(content)
    with pytest.raises(StoreFailed) as caught:
        signing.checkpoint()
    assert caught.value.hint.startswith("remove it")
    file.unlink()
    assert signing.checkpoint().new is False


@pytest.mark.parametrize("member", ["segment", "offset", "before"])
@pytest.mark.parametrize("value", [-1, "0", True, 1.0, None, 10**30, [5]])
def test_a_member_of_another_form_is_damage(signing: Ledger, member: str, value: object) -> None:
    signing.checkpoint()
    file = state_of(signing) / "signer" / "last.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {member: value}))
    with pytest.raises(StoreFailed, match=r"last\.json: damaged"):
        signing.checkpoint()


@pytest.mark.parametrize("content", [b"no vkey\n", b"\xff\n"])
def test_damaged_vkeys_do_not_put_the_blame_on_the_memory(signing: Ledger, content: bytes) -> None:
    signing.checkpoint()
    file = state_of(signing) / "signer" / "vkeys"
    kept = file.read_bytes()
    file.write_bytes(content)
    with pytest.raises(StoreFailed, match=r"signer/vkeys: damaged") as caught:
        signing.checkpoint()
    assert "vkeys" in caught.value.hint
    file.write_bytes(kept)
    assert signing.checkpoint().new is False


def test_a_memory_of_a_note_that_nobody_signed_is_damaged(signing: Ledger) -> None:
    signed = signing.checkpoint()
    file = state_of(signing) / "signer" / "last.json"
    document = json.loads(file.read_text())
    document["note"] = signed.note.decode().replace("\n2\n", "\n1\n")
    file.write_text(json.dumps(document))
    with pytest.raises(StoreFailed):
        signing.checkpoint()


def test_either_memory_is_enough(signing: Ledger) -> None:
    grow(signing, 4)
    signed = signing.checkpoint()
    signed.path.unlink()
    assert signing.checkpoint().note == signed.note
    assert signed.path.read_bytes() == signed.note
    (state_of(signing) / "signer" / "last.json").unlink()
    grow(signing, 1)
    again = signing.checkpoint()
    assert (again.checkpoint.size, again.checkpoint.root) == (7, root_of(signing))


def test_what_others_put_beside_the_notes_is_left_aside(signing: Ledger) -> None:
    grow(signing, 4)
    first = signing.checkpoint()
    folder = signing.path / "checkpoints"
    stranger = SigningKey.generate(note.origin(signing.chain))
    text = first.checkpoint.text.replace("\n6\n", "\n900\n")
    signature = Signature(stranger.vkey.name, stranger.vkey.key_id, stranger.sign(text.encode()))
    (folder / f"{900:020}.note").write_bytes(bytes(note.Note(text, (signature,))))
    (folder / f"{901:020}.note").write_bytes(b"no note")
    (folder / f"{902:020}.note").write_bytes(first.note)
    (folder / "README").write_text("mine")
    grow(signing, 1)
    assert signing.checkpoint().checkpoint.size == 7


def test_a_line_of_a_witness_stays(signing: Ledger) -> None:
    signed = signing.checkpoint()
    line = f"— witness.example/w1 {base64.b64encode(bytes(76)).decode()}\n"
    signed.path.write_bytes(signed.note + line.encode())
    assert signing.checkpoint().note == signed.note + line.encode()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_note_that_is_no_file_is_said(signing: Ledger, make: Callable[[Path], None]) -> None:
    make(signing.path / "checkpoints" / f"{9:020}.note")
    with pytest.raises(BrokenLedger):
        signing.checkpoint()


# What is refused.


def test_two_signed_roots_of_one_size_are_refused(signing: Ledger) -> None:
    signed = signing.checkpoint()
    other = note.Checkpoint(signing.chain, signed.checkpoint.size, bytes(32))
    with held(signing.chain) as signer:
        signed.path.write_bytes(signer.sign(other))
    with pytest.raises(SignerRefuses):
        signing.checkpoint()


def test_a_larger_checkpoint_that_does_not_extend_the_last_one_is_not_gone_on_from(
    signing: Ledger,
) -> None:
    """The host was put back to an older copy between the two, and its key signed both."""
    grow(signing, 2)
    signed = signing.checkpoint()
    older = note.Checkpoint(signing.chain, signed.checkpoint.size - 1, bytes(32))
    before = Frontier(older.size - 1, (bytes(32),) * (older.size - 1).bit_count())
    with held(signing.chain) as signer:
        position = Position(older.size - 1, 0, 0)
        signer.remember(Last(signer.sign(older), older, before, position))
    grow(signing, 1)
    with pytest.raises(SignerRefuses) as caught:
        signing.checkpoint()
    assert caught.value.size == older.size
    assert len(notes_of(signing)) == 1


def test_a_record_that_does_not_hold_is_not_signed(signing: Ledger) -> None:
    signing.checkpoint()
    grow(signing, 2)
    segment = signing.path / "segments" / f"{0:020}.cbor"
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1  # of the tag, which no digest covers until the next record
    segment.write_bytes(content)
    with pytest.raises(BrokenLedger):
        signing.checkpoint()
    assert len(notes_of(signing)) == 1


def test_a_record_below_that_was_exchanged_is_noticed(signing: Ledger) -> None:
    """The last signed record is gone on from only if it is the signed one."""
    grow(signing, 2)
    signing.checkpoint()
    segment = signing.path / "segments" / f"{0:020}.cbor"
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    with pytest.raises(SignerRefuses):
        signing.checkpoint()


@settings(max_examples=20)
@given(
    kept=st.integers(1, 12), lost=st.integers(1, 12), other=st.integers(0, 30), forget=st.booleans()
)
def test_every_fork_is_refused(kept: int, lost: int, other: int, forget: bool) -> None:
    """A ledger that lacks a signed record, whatever stands there instead, is not signed."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", f"{folder}/state")
        path, copy = Path(folder, "ledger"), Path(folder, "copy")
        with Ledger.init(path, name="test") as ledger:
            ledger.make_signer(by="user:operator-1")
            grow(ledger, kept)
            early = ledger.checkpoint()
            shutil.copytree(path, copy)
            grow(ledger, lost)
            late = ledger.checkpoint()
            state = state_of(ledger)
        shutil.rmtree(path)
        copy.rename(path)
        if forget:
            (path / "checkpoints" / late.path.name).write_bytes(late.note)
            (state / "signer" / "last.json").unlink()
        with Ledger.adopt(path, rolled_back=True) as fork:
            grow(fork, other)
            with pytest.raises(SignerRefuses):
                fork.checkpoint()
            assert early.path.name in notes_of(fork)
            assert max(notes_of(fork)) <= late.path.name


# Every so many records.


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.fixture
def periodic(signing: Ledger) -> Iterator[Ledger]:
    signing.close()
    with Ledger.open(signing.path, checkpoint_every=5) as ledger:
        yield ledger


def test_a_checkpoint_is_signed_every_so_many_records(periodic: Ledger) -> None:
    grow(periodic, 5)
    assert wait_for(lambda: len(notes_of(periodic)) == 1)
    first = int(notes_of(periodic)[0][:20])
    assert first in range(5, 8)
    grow(periodic, 5)
    assert wait_for(lambda: len(notes_of(periodic)) == 2)
    assert int(notes_of(periodic)[1][:20]) >= first + 5
    assert periodic.warnings == ()


def test_a_checkpoint_that_fails_fails_no_append_and_is_told(periodic: Ledger) -> None:
    (state_of(periodic) / "signer" / "key.pem").write_bytes(b"gone")
    grow(periodic, 6)
    assert wait_for(lambda: periodic.warnings != ())
    assert periodic.warnings[0].startswith("no checkpoint was signed: signing key ")
    grow(periodic, 1)
    assert periodic.status().count == 9


def test_closing_waits_for_the_checkpoint(signing: Ledger) -> None:
    signing.close()
    with Ledger.open(signing.path, checkpoint_every=1) as ledger:
        grow(ledger, 1)
    assert f"{3:020}.note" in notes_of(signing) or f"{2:020}.note" in notes_of(signing)


@pytest.mark.parametrize("every", [0, -1, True, 1.5, "5"])
def test_every_is_a_number_of_records(signing: Ledger, every: int) -> None:
    with pytest.raises(ProposalInvalid):
        Ledger.open(signing.path, checkpoint_every=every)


# Consistency.


def test_an_older_size_or_note_is_proved(signing: Ledger) -> None:
    grow(signing, 3)
    old = signing.checkpoint()
    old_root = root_of(signing)
    grow(signing, 8)
    for since in (5, old.note):
        proof, signed = signing.consistency(since)
        head, _, tail = proof.decode().partition("\n\n")
        first, *hashes = head.split("\n")
        assert (first, tail.encode()) == ("old 5", signed.note)
        decoded = [base64.b64decode(each) for each in hashes]
        assert proves_consistency(5, 13, decoded, old_root, root_of(signing))


@pytest.mark.parametrize("since", [0, 14, -1])
def test_a_size_that_is_no_earlier_one_is_said(signing: Ledger, since: int) -> None:
    with pytest.raises(ProposalInvalid):
        signing.consistency(since)


def test_a_note_of_another_history_is_refused(signing: Ledger) -> None:
    grow(signing, 3)
    with held(signing.chain) as signer:
        forged = signer.sign(note.Checkpoint(signing.chain, 3, bytes(32)))
        larger = signer.sign(note.Checkpoint(signing.chain, 30, bytes(32)))
    for wrong in (forged, larger):
        with pytest.raises(SignerRefuses):
            signing.consistency(wrong)
    with pytest.raises(NoteMalformed):
        signing.consistency(b"no note")
    unsigned = forged.replace(b"\n3\n", b"\n4\n")
    with pytest.raises(SignerRefuses, match="not signed"):
        signing.consistency(unsigned)


# The cache of hashes.


@pytest.mark.parametrize("name", ["00.hashes", "08.hashes"])
@pytest.mark.parametrize("harm", ["flip", "cut", "remove", "append"])
def test_a_cache_that_is_wrong_is_made_anew(signing: Ledger, name: str, harm: str) -> None:
    grow(signing, 300)
    signed = signing.checkpoint()
    file = state_of(signing) / "tree" / name
    content = bytearray(file.read_bytes())
    whole = bytes(content)
    if harm == "flip":
        content[5] ^= 1
    elif harm == "cut":
        del content[-32:]
    elif harm == "append":
        content += bytes(32)
    file.write_bytes(content)
    if harm == "remove":
        file.unlink()
    told: list[int] = []
    for old in (1, 256, 257, 300):
        proof, _ = signing.consistency(old, progress=told.append)
        assert proof.endswith(signed.note)
    if harm != "append":
        assert file.read_bytes() == whole
