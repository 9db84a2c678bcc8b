"""The three properties of each approval, kept apart (spec §8), worked out when they are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from verifier.cards import APPROVED, DISPATCHED
from verifier.checks import CHECKS
from verifier.replay import Replay
from verifier.report import Approval, Outcome, Property
from verifier.spec import EVIDENCE_CLASSES
from verifier.witness import Witness

_PROVENANCE = frozenset({"claim", "floor", "fixed_parameter", "self_approval", "assurance"})
_PRESENTATION = frozenset({"manifest"})
_EXECUTION = frozenset(check.id for check in CHECKS) - _PROVENANCE - _PRESENTATION
_NOTHING = Witness()


class Approvals(Collection[Approval]):
    """The cards of a log that were approved, in the order in which they were issued.

    A log has as many as it has cards, so they are made one by one from what the replay holds.
    """

    __slots__ = ("replay",)

    def __init__(self, replay: Replay) -> None:
        """Take what was replayed."""
        self.replay = replay

    def __eq__(self, other: object) -> bool:
        """Say whether the other ones are the same approvals."""
        return isinstance(other, Approvals) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        """Count them."""
        return sum(flags & APPROVED for flags in self.replay.state.cards.flags)

    def __contains__(self, approval: object) -> bool:
        """Say whether an approval is one of these."""
        return any(own == approval for own in self)

    def __iter__(self) -> Iterator[Approval]:
        """Give them."""
        cards = self.replay.state.cards
        for card, number in cards.numbers.items():
            if cards.flags[number] & APPROVED:
                yield self._approval(card, number)

    def _approval(self, card: bytes, number: int) -> Approval:
        state = self.replay.state
        blamed = self.replay.blamed.get(card, [])
        shown = state.witnesses.get(number, _NOTHING)
        why = doubt(self.replay, number)
        general = _not_checked(why) if why else None
        return Approval(
            card=card.hex(),
            execution=_failed(blamed, _EXECUTION) or general or self._execution(number),
            provenance=_failed(blamed, _PROVENANCE) or general or self._provenance(number, shown),
            presentation=_failed(blamed, _PRESENTATION) or general or _presentation(shown),
            asserted=shown.asserted,
        )

    def _execution(self, number: int) -> Property:
        state = self.replay.state
        if not state.cards.flags[number] & DISPATCHED:
            return _not_checked("not dispatched")
        whole = state.excepted.get(number)
        if whole is None:
            return _passed("what was rebuilt at dispatch is what was approved")
        if not whole:
            return _not_checked("an exception, and an envelope is absent")
        return _passed("what was rebuilt differs as the exception basis_drift allows")

    def _provenance(self, number: int, shown: Witness) -> Property:
        if not shown.has_envelope:
            return _not_checked("the envelope is absent")
        if shown.evidence_class is None:
            return _not_checked("no approval basis")
        rules = self.replay.state.governance.of_card(number)
        if rules.missing:
            missing = ", ".join(digest.hex() for digest in rules.missing)
            return _not_checked(f"the profile {missing} is not at hand")
        if not rules.complete:
            return _not_checked("the profile in force is not known")
        if EVIDENCE_CLASSES.index(shown.evidence_class) < self.replay.state.floor:
            return _not_checked(f"the floor of the auditor is above {shown.evidence_class}")
        return _passed(f"evidence class {shown.evidence_class}, claimed and derived")


def doubt(replay: Replay, number: int) -> str:
    """Give why nothing sure can be said of a card; empty where it can."""
    if replay.failed["key_missing"]:
        return "a key is missing"
    if not replay.state.judges_card(number):
        return "a missing or unsound record stands after it"
    return ""


def _failed(blamed: list[str], ids: frozenset[str]) -> Property | None:
    found = [check for check in blamed if check in ids]
    return Property(Outcome.FAIL, ", ".join(found)) if found else None


def _presentation(shown: Witness) -> Property:
    if not shown.has_envelope:
        return _not_checked("the envelope is absent")
    if not shown.fields:
        return _not_checked("no review manifest")
    view = f", and its view {shown.view}" if shown.view else ""
    return _passed(f"{shown.fields} fields say what the envelope says{view}")


def _passed(detail: str) -> Property:
    return Property(Outcome.PASS, detail)


def _not_checked(detail: str) -> Property:
    return Property(Outcome.NOT_CHECKED, detail)
