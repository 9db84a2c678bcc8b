"""export, receipt, checkpoint: what a custodian hands to others, and what these make of it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture
def signing(host: SimpleNamespace) -> SimpleNamespace:
    """A host with a signer, whose vkey stands in the file `vkeys`, and one approved card."""
    done = host.ok("keys", "signer", "approvals", "--by", "user:operator-1")
    (host.folder / "vkeys").write_text(done.out)
    host.card = host.issue()
    host.ok("approve", "approvals", host.card, "--approver", "user:a", "--note", "said in private")
    return host


def verified(host: SimpleNamespace, *arguments: str) -> str:
    """Verify with the vkey alone, as somebody elsewhere does; gives the last line."""
    line = f"cardchain-verify --vkey vkeys {' '.join(arguments)}"
    done = host.shell(f"CARDCHAIN_STATE=/nonexistent {line}")
    return str(done.out.splitlines()[-1])


def test_a_receipt_is_verified_by_who_has_no_key(signing: SimpleNamespace) -> None:
    done = signing.ok("receipt", "approvals", signing.card, "-o", "card.receipt")
    assert re.fullmatch(r"receipt of 2 records to card.receipt\nhead [0-9a-f]{64}\n", done.out)
    assert verified(signing, "card.receipt", "--require", "signed") == "VERIFIED"
    again = signing.run("receipt", "approvals", signing.card, "-o", "card.receipt")
    assert (again.status, again.out) == (2, "")


def test_a_range_is_verified_by_who_has_no_key(signing: SimpleNamespace) -> None:
    done = signing.ok("export", "approvals", "-o", "range", "--from", "3", "--to", "3", "--json")
    assert done.json["count"] == 4
    assert verified(signing, "range") == "VERIFIED"


def test_an_export_has_its_checkpoint_beside_it(signing: SimpleNamespace) -> None:
    done = signing.ok("export", "approvals", "-o", "export.cbor")
    assert done.out.endswith("checkpoint export.cbor.note\n")
    assert verified(signing, "export.cbor", "--checkpoint", "export.cbor.note") == "VERIFIED"


def test_an_export_goes_to_standard_output(signing: SimpleNamespace) -> None:
    signing.ok("export", "approvals", "-o", "whole.cbor")
    signing.ok("export", "approvals", "-o", "range", "--from", "3")
    piped = signing.shell(
        "cardchain export approvals -o - 2>notes | cmp - whole.cbor"
        " && cardchain export approvals -o - --from 3 2>>notes | cmp - range"
    )
    assert (piped.status, piped.out, piped.err) == (0, "", "")
    notes = (signing.folder / "notes").read_text().splitlines()
    assert [note.split(",")[0] for note in notes] == [
        "cardchain: note: exported 4 records",
        "cardchain: note: exported 4 records",
    ]
    assert not (signing.folder / "-").exists()


def test_an_export_does_not_go_to_a_terminal(signing: SimpleNamespace) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [signing.scripts / "cardchain", "export", "approvals", "-o", "-"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        cwd=signing.folder,
        env=signing.environment,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"pipe it into a program; nothing was written" in done.stderr


def test_what_is_withheld_is_nowhere_in_the_files(signing: SimpleNamespace) -> None:
    signing.ok("export", "approvals", "-o", "export.cbor", "--withhold", "note")
    signing.ok("export", "approvals", "-o", "range", "--from", "0", "--withhold", "note")
    signing.ok("receipt", "approvals", signing.card, "-o", "receipt", "--withhold", "note")
    for name in ("export.cbor", "range", "receipt"):
        assert b"said in private" not in (signing.folder / name).read_bytes()
    assert verified(signing, "receipt") == "BROKEN"
    assert verified(signing, "receipt", "--allow-withheld") == "VERIFIED"


def test_a_checkpoint_is_printed_and_verified(signing: SimpleNamespace) -> None:
    done = signing.ok("checkpoint", "approvals")
    (signing.folder / "kept.note").write_text(done.out)
    assert done.out.splitlines()[1] == "4"
    assert verified(signing, "approvals", "--checkpoint", "kept.note") == "VERIFIED"
    assert signing.ok("checkpoint", "approvals").out == done.out


def test_two_ledgers_are_held_each_against_its_own_checkpoint(signing: SimpleNamespace) -> None:
    signing.ok("init", "payments")
    vkey = signing.ok("keys", "signer", "payments", "--by", "user:operator-1").out
    with (signing.folder / "vkeys").open("a") as file:
        file.write(vkey)
    options = []
    for name in ("approvals", "payments"):
        signing.ok("checkpoint", name, "-o", f"{name}.note")
        options += ["--checkpoint", f"{name}.note"]
    assert verified(signing, "approvals", "payments", *options) == "VERIFIED"
    done = signing.run("audit", "verify", "approvals", "payments", "--vkey", "vkeys", *options)
    assert (done.status, done.out.splitlines()[-1]) == (0, "VERIFIED")
    assert verified(signing, "payments", *options) == "BROKEN"


def test_what_a_kept_checkpoint_covers_is_not_verified_again(signing: SimpleNamespace) -> None:
    signing.ok("checkpoint", "approvals", "-o", "kept.note")
    signing.issue(task={"id": "refund-run-8", "step": "refund"})
    options = ("--since", "kept.note", "--vkey", "vkeys")
    done = signing.run("audit", "verify", "approvals", *options)
    assert (done.status, done.out.splitlines()[-1]) == (0, "VERIFIED")
    assert {"seq: 4 to 4", "assurance: pinned and signed"} <= set(done.out.splitlines())
    refused = signing.run("audit", "verify", "approvals", *options, "-o", "kept.note")
    assert refused.status == 2
    assert signing.run("audit", "verify", "approvals", "--since", "4:beef").status == 2


def test_a_proof_goes_beside_the_checkpoint_or_is_printed(signing: SimpleNamespace) -> None:
    signing.ok("checkpoint", "approvals", "-o", "old.note")
    signing.issue(task={"id": "refund-run-8", "step": "refund"})
    printed = signing.ok("checkpoint", "approvals", "--since", "old.note").out
    assert printed.startswith("old 4\n")
    signing.ok("checkpoint", "approvals", "--since", "4", "-o", "new.note")
    folder: Path = signing.folder
    assert (folder / "new.note.consistency").read_text() == printed
    assert printed.endswith((folder / "new.note").read_text())
    signing.ok("receipt", "approvals", signing.card, "-o", "receipt")
    kept = ("--checkpoint", "old.note", "--checkpoint", "new.note.consistency")
    assert verified(signing, "receipt", *kept) == "VERIFIED"


def test_every_gives_the_last_checkpoint_again(signing: SimpleNamespace) -> None:
    first = signing.ok("checkpoint", "approvals", "--json").json
    signing.issue(task={"id": "refund-run-8", "step": "refund"})
    second = signing.ok("checkpoint", "approvals", "--every", "2", "--json").json
    assert (first["new"], second["new"], second["size"]) == (True, False, first["size"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "approvals", "-o", "x", "--to", "3"),
        ("export", "approvals", "-o", "x", "--from", "-1"),
        ("export", "approvals", "-o", "x", "--from", "900"),
        ("export", "approvals", "-o", "x", "--from", "3", "--to", "2"),
        ("export", "approvals", "-o", "x", "--withhold", "notes"),
        ("receipt", "approvals", "0" * 63, "-o", "x"),
        ("receipt", "approvals", "0" * 64, "-o", "x"),
        ("receipt", "approvals", "0" * 64),
        ("checkpoint", "approvals", "-o", "x", "--every", "0"),
        ("checkpoint", "approvals", "-o", "x", "--since", "0"),
        ("checkpoint", "approvals", "-o", "x", "--since", "99999999999999999999"),
        ("checkpoint", "approvals", "-o", "x", "--since", "vkeys"),
        ("checkpoint", "approvals", "-o", "x", "--since", "nothing.note"),
        ("checkpoint", "approvals", "-o", "x", "--since", "approvals"),
        ("checkpoint", "approvals", "-o", "approvals/checkpoints/x"),
    ],
)
def test_wrong_usage_writes_nothing(signing: SimpleNamespace, arguments: tuple[str, ...]) -> None:
    done = signing.run(*arguments)
    assert (done.status, done.out) == (2, ""), done.err
    assert not (signing.folder / "x").exists()


def test_without_a_signer_the_way_to_one_is_told(host: SimpleNamespace) -> None:
    card = host.issue()
    for arguments in (("checkpoint", "approvals"), ("receipt", "approvals", card, "-o", "x")):
        done = host.run(*arguments)
        assert (done.status, done.out) == (6, "")
        assert "cardchain keys signer DIR --by ID" in done.err
    assert not (host.folder / "x").exists()


def test_a_fork_is_told_and_not_signed(signing: SimpleNamespace) -> None:
    signing.shell("cp -a approvals early")
    signing.issue(task={"id": "refund-run-8", "step": "refund"})
    signing.ok("checkpoint", "approvals")
    signing.shell("rm -r approvals; mv early approvals")
    assert signing.run("adopt", "approvals", "--rolled-back").status == 0
    for arguments in (("checkpoint", "approvals"), ("export", "approvals", "-o", "x")):
        done = signing.run(*arguments)
        assert (done.status, done.out) == (3, "")
        assert "checkpoint of 5 records: the ledger holds only 4" in done.err
    assert not (signing.folder / "x").exists()
