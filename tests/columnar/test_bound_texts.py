"""Bounds of windows in columns: what the law writes."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from anabranch.columnar.bound_texts import spelled_bounds
from anabranch.law.bounds import WindowBounds
from anabranch.stream.path import TimeScale
from anabranch.values.atomic import spell
from anabranch.values.sequences import atomize


def by_law(number: Fraction, per_second: int, is_time: bool) -> str:
    (value,) = atomize([WindowBounds(number, number, TimeScale(per_second), is_time).value(number)])
    return spell(value)


def test_bounds_are_written_as_the_law_does() -> None:
    """Decimals and moments of all ages, whatever they count in."""
    random = Random(5)
    for _ in range(200):
        places, per_second = random.randrange(7), random.choice((1, 1_000, 1_000_000))
        most = min(10**18, 10 ** (random.randrange(1, 11) + places) * per_second)
        ticks = np.array([random.randint(-most, most) for _ in range(20)] + [0, 1, -1, 10**places], np.int64)
        ticks[::3] = ticks[::3] // 10**places * 10**places
        are_times = np.array([random.random() < 0.5 for _ in ticks], np.bool_)
        found = spelled_bounds(ticks, places, are_times, per_second)
        due = [
            by_law(Fraction(int(tick), 10**places), per_second, bool(is_time))
            for tick, is_time in zip(ticks, are_times, strict=True)
        ]
        assert found is not None
        data = found.data.tobytes()
        assert [data[start:end].decode() for start, end in zip(found.starts, found.ends, strict=True)] == due


def test_far_years_are_the_laws() -> None:
    """A year of five digits, and one before the first, is not written here; nor are more digits than there is room."""
    for seconds in (300_000_000_000, -70_000_000_000):
        ticks, are_times = np.array([0, seconds], np.int64), np.array([True, True])
        assert spelled_bounds(ticks, 0, are_times, 1) is None
        assert spelled_bounds(ticks, 0, ~are_times, 1) is not None
    assert spelled_bounds(np.array([1], np.int64), 12, np.array([True]), 1_000_000_000) is None
