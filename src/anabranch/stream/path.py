"""Paths name an attribute of an item: `coord/cel/ra`, `@id`, `coord/@unit`; they are relative to the item.

An item that is a value itself, `<t>25.0</t>`, has it at the path `.`; accents and descriptions may name it.

At a stream's declared time path numbers may count in another unit than seconds (LAWS 1.3, 3.1).
Windows over that path count in the same unit, so that numbers are taken as they are written; what is given in seconds,
slack and origin of the stream, heartbeats and durations, is brought to it.
Everywhere else a second is one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch.errors import StreamError

_STEP = re.compile(r"@?[^\W\d][\w.\-]*(:[^\W\d][\w.\-]*)?\Z")


TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
"""What the numbers at a stream's declared time path may count in (LAWS 1.3)."""


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """The names from just below the item down; only the last may be an attribute (`@name`). None is `.`."""

    steps: tuple[str, ...]
    unit: TimeUnit | None = field(default=None, compare=False)
    """Of a stream's declared time path: what its numbers count in, from 1970 on, where that was said.

    It names no place, so paths with other units are equal.
    """

    def counting(self, unit: TimeUnit | None) -> Path:
        """The same path, as the place of times whose numbers count in a unit."""
        return replace(self, unit=unit)

    @staticmethod
    def parse(text: str, *, itself: bool = False) -> Path:
        """Read `a/b/@c`; a leading `./` is allowed, with `itself` also `.`, anything else is an error."""
        if itself and text.strip() == ".":
            return Path(())
        steps = tuple(text.strip().removeprefix("./").split("/"))
        bad = [step for step in steps if not _STEP.match(step)]
        if bad or any(step.startswith("@") for step in steps[:-1]):
            raise StreamError(f"'{text}' is not a path", hint="write names with '/' between them, as in coord/cel/ra")
        return Path(steps)

    def __str__(self) -> str:
        return "/".join(self.steps) or "."


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
