"""The bounds of windows that were counted by panes are spelled as the law spells them."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from anabranch.algebra.window import Extent
from anabranch.branch.panes.bounds import ClosedBounds
from anabranch.law.bounds import WindowBounds, WindowValues, window_end, window_start
from anabranch.stream.path import TimeScale
from anabranch.values.atomic import spell
from anabranch.values.sequences import atomize
from mass import some

AMOUNTS = ("1", "60", "0.5", "20.35", "0.001", "86400", "1/3", "0.0000000001", "1000000000000000000000")
ORIGINS = ("0", "0", "1767225600", "-20.5", "-70000000000", "1/7")


def some_bounds(random: Random) -> ClosedBounds:
    """Windows in a row, near and far, with times, without, or both."""
    size, step, origin = (Fraction(random.choice(each)) for each in (AMOUNTS, AMOUNTS, ORIGINS))
    first = random.choice((0, 0, -3, 29_000_000, -(1 << 70), 10**12, 10**25))
    numbers = sorted({first + random.randrange(10) for _ in range(random.randint(1, 5))})
    many, is_time = random.choice(((1, False), (1, False), (1, True), (1_000, True)))
    times = [is_time or random.choice((True, False, bool(numbers[0] % 2))) for _ in numbers]
    times = random.choice((times, [True] * len(numbers), [is_time] * len(numbers)))
    return ClosedBounds(Extent(size, step), TimeScale(many, is_time, origin=origin), numbers, np.array(times))


def test_bounds_are_those_of_the_law() -> None:
    """In columns or one by one, for windows and for their groups, as texts and as values."""
    for number in some(range(2_000)):
        bounds = some_bounds(Random(number))
        for name, function in (("#window-start", window_start), ("#window-end", window_end)):
            expected = []
            for k, is_time in zip(bounds.numbers, bounds.are_times.tolist(), strict=True):
                extent = bounds.extent
                mine = WindowBounds(extent.start(k), extent.end(k), bounds.scale, is_time)
                expected.append(function(WindowValues((), mine)))
            texts = bounds.texts(name)
            data = texts.data.tobytes()
            found = [data[slice(*each)].decode() for each in zip(texts.starts, texts.ends, strict=True)]
            assert found == [spell(value) for values in expected for value in atomize(values)], number
            assert [bounds.known(each)[name]() for each in range(len(found))] == expected, number
