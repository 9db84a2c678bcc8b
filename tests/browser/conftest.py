"""One Chromium for the tests of the page; without one they are skipped, and say so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cases import PAGE
from webdriver import CHROMEDRIVER, CHROMIUM, Browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Give a browser for the whole run."""
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip("no chromium with chromedriver (Debian: apt install chromium chromium-driver)")
    with Browser() as browser:
        yield browser


@pytest.fixture
def page(chromium: Browser) -> Browser:
    """Give the browser with the page loaded afresh, and nothing asked for yet."""
    chromium.open(PAGE)
    chromium.requests()
    return chromium
