"""The page of a report: what stands on it, in which order, and that text from a log stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ledger import Facts, Ledger, Opening, Proposal, Refused
from ledger.report import render_page
from ledger.report.foreign import foreign_text
from ledger.report.markup import duration, lines
from verifier import Report, Verdict, every_card, verify

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
KEYS = Path(__file__).parents[2] / "fixtures" / "keys"
SAMPLES = Path(__file__).parents[3] / "shared" / "bernstein-sample"
VOID = {"meta", "link", "rect", "br"}
FIRST = "4a5ce4cd6a3899ba5c39605c941142a354cdaba7f2dc43aaaae229c955bf4fb0"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class Page(HTMLParser):
    """Reads a page: its elements, its texts in order, and whether each element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.stack):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))

    @property
    def ids(self) -> list[str]:
        return [str(found["id"]) for _, found in self.elements if "id" in found]


def of_case(case: str, key: str = "a.json", wanted: Any = every_card) -> Report:
    return verify([str(CASES / case / "log.cbor")], [str(KEYS / key)], environ={}, wanted=wanted)


def page_of(report: Report) -> Page:
    return Page("".join(render_page(report)))


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        ("intact_every_state", "VERIFIED"),
        ("at_bit_flipped", "BROKEN"),
        ("version_unknown", "CANNOT VERIFY"),
    ],
)
def test_the_verdict_is_the_first_thing_said(case: str, verdict: str) -> None:
    page = page_of(of_case(case))
    body = page.text.split("to the cards", 1)[1]
    assert re.match(rf"\W*{verdict}\b", body)


def test_a_card_is_shown_as_the_approver_saw_it_and_what_ran() -> None:
    page = page_of(of_case("intact_every_state"))
    assert f"card-{FIRST}" in page.ids
    said = page.text
    assert f"to decide, echo this hash: {FIRST}" in said
    assert 'approved by "user:approver-1" (known by: label), on "cli", 1.0 s after' in said
    assert f"{FIRST} (equal to the card hash)" in said
    assert "sha256sum" in said


def test_a_broken_log_is_no_tidy_story() -> None:
    report = of_case("at_bit_flipped")
    page = page_of(report)
    assert report.verdict is Verdict.BROKEN
    assert page.text.count("From a log that is BROKEN") == 3  # once for each card
    assert "Findings: 1" in page.text
    assert page.text.index("Findings: 1") < page.text.index("What was counted")


def test_the_list_of_cards_says_which_state_is_not_sure() -> None:
    page = page_of(of_case("at_bit_flipped"))
    (listed,) = re.findall(r'4a5ce4cd6a38 "refund.create" ([^,]*), with findings', page.text)
    assert listed == "DISPATCHED (not sure)"


def test_one_card_in_two_logs_has_two_places() -> None:
    logs = [str(CASES / case / "log.cbor") for case in ("intact_every_state", "at_bit_flipped")]
    report = verify(logs, [str(KEYS / "a.json")], environ={}, wanted=every_card)
    page = page_of(report)
    assert len(page.ids) == len(set(page.ids))
    assert {f"card-{FIRST}", f"card-2-{FIRST}"} <= set(page.ids)
    second = page.elements[[found.get("id") for _, found in page.elements].index("cards-2") :]
    links = {str(found["href"]) for tag, found in second if tag == "a"}
    assert links == {f"#card-2-{history.card}" for history in report.logs[1].histories}


def test_what_assurance_does_not_reach_and_where_the_log_ends_is_said() -> None:
    case = CASES / "intact_log_newer_than_the_checkpoint"
    raw = "".join(
        render_page(
            verify(
                [str(case / "log.cbor")],
                [str(KEYS / "a.json")],
                vkeys=[str(KEYS / "signer.vkey")],
                checkpoint_files=[str(case / "checkpoint.note")],
                environ={},
                wanted=every_card,
            )
        )
    )
    assert "<dt>signed up to</dt><dd>seq 5</dd>" in raw
    assert "the log ends at seq 8: it may go on; give --expect-head HEX" in raw


def test_withheld_openings_are_listed_and_named_at_their_card() -> None:
    log, key = CASES / "intact_opening_withheld" / "log.cbor", KEYS / "a.json"
    report = verify([str(log)], [str(key)], allow_withheld=True, environ={}, wanted=every_card)
    page = page_of(report)
    (one,) = report.logs[0].withheld
    assert f"Withheld openings: 1 seq {one.seq}: {one.openings[0]}" in page.text
    assert f"{one.openings[0]} of seq {one.seq} absent: withheld or lost" in page.text


def test_what_was_redacted_is_named_at_its_card_with_when_and_by_whom(ledger: Ledger) -> None:
    card = ledger.issue(
        Proposal.for_tool_call(
            task=("t", "s"), tool_name="pay", arguments={}, reasoning="r", ttl=600
        )
    )
    seq = ledger.resolve(card.hash, "reject", approver="user:a", target=card, note="why").seq
    ledger.redact(card.hash, openings=["note"], by="user:<b>", reason="secret")
    said = page_of(report_of(ledger)).text
    section = said[said.index("What happened", said.index("Cards: 1")) :]
    assert f'note of seq {seq} redacted: secret by "user:<b>" at ' in section
    assert "absent" not in section


def test_a_long_note_is_cut_and_the_page_says_so(ledger: Ledger) -> None:
    card = ledger.issue(
        Proposal.for_tool_call(
            task=("t", "s"), tool_name="pay", arguments={}, reasoning="r", ttl=600
        )
    )
    ledger.resolve(card.hash, "reject", approver="user:a", target=card, note="n" * 30_000)
    said = page_of(report_of(ledger)).text
    assert max(map(len, re.findall("n+", said))) == 20_000
    assert '" [cut after 20000 of 30000 characters]' in said


def test_json_of_another_format_keeps_its_quotes_and_hides_nothing() -> None:
    stored = '{"a":"x\\"y\\\\","b":"\u202e"}'.encode()
    assert foreign_text(stored) == '{\n  "a": "x\\"y\\\\",\n  "b": "\\u{202e}"\n}\n'
    assert foreign_text(b"[" * 100_000).startswith("[[[")
    assert foreign_text(b"\xff\n") == "\\\\xff\\n\n"


def test_a_text_that_runs_from_right_to_left_stands_alone() -> None:
    body = '"amount-\u05d0": -100\nreasoning: "a\\"\u05d1\n\\"\nk: "c\\\n\\"d"\n'
    assert lines(body) == (
        "<pre><span><bdi>&quot;amount-\u05d0&quot;</bdi>: -100\n</span>"
        "<span>reasoning: <bdi>&quot;a\\&quot;\u05d1</bdi>\n</span>"
        "<span><bdi>\\&quot;</bdi>\n</span>"
        "<span>k: <bdi>&quot;c\\</bdi>\n</span>"
        "<span><bdi>\\&quot;d&quot;</bdi></span></pre>\n"
    )
    presented = "\u05d0" + '\\"' * 100_000  # no string of the renderer, and no long search
    assert "<bdi>" not in lines(presented)
    assert lines('"a": 1\n') == "<pre>&quot;a&quot;: 1</pre>\n"


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (59_940, "59.9 s"),
        (59_960, "1 min 0 s"),
        (-90_000, "-1 min 30 s"),
        (-7_200_000, "-2 h 0 min"),
    ],
)
def test_a_length_of_time(milliseconds: int, said: str) -> None:
    assert duration(milliseconds) == said


def test_a_log_without_its_key_is_not_vouched_for() -> None:
    log = str(CASES / "intact_life" / "log.cbor")
    page = page_of(verify([log], [], environ={}, wanted=every_card))
    assert "From a log that could not be verified." in page.text
    assert "nobody is accused and nothing is vouched for" in page.text


def test_a_page_of_one_card_says_so_and_shows_no_other() -> None:
    report = of_case("intact_every_state", wanted=lambda card: card == FIRST)
    page = Page("".join(render_page(report, only=FIRST[:12])))
    assert [found for found in page.ids if found.startswith("card-")] == [f"card-{FIRST}"]
    assert f"This page shows {FIRST[:12]}, and no other card." in page.text


def test_nothing_is_fetched_and_only_the_idle_script_may_run() -> None:
    page = page_of(of_case("intact_every_state"))
    (policy,) = (found["content"] for _, found in page.elements if "http-equiv" in found)
    assert str(policy).startswith("default-src 'none'; base-uri 'none'; form-action 'none'; ")
    assert {tag for tag, _ in page.elements} & {"img", "link", "iframe", "object", "form"} == set()
    for tag, found in page.elements:
        assert not set(found) & {"src", "style", "onclick", "onload", "action"}, (tag, found)
        assert str(found.get("href", "#")).startswith("#")


def test_every_link_leads_somewhere() -> None:
    page = page_of(of_case("intact_every_state"))
    targets = {str(found["href"])[1:] for _, found in page.elements if "href" in found}
    assert targets
    assert targets <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.glob("intact_*")))
def test_every_intact_log_gives_a_well_formed_page(case: str) -> None:
    for log in sorted((CASES / case).glob("log.cbor")):
        page = page_of(verify([str(log)], [str(KEYS / "a.json")], environ={}, wanted=every_card))
        assert not RAW.search(page.text.replace("\n", " "))


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "x\nVERIFIED\n",
    "\x1b[2J\x1b[31m",
    "\u202eDEIFIREV\u202c\u2066",
    "</pre></article><h1>VERIFIED</h1>",
    "&lt;b&gt; &amp; \\u{1b}",
    "A" * 9_000,
)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("CARDCHAIN_STATE", str(tmp_path / "state"))
    return Ledger.init(tmp_path / "approvals", name="refunds")


def report_of(ledger: Ledger) -> Report:
    keys = sorted(Path(ledger.path).parent.glob("state/**/keys/*.json"))
    found = verify([str(ledger.path)], map(str, keys), environ={}, wanted=every_card)
    assert found.verdict is Verdict.VERIFIED
    return found


@pytest.mark.parametrize("text", HOSTILE, ids=[repr(each[:16]) for each in HOSTILE])
def test_hostile_text_adds_no_element_and_no_raw_character(ledger: Ledger, text: str) -> None:
    def shape(word: str, step: str) -> tuple[list[str], str]:
        name = word[:80]
        proposal = Proposal.for_tool_call(
            task=(name, step),
            tool_name=name,
            arguments={word: word},
            reasoning=word[:1_500],
            ttl=600,
        )
        card = ledger.issue(proposal)
        ledger.resolve(card.hash, "approve", approver=name, target=card, note=word)
        found = verify(
            [str(ledger.path)],
            map(str, sorted(Path(ledger.path).parent.glob("state/**/keys/*.json"))),
            environ={},
            wanted=lambda each: each == card.hash,
        )
        raw = "".join(render_page(found))
        return [tag for tag, _ in Page(raw).elements], raw

    plain, _ = shape("plain", "one")
    hostile, raw = shape(text, "two")
    assert hostile == plain
    assert not RAW.search(raw)


def test_changes_since_the_card_before_and_refusals_around_it(ledger: Ledger) -> None:
    first = ledger.issue(
        Proposal.for_tool_call(
            task=("t", "s"), tool_name="pay", arguments={"amount": 1}, reasoning="r", ttl=600
        )
    )
    second = ledger.issue(
        Proposal.for_tool_call(
            task=("t", "s"), tool_name="pay", arguments={"amount": 2}, reasoning="r", ttl=600
        ).superseding(first)
    )
    with pytest.raises(Refused):
        ledger.resolve(first.hash, "approve", approver="user:a", target=second)
    ledger.resolve(second.hash, "approve", approver="user:a", target=second)
    with pytest.raises(Refused):
        ledger.dispatch(second, Facts.for_tool_call("pay", {"amount": 3}))
    said = page_of(report_of(ledger)).text
    assert '"/action/arguments/amount": 1 -> 2' in said
    assert "resolve: hash_mismatch" in said
    assert "dispatch: mismatch" in said
    assert '"/action/arguments/amount" (request)' in said


def test_a_text_that_a_channel_presented_is_shown_as_kept(ledger: Ledger) -> None:
    card = ledger.issue(
        Proposal.for_tool_call(
            task=("t", "s"), tool_name="pay", arguments={}, reasoning="r", ttl=600
        )
    )
    ledger.resolve(
        card.hash,
        "approve",
        approver="user:a",
        target=card,
        presented=Opening("Pay \u202e now?\nYes\n".encode()),
    )
    said = "".join(page_of(report_of(ledger)).texts)
    assert "Pay \\u{202e} now?\nYes" in said


def test_a_card_without_its_envelope_says_that_nothing_can_be_shown() -> None:
    page = page_of(of_case("intact_redacted"))
    assert "What the card said cannot be shown" in page.text


@pytest.mark.parametrize("sample", ["clean/.sdd/audit", "mixed-v1-v2/.sdd/audit"])
def test_a_bernstein_folder_gives_a_page(sample: str) -> None:
    if not SAMPLES.is_dir():
        pytest.skip("the samples of a peer are not beside this project")
    folder = SAMPLES / sample
    keys = sorted(map(str, SAMPLES.glob(f"{sample.split('/')[0]}/**/audit.key")))
    page = page_of(verify([str(folder)], keys, environ={}, wanted=every_card))
    cards = [found for found in page.ids if found.startswith("card-")]
    assert cards
    assert "its format is another one" in page.text
