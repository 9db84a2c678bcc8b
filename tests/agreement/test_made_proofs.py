"""The maker of the fixtures builds the trees and signatures that others check."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from ledger.signer import Vkey
from ledger.tree import proves_consistency, proves_inclusion

sys.path.insert(0, str(Path(__file__).parents[2] / "fixtures"))

from maker import ed25519, tree
from maker.notes import SIGNER, SIGNER_OTHER_CHAIN, WITNESS

LEAVES = [sha256(bytes([number])).digest() for number in range(20)]


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
def test_signatures_are_those_of_another_implementation(seed: bytes, message: bytes) -> None:
    key = Ed25519PrivateKey.from_private_bytes(seed)
    assert ed25519.public_key(seed) == key.public_key().public_bytes_raw()
    assert ed25519.sign(seed, message) == key.sign(message)


@pytest.mark.parametrize("signer", [SIGNER, SIGNER_OTHER_CHAIN, WITNESS], ids=lambda s: s.name)
def test_vkeys_are_read_by_the_writer(signer: object) -> None:
    assert isinstance(signer, type(SIGNER))
    read = Vkey.parse(signer.vkey)
    assert (read.name, read.key_id) == (signer.name, signer.key_id)


@pytest.mark.parametrize("size", range(1, len(LEAVES) + 1))
def test_every_proof_holds_for_the_writer(size: int) -> None:
    leaves = LEAVES[:size]
    root = tree.root(leaves)
    for index, leaf in enumerate(leaves):
        path = tree.inclusion(index, leaves)
        assert proves_inclusion(index, size, leaf, path, root)
    for old in range(1, size):
        path = tree.consistency(old, leaves)
        assert proves_consistency(old, size, path, tree.root(leaves[:old]), root)
