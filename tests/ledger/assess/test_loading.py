"""Reading a set of detectors, and the digest that names what it does."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.assess import DEFAULT, assess, load
from ledger.assess import loading as module
from ledger.assess.loading import digest, parse
from ledger.errors import LedgerError, ProposalInvalid

PACKAGE = Path(module.__file__).parent
DATA = (PACKAGE / "detectors.json").read_bytes()
CODE = {path.name: path.read_bytes() for path in PACKAGE.glob("*.py")}


def changed(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The data of the package after a change to a copy of it."""
    document = copy.deepcopy(json.loads(DATA))
    change(document)
    return json.dumps(document).encode()


def test_the_digest_is_that_of_sha256sum() -> None:
    names = sorted(CODE)
    listed = subprocess.run(
        ["sha256sum", "detectors.json", *names], cwd=PACKAGE, capture_output=True, check=True
    ).stdout
    total = subprocess.run(["sha256sum"], input=listed, capture_output=True, check=True).stdout
    assert total.decode().split()[0] == DEFAULT.digest


@pytest.mark.parametrize("name", sorted(CODE))
def test_a_change_of_any_source_changes_the_digest(name: str) -> None:
    assert digest(DATA, CODE) == DEFAULT.digest
    assert digest(DATA, {**CODE, name: CODE[name] + b"\n"}) != DEFAULT.digest
    assert digest(DATA, {n: text for n, text in CODE.items() if n != name}) != DEFAULT.digest


def test_a_change_of_the_data_changes_the_digest_and_what_fires(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_bytes(changed(lambda d: d["detectors"].pop(0)))
    own = load(path)
    assert own.digest != DEFAULT.digest
    assert "recursive_delete" in assess("sh", {"cmd": "rm -rf x"}).impact["fired_detectors"]
    answer = assess("sh", {"cmd": "rm -rf x"}, detectors=own)
    assert [] == answer.impact["fired_detectors"]
    assert {"id": own.id, "digest": own.digest} == answer.impact["detector_set"]


def test_a_copy_of_the_data_is_the_same_set(tmp_path: Path) -> None:
    shutil.copy(PACKAGE / "detectors.json", tmp_path / "copy.json")
    assert load(tmp_path / "copy.json").digest == DEFAULT.digest


def test_the_package_behaves_by_its_own_sources_only() -> None:
    """What a source imports of the product outside would not be in the digest."""
    imported = {
        line.split()[1]
        for text in CODE.values()
        for line in text.decode().splitlines()
        if line.startswith(("from ledger", "import ledger"))
    }
    assert {n for n in imported if not n.startswith("ledger.assess")} == {"ledger.errors"}


RULE = "/detectors/0/commands/0"


def at(document: Any, place: str) -> Any:
    """The value at a JSON pointer."""
    for step in place.split("/")[1:]:
        document = document[int(step) if step.isdigit() else step]
    return document


@pytest.mark.parametrize(
    ("place", "change", "pointer"),
    [
        ("", {"more": 1}, "/more"),
        ("", {"format": "x"}, "/format"),
        ("", {"id": "a b"}, "/id"),
        ("", {"options": []}, "/options"),
        ("", {"writers": {"cp": "first"}}, "/writers"),
        ("", {"carriers": {}}, "/carriers"),
        ("", {"members": {}}, "/members"),
        ("/detectors/0", {"hard": 1}, "/detectors/0/hard"),
        ("/detectors/0", {"irreversible": False}, "/detectors/0/irreversible"),
        ("/detectors/0", {"score": 101}, "/detectors/0/score"),
        ("/detectors/0", {"score": True}, "/detectors/0/score"),
        ("/detectors/0", {"undo": "a\nb"}, "/detectors/0/undo"),
        ("/detectors/0", {"undo": "x" * 4000}, "/detectors"),
        ("/detectors/0", {"id": "delete"}, "/detectors"),
        ("/detectors/0", {"signals": ["other"]}, "/detectors"),
        ("/detectors/0", {"paths": ["*****"]}, "/detectors/0/paths"),
        (RULE, {"words": []}, f"{RULE}/words"),
        (RULE, {"words": ["|"]}, f"{RULE}/words"),
        (RULE, {"unless": ["x"]}, f"{RULE}/unless"),
        ("/detectors/1/sql/0", {"sequence": ["...", "A"]}, "/detectors/1/sql/0/sequence"),
        ("/detectors/1/sql/0", {"sequence": []}, "/detectors/1/sql/0/sequence"),
        ("/carriers/0", {"reading": "x"}, "/carriers/0/reading"),
        ("/carriers/0", {"skip": -1}, "/carriers/0/skip"),
        ("/classes/0", {"tools": [""]}, "/classes/0/tools/0"),
    ],
)
def test_a_set_that_breaks_the_schema_is_refused_at_its_place(
    place: str, change: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(ProposalInvalid) as refused:
        parse(changed(lambda document: at(document, place).update(change)), CODE)
    assert pointer == refused.value.pointer


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"\xff", b"{", b'{"id": 1, "id": 1}', b"[" * 100_000, b"null"]
)
def test_what_is_no_set_is_refused(data: bytes) -> None:
    with pytest.raises(ProposalInvalid):
        parse(data, CODE)


def test_a_file_that_cannot_be_read_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="not readable") as refused:
        load(tmp_path / "missing.json")
    assert refused.value.hint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def names(place: Any) -> list[Any]:
    return sorted(place) if isinstance(place, dict) else list(range(len(place)))


@settings(deadline=None)
@given(st.data())
def test_any_member_replaced_by_any_value_is_a_set_or_is_refused(data: st.DataObject) -> None:
    document = json.loads(DATA)
    place: Any = document
    for _ in range(data.draw(st.integers(0, 4))):
        inner = place[data.draw(st.sampled_from(names(place)))]
        if isinstance(inner, dict | list) and inner:
            place = inner
    place[data.draw(st.sampled_from(names(place)))] = data.draw(JSON)
    try:
        loaded = parse(json.dumps(document).encode(), CODE)
    except ProposalInvalid:
        return
    answer = assess("sh", {"cmd": "rm -rf x; psql -c 'DROP TABLE x'"}, detectors=loaded)
    assert 0 <= answer.impact["score"] <= 100
