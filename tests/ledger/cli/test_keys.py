"""The commands `keys`, and the sources of keys; no secret is written or printed anywhere else."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key


def state_of(host: SimpleNamespace) -> Path:
    (state,) = (host.state / "cardchain").iterdir()
    return state


def test_a_signer_is_made_once_and_its_vkey_printed(host: SimpleNamespace) -> None:
    done = host.ok("keys", "signer", "approvals", "--by", "user:operator-1")
    assert re.fullmatch(r"cardchain/[0-9a-f]{32}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}\n", done.out)
    assert (state_of(host) / "signer" / "vkeys").read_text() == done.out
    again = host.run("keys", "signer", "approvals", "--by", "user:operator-1")
    assert (again.status, again.out) == (2, "")
    assert "there is a signing key already" in again.err
    other = host.ok("keys", "signer", "approvals", "--by", "x", "--replace", "--json").json
    assert other["vkey"] != done.out.strip()


def test_a_rotation_makes_a_key_and_puts_it_in_force(host: SimpleNamespace) -> None:
    done = host.ok("keys", "rotate", "approvals", "--json").json
    assert done["kind"] == "rekeyed"
    rows = host.ok("keys", "list", "approvals", "--json").json["keys"]
    assert [row["kid"] for row in rows if row["needed"]] == [done["kid"]]
    assert len(rows) == 2
    assert host.issue()


def piped(host: SimpleNamespace, text: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with a text behind descriptor 9."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    try:
        return subprocess.run(
            [
                "bash",
                "-c",
                f'exec 9<&{reading}; exec "$@"',
                "-",
                host.scripts / "cardchain",
                *arguments,
            ],
            capture_output=True,
            cwd=host.folder,
            env=host.environment,
            pass_fds=[reading],
            check=False,
        )
    finally:
        os.close(reading)


def test_a_key_comes_from_a_file_a_variable_or_a_descriptor(host: SimpleNamespace) -> None:
    (file,) = (state_of(host) / "keys").iterdir()
    text = file.read_text()
    moved = host.folder / "elsewhere.json"
    file.rename(moved)
    configure = ("configure", "approvals", "--by", "user:operator-1", "--vkey", "k")
    assert host.run(*configure).status == 6
    assert host.run(*configure, "--key", "elsewhere.json").status == 0
    environment = {"TEST_KEY": text}
    assert host.run(*configure, "--key", "env:TEST_KEY", environment=environment).status == 0
    assert piped(host, text, *configure, "--key", "fd:9").returncode == 0
    assert host.run(*configure).status == 6


@pytest.mark.parametrize("key", ["nothing.json", "fd:x"])
def test_a_source_that_cannot_be_is_a_usage_error(host: SimpleNamespace, key: str) -> None:
    done = host.run("status", "approvals", "--key", key)
    assert (done.status, done.out) == (2, "")


def forms(secret: bytes) -> set[bytes]:
    """The ways in which a secret could be spelled, and their beginnings."""
    encoded = base64.b64encode(secret)
    spelled = {secret, secret.hex().encode(), secret.hex().upper().encode(), encoded}
    spelled |= {base64.urlsafe_b64encode(secret), repr(secret).encode()[2:-1]}
    return {form[:12] for form in spelled} | {form[-12:] for form in spelled}


def test_no_secret_is_written_or_printed_anywhere_but_in_its_key_file(
    host: SimpleNamespace,
) -> None:
    """Every command that has to do with keys, its errors and its tracebacks are searched."""
    printed: list[str] = []

    def run(*arguments: str, **environment: str) -> None:
        done = host.run(*arguments, environment=environment)
        printed.append(done.out + done.err)

    run("keys", "signer", "approvals", "--by", "user:operator-1")
    card = host.issue()
    run("keys", "rotate", "approvals", "--json")
    run("keys", "signer", "approvals", "--by", "user:operator-1", "--replace")
    run("checkpoint", "approvals", "-o", "one.note")
    run("checkpoint", "approvals", "--since", "2", "--json")
    run("export", "approvals", "-o", "export.cbor")
    run("export", "approvals", "-o", "range", "--from", "0")
    run("receipt", "approvals", card, "-o", "receipt")
    run("keys", "list", "approvals")
    run("doctor", "approvals")
    run("log", "approvals", "--json")
    run("audit", "verify", "approvals", "export.cbor")
    state = state_of(host)
    texts = [file.read_text() for file in (state / "keys").iterdir()]
    assert len(texts) == 2
    for text in texts:
        for wrong in (text[:-3], text.replace("cardchain-key/1", "x")):
            run("status", "approvals", "--key", "env:K", CARDCHAIN_DEBUG="1", K=wrong)
            result = piped(host, wrong, "status", "approvals", "--key", "fd:9")
            printed.append((result.stdout + result.stderr).decode())
        (host.folder / "broken.json").write_text(text[:-3])
        (host.folder / "broken.json").chmod(0o600)
        run("status", "approvals", "--key", "broken.json", CARDCHAIN_DEBUG="1")
        (host.folder / "broken.json").unlink()
    pem = state / "signer" / "key.pem"
    private = load_pem_private_key(pem.read_bytes(), None).private_bytes_raw()  # type: ignore[union-attr]
    damaged = pem.read_bytes()
    pem.write_bytes(damaged[:-60])
    run("checkpoint", "approvals", CARDCHAIN_DEBUG="1")
    pem.write_bytes(damaged)
    secrets = [private, *(bytes.fromhex(json.loads(text)["secret"]) for text in texts)]
    kept = {pem, *(state / "keys").iterdir()}
    files = [file for file in host.folder.rglob("*") if file.is_file() and file not in kept]
    assert {"export.cbor", "receipt", "range", "one.note", "vkeys", "last.json"} <= {
        file.name for file in files
    }
    places = {str(file): file.read_bytes() for file in files} | {
        "printed": "".join(printed).encode()
    }
    assert len(places["printed"]) > 5_000
    body = damaged.splitlines()[1]
    assert len(body) == 64
    for name, content in places.items():
        assert body[-20:] not in content, name
        for secret in secrets:
            assert [form for form in forms(secret) if form in content] == [], name
