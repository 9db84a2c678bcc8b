from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from verifier.governance import LOST, Governance, load_profiles
from verifier.profile import NO_RULES, parse_profile


def profile(**changed: Any) -> bytes:
    members = {
        "format": "cardchain-profile/1",
        "minimum": "none",
        "required": [],
        "grant_ttl": "optional",
        "self_approval": "allow",
        "assurance": "label",
        "fixed_parameters": [],
        "critical": [],
        "basis_drift": "review",
        **changed,
    }
    return json.dumps(members, sort_keys=True, separators=(",", ":")).encode()


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


STRICT = profile(minimum="selection", basis_drift="allow_if_allowed")
LENIENT = profile(basis_drift="allow_if_allowed")
REVIEW = profile()


def naming(data: bytes) -> dict[str, Any]:
    return {"approval_basis": {"profile": digest(data).hex()}}


def test_without_a_profile_nothing_holds() -> None:
    rules = Governance().at_issue({})
    assert (rules.profile, rules.missing, rules.complete) == (NO_RULES, (), True)
    assert rules.allows_drift is False


def test_a_card_keeps_the_chain_profile_it_was_issued_under() -> None:
    governance = Governance()
    governance.configure(digest(STRICT), STRICT, 1)
    governance.configure(digest(LENIENT), LENIENT, 3)
    governance.configure(digest(REVIEW), REVIEW, 3)
    minima = [governance.of_card(number).profile.minimum for number in range(4)]
    assert minima == [0, 2, 2, 0]
    assert governance.of_card(2).allows_drift is True
    assert governance.of_card(3).allows_drift is False


def test_chain_and_card_profile_hold_together() -> None:
    governance = Governance({digest(LENIENT): parse_profile(LENIENT)})
    governance.configure(digest(STRICT), STRICT, 0)
    governance.issue(0, naming(LENIENT))
    rules = governance.of_card(0)
    assert (rules.profile.minimum, rules.allows_drift, rules.complete) == (2, True, True)


def test_a_profile_that_is_not_at_hand_is_named_and_the_other_still_holds() -> None:
    governance = Governance()
    governance.configure(digest(STRICT), STRICT, 0)
    rules = governance.at_issue(naming(REVIEW))
    assert rules.missing == (digest(REVIEW),)
    assert (rules.profile.minimum, rules.complete, rules.allows_drift) == (2, False, None)


def test_a_review_that_is_known_is_sure_whatever_else_holds() -> None:
    governance = Governance()
    governance.configure(digest(REVIEW), REVIEW, 0)
    assert governance.at_issue(naming(STRICT)).allows_drift is False


def test_a_malformed_profile_is_not_asked_for_again() -> None:
    governance = Governance()
    governance.configure(digest(b"{}"), b"{}", 0)
    rules = governance.at_issue({})
    assert (rules.missing, rules.complete) == ((), False)


def test_what_an_unsound_record_may_have_changed_is_lost_until_the_next_profile() -> None:
    governance = Governance()
    governance.configure(digest(STRICT), STRICT, 0)
    governance.lose(2)
    governance.configure(digest(LENIENT), LENIENT, 3)
    assert [governance.of_card(number).complete for number in range(4)] == [True, True, False, True]
    assert governance.of_card(2).profile == NO_RULES
    assert governance.was_lost


def test_the_profile_of_an_absent_envelope_is_lost_until_it_is_shown() -> None:
    governance = Governance({digest(STRICT): parse_profile(STRICT)})
    governance.issue(0, None)
    assert not governance.of_card(0).complete
    assert governance.shown(0, naming(STRICT)).profile.minimum == 2
    governance.issue(0, {})
    assert governance.of_card(0).complete
    assert governance.rules(LOST, None).allows_drift is None


def test_files_are_named_by_their_canonical_form(tmp_path: Path) -> None:
    file, spelled = tmp_path / "profile.json", tmp_path / "spelled.json"
    file.write_bytes(STRICT)
    spelled.write_text(json.dumps(json.loads(STRICT), indent=2) + "\n")
    assert load_profiles([str(file)]) == ({digest(STRICT): parse_profile(STRICT)}, [])
    assert load_profiles([str(spelled)]) == load_profiles([str(file)])


def test_files_that_are_no_profile_are_warned_of(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("twice", "other", "folder", "missing")]
    files[0].write_bytes(b'{"format":1,"format":1}')
    files[1].write_bytes(profile(minimum="all"))
    files[2].mkdir()
    library, warnings = load_profiles(map(str, files))
    assert library == {}
    assert [text.split(" is not used: ")[0] for text in warnings] == [
        f"profile file {file}" for file in files
    ]
    assert "a repeated name" in warnings[0]
    assert "/minimum" in warnings[1]
