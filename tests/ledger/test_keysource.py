"""Keys come from files, a variable, a descriptor or a service; secrets go nowhere (spec §4)."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ledger import Ledger, Proposal, keys, keysource
from ledger.chain import Key
from ledger.errors import KeyMissing, StoreFailed
from ledger.keys import KeyFileUnusable, Pin

CHAIN = bytes(range(16))
SECRET = bytes(range(32))
KEY = Key.of(CHAIN, SECRET)
TEXT = json.dumps(
    {
        "format": "cardchain-key/1",
        "chain": CHAIN.hex(),
        "kid": KEY.kid.hex(),
        "secret": SECRET.hex(),
    }
)


def found(name: str) -> list[Key]:
    return [held.key for held in keysource.named(name).keys(CHAIN)]  # type: ignore[misc]


@pytest.fixture
def descriptor() -> Iterator[Callable[[str], int]]:
    """Give a descriptor from which a text can be read once."""
    with contextlib.ExitStack() as stack:

        def opened(text: str) -> int:
            reading, writing = os.pipe()
            os.write(writing, text.encode())
            os.close(writing)
            stack.callback(os.close, reading)
            return reading

        yield opened


def test_a_file_and_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(TEXT)
    file.chmod(0o600)
    assert found(str(file)) == found(str(tmp_path)) == [KEY]


def test_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", TEXT)
    assert found("env:TEST_KEY") == [KEY]


def test_a_descriptor_is_read_once_and_kept(descriptor: Callable[[str], int]) -> None:
    source = keysource.named(f"fd:{descriptor(TEXT)}")
    for _ in range(2):
        assert [held.key for held in source.keys(CHAIN)] == [KEY]


def test_a_descriptor_of_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(TEXT)
    for mode in (0o600, 0o640):
        file.chmod(mode)
        with file.open() as stream:
            if mode == 0o600:
                assert found(f"fd:{stream.fileno()}") == [KEY]
            else:
                with pytest.raises(KeyFileUnusable, match="others can read"):
                    found(f"fd:{stream.fileno()}")


@pytest.mark.parametrize("text", ["", "{}", SECRET.hex(), TEXT[:-1], TEXT + TEXT, " " * 5000])
def test_what_is_no_key_is_said_without_its_content(
    text: str, descriptor: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", text)
    for name in ("env:TEST_KEY", f"fd:{descriptor(text)}"):
        with pytest.raises(KeyFileUnusable) as caught:
            found(name)
        assert name in str(caught.value)
        assert SECRET.hex()[:16] not in repr(caught.value)


@pytest.mark.parametrize("name", ["env:TEST_KEY_THAT_IS_NOT_SET", "env:", "fd:99999"])
def test_a_source_that_is_not_there_is_said(name: str) -> None:
    with pytest.raises(KeyFileUnusable):
        found(name)


@pytest.mark.parametrize("name", ["fd:", "fd:x", "fd:-1", "fd:1.5", "fd:١"])
def test_a_descriptor_is_a_number(name: str) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        keysource.named(name)


@dataclass
class Service:
    """A key that stays where it is: it tags, and gives no secret away."""

    chain: bytes
    kid: bytes
    tag: Callable[[bytes], bytes]
    path: Path = Path("service")
    pin: Pin | None = None
    asked: list[bytes] = field(default_factory=list)

    @property
    def key(self) -> Service:
        return self

    def keys(self, chain: bytes) -> Iterable[Service]:
        self.asked.append(chain)
        return [self]


def test_a_service_that_only_tags_is_enough(
    ledger: Ledger, host: Path, proposal: Callable[..., Proposal]
) -> None:
    (file,) = host.rglob("keys/*.json")
    key = keys.read(file).key
    service = Service(key.chain, key.kid, key.tag)
    ledger.close()
    file.unlink()
    with pytest.raises(KeyMissing), Ledger.open(ledger.path) as opened:
        opened.status()
    with Ledger.open(ledger.path, keys=[service]) as opened:
        card = opened.issue(proposal())
        assert opened.card(card.hash).state == "OPEN"
    assert set(service.asked) == {key.chain}
    keys.write(keys.KeyFile(file, key))
    with Ledger.open(ledger.path) as opened:
        assert [record.kind for record in opened.records()] == ["opened", "issued"]


# Rotation.


def key_files(host: Path) -> set[str]:
    return {file.name for file in host.rglob("keys/*")}


def test_any_number_of_keys_one_after_another(
    ledger: Ledger, host: Path, proposal: Callable[..., Proposal], tmp_path: Path
) -> None:
    for number in range(12):
        ledger.issue(proposal(f"step-{number}"))
        ledger.rotate()
    ledger.issue(proposal("last"))
    kids = {record.kid for record in ledger.records()}
    assert len(kids) == len(key_files(host)) == 13
    ledger.close()
    (host / "cardchain" / ledger.chain.hex() / "index.sqlite").unlink()
    with Ledger.open(ledger.path) as opened:
        assert opened.status().count == 26
        opened.make_signer(by="user:operator-1")
        assert opened.checkpoint().checkpoint.size == 27


def test_a_rotation_that_fails_leaves_no_key(
    ledger: Ledger, host: Path, clock: Callable[[], int]
) -> None:
    before = key_files(host)
    clock.now -= 60_000  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="the clock reads"):
        ledger.rotate()
    assert key_files(host) == before


def test_a_rotation_that_may_have_been_written_keeps_its_key(tmp_path: Path, host: Path) -> None:
    failing = [False]

    def sync(descriptor: int) -> None:
        if failing[0]:
            raise OSError(5, "injected")

    with Ledger.init(tmp_path / "approvals", name="test", sync=sync) as ledger:
        before = key_files(host)
        failing[0] = True
        with pytest.raises(StoreFailed):
            ledger.rotate()
    assert len(key_files(host)) == len(before) + 1
    with Ledger.open(tmp_path / "approvals") as ledger:
        (_, record) = ledger.records()
        assert f"{record.body['kid'].hex()}.json" in key_files(host)
