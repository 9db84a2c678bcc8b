"""Lets the modules beside this one be imported by their names; the folder is no package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
