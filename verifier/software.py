"""The name and version that this verifier gives itself in reports."""

from __future__ import annotations

SOFTWARE = "cardchain-verify 0.1.0"
