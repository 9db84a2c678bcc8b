"""A replaceable assessor: impact and rollback of a tool call, by detectors that are data.

    from ledger.assess import assess

    assessment = assess("shell.run", {"command": "rm -rf build"})

See docs/assessor.md for what it sees and what it does not.
"""

from __future__ import annotations

from ledger.assess.assessment import DEFAULT, Assessment, assess
from ledger.assess.loading import load
from ledger.assess.rules import Detectors

__all__ = ["DEFAULT", "Assessment", "Detectors", "assess", "load"]
