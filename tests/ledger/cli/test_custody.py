"""init, status, export, clock-reset, adopt, keys: what a custodian of a ledger sees and may do."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest


def key_file(host: SimpleNamespace) -> Path:
    (found,) = host.state.rglob("keys/*.json")
    return Path(found)


def test_init_says_where_everything_is_and_what_to_back_up(empty_host: SimpleNamespace) -> None:
    out = empty_host.ok("init", "approvals").out
    key = key_file(empty_host)
    assert out == (
        "ledger approvals\n"
        f"chain {key.parent.parent.name}\n"
        f"kid {key.stem}\n"
        f"state {key.parent.parent}\n"
        "Back up the key file in the state directory: "
        "without it nobody can verify this ledger.\n"
    )


def test_init_makes_what_only_its_owner_can_read(host: SimpleNamespace) -> None:
    for path in [*host.folder.rglob("*")]:
        others = stat.S_IMODE(path.stat().st_mode) & 0o077
        assert others == 0 or path.name in {"state", "cardchain"}, path


def test_no_output_holds_the_secret(host: SimpleNamespace) -> None:
    secret = re.findall(r"[0-9a-f]{64}", key_file(host).read_text())[0]
    for name in ("status", "log", "doctor"):
        for option in ([], ["--json"]):
            assert secret not in host.ok(name, "approvals", *option).out
    assert secret not in host.ok("keys", "list", "approvals", "--json").out


def test_init_takes_a_name(empty_host: SimpleNamespace) -> None:
    empty_host.ok("init", "approvals", "--name", "refunds")
    assert empty_host.ok("status", "approvals").out.startswith('name "refunds"\n')


def test_init_replaces_nothing(host: SimpleNamespace) -> None:
    before = sorted(host.folder.rglob("*"))
    done = host.run("init", "approvals")
    assert (done.status, done.out) == (2, "")
    assert sorted(host.folder.rglob("*")) == before


def test_init_without_a_state_directory_is_6_and_makes_nothing(
    empty_host: SimpleNamespace,
) -> None:
    (empty_host.folder / "file").write_text("")
    done = empty_host.run("init", "approvals", environment={"CARDCHAIN_STATE": "file"})
    assert (done.status, done.out) == (6, "")
    assert not (empty_host.folder / "approvals").exists()


@pytest.mark.parametrize("lost", ["head", "*"])
def test_a_lost_memory_is_a_warning_of_the_command_that_found_it(
    host: SimpleNamespace, lost: str
) -> None:
    shutil.copy(key_file(host), host.folder / "key.json")
    for path in [path for path in host.state.glob(f"cardchain/*/{lost}") if path.name != "keys"]:
        path.unlink()
    done = host.run("log", "approvals", "--key", "key.json")
    assert (done.status, len(done.out.splitlines())) == (0, 1)
    assert re.fullmatch(r"cardchain: warning: this host had no memory of .+ seq 0 on\n", done.err)
    assert host.ok("log", "approvals").out == done.out


def test_status_is_one_document(host: SimpleNamespace) -> None:
    host.issue()
    status = host.ok("status", "approvals", "--json").json
    assert (status["count"], status["pending"], status["segments"]) == (2, 1, 1)
    assert (status["guarded_from"], status["warnings"]) == (0, [])
    assert status["kid"] == key_file(host).stem


def test_an_export_is_the_bytes_of_the_ledger(host: SimpleNamespace) -> None:
    host.issue()
    out = host.ok("export", "approvals", "-o", "e.cbor").out
    (segment,) = (host.folder / "approvals" / "segments").iterdir()
    assert (host.folder / "e.cbor").read_bytes() == segment.read_bytes()
    head = host.ok("status", "approvals", "--json").json["head"]
    assert out == f"exported 2 records to e.cbor\nhead {head}\n"


def test_an_export_replaces_nothing(host: SimpleNamespace) -> None:
    (host.folder / "e.cbor").write_text("mine")
    done = host.run("export", "approvals", "-o", "e.cbor")
    assert (done.status, done.out) == (2, "")
    assert (host.folder / "e.cbor").read_text() == "mine"


def test_a_failed_export_leaves_no_file(host: SimpleNamespace) -> None:
    done = host.run("export", "approvals", "-o", "no-such-folder/e.cbor")
    assert (done.status, done.out) == (6, "")
    (host.folder / "out").mkdir()
    done = host.shell("ulimit -f 0; trap '' XFSZ; cardchain export approvals -o out/e.cbor")
    assert (done.status, done.out) == (6, "")
    assert list((host.folder / "out").iterdir()) == []


def test_a_copy_is_refused_until_it_is_adopted(host: SimpleNamespace) -> None:
    shutil.copytree(host.folder / "approvals", host.folder / "copy")
    os.chmod(host.folder / "copy", 0o700)
    shutil.rmtree(host.folder / "approvals")
    done = host.run("pending", "copy")
    assert (done.status, done.out) == (6, "")
    assert "hint: if this copy is to be the ledger now, run: cardchain adopt copy" in done.err
    assert host.ok("adopt", "copy").out == "adopted copy with 1 records\n"
    assert host.ok("status", "copy", "--json").json["count"] == 1


def test_a_missing_key_is_6_and_keys_list_names_it(host: SimpleNamespace) -> None:
    key = key_file(host)
    moved = key.rename(host.folder / "moved.json")
    done = host.run("configure", "approvals", "--by", "user:operator", "--vkey", "a+vkey")
    assert (done.status, done.out) == (6, "")
    assert f"no key {key.stem}" in done.err
    assert host.ok("keys", "list", "approvals").out == f"{key.stem} in force missing\n"
    given = host.ok("keys", "list", "approvals", "--key", "moved.json").out
    assert given == f"{key.stem} in force moved.json\n"
    assert host.ok("status", "approvals", "--key", "moved.json").status == 0
    variable = host.run("status", "approvals", environment={"CARDCHAIN_KEY": str(moved)})
    assert variable.status == 0


def test_a_loose_key_is_6(host: SimpleNamespace) -> None:
    key_file(host).chmod(0o644)
    done = host.run("pending", "approvals")
    assert (done.status, done.out) == (6, "")
    assert "mode 0644, expected 0600" in done.err


def test_a_clock_that_is_right_needs_no_reset(host: SimpleNamespace) -> None:
    done = host.run(
        "clock-reset", "approvals", "--by", "user:operator-1", "--reason", "clock_fixed"
    )
    assert (done.status, done.out) == (2, "")
    assert host.count() == 1


@pytest.mark.parametrize("command", [["status"], ["log"], ["pending"], ["doctor"]])
def test_what_is_no_ledger_is_told(empty_host: SimpleNamespace, command: list[str]) -> None:
    (empty_host.folder / "folder").mkdir(mode=0o700)
    done = empty_host.run(*command, "folder")
    assert done.status in {2, 3, 4, 6}
    assert "folder" in done.out + done.err
    assert list((empty_host.folder / "folder").iterdir()) == []
