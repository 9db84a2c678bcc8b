"""The chart of docs/performance.md is drawn from its committed numbers, and says whose they are."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import growth
import pytest

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((IMAGES / "growth.json").read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def picture() -> ElementTree.Element:
    """The picture; a text that is no well-formed XML raises."""
    return ElementTree.fromstring((IMAGES / "growth.svg").read_text("utf-8"))


def test_the_picture_is_the_one_of_the_numbers(numbers: dict[str, Any]) -> None:
    assert growth.drawn(numbers) == (IMAGES / "growth.svg").read_text("utf-8")


def test_the_picture_says_every_number_in_words(
    numbers: dict[str, Any], picture: ElementTree.Element
) -> None:
    described = picture.findtext(f"{SVG}desc") or ""
    assert [
        f"{what} at {row['records']:,} records: {row[name]} {unit}"
        for part, name, what, unit in (
            ("verification", "microseconds", "verify a record", "µs"),
            ("verification", "peak_megabytes", "peak memory of it", "MB"),
            ("ledger", "open", "act in a ledger open", "ms"),
            ("ledger", "resolve", "act in a ledger resolve", "ms"),
            ("ledger", "checkpoint", "act in a ledger checkpoint", "ms"),
        )
        for row in numbers[part]
    ] == described.split("; ")


def test_higher_values_stand_higher(numbers: dict[str, Any], picture: ElementTree.Element) -> None:
    """The points of each line stand in the order of their values, in the chart of their scale."""
    lines = [
        [row[name] for row in numbers[part]]
        for part, name in (
            ("verification", "microseconds"),
            ("verification", "peak_megabytes"),
            ("ledger", "open"),
            ("ledger", "resolve"),
            ("ledger", "checkpoint"),
        )
    ]
    drawn = [each.attrib["points"].split() for each in picture.iter(f"{SVG}polyline")]
    assert len(drawn) == len(lines)
    for values, points in zip(lines, drawn, strict=True):
        places = [tuple(map(float, point.split(","))) for point in points]
        assert [x for x, _ in places] == sorted(x for x, _ in places)
        ranked = sorted(range(len(values)), key=lambda at: values[at])
        heights = [places[at][1] for at in ranked]
        assert heights == sorted(heights, reverse=True)


def test_nothing_stands_outside_the_picture(picture: ElementTree.Element) -> None:
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    for text in picture.iter(f"{SVG}text"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        room = 0 if text.get("text-anchor") else 6.6 * len(text.text or "")
        assert 0 <= x
        assert x + room <= width
        assert 0 < y < height


def test_the_picture_is_read_in_the_light_and_in_the_dark(picture: ElementTree.Element) -> None:
    assert "prefers-color-scheme: dark" in (picture.findtext(f"{SVG}style") or "")
    assert picture.find(f"{SVG}rect[@class='paper']") is not None


def test_the_numbers_say_when_and_on_what_kind_of_machine(numbers: dict[str, Any]) -> None:
    assert date.fromisoformat(numbers["date"]) >= date(2026, 11, 30)
    assert re.fullmatch(r"\w+ \d+\.\d+\.\d+\+?", numbers["interpreter"])
    assert re.fullmatch(r"\w+ with \d+ cores, \w+", numbers["machine"])


def test_the_numbers_reach_from_a_thousand_to_a_million(numbers: dict[str, Any]) -> None:
    for part in ("verification", "ledger"):
        assert [row["records"] for row in numbers[part]] == [1_000, 10_000, 100_000, 1_000_000]
