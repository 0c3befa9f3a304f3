"""Conjunctions of two or three ranges over photons, for us and for peers, with what each of them matches.

The bounds are quantiles of the very photons that the bench reads: of N conjunctions each selects a share of the photons
that makes for as many answers per photon as are asked for.
Half of them have two ranges, half have three; a range of a leaf goes from a value up to another, without it.
Values are kept as integers, in the last digit that photons are written with, so who matches what is known exactly and
without any engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.stream.reading.source import Source

Wire: TypeAlias = Literal["json", "xml"]
WIRES: tuple[Wire, ...] = ("json", "xml")

PATHS = ("coord/cel/ra", "coord/cel/dec", "coord/det/dx", "coord/det/dy", "phc", "en", "det_time")
"""The leaves of a photon, in their order."""
_DIGITS = (4, 4, 0, 0, 0, 3, 3)
"""How many digits stand behind the point."""
RA, DEC, PHC, EN, TIME = 0, 1, 4, 5, 6
_SHAPES = ((RA, DEC), (RA, DEC, EN), (EN, RA), (DEC, EN, RA))
_RESULT = (RA, DEC, EN, TIME)
"""The leaves of an answer."""
_LEAF = re.compile(r">(-?[0-9.]+)<")
_HIT = re.compile(r"<hit>(.*?)</hit>")

_Column: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class LeafRange:
    """Values of a leaf, by its number in `PATHS`: from `low`, below `high`, in units of its last digit."""

    leaf: int
    low: int
    high: int

    @property
    def bounds(self) -> tuple[str, str]:
        """Both bounds as decimal numbers."""
        return _text(self.low, self.leaf), _text(self.high, self.leaf)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Ranges of different leaves, all of which a photon has to be in."""

    ranges: tuple[LeafRange, ...]

    @property
    def query(self) -> str:
        """The query that selects by it."""
        where = " and ".join(
            f"$p/{PATHS[each.leaf]} >= {low} and $p/{PATHS[each.leaf]} < {high}"
            for each in self.ranges
            for low, high in (each.bounds,)
        )
        result = "".join(f"{{ $p/{PATHS[leaf]} }}" for leaf in _RESULT)
        return f'<hits>{{ for $p in stream("photons")/photons/photon where {where} return <hit>{result}</hit> }}</hits>'

    @property
    def line(self) -> str:
        """A line for the program of a peer: leaves and bounds."""
        return " ".join(f"{each.leaf} {' '.join(each.bounds)}" for each in self.ranges)


class PhotonLeaves:
    """Some photons as columns."""

    def __init__(self, photons: Iterable[str]) -> None:
        rows = [_LEAF.findall(each) for each in photons]
        self.items = len(rows)
        self.texts = rows
        self._columns: list[_Column] = [
            np.array([int(row[leaf].replace(".", "")) for row in rows], dtype=np.int64) for leaf in range(len(PATHS))
        ]
        self._orders: dict[int, _Column] = {}

    def conjunctions(self, count: int, answers: int, seed: int = 1) -> list[Conjunction]:
        """`count` conjunctions, which together select about `answers` times as many photons as there are."""
        random, share = Random(f"{count} {answers} {seed}"), min(1.0, answers / count)
        return [self._conjunction(random, _SHAPES[number % len(_SHAPES)], share) for number in range(count)]

    def _conjunction(self, random: Random, leaves: Sequence[int], share: float) -> Conjunction:
        ranges: list[LeafRange] = []
        rows: _Column | None = None
        for number, leaf in enumerate(leaves, 1):
            column = self._columns[leaf]
            rows = self._order(leaf) if rows is None else rows[np.argsort(column[rows], kind="stable")]
            values = column[rows]
            wanted = max(1, round(share ** (number / len(leaves)) * self.items))
            begin = random.randint(0, max(0, len(values) - wanted))
            low = int(values[begin])
            high = int(values[begin + wanted]) if begin + wanted < len(values) else int(values[-1]) + 1
            ranges.append(LeafRange(leaf, low, max(high, low + 1)))
            rows = rows[np.searchsorted(values, ranges[-1].low) : np.searchsorted(values, ranges[-1].high)]
        return Conjunction(tuple(ranges))

    def count(self, wanted: Sequence[Conjunction], items: int) -> int:
        """How many pairs of a conjunction and one of the first `items` photons match."""
        return sum(len(self._selected(each, items)) for each in wanted)

    def pairs(self, wanted: Sequence[Conjunction], items: int) -> set[tuple[int, int]]:
        """The numbers of each conjunction and each of the first `items` photons that match."""
        return {(number, int(row)) for number, each in enumerate(wanted) for row in self._selected(each, items)}

    def answers(self, wanted: Sequence[Conjunction], items: int) -> list[list[tuple[str, ...]]]:
        """The values of each conjunction's answers over the first `items` photons."""
        found: list[list[tuple[str, ...]]] = [[] for _ in wanted]
        for number, row in sorted(self.pairs(wanted, items)):
            found[number].append(tuple(self.texts[row][leaf] for leaf in _RESULT))
        return found

    def _selected(self, wanted: Conjunction, items: int) -> _Column:
        """The rows of those of the first `items` photons that a conjunction selects."""
        first, *others = wanted.ranges
        order = self._order(first.leaf)
        values = self._columns[first.leaf]
        begin, end = np.searchsorted(values, (first.low, first.high), sorter=order)
        rows = order[begin:end]
        for each in others:
            column = self._columns[each.leaf][rows]
            rows = rows[(column >= each.low) & (column < each.high)]
        return rows[rows < items]

    def _order(self, leaf: int) -> _Column:
        """The rows in the order of a leaf."""
        if leaf not in self._orders:
            self._orders[leaf] = np.argsort(self._columns[leaf], kind="stable")
        return self._orders[leaf]


def hits(answer: str) -> list[tuple[str, ...]]:
    """The values of an answer of ours."""
    return [tuple(_LEAF.findall(each)) for each in _HIT.findall(answer)]


def photon_source(folder: Path, wire: Wire) -> Source:
    """The stream of photons in a folder, written as XML or as JSON."""
    return Source("photons", folder, root="photons", item="photon", format="json" if wire == "json" else "lines")


def write_photon_lines(file: Path, wire: Wire, photons: Iterable[str]) -> None:
    """Write photons, given as XML, one to a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as opened:
        opened.writelines(f"{as_json(each) if wire == 'json' else each}\n" for each in photons)


def as_json(photon: str) -> str:
    """A photon as JSON, with the same values."""
    ra, dec, dx, dy, phc, en, time = _LEAF.findall(photon)
    found = (
        f'{{"coord": {{"cel": {{"ra": {ra}, "dec": {dec}}}, "det": {{"dx": {dx}, "dy": {dy}}}}}, '
        f'"phc": {phc}, "en": {en}, "det_time": {time}}}'
    )
    assert json.loads(found), "numbers of photons are numbers of JSON"
    return found


def _text(value: int, leaf: int) -> str:
    digits = _DIGITS[leaf]
    if not digits:
        return str(value)
    whole, rest = divmod(abs(value), 10**digits)
    return f"{'-' if value < 0 else ''}{whole}.{rest:0{digits}}"
