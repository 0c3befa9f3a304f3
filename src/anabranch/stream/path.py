"""Paths name a part of an item: `coord/cel/ra`, `@id`, `coord/@unit`; they are relative to the item.

An item that is a value itself, `<t>25.0</t>`, has its value at the path `.`; accents and descriptions may name it.

At a stream's declared time path, numbers may count in another unit than seconds (LAWS 1.3, 3.1).
Windows over that path count in the same unit, so that numbers are used as written; values given in seconds, slack and
origin of the stream, heartbeats and durations, are converted to it.
Everywhere else the unit is a second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch.errors import StreamError
from anabranch.stream.reading.json_names import named

MOST_STEPS = 200
"""The longest path; nothing that is read is deeper (`limits.py`)."""
_STEP = re.compile(r"@?[^\W\d][\w.\-]*(:[^\W\d][\w.\-]*)?\Z")


TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
"""The units of numbers at a stream's declared time path (LAWS 1.3)."""


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """The names from just below the item down; only the last may be an attribute (`@name`). None is `.`."""

    steps: tuple[str, ...]
    unit: TimeUnit | None = field(default=None, compare=False)
    """Of a stream's declared time path: the unit of its numbers, from 1970 on, where it is declared.

    It names no place, so paths of different units are equal.
    """

    def counting(self, unit: TimeUnit | None) -> Path:
        """The same path, as a time path with a unit."""
        return replace(self, unit=unit)

    @staticmethod
    def parse(text: str, *, itself: bool = False) -> Path:
        """Read `a/b/@c`; a leading `./` is allowed, with `itself` also `.`, anything else is an error."""
        if itself and text.strip() == ".":
            return Path(())
        steps = tuple(text.strip().removeprefix("./").split("/", MOST_STEPS))
        if len(steps) > MOST_STEPS:
            raise StreamError(f"'{text[:40]}...' has more than {MOST_STEPS} steps", hint="no item is as deep as that")
        bad = [step for step in steps if not _STEP.match(step)]
        if bad or any(step.startswith("@") for step in steps[:-1]):
            raise StreamError(f"'{text}' is not a path", hint="write names with '/' between them, as in coord/cel/ra")
        return Path(tuple(step if ":" in step else named(step) for step in steps))

    def __str__(self) -> str:
        return "/".join(self.steps) or "."


PER_SECOND: Mapping[TimeUnit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""The number of units in a second."""


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The unit of the values at one path of a stream, and the origin of windows over them."""

    per_second: int = 1
    is_time: bool = False
    """Whether numbers are times; dateTimes always are."""
    slack: Fraction = Fraction(0)
    origin: Fraction = Fraction(0)
    """Slack and origin are in units of the scale."""

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
"""The scale of other values: the unit is a second, and windows begin at 0."""


def per_second(time: Path | None) -> int:
    """The number of units in a second at a declared time path."""
    return 1 if time is None or time.unit is None else PER_SECOND[time.unit]
