from __future__ import annotations

from typing import Any

import pytest

from verifier.witness import Witness, presented_of, witness

BASIS = {
    "verdict": "review",
    "engine": "rules-1",
    "evidence_class": "selection",
    "profile": "ab" * 32,
    "rules": [],
    "selection": {"mode": "by_target", "digest": "ab" * 32, "count": 1},
    "combining": "first",
    "default": "review",
}
MANIFEST = {"schema": "refund-1", "selector": "cd" * 32, "fields": [{}, {}]}


def test_a_card_without_policy_evidence_witnesses_nothing() -> None:
    assert witness({"policy_version": "7"}, None) is None


def test_without_its_envelope_nothing_is_known_of_a_card() -> None:
    assert witness(None, bytes(32)) == Witness(has_envelope=False)


def test_what_nothing_shows_is_listed_with_its_name() -> None:
    document = {"approval_basis": BASIS, "review_manifest": MANIFEST, "policy_version": "7"}
    assert witness(document, None) == Witness(
        evidence_class="selection",
        fields=2,
        asserted=(
            ("basis verdict", "review"),
            ("basis engine", "rules-1"),
            ("basis combining", "first"),
            ("basis default", "review"),
            ("selection mode", "by_target"),
            ("card policy_version", "7"),
            ("manifest schema", "refund-1"),
            ("manifest selector", "cd" * 32),
        ),
    )


@pytest.mark.parametrize(
    ("presented", "view"),
    [(None, "is of no text that the log binds"), (bytes(32), "is the text presented")],
)
def test_a_view_is_named_as_far_as_the_record_binds_one(presented: bytes | None, view: str) -> None:
    manifest: dict[str, Any] = {**MANIFEST, "view_digest": "00" * 32}
    found = witness({"review_manifest": manifest}, presented)
    assert found is not None
    assert (found.evidence_class, found.view) == (None, view)


def test_the_text_presented_is_that_of_the_body() -> None:
    assert presented_of({"presented": {"digest": bytes(32)}}) == bytes(32)
    assert presented_of({}) is None
