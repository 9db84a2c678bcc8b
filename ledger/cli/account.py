"""What became of a card, in lines: who decided, what ran, what was refused, what was erased.

Every line is safe to print (spec §9.2). A foreign log may lack any member of a body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from ledger.cli.entries import Entry, detail, word
from ledger.cli.output import quoted, utc
from ledger.cli.sight import Seen
from ledger.hidden import shown
from ledger.kinds import bound_openings
from ledger.report.markup import duration

_LONGEST: Final = 20_000
"""How many code points of a presented text or note are printed."""


def account(seen: Seen) -> list[str]:
    """Give the lines about a card, from what stood before its approver to what is erased."""
    entries, none = seen.entries, "no record" if seen.sure else "no sound record"
    issued = next((entry for entry in entries if entry.kind == "issued"), None)
    kinds = {entry.kind for entry in entries}
    return [
        *_hashed(entries, seen.envelope),
        *chain.from_iterable(_presented(entry, seen.text) for entry in entries),
        *chain.from_iterable(_decided(entry, issued) for entry in entries),
        *(() if "resolved" in kinds else (f"decided: {none}",)),
        *chain.from_iterable(_ran(entry) for entry in entries),
        *(() if "dispatched" in kinds else (f"dispatched: {none}",)),
        *((f"ended: {none} of an outcome",) if _is_unsettled(kinds) else ()),
        *(_refused(entry) for entry in entries if entry.kind == "refused"),
        *_absent(entries, seen.redactions),
    ]


def _is_unsettled(kinds: set[str]) -> bool:
    return "dispatched" in kinds and "settled" not in kinds


def _hashed(entries: Sequence[Entry], envelope: bytes | None) -> Iterator[str]:
    if envelope is None:
        return
    digest = hashlib.sha256(envelope).hexdigest()
    card = next((entry.card for entry in entries if entry.card is not None), b"")
    same = "the card hash" if digest == card.hex() else "NOT the card hash"
    yield f"as hashed: {len(envelope)} bytes, SHA-256 {digest}, {same}"


def _presented(entry: Entry, text: str) -> Iterator[str]:
    """Give a text that a channel presented and that was kept, and what was bound of it."""
    bound = entry.body.get("presented")
    if not isinstance(bound, Mapping):
        return
    labels = [bound[name] for name in ("media_type", "renderer") if name in bound]
    said = "".join(f", {quoted(label)}" for label in labels)
    cut = ", cut by the channel" if bound.get("truncated") else ""
    head = f"presented with seq {entry.seq}: SHA-256 {bound['digest'].hex()}{said}{cut}"
    data = entry.openings.get("presented")
    if data is None:
        yield f"{head}; the text is not in this log"
    elif data == text.encode():
        yield f"{head}; the text above"
    else:
        yield f"{head}, {len(data)} bytes:"
        whole = data.decode("utf-8", "backslashreplace")
        yield from (f"  | {shown(line)}" for line in whole[:_LONGEST].split("\n"))
        if len(whole) > _LONGEST:
            yield f" {_more(whole)}"


def _decided(entry: Entry, issued: Entry | None) -> Iterator[str]:
    body = entry.body
    if entry.kind == "resolved":
        yield f"decided: {detail(entry)}{_when(entry, issued, 'it was issued')}{_how(body)}"
        yield from _kept(entry, "note")
        yield from _kept(entry, "response")
    elif entry.kind == "withdrawn":
        yield f"withdrawn: {detail(entry)}{_when(entry, issued, 'it was issued')}"
        yield from _kept(entry, "note")


def _when(entry: Entry, before: Entry | None, event: str) -> str:
    since = "" if before is None else f", {duration(entry.at - before.at)} after {event}"
    return f" at {utc(entry.at)}{since}"


def _how(body: Mapping[str, Any]) -> str:
    """Say how it was established who decided, and on which channel."""
    approver = body.get("approver")
    approver = approver if isinstance(approver, Mapping) else {}
    said = f"; known by: {word(approver['assurance'])}" if "assurance" in approver else ""
    if "evidence" in approver:
        evidence = approver["evidence"]
        said += f", evidence {quoted(evidence['type'])} {evidence['digest'].hex()}"
    return said + (f"; channel: {quoted(body['channel'])}" if "channel" in body else "")


def _kept(entry: Entry, name: str) -> Iterator[str]:
    data = entry.openings.get(name)
    if data is not None:
        whole = data.decode("utf-8", "backslashreplace")
        yield f"  {name}: {quoted(whole[:_LONGEST])}{_more(whole)}"


def _more(whole: str) -> str:
    """Say how much of a long text is not printed."""
    left = len(whole) - _LONGEST
    return f" [{left} more characters; --json gives all]" if left > 0 else ""


def _ran(entry: Entry) -> Iterator[str]:
    body = entry.body
    if entry.kind == "dispatched":
        said = {
            "exceptions": ", ".join(map(quoted, body.get("exceptions", ()))),
            "policy said": quoted(body["policy_outcome"]) if "policy_outcome" in body else "",
            "approver looked up": quoted(body["approver_check"])
            if "approver_check" in body
            else "",
        }
        told = "".join(f"; {name}: {value}" for name, value in said.items() if value)
        yield f"dispatched: at {utc(entry.at)}{told}"
    elif entry.kind == "settled":
        by = f" by {quoted(body['by'])}" if "by" in body else ""
        receipt = f"; receipt {body['receipt_digest'].hex()}" if "receipt_digest" in body else ""
        yield f"ended: {word(body.get('outcome'))} at {utc(entry.at)}{by}{receipt}"


def _refused(entry: Entry) -> str:
    body = entry.body
    approver = body.get("approver")
    who = f" by {quoted(approver.get('id'))}" if isinstance(approver, Mapping) else ""
    wanted = f", wanted {quoted(body['decision'])}" if "decision" in body else ""
    return f"refused: {detail(entry)}{who}{wanted} at {utc(entry.at)}"


def _absent(entries: Sequence[Entry], redactions: Sequence[Entry]) -> Iterator[str]:
    """Name the openings that are erased: when, by whom and why; and those that are just absent."""
    erased = set()
    for event in redactions:
        body = event.body
        erased |= {(body["seq"], name) for name in body["openings"]}
        yield f"redacted: {detail(event)} at {utc(event.at)}, seq {event.seq}"
    for entry in entries:
        for name in _bound(entry):
            if name not in entry.openings and (entry.seq, name) not in erased:
                yield f"absent: {quoted(name)} of seq {entry.seq}: withheld or lost"


def _bound(entry: Entry) -> Sequence[str]:
    try:
        return tuple(bound_openings(entry.kind, entry.card, entry.body))
    except (KeyError, TypeError):  # of a foreign log
        return ()
