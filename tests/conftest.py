"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# How long an example takes says more about the machine than about the code.
# A run for everybody must be repeatable, so there the examples are the same each time;
# elsewhere each run looks at new ones, and what it finds becomes a test.
settings.register_profile("cardchain", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("cardchain")
