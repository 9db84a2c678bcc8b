"""Calls of the system itself fail, struck by strace below Python and SQLite (spec §7).

They show that the calls which `boundary` counts are the real ones, and reach what it cannot: the
index, which SQLite writes, and calls that a signal interrupts (EINTR), which Python makes again.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import pytest
from boundary import Call
from lives import ACTS, NURSERY, ROOT, Lives, Said, heard, known_after
from truth import refill, require_truth

Soak = Callable[[int, int], int]

FAMILIES = {
    "open": ("?open", "openat"),
    "write": ("write",),
    "pwrite": ("pwrite64",),
    "fsync": ("fsync",),
    "fdatasync": ("fdatasync",),
    "replace": ("?rename", "?renameat", "renameat2"),
    "link": ("?link", "linkat"),
    "unlink": ("?unlink", "unlinkat"),
    "mkdir": ("?mkdir", "mkdirat"),
    "flock": ("flock",),
    "ftruncate": ("ftruncate",),
    "fchmod": ("fchmod",),
}
"""What Python calls by one name, by the names of the system; those that it may lack begin with ?"""
MARKS = ("?access", "faccessat", "?faccessat2")
NAMES = {name.strip("?"): family for family, names in FAMILIES.items() for name in names}
HOWS = ("error=EIO", "error=ENOSPC", "error=EINTR", "signal=KILL")
MADE_AGAIN = ("open", "write", "pwrite", "fsync", "fdatasync", "flock", "ftruncate", "fchmod")
"""What Python makes again after EINTR; no local disk interrupts the others, and they may fail."""
LINE = re.compile(r"\d+ +(\w+)\((.*)")
PATH = re.compile(r'<([^>]*)>|"([^"]*)"')


class Entry(NamedTuple):
    """One call in a trace: its name in the system and in Python, its path, whether struck."""

    name: str
    family: str
    path: str
    struck: bool


class Trace(NamedTuple):
    """What one process asked of the system before an act and in it, and what it said."""

    before: Counter[str]
    act: list[Entry]
    said: Said


@pytest.fixture(scope="module")
def strace() -> str:
    """The program; skipped, and said so, where it is missing or may not trace."""
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed")
    probe = subprocess.run([found, "-f", "-o", os.devnull, "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"strace may not trace here: {probe.stderr.strip()}")
    return found


def traced(strace: str, lives: Lives, act: str, *inject: str) -> Trace:
    """Go through an act under strace, with an injection or none."""
    refill(lives.folder, lives.starts / ACTS[act][0])
    log = lives.folder.with_name("strace.log")
    fault = [0, "none"] if inject else None
    command = {"act": act, "folder": str(lives.folder), "cards": lives.cards, "fault": fault}
    wanted = ",".join([*(name for names in FAMILIES.values() for name in names), *MARKS])
    options = ["-f", "-y", "-o", str(log), "-e", f"trace={wanted}", *inject]
    done = subprocess.run(
        [strace, *options, sys.executable, str(NURSERY), json.dumps(command)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    said = heard(done.stdout.splitlines())
    assert done.returncode in (0, -9, 137), done.stderr
    said.ended = done.returncode
    return _parsed(log.read_text(errors="replace"), said)


def _parsed(log: str, said: Said) -> Trace:
    before: Counter[str] = Counter()
    act: list[Entry] = []
    begun = False
    for line in log.splitlines():
        found = LINE.match(line)
        if found is None:
            continue
        name, rest = found.groups()
        if "act-ends" in rest:
            break
        if name in NAMES and begun:
            paths = [one or two for one, two in PATH.findall(rest.partition(" = ")[0])]
            family = "listdir" if "O_NONBLOCK|O_CLOEXEC|O_DIRECTORY" in rest else NAMES[name]
            act.append(Entry(name, family, _told(name, paths), "(INJECTED)" in rest))
        elif name in NAMES:
            before[name] += 1
        begun = begun or "act-begins" in rest
    assert begun, log[-2_000:]
    return Trace(before, act, said)


def _told(name: str, paths: list[str]) -> str:
    """Give the path that `boundary` names a call by: the first, after that of the work folder."""
    inside = [path for path in paths if path.startswith("/")]
    return (inside[-1] if NAMES[name] == "open" else inside[0]) if inside else ""


def _of_python(lives: Lives, trace: Trace) -> list[Call]:
    """Give the calls of an act on files of the ledger and the host, but for those of SQLite."""
    return [
        Call(entry.family, os.path.basename(entry.path))
        for entry in trace.act
        if entry.path.startswith(str(lives.folder)) and "index.sqlite" not in entry.path
    ]


@pytest.mark.parametrize("act", ["issue", "rotate", "segments", "checkpoint", "export"])
def test_what_the_boundary_counts_is_what_the_system_is_asked(
    strace: str, lives: Lives, act: str
) -> None:
    trace = traced(strace, lives, act)
    counted = [
        Call(call.name.replace("scandir", "listdir"), call.target)
        for call in trace.said.calls
        if call.name in (*FAMILIES, "listdir", "scandir") and "index.sqlite" not in call.target
    ]
    asked = _of_python(lives, trace)
    random_name = re.compile(r"\.[0-9a-f]{16}\.part|[0-9a-f]{16}\.json")
    assert [call.name for call in asked] == [call.name for call in counted]
    targets = [[random_name.sub("*", call.target) for call in calls] for calls in (asked, counted)]
    assert targets[0] == targets[1]
    assert len(asked) >= 5


def _choices(lives: Lives, trace: Trace, act: str) -> list[tuple[str, str, int, str]]:
    """Give every call of an act and every way to strike it: the act, the call, its number, how.

    Those that load modules and say what was done are left alone.
    """
    seen = Counter(trace.before)
    found = []
    for entry in trace.act:
        seen[entry.name] += 1
        if entry.path.startswith(str(lives.folder)):
            found += [(act, entry.name, seen[entry.name], how) for how in HOWS]
    return found


def test_an_act_whose_system_calls_fail(strace: str, lives: Lives, soak: Soak) -> None:
    acts = ("issue", "rotate", "segments", "checkpoint", "export")
    choices = [each for act in acts for each in _choices(lives, traced(strace, lives, act), act)]
    chosen = random.Random(5).sample(choices, min(soak(14, 400), len(choices)))
    ended: Counter[str] = Counter()
    for act, name, number, how in chosen:
        trace = traced(strace, lives, act, "-e", f"inject={name}:{how}:when={number}")
        where = (act, name, number, how)
        assert trace.said.ended in ((-9, 137) if how == "signal=KILL" else (0,)), where
        assert how == "signal=KILL" or any(entry.struck for entry in trace.act), where
        assert "broken" not in trace.said.other, trace.said.other
        for error in trace.said.errors:
            assert error["told"], (where, error["text"])
            assert error["hint"], (where, error["text"])
        struck = [entry for entry in trace.act if entry.struck]
        again = all(e.family in MADE_AGAIN and "index.sqlite" not in e.path for e in struck)
        assert how != "error=EINTR" or not again or not trace.said.errors, where
        ended[trace.said.errors[0]["error"] if trace.said.errors else how] += 1
        start = ACTS[act][0]
        require_truth(lives.folder, known_after(lives, act, start, trace.said))
    print(f"{len(choices)} calls and ways, {len(chosen)} of them: {dict(ended)}")
    assert ended["StoreFailed"] > 0
