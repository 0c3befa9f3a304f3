"""Descriptions: what the text means, the round trip, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import StreamError
from anabranch.logic import EVERYTHING, And, Not, Operator, Or
from anabranch.stream.description import (
    MAX_DEPTH,
    MAX_LENGTH,
    Comparison,
    Description,
    parse,
    paths,
)
from anabranch.stream.path import Path


def compare(path: str, op: Operator, constant: Decimal | Fraction | str | int) -> Comparison:
    return Comparison(Path.parse(path), op, Decimal(constant) if isinstance(constant, int) else constant)


A, B, C = compare("a", "=", 1), compare("b", "<", 2), compare("c", ">=", 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", EVERYTHING),
        (" \n", EVERYTHING),
        ("true()", EVERYTHING),
        ("s = 2", compare("s", "=", 2)),
        ("s=-2.50", compare("s", "=", Decimal("-2.5"))),
        ("t > 50 div 3", compare("t", ">", Fraction(50, 3))),
        ("-1 div 0.5 <= t", compare("t", ">=", Fraction(-2))),
        ("./coord/cel/ra != .5", compare("coord/cel/ra", "!=", Decimal("0.5"))),
        ("@id = 'x'", compare("@id", "=", "x")),
        ('a/@b >= "it\'s"', compare("a/@b", ">=", "it's")),
        ("a = 'it''s'", compare("a", "=", "it's")),
        ("a = ''", compare("a", "=", "")),
        ("p:a = ' and '", compare("p:a", "=", " and ")),
        ("a = 1 and b < 2", And((A, B))),
        ("a = 1 and b < 2 or c >= 3", Or((And((A, B)), C))),
        ("a = 1 and (b < 2 or c >= 3)", And((A, Or((B, C))))),
        ("a = 1 and b < 2 and c >= 3", And((A, B, C))),
        ("not(a = 1)", Not(A)),
        ("not (a = 1 or b < 2)", Not[Comparison](Or((A, B)))),
        ("((a = 1))", A),
        (
            "not = 1 and and = 2 or or = 3",
            Or((And((compare("not", "=", 1), compare("and", "=", 2))), compare("or", "=", 3))),
        ),
        ("a-b.c = 1", compare("a-b.c", "=", 1)),
    ],
)
def test_means(text: str, expected: Description) -> None:
    """`and` binds closer than `or`, names are not reserved, constants keep their kind."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2 = a", "a = 2"),
        ("2 != a", "a != 2"),
        ("2 < a", "a > 2"),
        ("2 <= a", "a >= 2"),
        ("2 > a", "a < 2"),
        ("'x' >= a", "a <= 'x'"),
    ],
)
def test_constant_on_the_left(text: str, same: str) -> None:
    """A comparison with its constant on the left is turned round."""
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "expected one of = != < <= > >= at character 2"),
        ("a = ", "expected a number or a quoted string at character 5"),
        ("a = b", "expected a number or a quoted string at character 5"),
        ("1 = 2", "expected a path at character 5"),
        ("a == 1", "expected a number or a quoted string at character 4"),
        ("a = 1 div 0.0", "division by zero at character 11"),
        ("a = 1 div b", "expected a number at character 11"),
        ("a = 1 b = 2", "expected 'and', 'or' or the end at character 7"),
        ("a = 1 and", "expected a path, a constant, 'not(' or '(' at character 10"),
        ("(a = 1", "expected ')' at character 7"),
        ("not(a = 1", "expected ')' at character 10"),
        ("a = 1)", "expected 'and', 'or' or the end at character 6"),
        ("a = 'x", "at character 5"),
        ("a = 1e3", "at character 5"),
        ("a = 1.2.3", "at character 5"),
        ("count(a) = 1", "unknown function 'count' at character 1"),
        ("true(1)", "expected ')' at character 6"),
        ("@a/b = 1", "'@a/b' is not a path at character 1"),
        ("a[1] = 1", "at character 2"),
        ("//a = 1", "at character 1"),
        ("a = 1" + " " * MAX_LENGTH, "at most 10,000 characters"),
        ("(" * (MAX_DEPTH + 1) + "a = 1" + ")" * (MAX_DEPTH + 1), "more than 50 open parentheses at character 51"),
        ("not(" * 2000, "more than 50 open parentheses"),
    ],
)
def test_refuses(text: str, reason: str) -> None:
    """What is no description is refused with the place."""
    with pytest.raises(StreamError) as caught:
        parse(text)
    assert reason in caught.value.message


def test_paths_are_all_named_ones() -> None:
    """`paths` gives each path once, however deep it stands."""
    assert paths(parse("a = 1 and not(b/c < 2 or a = 3) or @d = 'x'")) == {
        Path(("a",)),
        Path(("b", "c")),
        Path(("@d",)),
    }
    assert paths(EVERYTHING) == frozenset()


def test_equal_decimals_are_equal_descriptions() -> None:
    """The spelling of a number does not count."""
    assert parse("a = 1.30") == parse("a = 1.3")
    assert hash(parse("a = 1.30")) == hash(parse("a = 1.3"))


names = st.sampled_from(["a", "b/c", "b/@d", "not", "and", "p:q", "é-1"])
constants = st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.text("ab'\" <&\n", max_size=5)
comparisons = st.builds(Comparison, names.map(Path.parse), st.sampled_from(get_args(Operator)), constants)
descriptions = st.recursive(
    st.just(EVERYTHING) | comparisons,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


@given(descriptions)
def test_text_round_trip(description: Description) -> None:
    """Written and read again it is the same description."""
    assert parse(str(description)) == description
