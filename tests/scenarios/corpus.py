"""The scenarios as data: where they are, and how their labels and changes are read.

Nothing here knows an implementation (docs/conformance.md).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "fixtures" / "scenarios"
SCHEMA = FOLDER / "scenario.schema.json"
PATHS = sorted(path for path in FOLDER.glob("*.json") if path != SCHEMA)
FACTS = ("action", "subject", "preconditions", "approval_basis", "review_manifest")
NO_DEMANDS = {
    "minimum": "none",
    "required": [],
    "grant_ttl": "optional",
    "self_approval": "allow",
    "assurance": "label",
    "fixed_parameters": [],
    "critical": [],
    "basis_drift": "review",
}
"""The profile that demands nothing; a scenario names only what is otherwise."""

Document = dict[str, Any]


def load(path: Path) -> Document:
    scenario: Document = json.loads(path.read_text("utf-8"))
    return scenario


def card_documents(given: Document) -> dict[str, Document]:
    """Give what every label asks for, labels inside kept; `like` cards are worked out."""
    documents: dict[str, Document] = {}
    for label, card in given["cards"].items():
        if "like" in card:
            card = edited(documents[card["like"]], card.get("set", {}), card.get("absent", []))
        documents[label] = card
    return documents


def profile_documents(given: Document) -> dict[str, Document]:
    return {
        label: {"format": "cardchain-profile/1", **NO_DEMANDS, **profile}
        for label, profile in given.get("profiles", {}).items()
    }


def facts_of(document: Document) -> Document:
    return {name: document[name] for name in FACTS if name in document}


def edited(document: Document, changes: Document, absent: list[str]) -> Document:
    """Give a copy with other values at JSON pointers, and without the members at some."""
    new = copy.deepcopy(document)
    for pointer, value in changes.items():
        place, name = _parent(new, pointer)
        if isinstance(place, list) and name == "-":
            place.append(copy.deepcopy(value))
        else:
            place[int(name) if isinstance(place, list) else name] = copy.deepcopy(value)
    for pointer in absent:
        place, name = _parent(new, pointer)
        del place[int(name) if isinstance(place, list) else name]
    return new


def filled(
    value: Any,
    digest: Callable[[str], str],
    card: Callable[[str], str],
    profile: Callable[[str], str],
) -> Any:
    """Give a value with what stands for `digest_of`, `card`, `profile` and `unencodable`."""
    if isinstance(value, list):
        return [filled(each, digest, card, profile) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, text),) = value.items()
        if name == "unencodable":
            return float(text)
        stands_for = {"digest_of": digest, "card": card, "profile": profile}.get(name)
        if stands_for is not None:
            return stands_for(text)
    return {name: filled(each, digest, card, profile) for name, each in value.items()}


def _parent(document: Any, pointer: str) -> tuple[Any, str]:
    *path, name = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in path:
        document = document[int(step) if isinstance(document, list) else step]
    return document, name
