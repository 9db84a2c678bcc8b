"""demo: the story is told by real commands, and it ends as it says."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

REFUSALS = [
    "hash_mismatch",
    "mismatch",
    "already_dispatched",
    "already_resolved",
    "not_latest",
    "expired",
]


def test_the_story_is_whole(empty_host: SimpleNamespace) -> None:
    document = empty_host.ok("demo", "--json").json
    commands = document["commands"]
    assert document["passed"] is True
    assert [run["status"] for run in commands] == [run["expected"] for run in commands]
    refused = [run["output"] for run in commands if run["status"] == 5]
    assert [re.findall(r"refused at \w+: (\w+)", output)[0] for output in refused] == REFUSALS
    verified, tampered = commands[-2:]
    assert verified["output"].splitlines()[-1] == "VERIFIED"
    assert (tampered["output"].splitlines()[-1], tampered["status"]) == ("BROKEN", 3)
    approved = next(run["output"] for run in commands if run["output"].startswith("approved "))
    assert approved.split()[2:] == [
        "seq",
        re.findall(r"where: .*, seq (\d+)", tampered["output"])[0],
    ]


def test_the_story_is_told_in_order_and_leaves_nothing(empty_host: SimpleNamespace) -> None:
    (empty_host.folder / "tmp").mkdir()
    done = empty_host.run("demo", environment={"TMPDIR": str(empty_host.folder / "tmp")})
    assert (done.status, done.err) == (0, "")
    shown = re.findall(r"^\$ (cardchain(?:-verify| \w+))", done.out, re.M)
    assert (shown[0], shown[-1]) == ("cardchain init", "cardchain-verify")
    assert len(shown) == 20
    assert list((empty_host.folder / "tmp").iterdir()) == []
    assert not empty_host.state.exists()


def test_a_command_that_ends_otherwise_stops_the_story(empty_host: SimpleNamespace) -> None:
    """The demo shows what the commands do; it cannot pass where they fail."""
    scripts = empty_host.folder / "scripts"
    scripts.mkdir()
    for name in ("cardchain", "cardchain-verify"):
        (scripts / name).write_text("#!/bin/sh\necho issued 00 seq 1\nexit 3\n")
        (scripts / name).chmod(0o700)
    demo = scripts / "demo"
    demo.write_text((empty_host.scripts / "cardchain").read_text())
    demo.chmod(0o700)
    done = empty_host.shell(f"{demo} demo --json")
    assert done.status == 1
    assert "the demo stopped: cardchain init approvals: expected exit status 0, found 3" in done.err
    assert json.loads(done.out)["passed"] is False
