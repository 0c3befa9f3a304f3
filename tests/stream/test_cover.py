from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.logic import EVERYTHING, And, Not, Operator, Or
from anabranch.stream.cover import covered_below, passed
from anabranch.stream.description import Comparison, Description, parse
from anabranch.stream.elements import Place, Punctuation
from anabranch.stream.path import Path

T = Path.parse("t")

COVERED: tuple[tuple[str, float | None], ...] = (
    ("t < 5", 5),
    ("t <= 5", 5),
    ("t != 5", 5),
    ("t = 5", None),
    ("t > 5", None),
    ("t >= 5", None),
    ("not(t > 5)", 5),
    ("not(t >= 5)", 5),
    ("not(t < 5)", None),
    ("not(not(t < 5))", 5),
    ("t < 5 or t < 7", 7),
    ("t < 5 and t < 7", 5),
    ("t < 5 or a = 'x'", 5),
    ("t < 5 and a = 'x'", None),
    ("a = 'x'", None),
    ("a < 5", None),
    ("t < '5'", None),
    ("not(t > 5 or t > 3)", 3),
    ("not(t > 5 and a = 1)", 5),
    ("not(true())", None),
    ("true()", math.inf),
    ("true() and t < 5", 5),
    ("t < 5 or true()", math.inf),
    ("t < -2.5", -2.5),
)


@pytest.mark.parametrize(("text", "expected"), COVERED)
def test_what_a_description_covers(text: str, expected: float | None) -> None:
    """Everything below a value, as far as the description says it of that path alone."""
    assert covered_below(parse(text), T) == expected


def test_a_reference_without_a_name() -> None:
    """Only what covers every item covers it."""
    assert covered_below(parse("t < 5"), None) is None
    assert covered_below(parse("true()"), None) == math.inf


def heartbeat(at: str) -> Punctuation:
    return Punctuation(None, Place("s", "p", 0), Decimal(at))


def test_a_heartbeat_speaks_of_the_declared_time() -> None:
    """Nothing with an earlier time follows; of other paths it says nothing."""
    assert passed(heartbeat("12.5"), T, T) == Fraction(25, 2)
    assert passed(heartbeat("12.5"), T, Path.parse("u")) is None
    assert passed(heartbeat("12.5"), T, None) is None
    assert passed(heartbeat("12.5"), None, None) is None


def test_a_described_punctuation_says_what_it_describes() -> None:
    """Its time is its place in the merge, and nothing else."""
    told = Punctuation(parse("t < 3"), Place("s", "p", 0), Decimal(9))
    assert passed(told, T, T) == 3


def holds(description: Description, values: dict[Path, int]) -> bool:
    """The meaning of a description, for an item that has all paths."""
    match description:
        case And(()):
            return True
        case And(parts):
            return all(holds(part, values) for part in parts)
        case Or(parts):
            return any(holds(part, values) for part in parts)
        case Not(part):
            return not holds(part, values)
        case Comparison(path, op, constant):
            left, right = values[path], int(constant)
            outcomes: dict[Operator, bool] = {
                "=": left == right,
                "!=": left != right,
                "<": left < right,
                "<=": left <= right,
                ">": left > right,
                ">=": left >= right,
            }
            return outcomes[op]


OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
DESCRIPTIONS = st.recursive(
    st.builds(
        Comparison,
        st.sampled_from((T, Path.parse("a"))),
        st.sampled_from(OPERATORS),
        st.integers(0, 4).map(Decimal),
    )
    | st.just(EVERYTHING),
    lambda inner: (
        st.builds(Not, inner) | st.builds(And, st.tuples(inner, inner)) | st.builds(Or, st.tuples(inner, inner, inner))
    ),
    max_leaves=6,
)


@given(DESCRIPTIONS, st.integers(-2, 7), st.integers(-2, 7))
def test_nothing_is_said_to_be_covered_that_is_not(description: Description, t: int, a: int) -> None:
    """Law: whatever lies below fulfils the description, whatever its other values are."""
    below = covered_below(description, T)
    if below is not None and t < below:
        assert holds(description, {T: t, Path.parse("a"): a})
