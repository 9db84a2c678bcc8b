"""`python -m verifier`, and the entry of a zip file of this package."""

from __future__ import annotations

from verifier.cli import main

if __name__ == "__main__":
    main()
