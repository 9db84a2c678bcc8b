"""doctor: it says which footing of a ledger is gone, and what to do."""

from __future__ import annotations

from types import SimpleNamespace

CHECKS = ["directory", "space", "file system", "chain", "keys", "rollback", "clock"]


def rows(done: SimpleNamespace) -> dict[str, bool]:
    return {row["check"]: row["ok"] for row in done.json["checks"]}


def test_a_sound_ledger_passes_every_check(host: SimpleNamespace) -> None:
    assert rows(host.ok("doctor", "approvals", "--json")) == dict.fromkeys(CHECKS, True)
    lines = host.ok("doctor", "approvals").out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"ok   {check}" for check in CHECKS]


def test_an_open_directory_is_found(host: SimpleNamespace) -> None:
    (host.folder / "approvals").chmod(0o750)
    done = host.run("doctor", "approvals")
    assert done.status == 6
    assert "FAIL directory: approvals: mode 0750, expected 0700\n" in done.out
    assert "     hint: run: chmod 700 approvals\n" in done.out


def test_a_missing_key_is_found(host: SimpleNamespace) -> None:
    (key,) = host.state.rglob("keys/*.json")
    key.unlink()
    done = host.run("doctor", "approvals")
    assert done.status == 6
    assert f"FAIL chain: no key {key.stem}" in done.out
    assert "ok   directory" in done.out


def test_a_changed_byte_is_found(host: SimpleNamespace) -> None:
    host.issue()
    (segment,) = (host.folder / "approvals" / "segments").iterdir()
    data = segment.read_bytes()
    segment.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    done = host.run("doctor", "approvals", "--json")
    assert done.status in {3, 6}
    assert rows(done)["chain"] is False
    assert segment.read_bytes() != data


def test_a_lost_memory_of_the_host_is_told_as_such(host: SimpleNamespace) -> None:
    (head,) = host.state.rglob("head")
    head.unlink()
    done = host.run("doctor", "approvals", "--json")
    assert "chain" in rows(done)
