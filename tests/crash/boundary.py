"""Stands where a process meets its operating system: counts every call, and makes one fail.

`install` wraps the functions of `os`, `fcntl` and `io` that reach the kernel. It comes before the
program under test is imported, since that may keep such a function by another name. Nothing of the
program is replaced; what SQLite calls is not seen here, `test_syscalls.py` reaches that.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

LOOKING = ("stat", "lstat", "fstat", "listdir", "scandir", "read", "pread")
CHANGING = (
    "open",
    "write",
    "pwrite",
    "fsync",
    "fdatasync",
    "replace",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "ftruncate",
    "chmod",
    "fchmod",
    "flock",
    "close",
)
_GROWING = ("open", "write", "pwrite", "fsync", "fdatasync", "replace", "link", "mkdir")
"""What a full disk refuses, as some file systems do only when the bytes are synced."""
_WRITES = ("write", "pwrite")
_FULL = {"full", "short, then full"}
_HALVES = {"short", "short, then full", "half kill"}
_ERRORS = {"EIO": errno.EIO, "EMFILE": errno.EMFILE, "ENOSPC": errno.ENOSPC}


class Call(NamedTuple):
    """One call that crossed the boundary: its name, and the name of the file it was about."""

    name: str
    target: str


class Fault(NamedTuple):
    """What goes wrong, and at which call, counted from 1.

    `EIO`, `ENOSPC`, `EMFILE`: the call does nothing and fails. `late EIO`: it is done, and fails.
    `gone`: this call and all after it fail. `full`: this and all later ones that need space fail.
    `short`: half of a write is done, and the next goes on; `short, then full`: the next fails.
    `kill`, `late kill`, `half kill`: the process dies before, after or inside the call.
    `interrupt`, `late interrupt`: a signal handler raises there.
    """

    call: int
    how: str


def faults_of(name: str) -> tuple[str, ...]:
    """Give what can go wrong at a call of this name."""
    if name in LOOKING:
        return ("EIO",)
    if name == "close":
        return ("late EIO", "kill")
    found = ["EIO", "late EIO", "gone", "kill", "late kill", "interrupt", "late interrupt"]
    if name in _GROWING:
        found += ["ENOSPC", "full"]
    if name in _WRITES:
        found += ["short", "short, then full", "half kill"]
    if name == "open":
        found += ["EMFILE"]
    return tuple(found)


class Boundary:
    """The calls of this process since `arm`, and the one fault that is to meet them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.watch: Callable[[str, tuple[Any, ...], Any], None] | None = None
        """Is told of each call that was done, with its arguments and what it gave."""
        self.cut: Callable[[str, tuple[Any, ...]], bool] | None = None
        """While calls are watched: tells the one before which, or in a write half-way through
        which, the process is interrupted."""
        self._fault: Fault | None = None
        self._armed = False
        self._mutex = threading.RLock()

    def arm(self, fault: Fault | None) -> None:
        """Count from here on, and have one call fail."""
        self.calls, self._fault, self._armed = [], fault, True

    def disarm(self) -> None:
        """Let every call through from here on."""
        self._armed = False

    def cross(self, name: str, real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Make a call, or what has become of it."""
        if not self._armed:
            return real(*args, **options)
        if self.watch is not None:
            return self._watched(self.watch, name, real, args, options)
        with self._mutex:
            self.calls.append(Call(name, _target(args[0])))
            number, fault = len(self.calls), self._fault
        if fault is None or number < fault.call:
            return real(*args, **options)
        if number > fault.call:
            self._require_going_on(fault, name)
            return real(*args, **options)
        return _struck(fault.how, name, real, args, options)

    def _watched(
        self,
        watch: Callable[[str, tuple[Any, ...], Any], None],
        name: str,
        real: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        cut = self.cut is not None and self.cut(name, args)
        if cut:
            self.cut = None
            if name != "write":
                raise KeyboardInterrupt
            args = (args[0], bytes(args[1])[: len(args[1]) // 2])
        result = real(*args, **options)
        watch(name, args, result)
        if cut:
            raise KeyboardInterrupt
        return result

    def _require_going_on(self, fault: Fault, name: str) -> None:
        if fault.how == "gone" and name != "close":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if fault.how in _FULL and name in ("write", "pwrite", "mkdir", "link"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _struck(how: str, name: str, real: Callable[..., Any], args: Any, options: Any) -> Any:
    """Make the call that a fault meets."""
    if how in _HALVES:
        if name not in _WRITES:  # threads made their calls in another order
            return real(*args, **options)
        data = memoryview(args[1])[: max(1, len(args[1]) // 2)]
        done = real(args[0], data, *args[2:], **options)
        if how == "half kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    # threads may make their calls in another order, and a file is closed even where that fails
    late = how.startswith("late ") or name == "close"
    result = real(*args, **options) if late else None
    match how.removeprefix("late "):
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "interrupt":
            raise KeyboardInterrupt
    if late and name == "open":
        _close(result)  # a descriptor that nobody was given
    number = {"gone": errno.EIO, "full": errno.ENOSPC, **_ERRORS}[how.removeprefix("late ")]
    raise OSError(number, os.strerror(number))


def _target(first: Any) -> str:
    """Give the last name of the file that a call is about."""
    if isinstance(first, int) or hasattr(first, "fileno"):
        number = first if isinstance(first, int) else first.fileno()
        try:
            first = _readlink(f"/proc/self/fd/{number}")
        except OSError:
            return "?"
    return os.path.basename(os.fspath(first))


_readlink, _close = os.readlink, os.close


class _Raw(io.FileIO):
    """A file whose bytes go through `os.read` and `os.write`, so that they are seen here."""

    def write(self, data: Any, /) -> int:
        return os.write(self.fileno(), bytes(data))

    def readinto(self, buffer: Any, /) -> int:
        data = os.read(self.fileno(), len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _open(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **options: Any) -> Any:
    """Do as `open` does for the modes that the program uses."""
    raw = _Raw(file, mode.replace("t", "").replace("b", ""), opener=lambda p, f: os.open(p, f))
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    whole = io.BufferedReader(raw, size) if raw.readable() else io.BufferedWriter(raw, size)
    return whole if "b" in mode else io.TextIOWrapper(whole, *args, **options)


def install() -> Boundary:
    """Wrap every function, and give what counts and strikes; nothing is counted before `arm`."""
    boundary = Boundary()

    def wrap(module: Any, name: str) -> None:
        real = getattr(module, name)
        setattr(module, name, lambda *a, **o: boundary.cross(name, real, *a, **o))

    for name in (*LOOKING, *CHANGING):
        wrap(fcntl if name == "flock" else os, name)
    builtins.open = io.open = _open
    return boundary
