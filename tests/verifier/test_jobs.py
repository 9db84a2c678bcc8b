"""Records proven in other processes give the same report."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verifier import Key, jobs, render_json, verify
from verifier.anchors import Auditor
from verifier.checks.completeness import Expectation
from verifier.keys import Ring
from verifier.manner import ALONE, Manner
from verifier.report import LogReport
from verifier.verify import verify_log

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures" / "cases"
KEYS = [str(ROOT / "fixtures" / "keys" / f"{name}.json") for name in "ab"]
PIECE = 1500  # two or three records


@pytest.fixture(scope="module")
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "PIECE", PIECE)
        patch.setattr(jobs, "PIECES_EACH", 1)
        yield


@pytest.fixture
def mixed(new_log: Callable[..., Any]) -> Any:
    """A log of events that are proven and others between them."""
    log = new_log()
    log.open()
    for number in range(6):
        card = log.issue(number)
        log.add("anchored", None, {"size": 1, "root": bytes(32), "note": bytes(32)})
        grant = log.resolve(card)
        body = {"of": grant, "rebuilt": card[0], "policy_outcome": "allow"}
        spent = log.add("dispatched", card[0], body, {"envelope": card[1]})
        log.add("settled", card[0], {"of": spent, "outcome": "failed"}, {"envelope": card[1]})
    return log


@pytest.fixture
def ring(mixed: Any) -> Ring:
    return Ring([Key(mixed.chain, mixed.secret)])


@pytest.fixture(scope="module")
def pool(small_pieces: None) -> Iterator[jobs.Pool]:
    secret = bytes(range(32))
    pool = jobs.Pool(2, Ring([Key(bytes(range(16)), secret)]))
    yield pool
    pool.close()


def report(path: Path, data: bytes, ring: Ring, manner: Manner = ALONE) -> LogReport:
    path.write_bytes(data)
    log, _ = verify_log(str(path), ring, Expectation(), ({}, 0), Auditor(), manner=manner)
    return log


def test_every_fixture_has_the_same_report(small_pieces: None, tmp_path: Path) -> None:
    paths = [str(path) for path in sorted(CASES.glob("*/*.cbor*"))]
    paths += [str(path) for path in sorted(CASES.glob("*/ledger"))]
    assert len(paths) > 300
    one, two = (verify(paths, KEYS, environ={}, jobs=number) for number in (1, 2))
    assert render_json(one._replace(header=None)) == render_json(two._replace(header=None))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.randoms(use_true_random=False))
def test_changed_logs_have_the_same_report(
    mixed: Any, ring: Ring, pool: jobs.Pool, tmp_path: Path, chance: random.Random
) -> None:
    data = bytearray(mixed.data)
    for _ in range(chance.choice((0, 1, 2, 4))):
        place = chance.randrange(len(data))
        change = chance.randrange(4)
        if change == 0:
            data[place] ^= 1 << chance.randrange(8)
        elif change == 1:
            del data[place : place + chance.choice((1, 9, 700))]
        elif change == 2:
            data[place:place] = data[:8] * chance.choice((1, 3))
        else:
            start = chance.randrange(len(data))
            data[place:place] = data[start : start + 700]
    path = tmp_path / "log.cbor"
    for known in (ring, Ring()):
        assert report(path, data, known, Manner(pool=pool)) == report(path, data, known)


def test_the_processes_prove_what_is_folded_in(mixed: Any, ring: Ring, pool: jobs.Pool) -> None:
    pieces = pool.pieces(iter([mixed.data]), 0)
    first, *others = pieces
    assert first + b"".join(others) == mixed.data
    proven = sum(len(row.records) for row in pieces.rows.values())
    kinds = (b"fissued", b"hresolved", b"jdispatched", b"gsettled")
    assert proven == sum(b"".join(others).count(kind) for kind in kinds) > 20


@pytest.mark.parametrize("seq", [b"\x20", b"\x1b" + b"\xff" * 8, b"\x610", b"\xf6"])
def test_a_record_of_an_impossible_seq_is_proven_by_nobody(
    mixed: Any, ring: Ring, seq: bytes
) -> None:
    record = mixed.records[1]
    place = record.index(mixed.chain) + len(mixed.chain)
    assert len(jobs.prove_piece(record, ring, set())) == 1
    changed = record[:place] + seq + record[place + 1 :]
    assert jobs.prove_piece(changed, ring, set()) == []


def test_a_process_that_dies_is_not_missed(
    small_pieces: None, mixed: Any, ring: Ring, tmp_path: Path
) -> None:
    pool = jobs.Pool(3, ring)
    for worker in pool.workers(2):
        os.kill(worker._process.pid, signal.SIGKILL)
    path = tmp_path / "log.cbor"
    try:
        assert report(path, mixed.data, ring, Manner(pool=pool)) == report(path, mixed.data, ring)
    finally:
        pool.close()


def test_a_process_that_stops_for_a_while_is_waited_for_with_work(
    small_pieces: None, mixed: Any, ring: Ring
) -> None:
    pool = jobs.Pool(2, ring)
    (worker,) = pool.workers(1)
    os.kill(worker._process.pid, signal.SIGSTOP)
    go_on = threading.Timer(0.5, os.kill, (worker._process.pid, signal.SIGCONT))
    go_on.start()
    pieces = pool.pieces(iter([mixed.data * 20]), 0)
    try:
        given = iter(pieces)
        first = next(given) + next(given)
        assert len(pieces._ahead) > jobs._MAX_AHEAD
        assert all(piece.rows for piece in list(pieces._ahead)[jobs._DEPTH :])
        assert first + b"".join(given) == mixed.data * 20
    finally:
        go_on.join()
        pool.close()


def test_a_file_that_cannot_be_read_to_its_end_is_read_as_far_as_it_goes(
    small_pieces: None, mixed: Any, ring: Ring, tmp_path: Path
) -> None:
    import gzip

    data = gzip.compress(mixed.data)[:-40]
    path = tmp_path / "log.cbor.gz"
    pool = jobs.Pool(2, ring)
    try:
        assert report(path, data, ring, Manner(pool=pool)) == report(path, data, ring)
    finally:
        pool.close()


def test_a_single_piece_starts_no_process(mixed: Any, ring: Ring) -> None:
    pool = jobs.Pool(2, ring)
    assert list(pool.pieces(iter([mixed.records[0]]), 0)) == [mixed.records[0]]
    assert pool._workers == []


def test_no_more_processes_start_than_there_is_work_for(
    small_pieces: None, mixed: Any, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PIECES_EACH", 10)
    pool = jobs.Pool(50, ring)
    try:
        count = len(list(pool.pieces(iter([mixed.data * 2]), 0)))
        assert 1 <= len(pool._workers) <= count // 10 < 49
    finally:
        pool.close()


def test_a_pipe_that_no_list_of_files_can_name_is_waited_for(
    small_pieces: None, mixed: Any, ring: Ring, tmp_path: Path
) -> None:
    """So many files are open that `select` refuses the numbers of new ones."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < 1_200:
        pytest.skip(f"no more than {limits[1]} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 1_200), limits[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_030)]
    path, pool = tmp_path / "log.cbor", jobs.Pool(2, ring)
    try:
        assert report(path, mixed.data, ring, Manner(pool=pool)) == report(path, mixed.data, ring)
        assert len(pool._workers) == 1
    finally:
        pool.close()
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_the_command_leaves_no_process_behind(mixed: Any, key: str, tmp_path: Path) -> None:
    log = tmp_path / "log.cbor"
    log.write_bytes(mixed.data * 60)  # several pieces
    command = [sys.executable, "-m", "verifier", str(log), "--key", key, "--format", "json"]
    run = subprocess.run(
        [*command, "--jobs", "2"], cwd=ROOT, capture_output=True, timeout=60, check=False
    )
    assert (run.returncode, run.stderr) == (3, b"")
    assert json.loads(run.stdout)["logs"][0]["findings"][0]["check"] == "sequence"
