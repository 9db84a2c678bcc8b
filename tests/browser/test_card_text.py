"""Cards on the page: their list, and their text, which is that of the writer (spec §9.1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import HUNG
from test_page import CASES, choose, text_of, verdict, wait_until
from webdriver import Browser

from ledger import Ledger, Proposal

ALEF = "\u05d0"
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


def show_first(page: Browser) -> None:
    page.run("document.querySelector('#list button.link').click()")
    wait_until(page, "document.querySelector('#card pre') !== null")


def test_letters_that_run_from_right_to_left_turn_nothing_around(
    page: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARDCHAIN_STATE", str(tmp_path / "state"))
    with Ledger.init(tmp_path / "approvals", name="test") as ledger:
        ledger.issue(asking({"sum-\u05d0\u05d1": -100, ALEF * 90: '\\"'}))
        ledger.export(tmp_path / "log.cbor")
    choose(page, tmp_path / "log.cbor", keys=tuple(tmp_path.glob("state/cardchain/*/keys/*")))
    verdict(page)
    show_first(page)
    alone = page.run("return [...document.querySelectorAll('#card bdi')].map((e) => e.textContent)")
    assert alone[2:6] == [
        '"sum-\u05d0\u05d1"',
        '"' + ALEF * 73,
        "\\" + ALEF * 17 + '"',
        '"\\\\\\""',
    ]
    blocks = page.run("return [...document.querySelectorAll('#card pre > .line')].length")
    assert blocks == len(text_of(page, "#card pre").split("\n"))


def test_of_two_logs_each_card_says_which_it_is_of(page: Browser) -> None:
    choose(page, CASES / "intact_life" / "log.cbor", CASES / "tag_bit_flipped" / "log.cbor")
    verdict(page)
    heads = page.run("return [...document.querySelectorAll('#list th')].map((e) => e.textContent)")
    assert heads[:5] == ["Card hash", "State", "What", "Findings", "Log"]
    cells = "return [...document.querySelectorAll('#list tbody tr')].map((e) => e.textContent)"
    logs = [row.partition("log ")[2] for row in page.run(cells)]
    assert logs == ["1 of 2, log.cbor"] * 3 + ["2 of 2, log.cbor"] * 3
    show_first(page)
    assert "State at the end of log 1 of 2, log.cbor: SETTLED, succeeded" in text_of(page, "#card")


def test_a_state_that_is_not_sure_is_marked(page: Browser) -> None:
    choose(page, CASES / "tag_bit_flipped" / "log.cbor")
    verdict(page)
    states = (
        "return [...document.querySelectorAll('#list td:nth-child(2)')].map((e) => e.textContent)"
    )
    assert page.run(states) == ["APPROVED (not sure)", "REJECTED", "APPROVED"]
    show_first(page)
    why = "APPROVED (not sure: a missing or unsound record stands after it)"
    assert why in text_of(page, "#card")
    page.keys("#filter", "not sure")
    wait_until(page, "document.querySelectorAll('#list tbody tr').length === 1")


def test_a_card_fits_a_narrow_window(page: Browser) -> None:
    """At 320 pixels, which is a window of 1280 at 400 percent (WCAG 2.1, 1.4.10)."""
    size = {"width": 320, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.cdp("Emulation.setDeviceMetricsOverride", size)
    try:
        choose(page, CASES / "intact_every_state" / "log.cbor")
        verdict(page)
        show_first(page)
        wide = page.run(
            "return [document.documentElement, document.querySelector('#card pre')]"
            ".filter((one) => one.scrollWidth > one.clientWidth).length"
        )
        hung = page.run(HUNG, "prior attempt: not stated")
    finally:
        page.cdp("Emulation.clearDeviceMetricsOverride", {})
    assert wide == 0
    assert hung > 10
