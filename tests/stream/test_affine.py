"""Unit changes: reduction to exact fractions, the laws of maps, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import StreamError
from anabranch.stream.affine import IDENTITY, MAX_DEPTH, MAX_LENGTH, Affine, parse

fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000)
maps = st.builds(Affine, fractions.filter(lambda a: a > 0), fractions)


@pytest.mark.parametrize(
    ("text", "a", "b"),
    [
        (".", 1, 0),
        ("(. - 32) * 5 div 9", Fraction(5, 9), Fraction(-160, 9)),
        ("32 + . * 9 div 5", Fraction(9, 5), 32),
        (".*1.10", Fraction(11, 10), 0),
        ("-(-.)", 1, 0),
        ("- -.5 + .", 1, Fraction(1, 2)),
        ("10 - (3 - .)", 1, 7),
        (". + . - . div 2", Fraction(3, 2), 0),
        ("(2 * 3) * (. - 1.)", 6, -6),
        (" (\n.\t) ", 1, 0),
    ],
)
def test_reduces_exactly(text: str, a: Fraction, b: Fraction) -> None:
    """An expression becomes the fractions a and b that school arithmetic gives."""
    assert parse(text) == Affine(Fraction(a), Fraction(b))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a number, '.' or '(' at character 1"),
        (". * .", "'.' is multiplied by itself at character 3"),
        ("1 div .", "division by '.' at character 3"),
        (". div (2 - 2)", "division by zero at character 3"),
        ("3", "does not depend on '.'"),
        (". - .", "does not depend on '.'"),
        ("5 - .", "decreases"),
        ("(. + 1", "expected ')' at character 7"),
        (". + 1)", "expected an operator at character 6"),
        (". 5", "expected an operator at character 3"),
        (". +", "expected a number, '.' or '(' at character 4"),
        (". * 1e3", "expected a number, '.' or an operator at character 6"),
        ("2 * number(.)", "'number()' would turn text into a number, but numbers are mapped at character 5"),
        ("xs:dateTime (.)", "'xs:dateTime()' would turn text into a number"),
        (". / 2", "at character 3"),
        (". div2", "at character 3"),
        ("__import__('os')", "at character 1"),
        ("." + " " * MAX_LENGTH, "at most 1,000 characters"),
        ("(" * (MAX_DEPTH + 1) + "." + ")" * (MAX_DEPTH + 1), "more than 50 open parentheses"),
        (". * 1" + "0" * 300, "at most 200 digits"),
    ],
)
def test_refuses(text: str, reason: str) -> None:
    """What is no increasing affine map is refused with the reason and, where there is one, the place."""
    with pytest.raises(StreamError) as caught:
        parse(text)
    assert reason in caught.value.message


def test_cannot_be_made_decreasing() -> None:
    """A map with a <= 0 cannot exist, however it is made."""
    with pytest.raises(StreamError, match="increasing"):
        Affine(Fraction(0), Fraction(1))


def test_deepest_allowed() -> None:
    """Parentheses up to the cap are read."""
    assert parse("(" * MAX_DEPTH + "." + ")" * MAX_DEPTH) == IDENTITY


@given(maps)
def test_text_round_trip(change: Affine) -> None:
    """Written and read again it is the same map."""
    assert parse(str(change)) == change


@given(maps, maps, fractions)
def test_composition_and_inverse(first: Affine, second: Affine, x: Fraction) -> None:
    """`then` applies one after the other, and the inverse undoes a map exactly."""
    assert first.then(second)(x) == second(first(x))
    assert first.then(first.inverse()) == IDENTITY
    assert first.inverse()(first(x)) == x


# Expressions beside the functions they stand for, so that nothing here has to parse.
Meaning: TypeAlias = tuple[str, Callable[[Fraction], Fraction]]
dot: Meaning = (".", lambda x: x)
numbers = st.decimals("0.01", 99, places=2).map(str)


def constant(text: str) -> Meaning:
    return text, lambda x: Fraction(text)


def plus(left: Meaning, right: Meaning) -> Meaning:
    return f"{left[0]} + {right[0]}", lambda x: left[1](x) + right[1](x)


def minus(left: Meaning, right: Meaning) -> Meaning:
    return f"{left[0]} - ({right[0]})", lambda x: left[1](x) - right[1](x)


def times(factor: str, inner: Meaning) -> Meaning:
    return f"{factor} * ({inner[0]})", lambda x: Fraction(factor) * inner[1](x)


def over(inner: Meaning, divisor: str) -> Meaning:
    return f"-({inner[0]}) div {divisor}", lambda x: -inner[1](x) / Fraction(divisor)


expressions = st.recursive(
    st.just(dot) | numbers.map(constant),
    lambda inner: st.one_of(
        st.builds(plus, inner, inner),
        st.builds(minus, inner, inner),
        st.builds(times, numbers, inner),
        st.builds(over, inner, numbers),
    ),
    max_leaves=5,
)


@given(expressions, fractions)
def test_agrees_with_direct_arithmetic(expression: Meaning, x: Fraction) -> None:
    """The reduced map gives what the expression gives when it is worked out for one value."""
    text, meaning = expression
    steep = 10**30  # makes every expression increasing
    assert parse(f". * {steep} + ({text})")(x) == steep * x + meaning(x)
