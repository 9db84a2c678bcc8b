"""What the approver sees: the text of a card, `cardchain-text/2` (spec §9.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from ledger import envelope as envelopes
from ledger import jcs
from ledger.envelope import Envelope, differences
from ledger.hidden import shown
from ledger.jcs import JSON

__all__ = ["CHANGES_VERSION", "VERSION", "render_card_text", "render_changes", "shown"]

VERSION: Final = "cardchain-text/2"
CHANGES_VERSION: Final = "cardchain-changes/2"

_NOT_STATED: Final = "not stated"
_INDENT: Final = "  "
_WIDTH: Final = 76  # columns
_FIRST_WIDE: Final = "\u1100"  # from here on a code point takes two columns
_PADDING: Final = re.compile(" {4,}")
_UNIT: Final = re.compile(r"\\(?:[us]\{[0-9a-f]+\}|.)|.")  # an escape, or a code point


def render_card_text(envelope: Envelope | bytes) -> str:
    """Give the whole card as text: every member, nothing else, the hash to echo last.

    Different envelopes give different texts, and no hidden character comes through
    raw (spec §9.2). Bytes are read by `ledger.envelope.parse` first, with its errors.
    """
    if isinstance(envelope, bytes):
        envelope = envelopes.parse(envelope)
    return "".join(f"{line}\n" for whole in _lines(envelope) for line in _fitted(whole))


def render_changes(old: Envelope, new: Envelope) -> str:
    """Give every place in which two envelopes differ, with the value before and after.

    Different pairs give different texts, escaped as a card is (spec §9.2).
    """
    lines = [f"changes ({CHANGES_VERSION})", f"since card: {old.card_hash.hex()}"]
    for pointer, before, after in differences(old, new):
        lines += _changed(_leaf(pointer), _side(before), _side(after))
    return "".join(f"{line}\n" for whole in lines for line in _fitted(whole))


def _columns(text: str) -> int:
    """Give the width of a text, by a rule that no version of Unicode changes (spec §9.1)."""
    if text.isascii():
        return len(text)
    return len(text) + sum(character >= _FIRST_WIDE for character in text)


def _fitted(line: str) -> Iterator[str]:
    """Cut a line so that no terminal of 80 columns wraps it; escapes stay whole (spec §9.1)."""
    if _columns(line) <= _WIDTH:
        yield line
        return
    row, used = "", 0
    for unit in _UNIT.findall(line):
        columns = _columns(unit)
        if used + columns > _WIDTH:
            yield row
            row, used = "\\", 1
        row += unit
        used += columns
    yield row


def _stated(label: str, value: str, indent: str = "") -> Iterator[str]:
    """Put a value behind its label, or below it where one line would be too wide (spec §9.1)."""
    line = f"{indent}{label}: {value}"
    if _columns(line) <= _WIDTH:
        yield line
    else:
        yield f"{indent}{label}:"
        yield f"{indent}{_INDENT}{value}"


def _changed(pointer: str, before: str, after: str) -> Iterator[str]:
    line = f"{_INDENT}{pointer}: {before} -> {after}"
    if _columns(line) <= _WIDTH:
        yield line
    else:
        yield f"{_INDENT}{pointer}:"
        yield f"{_INDENT * 2}{before}"
        yield f"{_INDENT * 2}-> {after}"


def _side(canonical: bytes | None) -> str:
    return _NOT_STATED if canonical is None else _leaf(jcs.load(canonical))


def _lines(envelope: Envelope) -> Iterator[str]:
    card = envelope.document
    action = card["action"]
    yield f"approval card ({VERSION})"
    yield from _labelled("kind", card["kind"])
    yield from _labelled("tool", action["tool_name"])
    yield from _labelled("arguments", action["arguments"])
    yield from _labelled("capability", action.get("capability"))
    yield from _labelled("reasoning", card["reasoning"])
    yield from _labelled("purpose", card.get("purpose"))
    yield from _labelled("subject", card.get("subject"))
    yield _reversibility(card.get("rollback"))
    yield from _labelled("impact", card.get("impact"), absent="not assessed")
    yield from _labelled("rollback", card.get("rollback"))
    yield from _labelled("preconditions", card.get("preconditions"))
    yield from _labelled("policy version", card.get("policy_version"))
    yield from _labelled("approval basis", card.get("approval_basis"))
    yield from _labelled("review manifest", card.get("review_manifest"))
    yield from _labelled("task", card["task"])
    yield from _labelled("supersedes", card.get("supersedes"))
    yield from _labelled("prior attempt", card.get("prior_attempt"))
    yield from _labelled("tool specification", action.get("spec_digest"))
    yield from _labelled("artifact", action.get("artifact_digest"))
    yield from _labelled("arguments digest", action["args_digest"])
    yield from _labelled("effect key", card["effect_key"])
    yield from _labelled("format", card["format"])
    yield f"issued at: {_time(envelope.issued_at)}"
    yield f"decide before: {_time(envelope.not_after)}"
    yield "runs at most once"
    yield f"may run: {_grant(envelope.grant_ttl)}"
    yield from _stated("to decide, echo this hash", envelope.card_hash.hex())


def _labelled(label: str, value: JSON, absent: str = _NOT_STATED) -> Iterator[str]:
    """Show a member of the card; none of them may be null, so None is an absent one."""
    if value is None:
        yield f"{label}: {absent}"
    else:
        yield from _value(label, value, "")


def _value(label: str, value: JSON, indent: str) -> Iterator[str]:
    if not value or not isinstance(value, dict | list):
        yield from _stated(label, _leaf(value), indent)
        return
    yield f"{indent}{label}:"
    inner = indent + _INDENT
    if isinstance(value, dict):  # in canonical order, since it was read from canonical bytes
        for name, member in value.items():
            yield from _value(_leaf(name), member, inner)
    else:
        for index, element in enumerate(value):
            yield from _value(f"[{index}]", element, inner)


def _leaf(value: JSON) -> str:
    if isinstance(value, str):
        text = shown(value)
        return f'"{_PADDING.sub(_counted, text) if "    " in text else text}"'
    if type(value) is int:  # in the range of §2.1, where JCS writes the plain digits
        return str(value)
    return jcs.encode(value).decode()


def _counted(spaces: re.Match[str]) -> str:
    return f"\\s{{{len(spaces[0])}}}"


def _reversibility(rollback: JSON) -> str:
    if rollback is None:
        return "NOT ASSESSED: treat as irreversible"
    if rollback["irreversible"]:
        return "IRREVERSIBLE: it cannot be undone"
    return "reversible: see rollback"


def _time(seconds: int) -> str:
    return f"{seconds} ({datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ})"


def _grant(grant_ttl: int | None) -> str:
    return "no limit" if grant_ttl is None else f"until {grant_ttl} seconds after the decision"
