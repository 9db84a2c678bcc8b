"""SQL text as statements of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.assess.rules import SqlRule
from ledger.assess.sql import first_words, matches, parse

DROP = SqlRule((("DROP",), ("TABLE", "SCHEMA")))
DELETE = SqlRule((("DELETE",), ("<name>",)), unless=("WHERE",))
ALTER = SqlRule((("ALTER",), ("TABLE",), ("...",), ("DROP",), ("!NOT", "DEFAULT")))


def texts(text: str) -> list[str]:
    return [token.text for token in parse(text).tokens]


def test_tokens_are_in_upper_case_and_strings_are_hidden() -> None:
    assert ["SELECT", "<text>", ",", "<name>", ",", "A.B", ",", "1", ";", ";"] == texts(
        "select 'drop table x', \"Drop\", a.b, 1; -- drop table x"
    )


@pytest.mark.parametrize(
    "text",
    [
        "drop table x",
        "SELECT 1;DROP/**/TABLE x",
        "/* a */ drop schema x",
        "-- a\ndrop table x",
        "/*!50000 DROP TABLE x */",
        "DO $body$ BEGIN DROP TABLE x; END $body$",
        "SELECT 1\nDROP TABLE x",
        "BEGIN DROP TABLE x",
        "SELECT '\\'; DROP TABLE x; --'",
        "SELECT 'a\\'; DROP TABLE x; --",
        "DROP TABLE 'x",
        "' DROP TABLE x",
    ],
)
def test_a_statement_is_found(text: str) -> None:
    assert matches(DROP, parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'DROP TABLE x'",
        "SELECT 'it''s; DROP TABLE x'",
        "SELECT drop_table FROM x",
        "/* DROP TABLE x */",
        "-- DROP TABLE x",
        'SELECT "; DROP TABLE x"',
        "never drop table x",
        "DROP; TABLE",
    ],
)
def test_what_is_no_statement_is_not_found(text: str) -> None:
    assert not matches(DROP, parse(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("DELETE FROM t", True),
        ("DELETE FROM t WHERE a", False),
        ("DELETE FROM t; SELECT 1 WHERE a", True),
        ("DELETE FROM t USING (SELECT 1 WHERE a) b", True),
        ("WITH d AS (DELETE FROM t) SELECT 1 WHERE a", True),
        ("WITH d AS (DELETE FROM t WHERE a) SELECT 1", False),
        ('DELETE FROM "where"', True),
        ("DELETE FROM t -- WHERE a", True),
        ("GRANT DELETE ON t TO r", False),
    ],
)
def test_a_condition_counts_in_its_own_statement_only(text: str, found: bool) -> None:
    assert found is matches(DELETE, parse(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ALTER TABLE a.t DROP c", True),
        ("ALTER TABLE t ADD a int, DROP COLUMN c", True),
        ("ALTER TABLE t ALTER c DROP NOT NULL", False),
        ("ALTER TABLE t ALTER c DROP DEFAULT, DROP d", True),
        ("ALTER TABLE t ADD a int; DROP c", False),
    ],
)
def test_a_gap_stays_in_its_statement(text: str, found: bool) -> None:
    assert found is matches(ALTER, parse(text))


@pytest.mark.parametrize("text", ["'a", '"a', "`a", "/* a", "a 'b''"])
def test_an_open_quote_or_comment_is_told(text: str) -> None:
    assert not parse(text).parsable


def test_each_statement_names_its_first_word() -> None:
    assert ["SELECT", "DROP"] == list(first_words(parse("(select 1); ; drop table x")))


@given(st.text(st.sampled_from("aD; \n'\"`\\$/*-()[].1!"), max_size=60))
def test_any_text_is_split(text: str) -> None:
    assert len(parse(text).tokens) <= 3 * (len(text) + 1)
