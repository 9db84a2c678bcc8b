from __future__ import annotations

import pytest

from verifier import LogReport, Report, Verdict


def test_exit_codes_are_those_of_the_spec() -> None:
    assert [verdict.exit_code for verdict in Verdict] == [0, 4, 3]


@pytest.mark.parametrize(
    ("one", "other", "worse"),
    [
        (Verdict.VERIFIED, Verdict.CANNOT_VERIFY, Verdict.CANNOT_VERIFY),
        (Verdict.BROKEN, Verdict.CANNOT_VERIFY, Verdict.BROKEN),
        (Verdict.VERIFIED, Verdict.BROKEN, Verdict.BROKEN),
        (Verdict.VERIFIED, Verdict.VERIFIED, Verdict.VERIFIED),
    ],
)
def test_the_worse_of_two(one: Verdict, other: Verdict, worse: Verdict) -> None:
    assert one.worse(other) is other.worse(one) is worse
    logs = (LogReport("a", "x", one), LogReport("b", "x", other))
    assert Report(logs).verdict is worse


def test_without_a_log_nothing_is_verified() -> None:
    assert Report(()).verdict is Verdict.CANNOT_VERIFY
