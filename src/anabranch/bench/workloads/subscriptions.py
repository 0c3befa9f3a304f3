"""Subscriptions by the thousand, each of which selects the same share of a stream of photons.

Half of them select on two paths, a quarter on one, and a quarter has disjunctions: of strings, or of two intervals.
The bounds are quantiles of the very photons that the bench reads, so N subscriptions with a share of 1/N each give as
many answers together as one that takes everything, and the number of answers does not blur the number of subscriptions.
Photons have numbers only; what is compared as a string is the spelling of a detector's pixel, `dx` or `dy`.

Each comes twice: as a query, and as a condition for plain Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

RESULT = "<hit>{ $p/coord/cel/ra }{ $p/coord/cel/dec }{ $p/en }{ $p/det_time }</hit>"
COLUMNS = ("coord.cel.ra", "coord.cel.dec", "en", "det_time")
SCHEMA = """coord struct<cel: struct<ra: double, dec: double>, det: struct<dx: string, dy: string>>,
    phc double, en double, det_time double"""
"""The schema of photons for Spark, with pixels as strings."""

_Column = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class PhotonPath:
    """A path of photons: where it stands in an item, and how its values are written."""

    text: str
    digits: int | None
    """Digits behind the point; None where the value is compared as a string."""

    @property
    def column(self) -> str:
        """The column of the path in Spark."""
        return self.text.replace("/", ".")

    def literal(self, value: object) -> str:
        return f'"{value}"' if self.digits is None else f"{value:.{self.digits}f}"


RA, DEC = PhotonPath("coord/cel/ra", 4), PhotonPath("coord/cel/dec", 4)
EN, PHC = PhotonPath("en", 3), PhotonPath("phc", 0)
DX, DY = PhotonPath("coord/det/dx", None), PhotonPath("coord/det/dy", None)
_LEAVES = (RA, DEC, DX, DY, PHC, EN)
"""The paths in the order of their values in an item."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a subscription, for us and for Spark."""

    query: str
    sql: str

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"{self.query} and {other.query}", f"{self.sql} and {other.sql}")

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self.query} or {other.query})", f"({self.sql} or {other.sql})")

    @property
    def text(self) -> str:
        """The query that selects by it."""
        items = 'stream("photons")/photons/photon'
        return f"<hits>{{ for $p in {items} where {self.query} return {RESULT} }}</hits>"


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Some photons in the order of a path: their row numbers, and their values at the path."""

    path: PhotonPath
    rows: _Column
    values: _Column

    def part(self, first: int, last: int) -> _Sorted:
        return _Sorted(self.path, self.rows[first:last], self.values[first:last])

    def among(self, column: _Column, path: PhotonPath) -> _Sorted:
        """The same photons in the order of another path, of which this is the column."""
        order = np.argsort(column[self.rows], kind="stable")
        return _Sorted(path, self.rows[order], column[self.rows][order])

    def equal(self, value: str) -> _Sorted:
        """The photons with this value."""
        first, last = np.searchsorted(self.values, value), np.searchsorted(self.values, value, "right")
        return self.part(int(first), int(last))

    def interval(self, random: Random, wanted: int) -> tuple[Condition, _Sorted]:
        """A random interval that holds about `wanted` of the photons, and these photons."""
        values, size = self.values, len(self.rows)
        begin = random.randint(0, max(0, size - wanted))
        first = np.searchsorted(values, values[begin])
        last = np.searchsorted(values, values[begin + wanted]) if begin + wanted < size else size
        if first == last:  # one value that more of them have than are wanted
            last = np.searchsorted(values, values[begin], "right")
        low = values[first]
        if first == 0 and self.path.digits is not None:  # otherwise all intervals of all photons would be the same
            low -= random.randrange(10_000) / 10**self.path.digits
        bounds = [(">=", low)] + ([("<", values[last])] if last < size else [])
        return _between(self.path, bounds), self.part(first, last)


class Sky:
    """The photons of a bench, as columns; it draws subscriptions from them."""

    def __init__(self, lines: Iterable[str]) -> None:
        rows = [[text for text in line.replace("<", ">").split(">")[1:] if _is_value(text)] for line in lines]
        self._columns: dict[PhotonPath, _Column] = {}
        self._all: dict[PhotonPath, _Sorted] = {}
        for number, path in enumerate(_LEAVES):
            texts = [row[number] for row in rows]
            column = np.array(texts) if path.digits is None else np.array(texts, dtype=float)
            self._columns[path] = column
            self._all[path] = _Sorted(path, np.arange(len(rows)), column).among(column, path)
        self.items = len(rows)

    def subscriptions(self, count: int, share: float, seed: int = 1) -> list[Condition]:
        """`count` conditions, each of which selects a share of the photons, as near as equal values allow."""
        random = Random(f"{count} {share} {seed}")
        shapes: Sequence[Callable[[Random, float], Condition]] = (
            *(self._two, self._one, self._two, self._strings),
            *(self._two, self._one, self._two, self._places),
        )
        return [shapes[number % len(shapes)](random, share) for number in range(count)]

    def _one(self, random: Random, share: float) -> Condition:
        return self._all[random.choice((RA, DEC))].interval(random, self._count(share))[0]

    def _two(self, random: Random, share: float) -> Condition:
        """An interval of a first path, and within it one of a second."""
        first, second = random.choice(((RA, DEC), (DEC, RA), (EN, RA), (PHC, DEC)))
        condition, chosen = self._all[first].interval(random, self._count(sqrt(share)))
        return condition & self._within(chosen, second, random, share)

    def _strings(self, random: Random, share: float) -> Condition:
        """Strings between two strings, or one more string, and within that an interval."""
        path, second = random.choice(((DX, RA), (DY, DEC)))
        condition, chosen = self._all[path].interval(random, self._count(sqrt(share)))
        pixel = str(self._columns[path][random.randrange(self.items)])
        one = Condition(f'$p/{path.text} = "{pixel}"', f'{path.column} = "{pixel}"')
        rows = np.union1d(chosen.rows, self._all[path].equal(pixel).rows)
        return (condition | one) & self._within(_Sorted(path, rows, rows), second, random, share)

    def _places(self, random: Random, share: float) -> Condition:
        """One of two intervals of a path."""
        place = self._all[random.choice((RA, DEC))]
        halves = place.part(0, self.items // 2), place.part(self.items // 2, self.items)
        first, second = (half.interval(random, self._count(share / 2))[0] for half in halves)
        return first | second

    def _within(self, chosen: _Sorted, path: PhotonPath, random: Random, share: float) -> Condition:
        return chosen.among(self._columns[path], path).interval(random, self._count(share))[0]

    def _count(self, share: float) -> int:
        return round(share * self.items)


def _between(path: PhotonPath, bounds: Sequence[tuple[str, object]]) -> Condition:
    literals = [(operator, path.literal(value)) for operator, value in bounds]
    return Condition(
        " and ".join(f"$p/{path.text} {operator} {literal}" for operator, literal in literals),
        " and ".join(f"{path.column} {operator} {literal}" for operator, literal in literals),
    )


def _is_value(text: str) -> bool:
    return text[:1].isdecimal() or text[:1] == "-"
