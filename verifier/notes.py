"""What a replay notes of steps and of policy evidence as it folds records in (spec §8, §10.3).

Nothing here checks anything; the notes are for the checks of later records and for the report.
"""

from __future__ import annotations

from typing import Any

from verifier.cards import GOVERNED
from verifier.checks.event_rows import EVENT_ROWS, OF_A_CARD
from verifier.drift import drift, read_rebuilt
from verifier.evidence import Evidence
from verifier.governance import profile_of
from verifier.state import State
from verifier.tally import Tally
from verifier.witness import presented_of, witness

MAX_DRIFTS = 1000

_FIRST = ("supersedes", "prior_attempt")
_REFUSAL = ("refusal_reason", "refusal_count")
_OF_A_CARD = {
    kind: tuple(check.id for check in EVENT_ROWS if kind in check.kinds) for kind in OF_A_CARD
}


def note_step(record: Evidence, state: State) -> None:
    """Note a step whose beginning may be lost in an unsound record."""
    if not state.is_partial or state.cards.step(record.body["task"]) is not None:
        return
    if "supersedes" in record.body or "prior_attempt" in (record.known_document() or {}):
        state.unsure_steps.add(len(state.cards.flags))


def note_steps(count: int, tally: Tally) -> None:
    """Note steps whose first card here may not be their first (spec §15.2)."""
    tally.unjudged.update(dict.fromkeys(_FIRST, count))


def note_edge(record: Evidence, state: State, tally: Tally) -> None:
    """Note the checks that were not made as they rest on records before the left edge (§15.2)."""
    kind, card = record.kind or "", record.card
    if kind == "issued" or record.body.get("gate") == "issue":
        if state.cards.step(record.body["task"]) is None:
            tally.unjudged.update(_FIRST if kind == "issued" else _REFUSAL)
    elif card is None:
        if kind == "refused":
            tally.unjudged.update(_REFUSAL)
    elif card not in state.cards.numbers:
        state.carried.add(card)
        tally.unjudged.update(_OF_A_CARD[kind])


def note_profile(record: Evidence, state: State, tally: Tally) -> None:
    """Note the chain profile that an opened or configured brings into force, and its vkey."""
    tally.announced = record.body.get("vkey", tally.announced)
    digest = record.body.get("profile")
    if digest is not None:
        tally.profiles += 1
        data = record.openings.get("profile")
        state.governance.configure(digest, data, len(state.cards.flags))


def note_card(record: Evidence, claim: dict[str, Any], state: State, tally: Tally) -> None:
    """Note what a card shows of the policy behind it: when issued, and when first shown.

    `claim` is the body of its issued record.
    """
    number = state.cards.numbers[record.card or b""]
    document = record.known_document()
    shown = witness(document, presented_of(claim))
    if shown is not None:
        state.witnesses[number] = shown
        tally.bases += shown.evidence_class is not None
        tally.manifests += shown.fields > 0
    else:
        state.witnesses.pop(number, None)
    state.governance.issue(number, document)
    named = profile_of(document) is not None or state.governance.governs
    tally.governed += named and (document is not None or state.governance.governs)
    if named or state.floor:
        state.cards.flags[number] |= GOVERNED


def note_exception(record: Evidence, state: State, tally: Tally) -> None:
    """Note the exceptions of a dispatch, and where the rebuilt envelope differs."""
    number = state.cards.numbers.get(record.card or b"")
    if number is not None and "exceptions" in record.body:
        tally.exceptions.update(set(record.body["exceptions"]))
        whole = "rebuilt" in record.openings and record.envelope is not None
        state.excepted[number] = whole
    note_drift(record, tally)


def note_drift(record: Evidence, tally: Tally) -> None:
    """Note where a rebuilt envelope differs from the card (spec §8.6)."""
    data = record.openings.get("rebuilt")
    if data is None or record.card is None or record.seq is None:
        return
    document, rebuilt = record.known_document(), read_rebuilt(data)
    if document is None or rebuilt is None:
        return
    if len(tally.drifts) < MAX_DRIFTS:
        found = drift(record.seq, record.card, record.kind or "", document, rebuilt)
        tally.drifts.append(found)
    else:
        tally.unproven.add(f"where more than {MAX_DRIFTS} rebuilt envelopes differ")
