"""show: the whole story of a card, from a ledger, an export and a receipt alike."""

from __future__ import annotations

import hashlib
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from ledger import Ledger
from ledger.cli.sight import only
from ledger.errors import AmbiguousPrefix, UnknownCard

HOSTILE = r"\u{1b}[2J\u{202e}\u{200b}\u{7f}\"quote\\\n=1+1"


@pytest.fixture(scope="module")
def exported(story: SimpleNamespace) -> SimpleNamespace:
    """The story, an export of it, and a receipt of the refund with the vkey of its signer."""
    host = story.host
    host.ok("export", "approvals", "-o", "export.cbor")
    (host.folder / "vkeys").write_text(
        host.ok("keys", "signer", "approvals", "--by", "user:operator").out
    )
    host.ok("receipt", "approvals", story.refund, "-o", "refund.receipt")
    return story


def told(text: str) -> list[str]:
    """The lines between the text of the card and its events."""
    return text.split("\nstate: ")[1].split("\n\n")[0].splitlines()


def presented() -> list[str]:
    data = b'pay 199.00 back?\n\x1b[2J\xe2\x80\xae\xe2\x80\x8b\x7f"quote\\\n=1+1'
    digest = hashlib.sha256(data).hexdigest()
    return [
        f'presented with seq 1: SHA-256 {digest}, "text/plain", "form/1", cut by the channel, '
        f"{len(data)} bytes:",
        "  | pay 199.00 back?",
        r"  | \u{1b}[2J\u{202e}\u{200b}\u{7f}\"quote\\",
        "  | =1+1",
    ]


def test_show_tells_who_decided_how_and_what_ran(exported: SimpleNamespace) -> None:
    live = exported.host.ok("show", "approvals", exported.refund)
    envelope = exported.host.shell(f"cardchain show approvals {exported.refund} --raw").out
    assert told(live.out) == [
        "SETTLED",
        f"as hashed: {len(envelope)} bytes, SHA-256 {exported.refund}, the card hash",
        *presented(),
        'decided: approve by "user:ann" at 2026-01-01T00:00:02.000Z, 1.0 s after it was issued; '
        'known by: authenticated; channel: "web"',
        '  note: "paid twice, I looked"',
        'dispatched: at 2026-01-01T00:00:04.000Z; policy said: "allow"; '
        'approver looked up: "directory"',
        'ended: succeeded at 2026-01-01T00:00:05.000Z by "user:worker"; '
        f"receipt {bytes(range(32)).hex()}",
        'refused: resolve: already_resolved (count 1) by "user:bob", wanted "reject" '
        "at 2026-01-01T00:00:03.000Z",
    ]


def test_an_export_and_a_receipt_tell_the_same(exported: SimpleNamespace) -> None:
    live = exported.host.ok("show", "approvals", exported.refund)
    elsewhere = {"CARDCHAIN_STATE": "/nonexistent"}
    export = exported.host.run("show", "export.cbor", exported.refund[:6])
    receipt = exported.host.run(
        "show", "refund.receipt", exported.refund, "--vkey", "vkeys", environment=elsewhere
    )
    for done, time in ((export, "2026-01-01T00:00:10.000Z"), (receipt, "2026-01-01T00:00:05.000Z")):
        assert (done.status, done.err.splitlines()[-1]) == (0, "cardchain: VERIFIED")
        text = done.out.replace(f"state: SETTLED at the end of this log, {time}", "state: SETTLED")
        assert text == live.out
    assert "assurance: signed" in receipt.err
    without = exported.host.run("show", "refund.receipt", exported.refund, environment=elsewhere)
    assert (without.status, told(without.out)[1:]) == (4, told(receipt.out)[1:])
    assert without.err.endswith("cardchain: CANNOT VERIFY\n")


def test_what_has_not_happened_is_said(exported: SimpleNamespace) -> None:
    lines = told(exported.host.ok("show", "approvals", exported.open).out)
    assert (lines[0], lines[2:]) == ("EXPIRED", ["decided: no record", "dispatched: no record"])
    lines = told(exported.host.ok("show", "approvals", exported.hostile).out)
    assert lines[2:] == [
        f'withdrawn: cancelled by "{HOSTILE}" at 2026-01-01T00:00:09.000Z, '
        "1.0 s after it was issued",
        f'  note: "{HOSTILE}"',
        "decided: no record",
        "dispatched: no record",
    ]


def test_nothing_hostile_is_printed_raw(exported: SimpleNamespace) -> None:
    for path in ("approvals", "export.cbor"):
        for arguments in (("show", path, exported.hostile), ("status", path), ("log", path)):
            for option in ((), ("--json",)):
                done = exported.host.run(*arguments, *option)
                assert done.status == 0
                assert re.search("[^\n -~]", done.out + done.err) is None, (arguments, option)


def test_show_json_of_each(exported: SimpleNamespace) -> None:
    live: dict[str, Any] = exported.host.ok("show", "approvals", exported.refund, "--json").json
    read = exported.host.run("show", "export.cbor", exported.refund, "--json").json
    for document in (live, read):
        assert (document["card_hash"], document["state"]) == (exported.refund, "SETTLED")
        assert [event["seq"] for event in document["events"]] == [1, 2, 3, 4, 5]
        assert document["redactions"] == []
    assert (live["text"], live["envelope"]) == (read["text"], read["envelope"])
    assert live["step_state"] == "settled"
    assert (read["verdict"], read["findings"], read["doubt"]) == ("VERIFIED", [], "")
    assert read["as_of"] == 1767225610000


@pytest.mark.parametrize("path", ["approvals", "export.cbor", "refund.receipt"])
def test_raw_is_what_the_hash_is_taken_over(exported: SimpleNamespace, path: str) -> None:
    line = f"cardchain show {path} {exported.refund} --raw --vkey vkeys 2>said | sha256sum"
    assert exported.host.shell(line).out == f"{exported.refund}  -\n"


def test_a_card_that_is_not_there_is_answered_with_the_nearest(exported: SimpleNamespace) -> None:
    wrong = exported.refund[:20] + ("0" if exported.refund[20] != "0" else "1")
    for path in ("approvals", "export.cbor"):
        done = exported.host.run("show", path, wrong)
        assert (done.status, done.out) == (2, "")
        assert f"cardchain: error: no card {wrong} in this ledger" in done.err
        assert f"cardchain: hint: the nearest: {exported.refund}\n" in done.err


def test_prefixes_are_explained() -> None:
    cards = ["ab12" + "0" * 60, "ab13" + "0" * 60, "ab14" + "0" * 59 + "1", "ab14" + "0" * 60]

    def find(prefix: str) -> bytes:
        found = [each for each in cards if each.startswith(prefix)]
        if not found:
            raise UnknownCard(prefix)
        if len(found) > 1:
            raise AmbiguousPrefix(prefix, len(found))
        return bytes.fromhex(found[0])

    assert only(find, "ab12").hex() == cards[0]
    for prefix, hint in (
        ("a", f"give more digits: {cards[0]}, {cards[1]}, ab14... (2 cards)"),
        ("ab14", f"give more digits: {cards[3]}, {cards[2]}"),
    ):
        with pytest.raises(AmbiguousPrefix) as ambiguous:
            only(find, prefix)
        assert ambiguous.value.hint == hint
    for prefix, hint in (
        ("ab120001", f"the nearest: {cards[0]}"),
        ("ab2", "the nearest: ab... (4 cards)"),
        ("c", "none begins with this digit; list the cards: cardchain log PATH --kind issued"),
    ):
        with pytest.raises(UnknownCard) as unknown:
            only(find, prefix)
        assert unknown.value.hint == hint


def test_of_a_broken_log_the_verdict_counts_more_than_a_missing_card(
    exported: SimpleNamespace,
) -> None:
    data = (exported.host.folder / "export.cbor").read_bytes()
    (exported.host.folder / "broken.cbor").write_bytes(data.replace(b"I looked", b"I LOOKED"))
    done = exported.host.run("show", "broken.cbor", "0000")
    assert (done.status, done.out) == (3, "")
    assert done.err.startswith("cardchain: error: no card 0000")
    assert done.err.endswith("cardchain: BROKEN\n")


@pytest.fixture
def redacted(host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A ledger with a card of which the envelope and the note were erased."""
    monkeypatch.setenv("CARDCHAIN_STATE", str(host.state))
    card = host.issue()
    host.ok("reject", "approvals", card, "--approver", "user:ann", "--note", "a name in it")
    with Ledger.open(host.folder / "approvals") as ledger:
        ledger.redact(card, by="user:dpo", reason="erasure_request")
    return SimpleNamespace(host=host, card=card)


def test_what_was_erased_is_named_with_when_by_whom_and_why(redacted: SimpleNamespace) -> None:
    host, card = redacted.host, redacted.card
    live = host.ok("show", "approvals", card)
    assert live.out.startswith("the envelope is not in this log: it was redacted, withheld or lost")
    erased = [line for line in live.out.splitlines() if line.startswith("redacted: ")]
    for line in erased:
        assert re.fullmatch(
            r'redacted: ("note", )?"envelope" of seq [12]: erasure_request by "user:dpo" '
            r"at \S+Z, seq [34]",
            line,
        )
    assert len(erased) == 2
    assert "absent: " not in live.out
    assert "a name in it" not in live.out
    assert "\nstate: REJECTED\n" in live.out
    host.ok("export", "approvals", "-o", "export.cbor")
    read = host.run("show", "export.cbor", card)
    assert read.status == 0
    assert [line for line in read.out.splitlines() if line.startswith("redacted: ")] == erased
    documents = [
        json.loads(host.run("show", path, card, "--json").out)
        for path in ("approvals", "export.cbor")
    ]
    for document in documents:
        assert [event["body"]["by"] for event in document["redactions"]] == ["user:dpo"] * 2
        assert document["envelope"] is None
    raw = host.run("show", "approvals", card, "--raw")
    assert (raw.status, raw.out) == (2, "")
    assert host.ok("status", "approvals", "--approver", "user:ann").out.startswith(
        f"{card} REJECTED envelope absent"
    )


def test_a_long_note_is_cut_and_says_so(host: SimpleNamespace) -> None:
    card = host.issue()
    host.ok("reject", "approvals", card, "--approver", "user:ann", "--note", "n" * 20_001)
    (line,) = (
        each
        for each in host.ok("show", "approvals", card).out.splitlines()
        if each.startswith("  note: ")
    )
    cut = "n" * 20_000
    assert line == f'  note: "{cut}" [1 more characters; --json gives all]'


def test_a_withheld_envelope_is_not_called_redacted(exported: SimpleNamespace) -> None:
    exported.host.ok("export", "approvals", "-o", "bare.cbor", "--withhold", "envelope")
    done = exported.host.run("log", "bare.cbor", "--kind", "issued")
    assert "redacted" not in done.out
    assert done.out.count(" envelope absent\n") == done.out.count(" issued ")


def test_what_is_withheld_is_named_as_absent(exported: SimpleNamespace) -> None:
    exported.host.ok("export", "approvals", "-o", "withheld.cbor", "--withhold", "note")
    done = exported.host.run("show", "withheld.cbor", exported.refund)
    assert done.status == 3
    assert '\nabsent: "note" of seq 2: withheld or lost\n' in done.out
    assert done.err.endswith("cardchain: BROKEN\n")
