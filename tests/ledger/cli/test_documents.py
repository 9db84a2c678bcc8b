"""hash and render: a card hash and a text from files alone, without a ledger."""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace

PROPOSAL = {
    "kind": "tool_call",
    "task": {"id": "refund-run-7", "step": "refund"},
    "action": {"tool_name": "refund.create", "arguments": {"amount": "199.00"}},
    "reasoning": "paid twice",
    "ttl": 600,
}


def canonical(document: object) -> bytes:
    """The canonical form of ASCII documents without numbers that JSON spells in two ways."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def digest(document: object) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()


def envelope() -> dict[str, object]:
    """The envelope of PROPOSAL issued at 1767225600, by the rules of spec §2."""
    arguments = digest({"amount": "199.00"})
    effect = {
        "format": "effect-key/1",
        "task": PROPOSAL["task"],
        "tool_name": "refund.create",
        "capability": None,
        "args_digest": arguments,
    }
    return {
        "format": "cardchain-card/1",
        "kind": "tool_call",
        "task": PROPOSAL["task"],
        "action": {
            "tool_name": "refund.create",
            "arguments": {"amount": "199.00"},
            "args_digest": arguments,
        },
        "reasoning": "paid twice",
        "issued_at": 1767225600,
        "not_after": 1767226200,
        "effect_key": digest(effect),
    }


def test_hash_gives_the_hash_of_the_envelope(empty_host: SimpleNamespace) -> None:
    empty_host.write("p.json", PROPOSAL)
    done = empty_host.ok("hash", "p.json", "--issued-at", "1767225600")
    assert done.out == digest(envelope()) + "\n"


def test_hash_reads_standard_input_and_gives_json(empty_host: SimpleNamespace) -> None:
    text = json.dumps(PROPOSAL).encode()
    done = empty_host.ok("hash", "-", "--issued-at", "1767225600", "--json", stdin=text)
    assert done.json == {"card_hash": digest(envelope()), "envelope": envelope()}


def test_the_issued_card_has_the_hash_that_hash_gives(host: SimpleNamespace) -> None:
    host.write("p.json", PROPOSAL)
    card = host.ok("issue", "approvals", "p.json", "--json").json["card_hash"]
    issued_at = host.ok("show", "approvals", card, "--json").json["envelope"]["issued_at"]
    assert host.ok("hash", "p.json", "--issued-at", str(issued_at)).out == card + "\n"


def test_render_gives_the_text_with_the_hash_to_echo(empty_host: SimpleNamespace) -> None:
    (empty_host.folder / "e.json").write_bytes(canonical(envelope()))
    text = empty_host.ok("render", "e.json").out
    assert text.startswith('approval card (cardchain-text/2)\nkind: "tool_call"\n')
    assert text.endswith(f"to decide, echo this hash:\n  {digest(envelope())}\n")
    json_ = empty_host.ok("render", "e.json", "--json").json
    assert json_ == {"card_hash": digest(envelope()), "text": text}


def test_render_refuses_what_is_not_canonical(empty_host: SimpleNamespace) -> None:
    text = json.dumps(envelope()).encode()
    done = empty_host.run("render", "-", stdin=text)
    assert (done.status, done.out) == (2, "")
    assert "canonical" in done.err


def test_render_of_what_is_no_envelope_is_wrong_input(empty_host: SimpleNamespace) -> None:
    for text in (b"", b"[]", b"no json", json.dumps(PROPOSAL).encode()):
        done = empty_host.run("render", "-", stdin=text)
        assert (done.status, done.out) == (2, ""), text
        assert "cardchain: hint: correct the value at this place" in done.err


def test_a_time_out_of_range_is_2(empty_host: SimpleNamespace) -> None:
    empty_host.write("p.json", PROPOSAL)
    for issued_at in ("-1", "253402300799", "9" * 30):
        done = empty_host.run("hash", "p.json", "--issued-at", issued_at)
        assert (done.status, done.out) == (2, ""), issued_at


def test_an_endless_file_is_refused_before_it_fills_memory(empty_host: SimpleNamespace) -> None:
    done = empty_host.run("hash", "/dev/zero", "--issued-at", "0")
    assert (done.status, done.out) == (2, "")
    assert "limit 1048576" in done.err
