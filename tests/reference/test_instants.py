"""Moments and lengths of time in exact seconds, against Python's calendar and by hand beyond it (LAWS 2.7)."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from anabranch.values.instants import date_of, day_number, length_seconds, moment_seconds, time_seconds
from anabranch.values.times import DateTime


def test_moments_are_those_of_the_calendar() -> None:
    """Moments of the years 1 to 9999 have the seconds that Python's calendar counts, and are written as they were."""
    chosen = random.Random(7)
    start = datetime(1970, 1, 1, tzinfo=UTC)
    for _ in range(2_000):
        moment = datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=chosen.randrange(9998 * 365 * 86_400 * 10**6))
        gone = moment - start
        text = moment.isoformat().replace("+00:00", "Z")
        seconds = Fraction((gone.days * 86_400 + gone.seconds) * 10**6 + gone.microseconds, 10**6)
        assert moment_seconds(text) == seconds
        assert str(DateTime(seconds, 0)) == (text[:-1].rstrip("0") + "Z" if "." in text else text)


def test_days_go_both_ways() -> None:
    """Numbers of days and dates belong together far beyond Python's calendar, before the year 0 as well."""
    for number in (*range(-1_500_000, -1_499_000), *range(-800_000, -718_000, 7), *range(5_000_000, 5_001_000)):
        assert day_number(*date_of(number)) == number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600),
        ("2026-01-01T00:00:00", 1_767_225_600),
        (" 2025-12-31T24:00:00Z\n", 1_767_225_600),
        ("2026-01-01", 1_767_225_600),
        ("2026-01-01T00:00:00.125-14:00", Fraction(1_767_225_600 + 14 * 3600) + Fraction(1, 8)),
        ("1969-12-31T23:59:30Z", -30),
        ("2026-02-29T00:00:00Z", None),
        ("2026-01-01T24:00:01Z", None),
        ("2026-01-01T00:00Z", None),
        ("2026-01-01T00:00:60Z", None),
        ("2026-01-01T00:00:00+14:01", None),
        ("26-01-01T00:00:00Z", None),
        ("02026-01-01T00:00:00Z", None),
        ("noon", None),
        ("12", None),
    ],
)
def test_times_in_text(text: str, seconds: Fraction | None) -> None:
    """What stands for a time is XQuery's dateTime or date; one without a zone is UTC."""
    assert time_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT1M", 60),
        ("P1DT2H3M4.5S", Fraction(93_784) + Fraction(1, 2)),
        ("-PT0.5S", Fraction(-1, 2)),
        ("PT90S", 90),
        ("P1M", None),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("PT.5S", None),
        ("1M", None),
    ],
)
def test_lengths_in_text(text: str, seconds: Fraction | None) -> None:
    """What stands for a length is a dayTimeDuration; months have no length in seconds."""
    assert length_seconds(text) == seconds
