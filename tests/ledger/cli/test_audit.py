"""audit verify: the verdict of the verifier, with the keys and the memory of this host."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

APPROVER = ("--approver", "user:approver-1")


def segment(host: SimpleNamespace) -> Path:
    (found,) = (host.folder / "approvals" / "segments").iterdir()
    return Path(found)


def verdict(done: SimpleNamespace) -> str:
    return str(done.out.splitlines()[-1])


@pytest.fixture
def exported(host: SimpleNamespace) -> SimpleNamespace:
    """A host with an approved card, and its export in `export.cbor`."""
    host.ok("approve", "approvals", host.issue(), *APPROVER)
    host.ok("export", "approvals", "-o", "export.cbor")
    return host


def findings(done: SimpleNamespace) -> list[tuple[str, int]]:
    return [
        (finding["check"], finding["seq"])
        for log in done.json["logs"]
        for finding in log["findings"]
    ]


def test_an_export_is_verified_with_the_key_of_this_host(exported: SimpleNamespace) -> None:
    done = exported.ok("audit", "verify", "export.cbor")
    assert verdict(done) == "VERIFIED"
    assert "1 of 1 decisions echoed an issued, unexpired envelope\n" in done.out


def test_a_ledger_is_verified_up_to_the_record_that_this_host_remembers(
    exported: SimpleNamespace,
) -> None:
    done = exported.ok("audit", "verify", "approvals", "--json")
    rows = {row["check"]: row["outcome"] for row in done.json["logs"][0]["rows"]}
    assert rows["expected_head"] == "PASS"


def test_a_ledger_that_was_rolled_back_is_broken(exported: SimpleNamespace) -> None:
    """From inside, a shorter chain is a good chain: only the memory of the host shows it."""
    data = segment(exported).read_bytes()
    resolved = data.rindex(bytes.fromhex("d1844da201050448"))
    segment(exported).write_bytes(data[:resolved])
    done = exported.run("audit", "verify", "approvals", "--json")
    assert done.status == 3
    assert [check for check, _ in findings(done)] == ["expected_head"]
    together = exported.run("audit", "verify", "export.cbor", "approvals")
    assert (together.status, verdict(together)) == (3, "BROKEN")
    alone = exported.shell(
        "cardchain-verify approvals --key $(dirname $(find state -name '*.json'))"
    )
    assert (alone.status, verdict(alone)) == (0, "VERIFIED")


def test_a_compressed_ledger_is_remembered_too(exported: SimpleNamespace) -> None:
    exported.shell("gzip approvals/segments/*.cbor")
    done = exported.ok("audit", "verify", "approvals", "--json")
    rows = {row["check"]: row["outcome"] for row in done.json["logs"][0]["rows"]}
    assert rows["expected_head"] == "PASS"


def test_a_changed_envelope_is_found_in_its_record(exported: SimpleNamespace) -> None:
    data = (exported.folder / "export.cbor").read_bytes()
    place = data.rindex(b'"199.00"')
    (exported.folder / "t.cbor").write_bytes(data[:place] + b'"999.00"' + data[place + 8 :])
    done = exported.run("audit", "verify", "t.cbor", "--json")
    assert (done.status, done.err) == (3, "")
    assert findings(done) == [("card_hash", 2)]


def test_without_the_key_nothing_is_verified_and_nobody_accused(
    exported: SimpleNamespace,
) -> None:
    (key,) = exported.state.rglob("keys/*.json")
    moved = shutil.move(key, exported.folder / "key.json")
    done = exported.run("audit", "verify", "export.cbor")
    assert (done.status, verdict(done)) == (4, "CANNOT VERIFY")
    assert verdict(exported.ok("audit", "verify", "export.cbor", "--key", str(moved))) == "VERIFIED"


def test_verifying_makes_nothing(exported: SimpleNamespace) -> None:
    shutil.move(exported.state, exported.folder / "elsewhere")
    before = sorted(exported.folder.rglob("*"))
    exported.run("audit", "verify", "export.cbor", "approvals")
    assert sorted(exported.folder.rglob("*")) == before


def test_two_logs_of_one_chain_that_differ_are_a_fork(exported: SimpleNamespace) -> None:
    shutil.copytree(exported.folder / "approvals", exported.folder / "copy")
    exported.ok("adopt", "copy")
    first = exported.ok("log", "copy", "--json").out.splitlines()[1]
    card = json.loads(first)["card_hash"]
    exported.ok("withdraw", "copy", card, "--reason", "revoked", "--by", "user:approver-1")
    (head,) = exported.state.rglob("head")
    head.unlink()
    (index,) = exported.state.rglob("index.sqlite")
    index.unlink()
    again = ["withdraw", "approvals", card, "--reason", "cancelled", "--by", "user:approver-1"]
    assert exported.run(*again).status == 0  # with a warning: the memory of this host is lost
    done = exported.run("audit", "verify", "copy", "approvals", "--json")
    assert done.status == 3
    assert "fork" in {check for check, _ in findings(done)}


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--expect-count", "3"], 0),
        (["--expect-count", "4"], 3),
        (["--expect-head", "00" * 32], 3),
        (["--expect-head", "00"], 2),
        (["--expect-count", "0"], 2),
    ],
)
def test_expectations_are_held(exported: SimpleNamespace, options: list[str], status: int) -> None:
    assert exported.run("audit", "verify", "export.cbor", *options).status == status


def test_the_head_in_status_is_the_head_to_expect(exported: SimpleNamespace) -> None:
    head = exported.ok("status", "approvals", "--json").json["head"]
    exported.ok("audit", "verify", "export.cbor", "--expect-head", head, "--expect-count", "3")


def test_what_is_not_there_cannot_be_verified(empty_host: SimpleNamespace) -> None:
    done = empty_host.run("audit", "verify", "no-such-file.cbor")
    assert (done.status, verdict(done)) == (4, "CANNOT VERIFY")


def test_no_path_is_a_usage_error(empty_host: SimpleNamespace) -> None:
    done = empty_host.run("audit", "verify")
    assert (done.status, done.out) == (2, "")


def test_an_export_on_standard_input_is_verified(exported: SimpleNamespace) -> None:
    done = exported.shell("cardchain audit verify - < export.cbor")
    assert (done.status, verdict(done)) == (0, "VERIFIED")


def test_each_approval_has_three_lines_if_one_asks(exported: SimpleNamespace) -> None:
    lines = exported.ok("audit", "verify", "export.cbor", "--verbose").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("approval of "))
    names = [line.split(":")[0] for line in lines[start + 1 : start + 4]]
    assert names == ["  execution integrity", "  decision provenance", "  presentation integrity"]
    assert "approval of " not in exported.ok("audit", "verify", "export.cbor").out


def test_the_floor_of_an_auditor_is_passed_on(exported: SimpleNamespace) -> None:
    done = exported.run("audit", "verify", "export.cbor", "--floor", "selection", "--json")
    assert done.status == 4
    assert findings(done) == [("auditor_floor", 2)]
    assert exported.run("audit", "verify", "export.cbor", "--floor", "some").status == 2


def test_profile_files_are_passed_on(exported: SimpleNamespace) -> None:
    (exported.folder / "profile.json").write_text("{}")
    done = exported.ok("audit", "verify", "export.cbor", "--profile", "profile.json", "--json")
    (log,) = done.json["logs"]
    assert [warning.split(":")[0] for warning in log["warnings"]] == [
        "profile file profile.json is not used"
    ]


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("text", "cardchain-verify "),
        ("json", "{\n"),
        ("junit", "<?xml "),
        ("csv", "verdict,log,log_sha256,"),
    ],
)
def test_the_formats_are_those_of_the_verifier(
    exported: SimpleNamespace, name: str, begin: str
) -> None:
    done = exported.ok("audit", "verify", "export.cbor", "--format", name)
    assert done.out.startswith(begin)
    written = exported.ok("audit", "verify", "export.cbor", "--format", name, "-o", "report")
    assert written.out == "VERIFIED\n"
    report = (exported.folder / "report").read_text()
    assert report.startswith(begin)
    assert len(report.splitlines()) == len(done.out.splitlines())


def test_a_ledger_held_against_the_memory_of_this_host_has_its_cards_once(
    exported: SimpleNamespace,
) -> None:
    done = exported.ok("audit", "verify", "approvals", "export.cbor", "--format", "csv")
    first, second = csv.DictReader(done.out.splitlines())
    assert (first["log"], second["log"]) == ("approvals", "export.cbor")
    assert first["card_hash"] == second["card_hash"]
    assert (first["decision"], first["state"]) == ("approve", "APPROVED")


@pytest.mark.parametrize("place", ["approvals/report", "export.cbor", "missing/report", "state"])
def test_a_report_goes_to_no_ledger_no_input_and_no_key(
    exported: SimpleNamespace, place: str
) -> None:
    before = (exported.folder / "export.cbor").read_bytes()
    done = exported.run("audit", "verify", "export.cbor", "-o", place)
    assert (done.status, done.out) == (2, "")
    assert "nothing was read" in done.err
    keys = next(exported.state.glob("cardchain/*/keys"))
    beside = exported.run("audit", "verify", "export.cbor", "-o", str(keys / "report.json"))
    assert (beside.status, beside.out) == (2, "")
    assert (exported.folder / "export.cbor").read_bytes() == before
    assert len([*keys.iterdir()]) == 1


def test_json_is_short_for_its_format_and_excludes_the_others(exported: SimpleNamespace) -> None:
    call = ("audit", "verify", "export.cbor", "--json", "--format")
    assert exported.ok(*call, "json").json["verdict"] == "VERIFIED"
    done = exported.run(*call, "csv")
    assert (done.status, done.out) == (2, "")


def test_on_a_terminal_the_verdict_has_a_colour(exported: SimpleNamespace) -> None:
    """`script` gives the command a terminal."""
    (exported.folder / "cut.cbor").write_bytes((exported.folder / "export.cbor").read_bytes()[:-1])
    for name, line in (
        ("export.cbor", "\x1b[32mVERIFIED\x1b[0m"),
        ("cut.cbor", "\x1b[31mBROKEN\x1b[0m"),
    ):
        shown = exported.shell(f"script -qec 'cardchain audit verify {name}' /dev/null < /dev/null")
        assert shown.out.splitlines()[-1] == line
    assert "\x1b" not in exported.run("audit", "verify", "cut.cbor").out
