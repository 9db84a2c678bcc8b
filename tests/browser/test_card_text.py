"""The text of a card on the page is that of the writer, wherever a line is broken (spec §9.1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_page import choose, text_of, verdict, wait_until
from webdriver import Browser

from ledger import Ledger, Proposal

NAMES = [
    f"{before}{letter}"
    for before in ("n" * 61, "n" * 69, "n" * 70, "n" * 71, "n" * 72)
    for letter in ("", "\u202e", "\uff41", '"')
]
VALUES = [
    f"{before}{letter}{after}"
    for before in ("", "b" * 59, "b" * 60, "\uff41" * 31)
    for letter in ("a", "\u10ff", "\u1100", "\U0001f600", "\u202e", "\n", '"', "    ")
    for after in ("", "cd", "\u4e00" * 40)
]


def asking(arguments: dict[str, object], supersedes: str | None = None) -> Proposal:
    return Proposal.for_tool_call(
        task=("run-7", "refund"),
        tool_name="refund.create",
        arguments=arguments,
        reasoning="\uff41" * 99,
        ttl=1800,
        supersedes=supersedes,
    )


def test_names_and_values_at_the_edge_are_shown_alike(
    page: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARDCHAIN_STATE", str(tmp_path / "state"))
    log = tmp_path / "log.cbor"
    with Ledger.init(tmp_path / "approvals", name="test") as ledger:
        first = ledger.issue(asking({"names": dict.fromkeys(NAMES, True), "values": VALUES}))
        names = {name: [name] for name in NAMES}
        second = ledger.issue(asking({"names": names, "values": VALUES[::-1]}, first.hash))
        ledger.export(log)
    choose(page, log, keys=tuple(tmp_path.glob("state/cardchain/*/keys/*")))
    assert verdict(page) == "VERIFIED"
    for card in (first, second):
        page.run("document.getElementById('filter').value = arguments[0]", card.hash)
        page.run("document.getElementById('find').requestSubmit()")
        shown = f"document.querySelector('#card-heading code')?.textContent === '{card.hash}'"
        wait_until(page, shown)
        assert text_of(page, "#card pre") + "\n" == card.text
    assert second.text.count("\n\\") > 200
