"""The options that choose events and cards: by task, tool, approver, outcome, kind and time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import click

from ledger.cli.entries import Filter
from ledger.cli.parameters import text
from ledger.kinds import KINDS

_KINDS: Final = {
    **{kind: kind for kind in KINDS},
    **{f"chat.approval_card.{kind}": kind for kind in ("issued", "refused", "resolved")},
}
_OUTCOMES: Final = ("approve", "reject", "revoked", "cancelled", "succeeded", "failed", "unknown")


def with_filter(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options; it gets a `Filter` as `asked_for`."""

    @functools.wraps(command)
    def gathered(
        kinds: tuple[str, ...],
        task: str | None,
        step: str | None,
        tool: str | None,
        approver: str | None,
        outcome: str | None,
        start: int | None,
        end: int | None,
        **rest: Any,
    ) -> Any:
        chosen = frozenset(_KINDS[kind] for kind in kinds)
        wanted = Filter(chosen, task, step, tool, approver, outcome, start, end)
        return command(asked_for=wanted, **rest)

    return functools.reduce(lambda inner, option: option(inner), reversed(_OPTIONS), gathered)


def _moment(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Take a UTC time as ISO 8601 and give unix milliseconds."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        example = "2026-01-31T14:03:00Z"
        raise click.BadParameter(f"expected a UTC time like {example}, found {value!r}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


_OPTIONS: Final = (
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        metavar="KIND",
        type=click.Choice(list(_KINDS)),
        help="Only events of this kind, also as chat.approval_card.issued, .refused or .resolved.",
    ),
    click.option("--task", metavar="ID", type=text, help="Only of cards of this task."),
    click.option("--step", metavar="STEP", type=text, help="Only of cards of this step."),
    click.option("--tool", metavar="NAME", type=text, help="Only of cards of this tool."),
    click.option(
        "--approver", metavar="ID", type=text, help="Only what this person decided, or tried to."
    ),
    click.option(
        "--outcome",
        type=click.Choice(_OUTCOMES),
        help="Only decisions, withdrawals and ends of this kind.",
    ),
    click.option(
        "--after", "start", metavar="TIME", callback=_moment, help="Only from this UTC time on."
    ),
    click.option(
        "--before", "end", metavar="TIME", callback=_moment, help="Only before this UTC time."
    ),
)
