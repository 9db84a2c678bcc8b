"""What a log says of the policy behind each approval (spec §8), and what it only asserts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_OF_BASIS = ("verdict", "engine", "profile_id", "profile_version", "combining", "default")
_OF_MANIFEST = ("schema", "selector", "selector_id", "selector_version")


class Witness(NamedTuple):
    """The policy evidence of one card: of its basis and of its review manifest.

    `subject` is the id on whose behalf it is.
    `evidence_class` is None without a basis, `fields` 0 without a manifest. `view` says whether the
    manifest names a view and the record bound it. `asserted` pairs names with values that nothing
    in the log shows to be true. Without the envelope nothing of all this is known.
    """

    has_envelope: bool = True
    evidence_class: str | None = None
    fields: int = 0
    view: str = ""
    asserted: tuple[tuple[str, str], ...] = ()
    subject: str | None = None


def witness(document: dict[str, Any] | None, presented: bytes | None) -> Witness | None:
    """Give the policy evidence of a card that is issued; None where it has none.

    `presented` is the digest of the text that the record binds, if any.
    """
    if document is None:
        return Witness(has_envelope=False)
    basis, manifest = document.get("approval_basis"), document.get("review_manifest")
    if basis is None and manifest is None:
        return None
    view = ""
    if manifest is not None and "view_digest" in manifest:
        view = "is the text presented" if presented else "is of no text that the log binds"
    return Witness(
        evidence_class=None if basis is None else basis["evidence_class"],
        fields=0 if manifest is None else len(manifest["fields"]),
        view=view,
        asserted=(
            *_named("basis", basis or {}, _OF_BASIS),
            *_named("selection", (basis or {}).get("selection", {}), ("mode",)),
            *_named("card", document, ("policy_version",)),
            *_named("manifest", manifest or {}, _OF_MANIFEST),
        ),
        subject=document.get("subject", {}).get("id"),
    )


def _named(part: str, values: dict[str, Any], names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return ((f"{part} {name}", values[name]) for name in names if name in values)


def presented_of(body: dict[str, Any]) -> bytes | None:
    """Give the digest of the text presented that the body of an issued record binds, if any."""
    digest: bytes | None = body.get("presented", {}).get("digest")
    return digest
