"""The page as a person uses it: files, keys, fields, the report, the cards, hostile text."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from cases import FIXTURES, PAGE
from webdriver import Browser

CASES = FIXTURES / "cases"
KEY = FIXTURES / "keys" / "a.json"
LIFE_HEAD = "b07dc3e40c35d3aadc03d0c5ea40b7de736fcc0c2d718a3f66a10a3f73cc2e80"
FIRST_CARD = "4a5ce4cd6a3899ba5c39605c941142a354cdaba7f2dc43aaaae229c955bf4fb0"
TAB, ENTER, SPACE = "\ue004", "\ue007", " "


def text_of(page: Browser, selector: str) -> str:
    return str(page.run("return document.querySelector(arguments[0]).textContent", selector))


def choose(page: Browser, *logs: Path, keys: tuple[Path, ...] = (KEY,)) -> None:
    """Choose files as with the file dialog, and wait until the page lists them."""
    page.keys("#logs", "\n".join(map(str, logs)))
    if keys:
        page.keys("#keys", "\n".join(map(str, keys)))
    wait_until(page, f"document.querySelectorAll('#chosen li').length === {len(logs) + len(keys)}")


def wait_until(page: Browser, condition: str) -> None:
    """Wait up to ten seconds for a condition of the page."""
    script = f"""
      const end = performance.now() + 10000;
      return (async () => {{
        while (performance.now() < end) {{
          if ({condition}) return true;
          await new Promise((give) => setTimeout(give, 20));
        }}
        return false;
      }})();
    """
    assert page.run(script), condition


def verdict(page: Browser) -> str:
    page.run("return cardchain.run().then(() => null)")
    return text_of(page, "#verdict")[2:]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("intact_life", "VERIFIED"),
        ("tag_bit_flipped", "BROKEN"),
        ("version_unknown", "CANNOT VERIFY"),
    ],
)
def test_chosen_files_give_the_verdict(page: Browser, case: str, expected: str) -> None:
    choose(page, CASES / case / "log.cbor")
    assert verdict(page) == expected


def test_a_compressed_export_is_read(page: Browser) -> None:
    choose(page, CASES / "intact_export_in_two_gzip_members" / "log.cbor.gz")
    assert verdict(page) == "VERIFIED"


def test_without_the_key_nothing_is_verified(page: Browser) -> None:
    choose(page, CASES / "intact_life" / "log.cbor", keys=())
    assert verdict(page) == "CANNOT VERIFY"
    assert "Add the key file of this kid" in text_of(page, "#report")


def test_a_finding_says_where_why_and_what_next(page: Browser) -> None:
    choose(page, CASES / "tag_bit_flipped" / "log.cbor")
    verdict(page)
    found = page.run(
        "return [...document.querySelectorAll('.findings li')].map((li) => "
        "[li.querySelector('code').textContent, "
        "...[...li.querySelectorAll('dd')].map((dd) => dd.textContent)])"
    )
    assert [line[:2] for line in found] == [["tag", "log.cbor, offset 1650, seq 3"]]
    assert all(len(line) == 6 for line in found)


def test_an_expected_head_vouches_for_the_end(page: Browser) -> None:
    choose(page, CASES / "intact_life" / "log.cbor")
    page.run("document.querySelector('details').open = true")
    page.keys("#head", LIFE_HEAD)
    assert verdict(page) == "VERIFIED"
    assert "pinned" in text_of(page, "#report")
    assert "that the log ends at seq" not in text_of(page, "#report")


def test_a_wrong_field_is_told_and_nothing_runs(page: Browser) -> None:
    choose(page, CASES / "intact_life" / "log.cbor")
    page.run("document.querySelector('details').open = true")
    page.keys("#head", "b07d")
    assert page.run("return cardchain.run()") is None
    assert page.run("return document.getElementById('head').validationMessage") != ""
    assert text_of(page, "#report") == ""


def drag(page: Browser, *paths: Path) -> None:
    """Drop files and folders on the page as a hand does."""
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.cdp("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 200, "data": data})


def test_dropped_files_are_told_apart_and_verified(page: Browser) -> None:
    case = CASES / "right_receipt_newer_than_the_checkpoint"
    drag(page, *sorted(case.glob("*.*")), FIXTURES / "keys" / "signer.vkey")
    wait_until(page, "document.querySelector('#verdict') !== null")
    lines = page.run(
        "return [...document.querySelectorAll('#chosen li')].map((li) => li.firstChild.data.trim())"
    )
    assert sorted(lines) == [
        "checkpoint or proof: growth.txt",
        "checkpoint or proof: old.note",
        "not used: no log, key or anything else known: case.json",
        "public key: signer.vkey",
        "to verify: receipt.excerpt",
    ]
    assert text_of(page, "#verdict")[2:] == "VERIFIED"
    assert "up to seq" in text_of(page, "#report")


def test_a_dropped_ledger_folder_is_one_log(page: Browser) -> None:
    drag(page, KEY)
    wait_until(page, "document.querySelectorAll('#chosen li').length === 1")
    drag(page, CASES / "intact_segments" / "ledger")
    wait_until(page, "document.querySelector('#verdict') !== null")
    assert text_of(page, "#verdict")[2:] == "VERIFIED"
    files = page.run(
        "const all = [...document.querySelectorAll('caption')];"
        "const files = all.find((one) => one.textContent === 'Files');"
        "return files.parentNode.querySelectorAll('tbody tr').length;"
    )
    assert files == 4


def test_a_card_is_shown_as_its_approver_saw_it(page: Browser) -> None:
    choose(page, CASES / "intact_life" / "log.cbor")
    verdict(page)
    page.keys("#filter", FIRST_CARD[:10])
    page.run("document.getElementById('find').requestSubmit()")
    wait_until(page, "document.querySelector('#card pre') !== null")
    shown = text_of(page, "#card pre").splitlines()
    assert shown[0] == "approval card (cardchain-text/2)"
    assert 'tool: "refund.create"' in shown
    assert shown[-2:] == ["to decide, echo this hash:", f"  {FIRST_CARD}"]
    told = text_of(page, "#card")
    assert 'approve by "user:approver-1" (label), over "cli"' in told
    assert "SETTLED, succeeded" in told


def test_the_text_of_a_card_is_that_of_the_writer(page: Browser) -> None:
    """Byte for byte, over hidden characters, long lines and every member (spec §9.1)."""
    from ledger.render import render_card_text

    choose(page, CASES / "intact_envelopes" / "log.cbor")
    verdict(page)
    rows = page.run(
        """
      const found = [];
      for (const button of document.querySelectorAll('#list button.link')) {
        button.click();
        const hash = button.textContent;
        for (let turn = 0; turn < 500; turn += 1) {
          const heading = document.querySelector('#card-heading code');
          if (heading !== null && heading.textContent.startsWith(hash)) break;
          await new Promise((give) => setTimeout(give, 10));
        }
        found.push([document.querySelector('#card-heading code').textContent,
          document.querySelector('#card pre').textContent]);
      }
      return found;
    """.join(["return (async () => {", "})()"])
    )
    assert len(rows) == 13
    envelopes = {
        render_card_text(envelope).splitlines()[-1].strip(): render_card_text(envelope)
        for envelope in envelopes_of(CASES / "intact_envelopes" / "log.cbor")
    }
    assert len(envelopes) == 13
    for card, text in rows:
        assert envelopes[card] == text + "\n"


def test_a_card_that_supersedes_another_begins_with_what_changed(page: Browser) -> None:
    """As the writer shows it (spec §9.1)."""
    from ledger.envelope import parse
    from ledger.render import render_card_text, render_changes

    log = CASES / "intact_every_state" / "log.cbor"
    cards = {card.card_hash.hex(): card for card in map(parse, envelopes_of(log))}
    later = [card for card in cards.values() if "supersedes" in card.document]
    assert len(later) > 2
    choose(page, log)
    verdict(page)
    for card in later:
        name = card.card_hash.hex()
        page.run("document.getElementById('filter').value = arguments[0]", name)
        page.run("document.getElementById('find').requestSubmit()")
        wait_until(page, f"document.querySelector('#card-heading code')?.textContent === '{name}'")
        changes = render_changes(cards[str(card.document["supersedes"])], card)
        whole = f"{changes}\n{render_card_text(card)}"
        assert text_of(page, "#card pre") + "\n" == whole


def envelopes_of(log: Path) -> set[bytes]:
    """Give the envelopes of a log, read with a library for CBOR."""
    import io

    import cbor2

    stream, found = io.BytesIO(log.read_bytes()), set()
    while stream.tell() < log.stat().st_size:
        openings = cbor2.load(stream).value[1]
        if "envelope" in openings:
            found.add(openings["envelope"])
    return found


HOSTILE = "<img src=x onerror=alert(1)>\u202e\u200b\x1b[31m\"'`${alert(1)}</script>"


def test_hostile_text_is_shown_and_does_nothing(page: Browser, tmp_path: Path) -> None:
    """Names of files and what stands in logs come out as text, hidden characters written out."""
    name = "<img src=x onerror=document.title=1>\u202e.cbor"
    log = tmp_path / name
    log.write_bytes((CASES / "intact_hostile_ids" / "log.cbor").read_bytes())
    page.run("window.markup = document.querySelectorAll('*').length")
    choose(page, log)
    assert verdict(page) == "VERIFIED"
    page.run("document.querySelector('#list button.link').click()")
    wait_until(page, "document.querySelector('#card pre') !== null")
    assert page.run("return document.title") == "cardchain verifier"
    assert page.run("return document.querySelectorAll('img, main script, iframe').length") == 0
    whole = page.run("return document.body.innerText")
    assert "<img src=x onerror=document.title=1>\\u{202e}.cbor" in whole
    assert not any(letter in whole for letter in "\u202e\u200b\x1b\u2066")


def test_a_hostile_key_file_is_inert(page: Browser, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text(json.dumps({"format": "cardchain-key/1", HOSTILE: 1}), "utf-8")
    choose(page, CASES / "intact_life" / "log.cbor", keys=(key,))
    assert verdict(page) == "CANNOT VERIFY"
    assert page.run("return document.querySelectorAll('#report img, #report script').length") == 0
    assert "key file key.json is not used" in text_of(page, "#report")


def test_no_request_leaves_the_page(chromium: Browser) -> None:
    chromium.run("location.replace('about:blank')")
    chromium.requests()
    chromium.open(PAGE)
    choose(chromium, CASES / "intact_life" / "log.cbor")
    verdict(chromium)
    chromium.run("document.querySelector('#list button.link').click()")
    wait_until(chromium, "document.querySelector('#card pre') !== null")
    asked = chromium.requests()
    assert [address for address in asked if not address.startswith("blob:null/")] == [PAGE.as_uri()]
    assert len(asked) == 2


def test_the_policy_stops_a_request_that_is_tried(page: Browser) -> None:
    """The row before would pass if nothing could be asked for at all, so this one tries."""
    tried = page.run(
        "return fetch('data:text/plain,x').then(() => 'allowed', (error) => error.name)"
    )
    assert tried == "TypeError"
    blocked = page.run("""
      const script = document.createElement('script');
      try { script.textContent = 'window.ran = 1'; } catch { return 'refused'; }
      document.body.append(script);
      return window.ran === undefined ? 'refused' : 'ran';
    """)
    assert blocked == "refused"


def test_everything_can_be_done_with_the_keyboard(page: Browser) -> None:
    choose(page, CASES / "intact_life" / "log.cbor")
    page.run("document.getElementById('verify').focus()")
    page.press(ENTER)
    wait_until(page, "document.activeElement.id === 'verdict'")
    seen = [page.run(ACTIVE)]
    for _ in range(60):
        page.press(TAB)
        seen.append(page.run(ACTIVE))
        if seen[-1] == "show card 4a5ce4cd6a3899ba":
            break
    assert "filter" in seen
    page.press(ENTER)
    wait_until(page, "document.activeElement.id === 'card-heading'")
    assert (
        page.run(
            'return document.querySelectorAll(\'[tabindex]:not([tabindex="0"])'
            ':not([tabindex="-1"])\').length'
        )
        == 0
    )


ACTIVE = """
const one = document.activeElement;
return one.getAttribute('aria-label') || one.id || one.textContent.slice(0, 40);
"""


def test_a_run_can_be_cancelled(page: Browser) -> None:
    """The worker ends, the page says that there is no verdict, and can verify again."""
    answer = page.run("""
      const never = { path: 'log.cbor', file: new Blob([new Uint8Array(30000000)]) };
      const running = cardchain.verify({ inputs: [never, never, never] });
      document.getElementById('cancel').click();
      return running;
    """)
    assert answer is None
    assert text_of(page, "#verdict") == "NO VERDICT"
    choose(page, CASES / "intact_life" / "log.cbor")
    assert verdict(page) == "VERIFIED"


def test_the_checks_are_opened_for_print(page: Browser) -> None:
    choose(page, CASES / "intact_life" / "log.cbor")
    verdict(page)
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run("return document.querySelector('details.checks').open") is True
    made = page.cdp("Page.printToPDF", {"printBackground": False})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")


CONTRAST = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([red, green, blue]) => {
  const [r, g, b] = [red, green, blue].map((one) => {
    const part = one / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (node) => {
  for (let one = node; one !== null; one = one.parentElement) {
    const found = channels(getComputedStyle(one).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found;
  }
  return [255, 255, 255];
};
const worst = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (walker.currentNode.data.trim() === '' || node.closest('script, noscript, [hidden]')) continue;
  if (node.closest('button:disabled') || node.getClientRects().length === 0) continue;
  const [one, other] = [light(channels(getComputedStyle(node).color)), light(ground(node))];
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) worst.push([node.textContent.slice(0, 40), ratio]);
}
return worst;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("case", ["intact_life", "tag_bit_flipped", "version_unknown"])
def test_all_text_has_the_contrast_of_wcag_aa(page: Browser, scheme: str, case: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.cdp("Emulation.setEmulatedMedia", {"features": features})
    choose(page, CASES / case / "log.cbor")
    verdict(page)
    page.run("document.querySelector('details.checks').open = true")
    page.run("document.querySelector('#list button.link').click()")
    wait_until(page, "document.querySelector('#card pre') !== null")
    assert page.run(CONTRAST) == []
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(22, 24, 27)") == (scheme == "dark")
    page.cdp("Emulation.setEmulatedMedia", {"features": []})


AXE = os.environ.get("AXE_CORE") or "node_modules/axe-core/axe.min.js"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page: Browser, scheme: str) -> None:
    source = Path(__file__).parent / AXE
    if not source.exists():
        pytest.skip("no axe-core: run npm ci in tests/browser")
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.cdp("Emulation.setEmulatedMedia", {"features": features})
    choose(page, CASES / "tag_bit_flipped" / "log.cbor", CASES / "intact_life" / "log.cbor")
    verdict(page)
    page.run("document.querySelector('details.checks').open = true")
    page.run("document.querySelector('#list button.link').click()")
    wait_until(page, "document.querySelector('#card pre') !== null")
    found: dict[str, Any] = page.run(f"{source.read_text('utf-8')}\nreturn axe.run(document)")
    assert len(found["passes"]) > 20
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    page.cdp("Emulation.setEmulatedMedia", {"features": []})
