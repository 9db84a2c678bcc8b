"""The formats of a report, each in a module that is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from verifier.report import Report

FORMATS = ("text", "json", "junit", "csv")


def every_card(_: str) -> bool:
    """Ask for the histories of all cards, which csv needs."""
    return True


def render_json(report: Report) -> str:
    """Give a report as one JSON document; the format is described in docs/cli.md."""
    return "".join(render(report, "json"))


def render(
    report: Report, name: str, *, verbose: bool = False, colour: bool = False
) -> Iterator[str]:
    """Give a report in one of FORMATS, in pieces.

    `verbose` and `colour` are for text alone. For csv the report holds the histories of all cards.
    """
    if name == "json":
        from verifier import jsonreport

        yield jsonreport.render_json(report)
    elif name == "junit":
        from verifier.junitreport import render_junit

        yield render_junit(report)
    elif name == "csv":
        from verifier.csvreport import render_csv

        yield from render_csv(report)
    else:
        from verifier.text import render_text

        yield render_text(report, verbose, colour)
