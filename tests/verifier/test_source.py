from __future__ import annotations

import gzip
import hashlib
import os
import threading
import time
from pathlib import Path

import pytest

from verifier.source import CHUNK, Segment, Unreadable, is_ledger, later, segments

DATA = bytes(range(256)) * 40


def read(path: Path) -> bytes:
    return b"".join(Segment(str(path)).chunks())


@pytest.mark.parametrize(
    "stored", [DATA, gzip.compress(DATA), gzip.compress(DATA[:9]) + gzip.compress(DATA[9:])]
)
def test_bytes_are_given_as_they_were_and_hashed_as_stored(tmp_path: Path, stored: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(stored)
    segment = Segment(str(path))
    assert b"".join(segment.chunks()) == DATA
    made = segment.input()
    assert (made.bytes, made.sha256) == (len(stored), hashlib.sha256(stored).hexdigest())


def test_the_whole_file_is_hashed_though_it_was_left_early(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(DATA * 300)
    segment = Segment(str(path))
    assert next(segment.chunks()) == (DATA * 300)[:CHUNK]
    assert segment.input().sha256 == hashlib.sha256(DATA * 300).hexdigest()


def test_every_cut_of_a_gzip_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    stored = gzip.compress(DATA)
    for end in range(2, len(stored), 7):
        path.write_bytes(stored[:end])
        with pytest.raises(Unreadable, match="ends early"):
            read(path)


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (gzip.compress(DATA) + b"more", "other data"),
        (gzip.compress(DATA)[:-5] + bytes(5), "damaged"),
        (b"\x1f\x8b\x00\x00", "damaged"),
    ],
)
def test_other_bytes_around_gzip_are_unreadable(
    tmp_path: Path, stored: bytes, problem: str
) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(stored)
    with pytest.raises(Unreadable, match=problem):
        read(path)


def test_a_bomb_is_given_in_small_chunks(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(bytes(50 * CHUNK)))
    sizes = [len(chunk) for chunk in Segment(str(path)).chunks()]
    assert max(sizes) == CHUNK
    assert sum(sizes) == 50 * CHUNK


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), tmp_path):
        with pytest.raises(Unreadable):
            read(path)
    with pytest.raises(Unreadable, match="No such file"):
        read(tmp_path / "absent")


def test_segments_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    folder.mkdir()
    names = [f"{9:020}.cbor", f"{10:020}.cbor.gz", f"{0:020}.cbor"]
    other = ["1.cbor", f"{0:020}.cbor.tmp", f"{0:020}", f"{'٣' * 20}.cbor", "notes"]
    for name in [*names, *other]:
        (folder / name).touch()
    assert is_ledger(str(tmp_path))
    found, strays = segments(str(tmp_path))
    assert [segment.seq for segment in found] == [0, 9, 10]
    assert [segment.live for segment in found] == [False, False, True]
    assert sorted(map(os.path.basename, strays)) == sorted(other)


def test_a_segment_that_was_compressed_meanwhile_is_found(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.cbor"
    Path(f"{path}.gz").write_bytes(gzip.compress(DATA))
    segment = Segment(str(path), seq=0)
    assert b"".join(segment.chunks()) == DATA
    assert segment.input().file == f"{path}.gz"


def test_the_last_segment_is_read_on_where_a_writer_began_another_one(tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    folder.mkdir()
    first = folder / f"{0:020}.cbor"
    first.write_bytes(b"one")
    (last,), _ = segments(str(tmp_path))
    first.write_bytes(b"one and two")
    (folder / f"{2:020}.cbor").write_bytes(b"three")
    assert b"".join(last.chunks()) == b"one and two"
    assert not last.live
    assert [(each.seq, each.live) for each in later(last)] == [(2, True)]


def test_what_a_writer_adds_at_the_end_is_read_before_the_segment_that_follows(
    tmp_path: Path,
) -> None:
    """The end of the file is reached before the writer goes on: nothing may be skipped then."""
    folder = tmp_path / "segments"
    folder.mkdir()
    first = folder / f"{0:020}.cbor"
    first.write_bytes(b"x" * CHUNK)
    (last,), _ = segments(str(tmp_path))
    chunks = last.chunks()
    read = next(chunks)
    with first.open("ab") as file:
        file.write(b"the rest")
    (folder / f"{2:020}.cbor").touch()
    assert read + b"".join(chunks) == b"x" * CHUNK + b"the rest"


def test_many_small_gzip_members_come_in_few_pieces(tmp_path: Path) -> None:
    data = bytes(range(256)) * 20
    path = tmp_path / "log.cbor.gz"
    path.write_bytes(b"".join(gzip.compress(bytes((byte,))) for byte in data))
    assert list(Segment(str(path)).chunks()) == [data]


def test_gzip_whose_first_bytes_come_one_by_one_is_gzip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = gzip.compress(b"records")
    reading, writing = os.pipe()

    def write() -> None:
        os.write(writing, stored[:1])
        time.sleep(0.2)
        os.write(writing, stored[1:])
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert b"".join(Segment("-").chunks()) == b"records"
    writer.join()
