"""Lets the modules here and the readings of tests/agreement be imported; no folder is a package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "agreement")]
