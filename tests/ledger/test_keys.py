"""Key files (spec §4.3): exact, private, found in every source, and never shown."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import keys
from ledger.chain import Key
from ledger.errors import KeyMissing, LooseMode, StoreFailed
from ledger.keys import KeyFile, KeyFileUnusable, KeyRing, Pin

CHAIN = bytes(range(16))
OTHER_CHAIN = bytes(range(1, 17))
SECRET = bytes(range(32))


def document(**changes: Any) -> dict[str, Any]:
    kid = Key.of(CHAIN, SECRET).kid.hex()
    ordinary = {
        "format": "cardchain-key/1",
        "chain": CHAIN.hex(),
        "kid": kid,
        "secret": SECRET.hex(),
    }
    merged = {**ordinary, **changes}
    return {name: value for name, value in merged.items() if value is not ...}


def put(path: Path, content: Any, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


def test_a_key_file_gives_the_key_and_its_pin(tmp_path: Path) -> None:
    pin = {"seq": 7, "digest": "0f" * 32}
    file = keys.read(put(tmp_path / "key.json", document(pin=pin)))
    assert file.key == Key.of(CHAIN, SECRET)
    assert file.pin == Pin(7, b"\x0f" * 32)
    assert keys.read(put(tmp_path / "key.json", document())).pin is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "7",
        "not json",
        "[" * 4000,
        json.dumps(document())[:-1] + ', "kid": "00"}',
        "\ufeff" + json.dumps(document()),
        json.dumps(document()) + "{}",
        json.dumps(document(pin={"seq": 0, "digest": "00" * 32})).replace(": 0,", ": -0,"),
        document(format=...),
        document(format="cardchain-key/2"),
        document(secret=...),
        document(note="mine"),
        document(chain="00"),
        document(chain=CHAIN.hex().upper()),
        document(kid="0" * 16),
        document(secret=SECRET.hex()[:-2]),
        document(secret=SECRET.hex() + "00"),
        document(secret=" " + SECRET.hex()[1:]),
        document(secret=SECRET.hex().upper()),
        document(secret="٠" * 64),
        document(secret=7),
        document(pin=None),
        document(pin={}),
        document(pin={"seq": -1, "digest": "00" * 32}),
        document(pin={"seq": True, "digest": "00" * 32}),
        document(pin={"seq": 1.0, "digest": "00" * 32}),
        document(pin={"seq": 1, "digest": "00"}),
        document(pin={"seq": 1, "digest": "00" * 32, "at": 1}),
    ],
)
def test_anything_but_exactly_a_key_file_is_unusable(tmp_path: Path, content: Any) -> None:
    with pytest.raises(KeyFileUnusable) as caught:
        keys.read(put(tmp_path / "key.json", content))
    assert SECRET.hex()[:16] not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o777])
def test_a_key_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(LooseMode) as caught:
        keys.read(put(tmp_path / "key.json", document(), mode))
    assert caught.value.hint.startswith("run: chmod 600 ")


def test_a_key_file_that_is_not_there_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(KeyFileUnusable):
        keys.read(tmp_path / "nothing.json")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_key_file_that_is_no_file_is_unusable(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "key.json")
    with pytest.raises(KeyFileUnusable):
        keys.read(tmp_path / "key.json")


def test_a_key_is_made_private_and_read_back(host: Path) -> None:
    before = os.umask(0)
    try:
        made = keys.make(CHAIN)
    finally:
        os.umask(before)
    assert made.path == host / "cardchain" / CHAIN.hex() / "keys" / f"{made.key.kid.hex()}.json"
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.path.parent.stat().st_mode) == 0o700
    assert keys.read(made.path) == made
    assert keys.make(CHAIN).key.secret != made.key.secret


def test_a_pin_is_added_without_touching_the_key(host: Path) -> None:
    made = keys.make(CHAIN)
    keys.pin(made, 3, bytes(32))
    assert keys.read(made.path) == KeyFile(made.path, made.key, Pin(3, bytes(32)))
    assert [file.name for file in made.path.parent.iterdir()] == [made.path.name]


def test_a_failed_write_leaves_the_key_file_as_it_was(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = keys.make(CHAIN)

    def fail(descriptor: int) -> None:
        raise OSError(5, "injected")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreFailed):
        keys.pin(made, 3, bytes(32))
    assert keys.read(made.path) == made
    assert [file.name for file in made.path.parent.iterdir()] == [made.path.name]


def secrets_of(ring: KeyRing) -> set[bytes]:
    return {file.key.secret for file in ring.files()}


def test_all_sources_are_merged_and_other_chains_left_out(tmp_path: Path, host: Path) -> None:
    def key_file(name: str, first: int, chain: bytes = CHAIN) -> Path:
        secret = bytes(range(first, first + 32))
        kid = Key.of(chain, secret).kid.hex()
        return put(tmp_path / name, document(chain=chain.hex(), kid=kid, secret=secret.hex()))

    given = key_file("given.json", 1)
    key_file("folder/one.json", 2)
    key_file("folder/two.json", 3)
    key_file("folder/other.json", 4, OTHER_CHAIN)
    put(tmp_path / "folder" / "notes.txt", "no key")
    own = keys.make(CHAIN)
    ring = keys.find_keys(
        CHAIN,
        [keys.KeyFiles(given)],
        {"CARDCHAIN_KEY": str(tmp_path / "folder"), "CARDCHAIN_STATE": str(host)},
    )
    expected = {bytes(range(first, first + 32)) for first in (1, 2, 3)}
    assert secrets_of(ring) == expected | {own.key.secret}
    assert ring.find(own.key.kid) == own.key


def test_looking_for_keys_makes_none(host: Path) -> None:
    ring = keys.find_keys(CHAIN)
    assert ring.files() == ()
    with pytest.raises(KeyMissing) as caught:
        ring.find(bytes(8))
    assert caught.value.kid == bytes(8)
    assert not list(host.rglob("*.json"))


def test_pinned_keys_are_listed_in_the_order_in_which_they_came_into_force() -> None:
    def file(first: int, pin: int | None) -> KeyFile:
        key = Key.of(CHAIN, bytes(range(first, first + 32)))
        return KeyFile(Path(str(first)), key, None if pin is None else Pin(pin, bytes(32)))

    ring = KeyRing(CHAIN, [file(1, None), file(2, 90), file(3, 0), file(4, 8)])
    assert [str(found.path) for found in ring.files()] == ["3", "4", "2", "1"]


@pytest.mark.parametrize("show", [repr, str, lambda value: f"{value!r} {value}"])
def test_a_secret_is_never_shown(tmp_path: Path, show: Callable[[object], str]) -> None:
    file = keys.read(put(tmp_path / "key.json", document()))
    for value in (file, file.key, KeyRing(CHAIN, [file])):
        text = show(value)
        assert SECRET.hex() not in text
        assert repr(SECRET) not in text
        assert "secret=" not in text
