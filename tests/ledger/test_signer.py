"""Signing keys and vkeys (spec §13.3): exact, private, never shown."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from ledger import signer
from ledger.errors import LooseMode, StoreFailed
from ledger.signer import SigningKey, SigningKeyUnusable, Vkey, VkeyMalformed

NAME = "cardchain/000102030405060708090a0b0c0d0e0f"
SEED = bytes(range(32))
# by openssl, sha256sum and base64 alone, from the seed 00 01 02 ... 1f
PUBLIC = bytes.fromhex("03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8")
VKEY = f"{NAME}+1543e11a+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"


@pytest.fixture
def key() -> SigningKey:
    return SigningKey(NAME, Ed25519PrivateKey.from_private_bytes(SEED))


def put(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_a_vkey_is_name_key_id_and_key(key: SigningKey) -> None:
    assert key.vkey == Vkey(NAME, PUBLIC)
    assert str(key.vkey) == VKEY
    assert Vkey.parse(VKEY) == key.vkey


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NAME, ""),
        (NAME, "a b"),
        (NAME, "other"),
        ("+AQ", "AQ"),
        ("1543e11a", "00000000"),
        ("1543e11a", "1543E11A"),
        ("+AQ", "+AA"),
        ("+AQ", "+BA"),
        ("TG4", "TG5"),
        ("TG4", "TG4="),
        ("VTG4", ""),
        ("VTG4", "VTG4VTG4"),
        ("+AQ", "++AQ"),
    ],
)
def test_anything_else_is_no_vkey(old: str, new: str) -> None:
    with pytest.raises(VkeyMalformed):
        Vkey.parse(VKEY.replace(old, new, 1))


def test_a_signature_holds_for_its_message_alone(key: SigningKey) -> None:
    signature = key.sign(b"message")
    assert key.vkey.verifies(b"message", signature)
    assert not key.vkey.verifies(b"massage", signature)
    assert not key.vkey.verifies(b"message", signature[:-1])
    assert not key.vkey.verifies(b"message", b"")
    assert not SigningKey.generate(NAME).vkey.verifies(b"message", signature)


def test_a_key_that_is_no_point_verifies_nothing(key: SigningKey) -> None:
    for public in (b"\xff" * 32, b"\x02" + bytes(31), b""):
        assert not Vkey(NAME, public).verifies(b"message", key.sign(b"message"))


def test_keys_differ() -> None:
    assert SigningKey.generate(NAME).vkey != SigningKey.generate(NAME).vkey


def test_a_key_is_read_back(key: SigningKey, tmp_path: Path) -> None:
    path = put(tmp_path / "key.pem", key.pem())
    assert signer.read(path, NAME).vkey == key.vkey


def test_a_key_is_never_shown(key: SigningKey) -> None:
    private = key.private.private_bytes_raw()
    assert private == SEED
    for text in (repr(key), str(key), f"{key.vkey!r} {key.vkey}"):
        assert private.hex() not in text
        assert repr(private)[2:-1] not in text


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o777])
def test_a_key_that_others_can_reach_is_refused(key: SigningKey, tmp_path: Path, mode: int) -> None:
    with pytest.raises(LooseMode) as caught:
        signer.read(put(tmp_path / "key.pem", key.pem(), mode), NAME)
    assert caught.value.hint.startswith("run: chmod 600 ")


def pem_of(private: object, secret: bytes = b"") -> bytes:
    form = BestAvailableEncryption(secret) if secret else NoEncryption()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, form)  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(
    "make",
    [
        lambda key: b"",
        lambda key: b"not a key",
        lambda key: key.pem()[:-40],
        lambda key: key.pem().replace(b"M", b"N"),
        lambda key: pem_of(generate_private_key(SECP256R1())),
        lambda key: pem_of(key.private, b"passphrase"),
    ],
)
def test_anything_but_a_key_is_unusable(
    key: SigningKey, tmp_path: Path, make: Callable[[SigningKey], bytes]
) -> None:
    content = make(key)
    with pytest.raises(SigningKeyUnusable) as caught:
        signer.read(put(tmp_path / "key.pem", content), NAME)
    lines = content.decode().splitlines()
    assert [line for line in lines if line and line in str(caught.value)] == []


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_key_that_is_no_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "key.pem")
    with pytest.raises((SigningKeyUnusable, StoreFailed)):
        signer.read(tmp_path / "key.pem", NAME)


def test_a_key_that_is_not_there_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        signer.read(tmp_path / "key.pem", NAME)


def test_cryptography_is_not_loaded_before_it_is_used() -> None:
    program = (
        "import sys, ledger.writer, ledger.cli; from ledger.signer import Vkey; "
        f"Vkey.parse({VKEY!r}); print('cryptography' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
