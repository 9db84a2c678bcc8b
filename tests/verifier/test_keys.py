from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.keys import Hmac, Key, Pin, Ring, kid_of, load

CHAIN, SECRET = bytes(range(16)), bytes(range(32))


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=300))
def test_hmac_is_that_of_the_standard_library(secret: bytes, message: bytes) -> None:
    assert Hmac(secret).digest(message) == hmac.digest(secret, message, "sha256")


def test_kid_follows_from_chain_and_secret() -> None:
    expected = hashlib.sha256(b"cardchain/kid" + CHAIN + SECRET).digest()[:8]
    assert kid_of(CHAIN, SECRET) == Key(CHAIN, SECRET).kid == expected


def test_secret_is_never_shown() -> None:
    assert SECRET.hex() not in repr(Key(CHAIN, SECRET))
    assert repr(SECRET) not in repr(Key(CHAIN, SECRET))


def test_keys_are_selected_by_chain_and_kid() -> None:
    key = Key(CHAIN, SECRET)
    ring = Ring([key])
    assert ring.hmac(CHAIN, key.kid) is not None
    assert ring.hmac(bytes(16), key.kid) is None
    assert ring.chain_of(key.kid) == CHAIN
    assert ring.chain_of(bytes(8)) is None


def test_file_folder_and_environment_merge(new_log: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    logs = [new_log(secret=bytes([n]) * 32) for n in range(3)]
    one = logs[0].key_file(tmp_path / "one.json")
    logs[1].key_file(folder / "two.json", pin={"seq": 4, "digest": "ab" * 32})
    three = logs[2].key_file(tmp_path / "three.json")
    ring = load([str(one), str(folder)], {"CARDCHAIN_KEY": str(three)})
    assert ring.warnings == []
    assert all(ring.hmac(log.chain, log.kid) for log in logs)
    assert ring.pins(CHAIN) == [Pin(4, b"\xab" * 32)]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"format": "cardchain-key/2"}, "format"),
        ({"kid": "00" * 8}, "does not follow"),
        ({"kid": "AB" * 8}, "lower-case"),
        ({"secret": "00" * 31}, "64 lower-case"),
        ({"chain": " " + "0" * 31}, "32 lower-case"),
        ({"more": 1}, "not an object of"),
        ({"pin": {"seq": -1, "digest": "ab" * 32}}, "seq"),
        ({"pin": {"seq": True, "digest": "ab" * 32}}, "seq"),
        ({"pin": {"seq": 1}}, "pin"),
        ({"pin": {"seq": 1, "digest": "ab"}}, "pin digest"),
    ],
)
def test_unusable_key_file_is_a_warning_without_its_secret(
    new_log: Callable[..., Any], tmp_path: Path, changed: dict[str, Any], problem: str
) -> None:
    log = new_log()
    ring = load([str(log.key_file(tmp_path / "k.json", **changed))], {})
    assert len(ring.warnings) == 1
    assert problem in ring.warnings[0]
    assert log.secret.hex() not in ring.warnings[0]
    assert ring.hmac(log.chain, log.kid) is None


def test_what_is_no_key_file_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "dup.json").write_text('{"format":"cardchain-key/1","format":"x"}')
    (tmp_path / "long.json").write_bytes(b" " * 70_000)
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "empty").mkdir()
    paths = [*map(str, tmp_path.iterdir()), str(tmp_path / "absent.json")]
    warnings = load(paths, {}).warnings
    assert len(warnings) == 5
    for word in ("repeated name", "65536", "regular file", "holds no", "No such file"):
        assert sum(word in warning for warning in warnings) == 1


def test_a_key_file_that_others_can_read_is_a_warning(
    new_log: Callable[..., Any], tmp_path: Path
) -> None:
    file = new_log().key_file(tmp_path / "k.json")
    file.chmod(0o640)
    ring = load([str(file)], {})
    assert ring.warnings == [f"key file {file} can be read by others; run: chmod 600 {file}"]
    assert ring.chain_of(new_log().kid) == CHAIN
