"""The modules of the benchmarks are found by their names, as when `run.py` runs."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
