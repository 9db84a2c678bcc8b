"""Every way in which the ledger says no."""

from __future__ import annotations

import pickle
import re
import shlex
from dataclasses import dataclass

import pytest

from ledger import errors, kinds
from ledger.errors import LedgerError


@dataclass
class Place:
    """Stands for a record: an error asks it for nothing but its seq."""

    seq: int


ERRORS: dict[type[LedgerError], tuple[LedgerError, int]] = {
    errors.ProposalInvalid: (errors.ProposalInvalid("/ttl", "missing"), 2),
    errors.UnknownCard: (errors.UnknownCard("0123"), 2),
    errors.AmbiguousPrefix: (errors.AmbiguousPrefix("01", 2), 2),
    errors.Malformed: (errors.Malformed("map keys are not sorted", 17), 3),
    errors.EnvelopeMalformed: (errors.EnvelopeMalformed("/task", "missing"), 3),
    errors.BrokenLedger: (errors.BrokenLedger("a.cbor", 17, 3, "bad link"), 3),
    errors.VersionUnknown: (errors.VersionUnknown("cardchain/2", "cardchain/1"), 4),
    errors.Refused: (errors.Refused("resolve", "expired", count=1, record=Place(7)), 5),
    errors.KeyMissing: (errors.KeyMissing(bytes(16), bytes(8)), 6),
    errors.ProfileMissing: (errors.ProfileMissing(bytes(32)), 6),
    errors.SignerMissing: (errors.SignerMissing(bytes(16)), 6),
    errors.SignerExists: (errors.SignerExists("cardchain/00+00000000+AQ"), 2),
    errors.SignerRefuses: (errors.SignerRefuses("ledger", 9, "the ledger holds only 3"), 3),
    errors.StoreFailed: (errors.StoreFailed("no space left on device"), 6),
    errors.Dead: (errors.Dead("sync failed"), 6),
    errors.LockTimeout: (errors.LockTimeout("lock", 5.0), 6),
    errors.LooseMode: (errors.LooseMode("key.json", 0o100644), 6),
    errors.RolledBack: (errors.RolledBack("ledger", 12), 6),
    errors.Copied: (errors.Copied("ledger"), 6),
    errors.ClockWentBack: (errors.ClockWentBack("ledger", 2_000, 1_000), 6),
    errors.NoStateDirectory: (errors.NoStateDirectory("HOME is not set"), 6),
}


def test_every_error_is_in_these_tests() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    here = {kind for kind in classes if issubclass(kind, LedgerError)} - {LedgerError}
    assert here == set(ERRORS)


@pytest.mark.parametrize("kind", ERRORS)
def test_error_has_its_exit_status(kind: type[LedgerError]) -> None:
    error, status = ERRORS[kind]
    assert error.exit_status == status


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_comes_whole_out_of_another_process(kind: type[LedgerError]) -> None:
    error, _ = ERRORS[kind]
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.hint) == (kind, str(error), error.hint)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("kind", ERRORS)
def test_message_and_hint_are_lower_case_lines_without_full_stop(kind: type[LedgerError]) -> None:
    error, _ = ERRORS[kind]
    for text in (str(error), error.hint):
        assert re.fullmatch(r"[^A-Z\n].*[^.\n]", text)


def test_a_path_in_a_hint_is_one_word_of_a_shell() -> None:
    path = "my ledger; $(halt) 'x'"
    for error in (errors.Copied(path), errors.LooseMode(path, 0o666)):
        assert shlex.split(error.hint)[-1] == path
    assert shlex.split(errors.ClockWentBack(path, 2, 1).hint)[-5] == path


HOSTILE = "\x1b[2J\u202e\n"


@pytest.mark.parametrize(
    "error",
    [
        errors.ProposalInvalid(f"/{HOSTILE}", "missing"),
        errors.UnknownCard(HOSTILE),
        errors.AmbiguousPrefix(HOSTILE, 2),
        errors.Malformed("unknown member", pointer=f"/{HOSTILE}"),
        errors.BrokenLedger(HOSTILE, 0, None, "bad link"),
        errors.VersionUnknown(HOSTILE, "cardchain/1"),
        errors.Refused("dispatch", "mismatch", count=9, record=None, pointers=(f"/{HOSTILE}",)),
        errors.SignerExists(HOSTILE),
        errors.SignerRefuses(HOSTILE, 9, "the ledger holds only 3"),
        errors.StoreFailed(HOSTILE),
        errors.Dead(HOSTILE),
        errors.LockTimeout(HOSTILE, 1),
        errors.LooseMode(HOSTILE, 0o644),
        errors.RolledBack(HOSTILE, 1),
        errors.Copied(HOSTILE),
        errors.ClockWentBack(HOSTILE, 2, 1),
        errors.NoStateDirectory(HOSTILE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_text_from_outside_is_escaped(error: LedgerError) -> None:
    assert not re.search("[\x1b\u202e\n]", str(error) + error.hint)
    assert "\\u{1b}" in str(error) + error.hint


def test_malformed_bytes_are_told_with_their_place() -> None:
    error = errors.Malformed("unknown member", 17, "/approver/x")
    assert str(error) == "malformed record, offset 17: /approver/x: unknown member"
    error = errors.EnvelopeMalformed("", "not in canonical form")
    assert str(error) == "malformed envelope: not in canonical form"


def test_refusal_names_its_record() -> None:
    error = errors.Refused("resolve", "expired", count=1, record=Place(7))
    assert str(error) == "refused at resolve: expired, seq 7"
    assert error.recorded


def test_refusal_of_a_flood_says_that_it_has_no_record() -> None:
    error = errors.Refused("resolve", "expired", count=9, record=None)
    assert str(error) == "refused at resolve: expired, not recorded again (count 9)"
    assert not error.recorded


def test_refusal_names_what_differs() -> None:
    error = errors.Refused("dispatch", "mismatch", count=1, record=Place(3), pointers=("/a", "/b"))
    assert "mismatch at /a, /b, seq 3" in str(error)


def test_refusal_that_differs_in_many_places_names_some_and_holds_all() -> None:
    places = tuple(f"/{n}" for n in range(1_000))
    error = errors.Refused("dispatch", "mismatch", count=1, record=Place(3), pointers=places)
    assert "mismatch at /0, /1, /2, /3, /4 and 995 more, seq 3" in str(error)
    assert error.pointers == places


def test_loose_mode_says_found_expected_and_the_command() -> None:
    error = errors.LooseMode("key.json", 0o100644)
    assert str(error) == "key.json: mode 0644, expected 0600"
    assert error.hint == "run: chmod 600 key.json"


def test_clock_that_went_back_names_the_command_that_records_it() -> None:
    assert "cardchain clock-reset ledger --by ID --reason clock_fixed" in (
        errors.ClockWentBack("ledger", 2_000, 1_000).hint
    )


def test_copied_ledger_names_the_command_that_adopts_it() -> None:
    assert "cardchain adopt ledger" in errors.Copied("ledger").hint


def test_bad_use_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="/ttl: missing"):
        raise errors.ProposalInvalid("/ttl", "missing")


def test_missing_key_names_the_kid_and_the_chain() -> None:
    error = errors.KeyMissing(bytes(range(16)), bytes(range(8)))
    assert str(error) == "no key 0001020304050607 for chain 000102030405060708090a0b0c0d0e0f"


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("hash_mismatch", "echo the hash in its last line"),
        ("already_dispatched", "do not run it again"),
        ("not_latest", "newest card"),
        ("policy_denied", "correct the request"),
    ],
)
def test_a_refusal_says_what_to_do_about_its_reason(reason: str, word: str) -> None:
    refused = errors.Refused("dispatch", reason, count=1, record=None)
    assert word in refused.hint
    assert refused.hint.endswith("; a refusal changes no state")


def test_what_to_do_is_said_of_reasons_that_there_are() -> None:
    known = {reason for reasons in kinds.REASONS.values() for reason in reasons}
    assert errors._NEXT.keys() - known == set()
