"""Shell text as simple commands."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.assess.shell import Command, parse, without_prefix


def words(text: str) -> list[tuple[str, ...]]:
    return [command.words for command in parse(text).commands]


@given(st.text(" ab-=/'\"\\", max_size=24))
def test_words_are_those_of_shlex_where_no_operator_stands(text: str) -> None:
    script = parse(text)
    try:
        expected = tuple(shlex.split(text))
    except ValueError:
        assert not script.parsable or text.endswith("\\")
        return
    assert script.parsable
    assert [command.words for command in script.commands] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b; c & d && e || f | g", [("a", "b"), ("c",), ("d",), ("e",), ("f",), ("g",)]),
        ("a\nb", [("a",), ("b",)]),
        ("a 'b;c' \"d|e\" f\\;g", [("a", "b;c", "d|e", "f;g")]),
        ("a # b; c\nd", [("a",), ("d",)]),
        ("a b#c", [("a", "b#c")]),
        ("a \\\n b", [("a", "b")]),
        ("a $(b c) d", [("b", "c"), ("a", "$()", "d")]),
        ('a "x $(b "c d") y"', [("b", "c d"), ("a", "x $() y")]),
        ("a `b c`", [("b", "c"), ("a", "$()")]),
        ("(a; b) | c", [("a",), ("b",), ("c",)]),
        ("f() { a; }", [("f",), ("{",), ("a",), ("}",)]),
        ("a $'\\x41\\n\\101\\''", [("a", "A\nA'")]),
        ("case x in a) b;; esac", [("case", "x", "in", "a"), ("b",), ("esac",)]),
        ("cat <<E | b\nc;d\nE\ne", [("cat",), ("b",), ("e",)]),
        ("function f { a; }", [("function", "f", "{"), ("a",), ("}",)]),
        ("a '{' b", [("a", "{", "b")]),
        ("a <(b) $(c)d", [("b",), ("c",), ("a", "$()", "$()d")]),
        ('a $"b c" "d$" $e', [("a", "b c", "d$", "$e")]),
        ("2>&1 a 3< b", [("a",)]),
    ],
)
def test_text_is_split_like_a_shell_does(text: str, expected: list[tuple[str, ...]]) -> None:
    assert expected == words(text)


@pytest.mark.parametrize("text", ["'a", '"a', "$'a", "$(a", "a `b", "(a", "cat <<E\na", '"$(a"'])
def test_what_does_not_parse_is_said_and_read_all_the_same(text: str) -> None:
    script = parse(text)
    assert not script.parsable
    assert script.commands != ()


def test_words_of_an_unparsable_text_are_given_without_quotes() -> None:
    assert ("rm", "-rf", "x") in words("echo 'a; rm -rf \"x")


def test_redirections_name_the_files_written() -> None:
    assert [Command(("a",), ("b", "c", "d"), None, True)] == list(
        parse("a > b 2>> c >| d < e 2>&1 >&-").commands
    )


@pytest.mark.parametrize(
    ("text", "stdin"),
    [
        ("b <<'E'\nx $(y)\nz\nE\n", "x $(y)\nz"),
        ("b <<-E\n\tx\n\tE\n", "x"),
        ("b <<< 'x y'", "x y"),
        ("echo -e 'x y' z | b", "x y z"),
        ("printf x |\n b", "x"),
        ("cat <<E | b\nx\nE\n", "x"),
        ("echo x | cat | b", "x"),
        ("sudo -u root echo x | b", "x"),
    ],
)
def test_what_a_command_is_fed_is_known_where_it_stands_in_the_text(text: str, stdin: str) -> None:
    (command,) = [c for c in parse(text).commands if c.words == ("b",)]
    assert stdin == command.stdin


@pytest.mark.parametrize("text", ["a | b", "b < a", "(echo a) | b", "a |& b"])
def test_a_command_fed_from_elsewhere_is_told(text: str) -> None:
    (command,) = [c for c in parse(text).commands if c.words == ("b",)]
    assert (True, None) == (command.fed, command.stdin)


def test_only_a_bare_delimiter_leaves_substitutions_to_the_shell() -> None:
    assert ("$(x)",) == parse("a <<E\n$(x)\nE\n").documents
    assert () == parse("a <<'E'\n$(x)\nE\n").documents


def test_assignments_and_keywords_before_a_program_are_dropped() -> None:
    assert ("rm", "x") == without_prefix(("then", "A=b", "B+=c", "!", "rm", "x"))
    assert () == without_prefix(("A=b",))


@given(st.text(st.sampled_from("a \n;|&()<>{}'\"`$\\#=<-EOF"), max_size=60))
def test_any_text_is_split(text: str) -> None:
    script = parse(text)
    assert sum(len(w) for c in script.commands for w in c.words) <= 5 * len(text)
