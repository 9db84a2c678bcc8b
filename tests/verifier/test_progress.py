from __future__ import annotations

import io

from verifier.progress import Progress, watcher


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(times: list[float]) -> str:
    """Give what is written while chunks of a megabyte come at these times."""
    screen, now = Terminal(), [0.0]
    progress = Progress(screen, lambda: now[0])
    records = iter(range(0, 1000, 100))
    chunks = progress.watch(iter([b"x" * 1_000_000] * len(times)), lambda: next(records))
    for time in times:
        now[0] = time
        assert len(next(chunks)) == 1_000_000
    progress.end()
    return screen.getvalue()


def test_a_short_run_writes_nothing() -> None:
    assert watched([0.01, 0.02, 0.2]) == ""


def test_a_long_run_writes_a_few_times_a_second_and_erases_its_line() -> None:
    shown = watched([0.1, 0.4, 0.41, 0.5, 0.8, 5.0])
    erase = "\r\x1b[K"
    assert shown == (
        f"{erase}verifying: 0 records, 2 MB read"
        f"{erase}verifying: 100 records, 5 MB read"
        f"{erase}verifying: 200 records, 6 MB read"
        f"{erase}"
    )


def test_only_a_terminal_is_written_to() -> None:
    assert watcher(io.StringIO()) is None
    assert watcher(None) is None
    assert isinstance(watcher(Terminal()), Progress)
