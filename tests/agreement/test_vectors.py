"""Published vectors, against the writer and the verifier alike.

They are read where they lie, beside the project, and never copied into it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import rfc8785

import ledger.jcs
import verifier.jcs
from ledger.chain import hmac_sha256
from ledger.errors import ProposalInvalid
from verifier.keys import Hmac

VECTORS = Path(__file__).parents[3] / "shared" / "vectors"


class Side(NamedTuple):
    """One of the two implementations of spec §2.1 and §2.2."""

    parse: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    refusal: type[Exception]


SIDES = {
    "ledger": Side(ledger.jcs.parse, ledger.jcs.encode, ProposalInvalid),
    "verifier": Side(verifier.jcs.parse, verifier.jcs.encode, verifier.jcs.JsonRefused),
}


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> Side:
    return SIDES[request.param]


def files(pattern: str) -> list[Path]:
    """The files of a suite; without the folder one path, so that the test is seen to skip."""
    return sorted(VECTORS.glob(pattern)) or [VECTORS / pattern]


def read(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    reason = f"{'/'.join(path.parts[-3:])} is not beside the project"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def load(path: Path) -> Any:
    return json.loads(read(path))


def again(side: Side, text: bytes) -> bytes:
    return side.encode(side.parse(text))


def by_name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", files("jcs/input/*.json"), ids=by_name)
def test_documents_of_rfc_8785(side: Side, path: Path) -> None:
    text = read(path)
    assert again(side, text) == read(VECTORS / "jcs" / "output" / path.name)
    outhex = VECTORS / "jcs" / "outhex" / f"{path.stem}.txt"
    assert again(side, text) == bytes.fromhex(read(outhex).decode())


def test_vectors_of_agent_receipts(side: Side) -> None:
    """All but the three whose numbers the boundary refuses by design (spec §2.1)."""
    vectors = load(VECTORS / "agent-receipts" / "canonicalization_vectors.json")
    refused = set()
    for vector in vectors["canonicalization_vectors"]:
        text = json.dumps(vector["input"]).encode()
        try:
            assert again(side, text) == vector["canonical"].encode(), vector["name"]
        except side.refusal:
            refused.add(vector["name"])
    assert len(vectors["canonicalization_vectors"]) == 32
    assert refused == {
        "number_negative_zero",
        "number_2_to_53",
        "number_large_exp_boundary_fixed",
    }


@pytest.mark.parametrize("path", files("adcp-plan-hash/*.json"), ids=by_name)
def test_plan_hashes(side: Side, path: Path) -> None:
    expected = load(path)["expected"]
    canonical = again(side, json.dumps(expected["preimage"]).encode())
    assert canonical == expected["jcs_bytes"].encode()
    assert hashlib.sha256(canonical).hexdigest() == expected["sha256_hex"]


def test_numbers_of_chap_that_it_accepts(side: Side) -> None:
    accepts = load(VECTORS / "chap" / "canonical-number-vectors.json")["accept"]
    assert len(accepts) == 15
    for vector in accepts:
        text = json.dumps(vector["value"]).encode()
        assert again(side, text) == vector["canonical"].encode()


REFUSED_ON_PURPOSE = {
    "y_number_minus_zero.json",
    "y_number_negative_zero.json",
    "y_object_duplicated_key.json",
    "y_object_duplicated_key_and_value.json",
}


@pytest.mark.parametrize("path", files("jsontestsuite/test_parsing/y_*.json"), ids=by_name)
def test_json_is_read_unless_it_is_refused_on_purpose(side: Side, path: Path) -> None:
    text = read(path)
    if path.name in REFUSED_ON_PURPOSE:
        with pytest.raises(side.refusal):
            side.parse(text)
    else:
        assert side.parse(text) == json.loads(text)


@pytest.mark.parametrize("path", files("jsontestsuite/test_parsing/n_*.json"), ids=by_name)
def test_what_is_not_json_is_refused_without_a_crash(side: Side, path: Path) -> None:
    with pytest.raises(side.refusal):
        side.parse(read(path))


def test_parsing_suite_is_whole() -> None:
    folder = VECTORS / "jsontestsuite" / "test_parsing"
    read(next(iter(sorted(folder.glob("n_*.json"))), folder / "n_*.json"))
    counts = {kind: len(list(folder.glob(f"{kind}_*.json"))) for kind in "nyi"}
    assert counts == {"n": 188, "y": 95, "i": 35}


HMACS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "ledger": hmac_sha256,
    "verifier": lambda secret, message: Hmac(secret).digest(message),
}


@pytest.mark.parametrize("name", HMACS)
def test_hmac_vectors_of_wycheproof(name: str) -> None:
    """Keys of 32 bytes, the only size there is here (spec §4.1); tags of 16 bytes as prefixes."""
    suite = load(VECTORS / "wycheproof" / "hmac_sha256_test.json")
    made = {"valid": 0, "invalid": 0}
    for group in suite["testGroups"]:
        if group["keySize"] != 256:
            continue
        for test in group["tests"]:
            tag = bytes.fromhex(test["tag"])
            found = HMACS[name](bytes.fromhex(test["key"]), bytes.fromhex(test["msg"]))
            assert (found[: len(tag)] == tag) == (test["result"] == "valid"), test["tcId"]
            made[test["result"]] += 1
    assert made["valid"] > 0
    assert made["valid"] + made["invalid"] == 162


# The numbers of the ES6 corpus. Its file of 100 million lines is not needed: the sequence and the
# SHA-256 of its first lines are published (cyberphone/json-canonicalization, testdata/README.md).

CHECKPOINTS = {
    1_000: "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687",
    10_000: "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892",
}
# How far the thirds of 10^22 down to 10^-27 stand from the nearest double, in units of the last
# place; the corpus has them as they were once computed.
THIRDS_OFF = [0, 0, 1, 1, 1, 2, 1, 1, 3, 1, 2, 2, 1, 1, 1, 0, 0, 0, -1] + [0] * 30 + [1]
FEW = """
    10 5 0.5 0.05 0.005 0.0005 5e-5 5e-6 5e-7 5e-8 5e-9
    5.06e-6 5.006e-6 5.0006e-6 5.00006e-6 5.000006e-6 5.0000006e-6 5.00000006e-6 5.000000006e-6
    5.0000000006e-6 5.00000000006e-6 5.000000000006e-6 5.0000000000006e-6 5.00000000000006e-6
    5.000000000000006e-6 5e-6 1 -1 -0.9999999999999993 -0.9999999999999994 0.9999999999999993
    0.9999999999999994 0.9999999999999996 0.9999999999999998 -0.9999999999999999
    -0.9999999999999999 0.9999999999999999 0.9999999999999999 0.29999999999999993 0.3
    0.30000000000000004 2.2250738585072014e-308 2.2250738585072e-308 2.225073858507201e-308
    1.7976931348623157e308 -1.7976931348623157e308 9007199254740992 -9007199254740992
    2.9514790517935283e20 9.999999999999997e22 1e23 1.0000000000000001e23 9.999999999999997e20
    9.999999999999999e20 1e21 9.999999999999997e-7 1e-6 333333333.3333332 333333333.33333325
    333333333.3333333 333333333.3333334 333333333.33333343 -3.3333333333333333e-6
    1424953923781206.2
"""


def bits_of(value: float) -> int:
    return int.from_bytes(struct.pack(">d", value), "big")


def double(bits: int) -> float:
    return float(struct.unpack(">d", bits.to_bytes(8, "big"))[0])


def corpus() -> Iterator[int]:
    """The doubles of the corpus as bits: edges, the smallest normal ones, then a hash chain."""
    sign = 1 << 63
    thirds = [
        bits_of(float(Fraction(10) ** (22 - step) / 3)) + off for step, off in enumerate(THIRDS_OFF)
    ]
    yield from (0, sign, 1, sign | 1)
    yield from (sign | bits for bits in thirds)
    yield from thirds
    yield from (bits_of(float(spelled)) for spelled in FEW.split())
    yield from (bits_of(2.0**-1022) + step for step in range(2_000))
    block = bytes(32)
    while True:
        block = hashlib.sha256(block).digest()
        for (bits,) in struct.iter_unpack("<Q", block):
            value = double(bits)
            if math.isfinite(value) and value != 0:
                yield bits


def refused_by_design(value: float) -> bool:
    return str(value) == "-0.0" or 2**53 <= abs(value) < 1e21


def printed_by_ledger(value: float) -> bytes:
    if not refused_by_design(value):
        return ledger.jcs.encode(value)
    with pytest.raises(ProposalInvalid):
        ledger.jcs.encode(value)
    return rfc8785.dumps(value)


PRINTERS: dict[str, Callable[[float], bytes]] = {
    "ledger": printed_by_ledger,
    "verifier": lambda value: verifier.jcs.number_text(value).encode(),
}


@pytest.mark.parametrize("name", PRINTERS)
@pytest.mark.parametrize("lines", CHECKPOINTS)
def test_numbers_are_printed_as_ecmascript_does(name: str, lines: int) -> None:
    digest = hashlib.sha256()
    for _, bits in zip(range(lines), corpus(), strict=False):
        digest.update(b"%x,%s\n" % (bits, PRINTERS[name](double(bits))))
    assert digest.hexdigest() == CHECKPOINTS[lines]
