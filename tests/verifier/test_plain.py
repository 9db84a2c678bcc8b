from __future__ import annotations

from typing import Any

import pytest

from verifier import plain


def test_usual_envelopes_are_plain(log: Any) -> None:
    assert plain.read(log.jcs(log.envelope(grant_ttl=900))) is not None
    assert plain.read(log.jcs(log.envelope(reasoning='a "b"\n\u00e9\x01'))) is not None


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (b'"kind":"tool_call"', b'"kind": "tool_call"'),
        (b'"kind":"tool_call"', b'"kind":"tool_\\u0063all"'),
        (b'"kind":"tool_call"', b'"kind":"tool_call","kind":"tool_call"'),
        (b'"order":"SO-0001"', b'"order":"SO-0001" '),
        (b'"order":"SO-0001"', b'"order":1.0'),
        (b'"order":"SO-0001"', b'"order":-0'),
        (b'"order":"SO-0001"', b'"order":"\\/"'),
        (b'"order":"SO-0001"', b'"\xf0\x90\x80\x80":1,"\xee\x80\x80":1'),
        (b'"order":"SO-0001"', b'"order":"\xff"'),
        (b'"amount":"1.00","order":"SO-0001"', b'"order":"SO-0001","amount":"1.00"'),
        (b'"reasoning":"d', b'"reasoning":"\\u001Fd'),
        (b'"reasoning":"d', b'"reasoning":"\\u000ad'),
        (b'"issued_at":1', b'"issued_at":01'),
        (b"}}", b"}} "),
    ],
)
def test_other_bytes_are_not_accepted(log: Any, part: bytes, other: bytes) -> None:
    data = log.jcs(log.envelope())
    assert plain.read(data) is not None
    assert part in data
    assert plain.read(data.replace(part, other)) is None


@pytest.mark.parametrize("name", ["effect_key", "args_digest"])
def test_digest_that_does_not_follow_is_not_accepted(log: Any, name: str) -> None:
    envelope = log.envelope()
    place = envelope if name in envelope else envelope["action"]
    place[name] = "00" * 32
    assert plain.read(log.jcs(envelope)) is None


def test_every_bit_of_an_envelope_counts(log: Any) -> None:
    data = log.jcs(log.envelope())
    kept = []
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        found = plain.read(bytes(changed))
        if found is not None and found == plain.read(data):
            kept.append(chr(data[place]))
    shown = log.envelope()
    assert "".join(kept) == shown["kind"] + shown["reasoning"]
