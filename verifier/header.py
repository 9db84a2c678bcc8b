"""The evidence header of a report: which software looked, and when."""

from __future__ import annotations

import sys
import time

from verifier.report import Header
from verifier.software import SOFTWARE, source_sha256


def now() -> int:
    """Give the clock of this host in unix milliseconds."""
    return time.time_ns() // 1_000_000


def header(started_at: int) -> Header:
    """Make the header of a run that began at `started_at` and ends now."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Header(
        software=SOFTWARE,
        source_sha256=source_sha256(),
        python=f"{sys.implementation.name} {version}",
        started_at=started_at,
        ended_at=now(),
    )
