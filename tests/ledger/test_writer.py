"""The public ledger: errors of the caller, making, exporting, many threads (spec §2, §7)."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import Facts, Ledger, Opening, Proposal, ProposalInvalid, Refused
from ledger.access import SOFTWARE
from ledger.errors import StoreFailed
from ledger.store.contract import AlreadyThere

Propose = Callable[..., Proposal]
HASH = "0" * 63 + "a"


def test_a_new_ledger_holds_one_opened_record_and_no_key(ledger: Ledger, host: Path) -> None:
    (record,) = ledger.records()
    assert (record.kind, record.seq, record.card) == ("opened", 0, None)
    assert record.body == {"name": "test", "software": SOFTWARE}
    assert record.chain == ledger.chain
    (key,) = host.glob("cardchain/*/keys/*.json")
    secret = key.read_text().split('"secret": "')[1][:64]
    for file in ledger.path.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert bytes.fromhex(secret) not in content
            assert secret.encode() not in content


def test_the_software_of_a_record_is_this_version() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert f'version = "{SOFTWARE.removeprefix("cardchain ")}"' in project.read_text()


def test_two_ledgers_are_two_chains(tmp_path: Path, host: Path) -> None:
    with (
        Ledger.init(tmp_path / "a", name="a") as a,
        Ledger.init(tmp_path / "b", name="b") as b,
    ):
        assert a.chain != b.chain
        assert len(a.chain) == len(b.chain) == 16


def test_a_ledger_is_made_once(ledger: Ledger) -> None:
    before = sorted(ledger.path.rglob("*"))
    with pytest.raises(AlreadyThere):
        Ledger.init(ledger.path, name="again")
    assert sorted(ledger.path.rglob("*")) == before


@pytest.mark.parametrize("written", [0, 100])
def test_an_init_that_the_disk_ends_can_be_made_again(
    tmp_path: Path, host: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    def fail(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:written])
        raise OSError(errno.ENOSPC, "injected")

    monkeypatch.setattr("ledger.store.files.write", fail)
    with pytest.raises(StoreFailed):
        Ledger.init(tmp_path / "new", name="test")
    assert not (tmp_path / "new").exists()
    monkeypatch.undo()
    with Ledger.init(tmp_path / "new", name="test") as ledger:
        assert ledger.status().count == 1


def test_an_init_whose_record_may_be_durable_removes_nothing(tmp_path: Path, host: Path) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "injected")

    with pytest.raises(StoreFailed):
        Ledger.init(tmp_path / "new", name="test", sync=fail)
    with Ledger.open(tmp_path / "new") as ledger:
        assert ledger.status().count == 1


@pytest.mark.parametrize("name", ["", "x" * 257, "\ud800", 7])
def test_a_name_that_is_none_makes_nothing(tmp_path: Path, host: Path, name: Any) -> None:
    with pytest.raises(ProposalInvalid):
        Ledger.init(tmp_path / "new", name=name)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "act",
    [
        lambda ledger: ledger.issue({"kind": "tool_call"}),
        lambda ledger: ledger.resolve("0" * 63, "approve", approver="a"),
        lambda ledger: ledger.resolve("0" * 65, "approve", approver="a"),
        lambda ledger: ledger.resolve("A" * 64, "approve", approver="a"),
        lambda ledger: ledger.resolve(" " + "0" * 63, "approve", approver="a"),
        lambda ledger: ledger.resolve("0" * 64 + "\n", "approve", approver="a"),
        lambda ledger: ledger.resolve("٠" * 64, "approve", approver="a"),
        lambda ledger: ledger.resolve(bytes(31), "approve", approver="a"),
        lambda ledger: ledger.resolve(None, "approve", approver="a"),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", target="abc"),
        lambda ledger: ledger.resolve(HASH, "yes", approver="a"),
        lambda ledger: ledger.resolve(HASH, True, approver="a"),
        lambda ledger: ledger.resolve(HASH, "Approve", approver="a"),
        lambda ledger: ledger.resolve(HASH, "", approver="a"),
        lambda ledger: ledger.resolve(HASH, "approve", approver=7),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a" * 257),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", channel=""),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", assurance="signed"),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", note=b"bytes"),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", note="\udfff"),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", note="x" * 1_048_577),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", presented=b"raw"),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", response=Opening(b"", "")),
        lambda ledger: ledger.resolve(HASH, "approve", approver="a", evidence="oidc"),
        lambda ledger: ledger.withdraw(HASH, by="a", reason="because"),
        lambda ledger: ledger.dispatch(HASH, {"action": {}}),
        lambda ledger: ledger.settle(HASH, "done"),
        lambda ledger: ledger.settle(HASH, "failed", by=" "),
        lambda ledger: ledger.settle(HASH, "failed", receipt_digest=b"short"),
        lambda ledger: ledger.clock_reset(by=" ", reason="other"),
        lambda ledger: ledger.clock_reset(by="a", reason="whim"),
        lambda ledger: ledger.clock_reset(by="a", reason="other"),
        lambda ledger: ledger.find(""),
        lambda ledger: ledger.find("xyz"),
    ],
)
def test_an_error_of_the_caller_records_nothing(
    ledger: Ledger, act: Callable[[Ledger], object]
) -> None:
    with pytest.raises(ProposalInvalid):
        act(ledger)
    assert ledger.status().count == 1


def test_there_is_no_default_decision_and_no_default_approver(ledger: Ledger) -> None:
    with pytest.raises(TypeError):
        ledger.resolve(HASH, "approve")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        ledger.resolve(HASH, approver="user:approver-1")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "runtime", [{}, {"run": "1"}, {"name": "r", "user": "x"}, {"name": ""}, {"name": 7}, "name", 7]
)
def test_a_runtime_says_its_name_and_what_the_format_knows(
    ledger: Ledger, proposal: Propose, runtime: Any
) -> None:
    with pytest.raises(ProposalInvalid):
        ledger.issue(proposal(), runtime=runtime)
    assert ledger.status().count == 1


def test_a_hash_is_taken_as_digits_as_bytes_and_as_what_was_handed_out(
    ledger: Ledger, proposal: Propose, facts: Callable[..., Facts]
) -> None:
    card = ledger.issue(proposal())
    for form in (card, card.hash, card.hash_bytes, ledger.card(card)):
        assert ledger.card(form).hash == card.hash
    ledger.resolve(card.hash, "approve", approver="user:approver-1", target=card.hash_bytes)
    ticket = ledger.dispatch(card.hash, facts())
    assert ledger.card(ticket).state == "DISPATCHED"


def test_the_text_of_a_card_ends_with_the_hash_to_echo(ledger: Ledger, proposal: Propose) -> None:
    card = ledger.issue(proposal())
    assert card.text.endswith(f"\nto decide, echo this hash:\n  {card.hash}\n")


def test_threads_decide_a_card_once(ledger: Ledger, proposal: Propose) -> None:
    card = ledger.issue(proposal())
    answers: list[str] = []

    def decide(number: int) -> None:
        try:
            answers.append(ledger.resolve(card, "approve", approver=f"user:approver-{number}").kind)
        except Refused as refused:
            answers.append(refused.reason)

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["already_resolved"] * 7 + ["resolved"]


def test_a_forked_child_goes_on_with_the_ledger_of_its_parent(
    ledger: Ledger, proposal: Propose
) -> None:
    import warnings

    ledger.issue(proposal("a"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            ledger.issue(proposal("b"))
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ledger.issue(proposal("c")).seq == 3
    assert [record.kind for record in ledger.records()] == ["opened"] + ["issued"] * 3


def test_a_closed_ledger_says_so(ledger: Ledger, proposal: Propose) -> None:
    from ledger.errors import Dead

    ledger.close()
    with pytest.raises(Dead, match="closed"):
        ledger.issue(proposal())


def test_what_is_handed_out_is_what_is_read_back(
    ledger: Ledger, proposal: Propose, clock: Any, facts: Callable[..., Facts]
) -> None:
    """A record of every kind that a caller gets equals the one that its bytes give."""
    shown = Opening(b"shown", media_type="text/plain", truncated=True)
    one = ledger.issue(proposal("a"), presented=shown, runtime={"name": "r", "run": "7"})
    handed = [one.record]
    said = Opening(b"{}", media_type="application/json")
    handed.append(
        ledger.resolve(
            one, "approve", approver="user:approver-1", target=one, note="yes", response=said
        )
    )
    with pytest.raises(Refused) as caught:
        ledger.dispatch(one, facts("200.00"))
    handed.append(caught.value.record)
    handed.append(ledger.dispatch(one, facts(), policy_outcome="allow").record)
    handed.append(ledger.settle(one, "succeeded", receipt_digest=bytes(32)))
    two = ledger.issue(proposal("b"))
    handed += [two.record, ledger.withdraw(two, by="user:operator-1", reason="revoked")]
    handed.append(ledger.configure(by="user:operator-1", vkey="k"))
    handed.append(ledger.rotate())
    clock.forward(-60)
    handed.append(ledger.clock_reset(by="user:operator-1", reason="clock_fixed"))
    assert handed == list(ledger.records(1))
