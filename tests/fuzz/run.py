"""Fuzzes one target with coverage guidance: `python tests/fuzz/run.py TARGET --seconds 3600`.

Needs the package atheris, which no test needs. It begins with the seeds and the corpus in
fixtures/fuzz, stops at the first broken promise and leaves the input beside the scratch corpus.
`--merge` writes what the scratch corpus covers beyond the fixtures into fixtures/fuzz.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "agreement"),
    str(Path(__file__).parents[2]),
]

import atheris  # noqa: E402 - what it instruments must not be imported before

with atheris.instrument_imports(include=["ledger", "verifier"]):
    import targets

import seeds  # noqa: E402

LIMITS = ["-max_len=65536", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"]


def main() -> None:
    """Run what the command line asks for; the fuzzer ends the process."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("target", choices=targets.TARGETS)
    command.add_argument("--seconds", type=int, default=60)
    command.add_argument(
        "--corpus", type=Path, default=Path(tempfile.gettempdir(), "cardchain-fuzz")
    )
    command.add_argument("--merge", action="store_true")
    options = command.parse_args()
    corpus, kept = options.corpus / options.target, seeds.FUZZ / options.target
    corpus.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds.seeds(options.target)):
        (corpus / f"seed-{number}").write_bytes(seed)
    if options.merge:
        how = ["-merge=1", str(kept), str(corpus)]
    else:
        how = [f"-max_total_time={options.seconds}", str(corpus), str(kept)]
    artifacts = f"-artifact_prefix={options.corpus}/{options.target}-"
    atheris.Setup([sys.argv[0], *LIMITS, artifacts, *how], targets.TARGETS[options.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
