from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import FunctionName
from anabranch.aggregates.partial import Partial, merged
from anabranch.errors import DynamicError
from anabranch.law.functions import BUILTINS
from anabranch.values.atomic import Untyped, spell
from anabranch.values.sequences import atomize
from mass import examples

FUNCTIONS: tuple[FunctionName, ...] = tuple(AGGREGATES)
NEEDS = "".join(each.needs for each in AGGREGATES.values())
NUMBERS = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.integers().map(str),
    st.sampled_from(["0", "-0", "0.0", "-0.00", "1e3", "1.5E-2", " 7 ", "INF", "-INF", "NaN", "1e400", "-1e400"]),
    st.sampled_from(["1e1100", "9.5e-1100", "1e1101", "1e99999", "1e-99999", "0." + "1" * 2_100, "9" * 2_100]),
)
TEXTS = st.one_of(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["x", "", "1,5", "y" * 60]))


def by_law(function: FunctionName, texts: list[str]) -> str:
    """What the evaluator gives, as text."""
    try:
        return " ".join(spell(each) for each in BUILTINS[function]([Untyped(text) for text in texts]))  # type: ignore[arg-type]
    except DynamicError as error:
        return str(error)


def by_parts(function: FunctionName, partial: Partial) -> str:
    try:
        return " ".join(map(spell, atomize(AGGREGATES[function].value(partial))))
    except DynamicError as error:
        return str(error)


@examples(150)
@given(st.lists(TEXTS, max_size=12), st.randoms(use_true_random=False))
def test_parts_give_what_the_whole_gives(texts: list[str], random: Random) -> None:
    """Partials of single values, merged two by two in any order, are the aggregate over all values (LAWS 2.2)."""
    parts = [Partial.of(text, order, needs=NEEDS) for order, text in enumerate(texts)] or [Partial()]
    while len(parts) > 1:
        one = parts.pop(random.randrange(len(parts)))
        other = random.randrange(len(parts))
        parts[other] = parts[other].merge(one)
    for function in FUNCTIONS:
        assert by_parts(function, parts[0]) == by_law(function, texts), function


@examples(50)
@given(st.lists(TEXTS, max_size=6), st.lists(TEXTS, max_size=6), st.lists(TEXTS, max_size=6))
def test_merging_is_associative_and_commutative(a: list[str], b: list[str], c: list[str]) -> None:
    """So a pane may be merged in whatever order its parts come; and nothing is neutral."""
    texts = [*a, *b, *c]
    singles = [Partial.of(text, order, needs=NEEDS) for order, text in enumerate(texts)]
    x, y, z = (merged(part) for part in (singles[: len(a)], singles[len(a) : len(a) + len(b)], singles[len(a + b) :]))
    assert x.merge(y).merge(z) == x.merge(y.merge(z)) == z.merge(x).merge(y)
    assert x.merge(Partial()) == Partial().merge(x) == x


def test_a_sum_over_months_keeps_every_digit() -> None:
    """A hundred million tenths are ten million, where doubles have long drifted away."""
    tenth = Partial.of("0.1", 0)
    for _ in range(8):
        tenth = merged([tenth] * 10)
    assert by_parts("sum", tenth) == "1.0E7"
    assert by_parts("avg", tenth) == "0.1"
    assert by_parts("sum", merged([tenth, Partial.of("1e-30", 1), Partial.of("-10000000", 2)])) == "1.0E-30"


def test_of_two_zeros_the_earlier_is_the_answer() -> None:
    """-0 and 0 are equal, so which of them is the least depends on their order, and on nothing else."""
    first, second = Partial.of("-0", 1), Partial.of("0", 2)
    for found in (first.merge(second), second.merge(first)):
        assert by_parts("min", found) == by_parts("max", found) == "-0"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_path_that_fails_goes_before_a_text_that_is_no_number(function: FunctionName) -> None:
    """The path is followed to its end before anything is summed; a count only needs the path."""
    failed = Partial.failed(DynamicError("division by zero", code="FOAR0001"), 7)
    both = Partial.of("x", 1).merge(failed)
    with pytest.raises(DynamicError, match="division by zero"):
        AGGREGATES[function].value(both)
    if function == "count":
        assert by_parts("count", Partial.of("x", 1)) == "1"
