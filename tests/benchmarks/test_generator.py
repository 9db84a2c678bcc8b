"""The logs of the benchmarks are what they claim to be."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import cbor2
import pytest

from verifier.report import LogReport
from verifier.verify import verify


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The module beside this one; the folder is no package."""
    spec = importlib.util.spec_from_file_location(
        "benchmark_generator", Path(__file__).with_name("generator.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def report_of(generator: ModuleType, folder: Path, records: list[bytes]) -> LogReport:
    (folder / "log.cbor").write_bytes(b"".join(records))
    (folder / "key.json").write_bytes(generator.key_file())
    (folder / "key.json").chmod(0o600)
    return verify([str(folder / "log.cbor")], [str(folder / "key.json")]).logs[0]


def test_a_generated_log_is_verified(generator: ModuleType, tmp_path: Path) -> None:
    records = list(generator.Chain().records(1_001))
    report = report_of(generator, tmp_path, records)
    assert ("VERIFIED", ()) == (report.verdict.value, report.warnings)
    assert (("issued", 500), ("opened", 1), ("refused", 100), ("resolved", 400)) == (
        report.counts.kinds
    )


def test_a_changed_bit_in_a_generated_log_is_seen(generator: ModuleType, tmp_path: Path) -> None:
    records = list(generator.Chain().records(21))
    middle = bytearray(records[10])
    middle[600] ^= 1
    records[10] = bytes(middle)
    assert "BROKEN" == report_of(generator, tmp_path, records).verdict.value


def test_every_envelope_has_1024_bytes(generator: ModuleType) -> None:
    envelopes = [cbor2.loads(raw).value[1].get("envelope") for raw in generator.Chain().records(99)]
    assert {None, 1024} == {envelope and len(envelope) for envelope in envelopes}
    assert all(json.loads(envelope)["reasoning"] for envelope in envelopes[1:])


def test_the_same_seed_gives_the_same_bytes(generator: ModuleType) -> None:
    def digest(seed: int) -> str:
        return hashlib.sha256(b"".join(generator.Chain(seed=seed).records(50))).hexdigest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


def test_the_last_cards_left_open_are_given(generator: ModuleType) -> None:
    chain = generator.Chain()
    assert 31 == len(list(chain.records(31)))
    assert 3 == len({card.hash for card in chain.open})
