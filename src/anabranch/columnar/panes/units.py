"""Columns in the units of query start: windows over values whose units have changed are counted in columns, too.

Conditions only compare a value with constants (`columnar/items/evolution.py`); windows need its exact value, to place
and to add it.
So a number is mapped back in integers, where the result is a decimal of few digits; other numbers are unknown, and left
to the law.
Where a path has changed too often to be compared with columns, the unit of each item is looked up, once for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anabranch.algebra.accents.evolution import Evolution
from anabranch.columnar.expressions.tree import Column, read_columns
from anabranch.columnar.items.evolution import Changes, brought_back
from anabranch.columnar.match.boxed import MOST_BOXES, BoxColumns, carries, column_of
from anabranch.columnar.match.condition import columns_as_written
from anabranch.columnar.panes.kernels import MOST_PLACES, best_places, exact_ticks
from anabranch.columnar.panes.query import CompiledPanes
from anabranch.columnar.scan.kernels import MOST_DIGITS, Numbers
from anabranch.columnar.scan.look import PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path

_MOST = 1 << 62
_LARGEST = 10**MOST_DIGITS


@dataclass(frozen=True, slots=True)
class Sight:
    """A batch with its numbers in the units that some members know."""

    shredded: Shredded
    mapped: frozenset[PartColumn] = frozenset()
    """The columns whose numbers are mapped, and differ from the texts."""

    def is_made_for(self, compiled: CompiledPanes) -> bool:
        """Whether a window reads no text of a mapped column, and computes nothing with it."""
        if not self.mapped:
            return True
        tested = (column for each in compiled.conditions for column in columns_as_written(each))
        others: list[Column] = [*tested, *compiled.repeated, *compiled.computed, *compiled.looked_at]
        return self.mapped.isdisjoint(part for each in others for part in read_columns(each))


def sight_of(shredded: Shredded, evolution: Evolution) -> Sight | None:
    """A batch with its numbers in the units of the start; None where columns cannot tell."""
    assert shredded.wanted is not None, "only what was shredded is counted"
    look, rows = shredded.wanted.look, shredded.wanted.rows
    maps: dict[PartColumn, Changes] = {}
    asked: dict[PartColumn, Path] = {}
    for path, changes in evolution.altered().items():
        if not carries(look, path):
            continue
        column = column_of(look, path)
        if column is None:
            return None
        for each in (column, look.typed(column)):
            if each in rows and (changes is None or len(changes) > MOST_BOXES):
                asked[each] = path
            elif each in rows and changes is not None:
                maps[each] = changes
    if not maps and not asked:
        return Sight(shredded)
    boxes = list(dict.fromkeys(box for changes in maps.values() for box, _ in changes if box))
    columns = BoxColumns.of(shredded, shredded.fits, boxes)
    judged = {box: columns.judge(box) for box in boxes}
    values = shredded.values.copy()
    for column, changes in maps.items():
        row = rows[column]
        held = np.where(shredded.fits, values[row], np.nan)  # what does not fit was never filled in
        values[row] = brought_back(held, changes, judged, decimals)
    units = _units(shredded, evolution, tuple(asked.values()))
    for column, path in asked.items():
        row, raw = rows[column], shredded.values[rows[column]]
        values[row] = np.nan
        for unit, entries in units[path].items():
            values[row, entries] = raw[entries] if unit == IDENTITY else decimals(raw[entries], unit.inverse())
    return Sight(replace(shredded, values=values), frozenset((*maps, *asked)))


def _units(shredded: Shredded, evolution: Evolution, paths: Sequence[Path]) -> dict[Path, dict[Affine, list[int]]]:
    """By path: the entries that fit, by their units."""
    found: dict[Path, dict[Affine, list[int]]] = {path: {} for path in paths}
    for entry in np.flatnonzero(shredded.fits).tolist() if paths else ():
        tree = shredded.tree(entry)
        for path in paths:
            unit = evolution.state(path, tree).unit
            if unit is not None:
                found[path].setdefault(unit, []).append(entry)
    return found


def decimals(values: Numbers, by: Affine) -> Numbers:
    """Numbers under a map, where the results are decimals of few digits, which doubles stand for; NaN for others."""
    places = best_places(values)
    ticks, exact = exact_ticks(values, places)
    unit = 10**places
    whole = math.lcm(by.a.denominator, by.b.denominator)
    factor, added = int(by.a * whole), int(by.b * whole) * unit
    twos, fives, rest = _split(whole)
    more = max(twos, fives)
    scale = 2 ** (more - twos) * 5 ** (more - fives)
    most = (abs(factor) * int(np.abs(ticks).max(initial=0)) + abs(added)) * scale
    if most >= _MOST or max(rest, scale) >= _MOST or places + more > MOST_PLACES:
        return np.full(len(values), np.nan)
    found = ticks * factor + added
    exact &= found % rest == 0
    found = found // rest * scale
    exact &= np.abs(found) < _LARGEST
    return np.where(exact, found / float(10 ** (places + more)), np.nan)


def _split(number: int) -> tuple[int, int, int]:
    """How often 2 and 5 divide a number, and the rest of it."""
    powers = []
    for prime in (2, 5):
        count = 0
        while number % prime == 0:
            number //= prime
            count += 1
        powers.append(count)
    return powers[0], powers[1], number
