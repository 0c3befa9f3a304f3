"""Aggregates and orders that are kept up to date entry by entry, against what the law gives for all values at once."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.folds import Share
from anabranch.algebra.display.ordered import Ordered
from anabranch.algebra.display.sorting import SortedResults
from anabranch.branch.display.folds import fold
from anabranch.branch.document.state import read_rank, write_rank
from anabranch.errors import DynamicError
from anabranch.law.functions import BUILTINS
from anabranch.values.atomic import Untyped, order_rank
from anabranch.values.numbers import read_fraction, write_fraction
from anabranch.values.sequences import Values
from anabranch.values.times import Date, DateTime, DayTimeDuration, YearMonthDuration, read_time
from mass import examples

NUMBERS = st.sampled_from(
    [Untyped("1"), Untyped("2.50"), Untyped("-3"), Untyped("1e3"), 7, Decimal("0.1"), 2.5, Untyped("-0"), 0]
)
SPECIAL = st.sampled_from([Untyped("INF"), Untyped("-INF"), Untyped("NaN"), math.inf, math.nan])
OTHERS = st.sampled_from([Untyped("text"), Untyped(""), "string", "b", True])
MOMENTS = st.sampled_from(
    [
        *map(Untyped, ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", " 2026-01-01T01:00:00+01:00 ")),
        read_time(DateTime, "2025-12-31T19:00:00-05:00"),
    ]
)
DURATIONS = st.sampled_from([read_time(DayTimeDuration, each) for each in ("PT0S", "-PT1.5S", "P1D")])
TIMES = st.sampled_from([read_time(Date, "2026-01-01"), read_time(YearMonthDuration, "P1M"), Untyped("2026-01-01")])
ATOMS = st.one_of(NUMBERS, NUMBERS, NUMBERS, SPECIAL, OTHERS, MOMENTS, DURATIONS, TIMES)
KINDS = (NUMBERS, ATOMS, MOMENTS, DURATIONS)
EDITS = st.sampled_from(KINDS).flatmap(
    lambda mostly: st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.one_of(mostly, mostly, mostly, ATOMS), max_size=3)), max_size=12
    )
)


def entries(count: int) -> Ordered[int, int]:
    """Entries whose order is not that of their numbers."""
    return Ordered(0, [(number, 1) for number in sorted(range(count), key=lambda each: each * 7 % 5)])


def outcome(function: str, values: Values) -> list[str]:
    """What the law's function gives, or the code of its error."""
    try:
        return [repr(each) for each in BUILTINS[function](values)]
    except DynamicError as error:
        return ["error", str(error.code)]


@pytest.mark.parametrize("function", [*AGGREGATES, "exists", "empty"])
@examples(60)
@given(edits=EDITS)
def test_an_aggregate_is_that_of_all_values(function: str, edits: list[tuple[int, Values]]) -> None:
    """After every change of an entry's values the aggregate is what the law's function gives for all values."""
    order = entries(5)
    state = fold(function, order)
    values: dict[int, Values] = {}
    shares: dict[int, Share] = {}
    for entry, found in edits:
        if entry in shares:
            state.remove(entry, shares.pop(entry))
        values[entry] = found
        if found:
            shares[entry] = json.loads(json.dumps(state.share(found)))
            state.put(entry, shares[entry])
        together = [value for each in order for value in values.get(each, [])]
        try:
            now = [repr(each) for each in state.value()]
        except DynamicError as error:
            now = ["error", str(error.code)]
        assert now == outcome(function, together)


@examples(60)
@given(
    keys=st.lists(st.tuples(st.integers(0, 4), NUMBERS, st.one_of(ATOMS, st.none())), max_size=10),
    descending=st.tuples(st.booleans(), st.booleans()),
)
def test_things_stand_in_the_order_of_their_keys(
    keys: list[tuple[int, Untyped, Untyped | None]], descending: tuple[bool, bool]
) -> None:
    """They stand as a stable sort by each key, the last one first, puts them; also when some are gone."""
    order = entries(5)
    arranged = SortedResults(order, descending)
    things = [((entry, number), (order_rank(one), order_rank(two))) for number, (entry, one, two) in enumerate(keys)]
    for thing, ranks in things:
        arranged.put(thing, ranks)
    for kept in (things, things[::2]):
        for thing, _ in [each for each in things if each not in kept]:
            arranged.remove(thing)
        expected = sorted(kept, key=lambda each: (list(order).index(each[0][0]), each[0][1]))
        for place in (1, 0):
            expected.sort(key=lambda each: each[1][place], reverse=descending[place])  # used at once
        assert list(arranged) == [thing for thing, _ in expected]


def test_ranks_and_fractions_are_written_and_read() -> None:
    """State is plain data, however long a number is."""
    long = Fraction(10**6_000 + 1, 3)
    assert read_fraction(write_fraction(long)) == long
    moment, duration = Untyped("2026-01-01T00:00:00.5Z"), DayTimeDuration(Fraction(1, 8))
    for key in (None, Untyped("1.50"), Untyped("text"), Untyped("NaN"), "decimal", 2.5, 7, moment, duration):
        rank = order_rank(key)
        assert read_rank(json.loads(json.dumps(write_rank(rank)))) == rank
    assert read_rank(write_rank((2, long))) == (2, long)
    assert read_rank([3, "text"]) == order_rank("text"), "as it was written before there were times"
