"""The functions of the registry one by one: exact values, judged by fractions and by Python's own statistics."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import AGGREGATES, BY_PANES
from anabranch.aggregates.exact import root
from anabranch.aggregates.partial import Partial, merged
from anabranch.aggregates.written import partial_from_json, partial_to_json
from anabranch.errors import DynamicError
from anabranch.language.signatures import SIGNATURES
from anabranch.stream.affine import Affine
from anabranch.values.atomic import Untyped, spell
from anabranch.values.numbers import nearest_double
from anabranch.values.sequences import atomize
from mass import examples

DECIMALS = st.one_of(
    st.decimals(-1000, 1000, places=2).map(str),
    st.integers(-5, 5).map(str),
    st.sampled_from(["1e300", "-1e300", "1e-300", "0.1", "100000000000000000000.1", "1e400"]),
)

MOMENTS = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.5Z", "2025-12-31T00:00:00")


def by_law(function: str, values: Sequence[str]) -> str:
    return " ".join(map(spell, atomize(AGGREGATES[function].law([Untyped(each) for each in values]))))


@examples(200)
@given(st.lists(DECIMALS, min_size=2, max_size=9))
def test_statistics_are_those_of_exact_fractions(values: list[str]) -> None:
    """Median and standard deviation are what Python computes of fractions and rounds once (LAWS 2.2)."""
    exact = [Fraction(each) for each in values]
    assert by_law("median", values) == spell(nearest_double(statistics.median(exact)))
    variance = statistics.variance(exact)
    found = float(by_law("stddev", values).replace("INF", "inf"))
    assert is_nearest(found, variance)


def is_nearest(double: float, square: Fraction) -> bool:
    """Whether a double is the nearest to a root: its square lies between those of the numbers where rounding turns."""
    if math.isinf(double):
        return square >= (Fraction(2) ** 1024 - Fraction(2) ** 970) ** 2
    below, above = math.nextafter(double, -math.inf), math.nextafter(double, math.inf)
    low = max(Fraction(0), (Fraction(below) + Fraction(double)) / 2)
    high = (Fraction(double) + Fraction(above)) / 2 if math.isfinite(above) else Fraction(2) ** 1024
    return low * low <= square <= high * high


@examples(200)
@given(
    st.fractions(min_value=0).filter(bool) | st.builds(Fraction, st.integers(1, 10**80), st.integers(1, 10**80)),
    st.builds(Fraction, st.integers(1, 10**30), st.integers(1, 10**30)),
)
def test_a_root_is_not_rounded_twice(square: Fraction, factor: Fraction) -> None:
    """In any unit a standard deviation is the double nearest to the true one, and exact where there is a fraction."""
    assert is_nearest(nearest_double(root(square)), square)
    assert is_nearest(nearest_double(factor * root(square)), factor * factor * square)
    assert root(square * square) == square


def test_a_root_between_two_doubles() -> None:
    """Where the true root is a hair beside the middle of two doubles, it is rounded to its own side."""
    middle = Fraction(2**53 + 1)
    for hair in (Fraction(1, 10**60), Fraction(-1, 10**60)):
        assert nearest_double(root(middle * middle + hair)) == (2**53 + 2 if hair > 0 else 2**53)


@pytest.mark.parametrize(
    ("function", "values", "answer"),
    [
        ("median", "", ""),
        ("median", "7.50", "7.5"),
        ("median", "2 NaN 3", "NaN"),
        ("median", "INF 1", "INF"),
        ("median", "INF -INF 1", "1"),
        ("median", "-0 -0", "0"),
        ("median", "0.1 0.2", "0.15"),
        ("stddev", "", ""),
        ("stddev", "INF", ""),
        ("stddev", "2 2 2", "0"),
        ("stddev", "2 4", "1.4142135623730951"),
        ("stddev", "2 NaN", "NaN"),
        ("stddev", "0.1 0.2 0.3", "0.1"),
        ("min", "2026-01-01T00:00:00.5Z 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("max", "2026-01-01T00:00:00Z 2026-01-01T01:00:00+01:00 2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("min", "2026-01-01T01:00:00+01:00 2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"),
        ("count", "2026-01-01T00:00:00Z 7", "2"),
    ],
)
def test_values(function: str, values: str, answer: str) -> None:
    """LAWS 2.1 and 2.2, by law and from partials."""
    texts = values.split()
    assert by_law(function, texts) == answer
    known = merged(Partial.of(each, place, needs="cslgqv") for place, each in enumerate(texts))
    assert " ".join(map(spell, atomize(AGGREGATES[function].value(known)))) == answer


@examples(100)
@given(
    st.lists(st.decimals(-100, 100, places=1).map(Fraction), min_size=2, max_size=6),
    st.builds(Fraction, st.integers(1, 50), st.integers(1, 9)),
    st.builds(Fraction, st.integers(-50, 50), st.integers(1, 9)),
)
def test_aggregates_follow_units(values: list[Fraction], a: Fraction, b: Fraction) -> None:
    """LAWS 4.2 a: what a function says that a unit change makes of it is what it gives for the changed values."""
    by = Affine(a, b)
    for function in AGGREGATES.values():
        before, after = (
            merged(Partial.of(each, place, needs=function.needs) for place, each in enumerate(given))
            for given in (values, [by(each) for each in values])
        )
        follows = function.follows(by)
        if follows is not None:
            (old,), (new,) = function.value(before), function.value(after)
            assert nearest_double(follows(getattr(old, "exact"))) == new, function.name  # noqa: B009


def test_the_language_knows_the_registry() -> None:
    """What is registered can be called, and what windows are put together of is what columns hold."""
    assert set(AGGREGATES) <= set(SIGNATURES)
    assert set(BY_PANES) == {"count", "sum", "avg", "min", "max"}


@examples(100)
@given(
    st.lists(DECIMALS | st.fractions() | st.sampled_from(["INF", "-INF", "NaN", "-0", "x"]), max_size=6)
    | st.lists(st.sampled_from(MOMENTS), max_size=6)
)
def test_partials_are_written_and_read(values: list[str | Fraction]) -> None:
    """As JSON nothing is lost, and what an earlier release wrote is read."""
    known = merged(Partial.of(each, place, needs="cslgqv") for place, each in enumerate(values))
    read = partial_from_json(json.loads(json.dumps(partial_to_json(known))))
    assert outcomes(read) == outcomes(known)
    more = Partial.of("-0", 99, needs="cslgqv")
    assert outcomes(read.merge(more)) == outcomes(known.merge(more))
    before_all, behind_all = (Partial.of(MOMENTS[0], place, needs="cslgqv") for place in (0, 99))
    assert outcomes(read.moved(7).merge(behind_all)) == outcomes(known.moved(7).merge(behind_all))
    assert outcomes(before_all.merge(read.moved(7))) == outcomes(merged((known.moved(7), before_all)))
    lists = [None if each is None else [each.value, each.order, each.exact and fraction_text(each.exact)] for each in
             (known.least, known.greatest)]  # fmt: skip
    before = [known.count, f"{known.total:x}", known.places, known.special, *lists, known.failure]
    earlier = partial_from_json(json.loads(json.dumps([*before, fraction_text(known.rest)])))
    assert earlier == replace(known, squares=Fraction(0), values={}, moments=None)


def fraction_text(value: Fraction) -> str:
    return f"{value.numerator:x}/{value.denominator:x}"


def outcomes(known: Partial) -> list[str]:
    """What all functions make of a partial."""
    found: list[str] = []
    for function in AGGREGATES.values():
        try:
            found += [f"{each!r} {getattr(each, 'exact', None)}" for each in function.value(known)]
        except DynamicError as error:
            found.append(str(error))
    return found
