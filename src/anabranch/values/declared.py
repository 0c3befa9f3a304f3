"""The declaration of a stream's time, as users write it: in SITE.toml, as options of a command, in Python.

Slack and origin are plain numbers, in the `time_unit` where there is one, or a duration, `PT5S`, and a moment,
`2026-01-01T00:00:00Z`.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from anabranch.errors import StreamError, UsageError
from anabranch.stream.path import PER_SECOND, Path, TimeUnit, per_second
from anabranch.values.instants import length_seconds, time_seconds

Given: TypeAlias = str | int | float | Decimal | date | None


def declared_time(path: str | None, unit: str | None) -> Path | None:
    """The time path of a stream's items, with the unit of its numbers."""
    if unit is None:
        return None if path is None else _path(path)
    if path is None:
        raise UsageError("a 'time_unit' needs a 'time'", hint="'time' is the path to the times of items")
    return _path(path).counting(_unit(unit))


def declared_timing(
    path: str | None, unit: str | None, slack: Given, origin: Given
) -> tuple[Path | None, Fraction, Fraction]:
    """A stream's time declaration: the path, the slack and the origin."""
    time = declared_time(path, unit)
    return time, declared_slack(slack, time), declared_origin(origin, time)


def _path(text: str) -> Path:
    try:
        return Path.parse(text)
    except StreamError as error:
        raise UsageError(error.message, hint=error.hint) from None


def _unit(given: str) -> TimeUnit:
    for unit in PER_SECOND:
        if given == unit:
            return unit
    raise UsageError(f"the time unit '{given}' is unknown", hint=f"use {', '.join(PER_SECOND)}")


def declared_slack(given: Given, time: Path | None, key: str = "'slack'") -> Fraction:
    """The slack: a number, or a duration."""
    length = length_seconds(given) if isinstance(given, str) else None
    if length is None:
        length = _number(given, key, "a number, or a duration such as PT5S") / per_second(time)
    if length < 0:  # an item that is as old as the one before it would be late
        raise UsageError(f"{key} is how late items may come: '{given}' is below 0")
    return length


def declared_origin(given: Given, time: Path | None, key: str = "'origin'") -> Fraction:
    """The origin of time windows: a number, or a dateTime or date."""
    text = given.isoformat() if isinstance(given, date) else given
    moment = time_seconds(text) if isinstance(text, str) else None
    if moment is not None:
        return moment
    return _number(given, key, "a number, or a dateTime such as 2026-01-01T00:00:00Z") / per_second(time)


def _number(given: Given, key: str, wanted: str) -> Fraction:
    if given is None:
        return Fraction(0)
    try:
        found = Decimal(str(given))
    except InvalidOperation:
        found = Decimal("NaN")
    if isinstance(given, bool) or not found.is_finite():
        raise UsageError(f"{key} takes {wanted}, not '{given}'")
    return Fraction(found)
