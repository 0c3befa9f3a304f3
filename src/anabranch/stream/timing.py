"""How far the values at a path tell the time (LAWS 1.3, 3.1).

At a stream's declared time path numbers may count in another unit than seconds.
Windows over that path count in the same unit, so that numbers are taken as they are written; what is given in seconds,
slack and origin of the stream, heartbeats and durations, is brought to it.
Everywhere else a second is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from anabranch.stream.path import Path, TimeUnit

PER_SECOND: Mapping[TimeUnit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of a unit are a second."""


@dataclass(frozen=True, slots=True)
class TimeScale:
    """What the values at one path of a stream count in, and where windows over them begin."""

    per_second: int = 1
    is_time: bool = False
    """Whether numbers are times; dateTimes always are."""
    slack: Fraction = Fraction(0)
    origin: Fraction = Fraction(0)
    """Both in units of the scale."""

    @staticmethod
    def of(
        path: Path | None, time: Path | None, slack: Fraction = Fraction(0), origin: Fraction = Fraction(0)
    ) -> TimeScale:
        """The scale of a path in a stream with this declared time; `slack` and `origin` are in seconds."""
        if time is None or time.unit is None or path != time:
            return TimeScale(slack=slack, origin=origin)
        many = PER_SECOND[time.unit]
        return TimeScale(many, True, slack * many, origin * many)


PLAIN = TimeScale()
"""That of values which nothing is known of: a second is one, and windows begin at 0."""


def per_second(time: Path | None) -> int:
    """How many of what the numbers at a declared time path count in are a second."""
    return 1 if time is None or time.unit is None else PER_SECOND[time.unit]
