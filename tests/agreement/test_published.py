"""What `ledger` signs, proves and cuts out, `verifier` takes; what anybody changes, it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import verifier
from ledger import Facts, Ledger, Proposal, Refused

Verdict = Callable[..., str]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a ledger that has seen much, its vkey, and every kind of file made of it."""
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDCHAIN_STATE", str(folder / "state"))
        patch.delenv("CARDCHAIN_KEY", raising=False)
        now = [1_700_000_000_000]
        with Ledger.init(folder / "approvals", name="test", clock=lambda: now[0]) as ledger:
            vkey = ledger.make_signer(by="user:operator-1")
            (folder / "vkeys").write_text(f"# of the test\n\n{vkey}\n")
            live(ledger, now)
            for number, card in enumerate(cards_of(ledger)):
                ledger.receipt(card, folder / f"card-{number}.receipt")
            count = ledger.status().count
            for first in range(0, count, 3):
                for last in {first, min(first + 4, count - 1), count - 1}:
                    ledger.export_range(folder / f"{first}-{last}.range", first, last)
            proof, signed = ledger.consistency((folder / "old.note").read_bytes())
            (folder / "consistency").write_bytes(proof)
            (folder / "new.note").write_bytes(signed.note)
            ledger.export(folder / "export.cbor")
            withhold = ["note", "envelope"]
            ledger.export(folder / "withheld.cbor", withhold=withhold)
            ledger.receipt(cards_of(ledger)[0], folder / "withheld.receipt", withhold=withhold)
        yield folder


def live(ledger: Ledger, now: list[int]) -> None:
    """Let cards live and die in every way, with keys, clocks and checkpoints between."""
    facts = Facts.for_tool_call("refund", {"order": 1})
    for number in range(6):
        ask = Proposal.for_tool_call(
            task=("run", str(number)),
            tool_name="refund",
            arguments={"order": 1},
            reasoning="paid twice",
            ttl=600,
        )
        card = ledger.issue(ask)
        with pytest.raises(Refused):
            ledger.resolve(card.hash, "approve", approver=" ")
        if number == 3:
            now[0] -= 60_000
            ledger.clock_reset(by="user:operator-1", reason="clock_fixed")
            continue
        ledger.resolve(card.hash, ("approve", "reject")[number % 2], approver="u", note="why")
        if number in (1, 4):
            ledger.rotate()
        if number == 0:
            ledger.dispatch(card.hash, facts)
        if number == 2:
            ledger.withdraw(card.hash, by="u", reason="revoked")
            (ledger.path.parent / "old.note").write_bytes(ledger.checkpoint().note)
        now[0] += 1_000


def cards_of(ledger: Ledger) -> list[str]:
    return [record.card.hex() for record in ledger.records() if record.kind == "issued"]  # type: ignore[union-attr]


@pytest.fixture
def verdict(host: Path) -> Verdict:
    def given_to(path: Path, **more: Any) -> str:
        """Verify without any secret."""
        options = {"vkeys": [str(host / "vkeys")], "environ": {}, **more}
        return verifier.verify([str(path)], **options).verdict.value

    return given_to


def files(host: Path, pattern: str) -> list[Path]:
    found = sorted(host.glob(pattern))
    assert found
    return found


def test_every_receipt_and_range_is_verified_without_a_secret(host: Path, verdict: Verdict) -> None:
    for path in files(host, "card-*.receipt") + files(host, "*.range"):
        assert verdict(path, required=["signed"]) == "VERIFIED", path.name


def test_without_the_vkey_nothing_is(host: Path, verdict: Verdict) -> None:
    for path in [host / "card-0.receipt", host / "0-0.range"]:
        assert verdict(path, vkeys=[]) == "CANNOT VERIFY"


def test_the_ledger_is_covered_by_its_own_checkpoints(host: Path, verdict: Verdict) -> None:
    assert verdict(host / "approvals", required=["signed"]) == "VERIFIED"


def test_an_export_is_covered_by_the_note_beside_it(host: Path, verdict: Verdict) -> None:
    notes = [str(host / "export.cbor.note"), str(host / "old.note")]
    assert verdict(host / "export.cbor", checkpoint_files=notes, required=["signed"]) == "VERIFIED"


def test_a_receipt_and_a_kept_note_are_held_together_by_the_proof(
    host: Path, verdict: Verdict
) -> None:
    notes = [str(host / "old.note"), str(host / "consistency")]
    assert verdict(host / "card-0.receipt", checkpoint_files=notes) == "VERIFIED"


@pytest.mark.parametrize("name", ["withheld.cbor", "withheld.receipt"])
def test_what_was_withheld_is_missing_unless_the_auditor_allows_it(
    host: Path, verdict: Verdict, name: str
) -> None:
    notes = [str(host / "export.cbor.note")] if name.endswith(".cbor") else []
    path = host / name
    assert verdict(path, checkpoint_files=notes) == "BROKEN"
    assert verdict(path, checkpoint_files=notes, allow_withheld=True) == "VERIFIED"


@settings(max_examples=60)
@given(st.data())
def test_no_flipped_bit_is_verified(host: Path, data: st.DataObject) -> None:
    names = ("card-0.receipt", "3-7.range", "old.note", "consistency")
    path = host / data.draw(st.sampled_from(names))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    changed = host / "changed"
    changed.write_bytes(content)
    vkeys = [str(host / "vkeys")]
    if path.suffix in (".receipt", ".range"):
        report = verifier.verify([str(changed)], vkeys=vkeys, environ={})
    else:
        notes = [str(host / "old.note"), str(changed)]
        receipt = str(host / "card-0.receipt")
        report = verifier.verify([receipt], vkeys=vkeys, checkpoint_files=notes, environ={})
    assert report.verdict.value != "VERIFIED"


def test_a_log_that_was_cut_below_a_kept_note_is_broken(host: Path, verdict: Verdict) -> None:
    """The checkpoint beside a rolled-back log shows what the log cannot."""
    whole = (host / "export.cbor").read_bytes()
    cut = host / "cut.cbor"
    starts = [at for at in range(len(whole)) if whole.startswith(b"\xd1\x84\x4d\xa2\x01\x05", at)]
    cut.write_bytes(whole[: starts[-1]])
    notes = [str(host / "export.cbor.note")]
    keys = [str(folder) for folder in (host / "state" / "cardchain").glob("*/keys")]
    assert verdict(cut, key_files=keys) == "VERIFIED"
    assert verdict(cut, key_files=keys, checkpoint_files=notes) == "BROKEN"
