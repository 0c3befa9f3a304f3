"""DateTimes that are read in columns are what the law reads, and nothing else is."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from anabranch.columnar.moments import read_moments
from anabranch.values.instants import time_seconds

USUAL = (
    "2026-01-01T12:30:00Z",
    "1969-12-31T23:59:59.999999999+14:00",
    "2024-02-29",
    "0001-01-01T00:00:00-13:59",
    "9999-12-31T23:59:59",
)
LEFT = (
    *("", "soon", "2026-02-29", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", " 2026-01-01", "12026-01-01"),
    *("2026-01-01T00:00:00.Z", "2026-01-01T00:00:60Z", "2026-01-01Z", "2026-01-01T00:00:00+14:01", "-2026-01-01"),
    *("2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00ZZ", "2026-01-01T00:00Z", "2026/01/01", "2026-01-01t00"),
)


def read(*texts: str) -> list[Fraction | None]:
    """What columns make of texts."""
    data = np.frombuffer("|".join(texts).encode() + b"|", np.uint8)
    ends = np.cumsum([len(each) + 1 for each in texts]) - 1
    starts = ends - [len(each) for each in texts]
    mantissas, places = np.zeros(len(texts), np.int64), np.full(len(texts), -1)
    read_moments(data, starts.astype(np.int32), ends.astype(np.int32), mantissas, places)
    found = zip(mantissas.tolist(), places.tolist(), strict=True)
    return [None if digits < 0 else Fraction(mantissa, 10**digits) for mantissa, digits in found]


@pytest.mark.parametrize("text", USUAL)
def test_usual_times_are_read(text: str) -> None:
    """With and without fraction and zone, over all years of four digits."""
    assert read(text) == [time_seconds(text)]


@pytest.mark.parametrize("text", LEFT)
def test_others_are_left_to_the_law(text: str) -> None:
    """What is no dateTime, and what is an unusual one."""
    assert read(text) == [None]


def test_random_texts_mean_what_the_law_says() -> None:
    """Usual times with a character or two replaced: whatever is read is read as the law reads it."""
    random, read_at_all = Random(5), 0
    texts = []
    for _ in range(20_000):
        letters = list(random.choice(USUAL))
        for _ in range(random.choice((0, 1, 1, 2))):
            letters[random.randrange(len(letters))] = random.choice("0123456789-+:.TZ")
        texts.append("".join(letters))
    for text, found in zip(texts, read(*texts), strict=True):
        assert found is None or found == time_seconds(text), text
        read_at_all += found is not None
    assert read_at_all > 5_000
