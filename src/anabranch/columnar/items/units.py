"""Columns in other units: item queries where values have changed theirs, and are still judged together (LAWS 4.3).

Conditions are in the units that a query knows, values in those of their place.
Each number is mapped into the query's unit once, and then stands on the right side of every constant: as a double where
rounding cannot matter, and where it could, by exact fractions.
Which items have changed is found in columns, too (`columnar/match/boxed.py`); a number of which that is not clear is
not known.
What such a query copies may leave as it is written, if the answer has followed all changes.

Left to the law are queries that compare such a value as text, or whose answer is in another unit than the value; and of
queries that know different units of one path all but those that agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from typing import Protocol, TypeAlias

import numpy as np

from anabranch.algebra.accents.index import Box
from anabranch.columnar.items.programs import Program
from anabranch.columnar.items.query import CompiledQuery, Taken
from anabranch.columnar.match.boxed import MOST_BOXES, BoxColumns, carries, gap_of
from anabranch.columnar.match.condition import TextTest, tests
from anabranch.columnar.scan.kernels import Flags, Numbers
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.template import Template
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path

Changes: TypeAlias = tuple[tuple[Box, Affine], ...]
"""Unit changes of a path, the oldest first, each for the items of a box at the place reached."""
_ERROR = 8 * float(np.finfo(np.float64).eps)
"""How far a mapped double may be off, as a part of what was added up."""


class Followed(Protocol):
    """Queries that evolve alike."""

    @property
    def numbers(self) -> range: ...

    @property
    def units(self) -> Mapping[Path, Changes | None]:
        """Of the paths that they read and that have changed their unit: how, from the one they know.

        None where more has happened to them.
        """

    def is_home(self, path: Path, changes: Changes, times: int) -> bool:
        """Whether values leave as they are written, in all of so many places of the answer."""


@dataclass(frozen=True, slots=True)
class StretchUnits:
    """How the queries of a program are answered in a stretch in which nothing changes."""

    by_law: frozenset[int]
    """Those that columns cannot answer here."""
    maps: Mapping[int, Changes]
    """By gap of the template: what has become of the unit that conditions are in."""

    def applied(self, shredded: Shredded, program: Program) -> Shredded:
        """A batch with its numbers in the units of conditions; the very batch where they are."""
        if not self.maps or shredded.wanted is None:
            return shredded
        values = shredded.values.copy()
        boxes = list(dict.fromkeys(box for changes in self.maps.values() for box, _ in changes if box))
        columns = BoxColumns.of(shredded, shredded.fits, boxes)
        judged = {box: columns.judge(box) for box in boxes}
        for gap, changes in self.maps.items():
            row = shredded.wanted.leaves.index(gap)
            bring = partial(mapped, constants=program.matcher.constants(row))
            values[row] = brought_back(values[row], changes, judged, bring)
        return replace(shredded, values=values)


NO_UNITS = StretchUnits(frozenset(), {})


def units_of(program: Program, template: Template, groups: Sequence[Followed]) -> StretchUnits:
    """How queries are answered; `groups` are those of the program, in its order."""
    by_law: set[int] = set()
    maps: dict[int, Changes] = {}
    for compiled, group in zip(program.compiled, groups, strict=True):
        if compiled is None:
            continue  # the law answers it anyway
        units = _units(compiled, template, group)
        needed = {gap: units.get(gap, ()) for gap in compiled.numbers} if units is not None else {}
        if units is None or any(maps.get(gap, changes) != changes for gap, changes in needed.items()):
            by_law.update(group.numbers)
        else:
            maps |= needed
    return StretchUnits(frozenset(by_law), {gap: changes for gap, changes in maps.items() if changes})


def _units(compiled: CompiledQuery, template: Template, group: Followed) -> dict[int, Changes] | None:
    """By gap: what has become of the unit of values that a query reads; None where columns cannot answer it."""
    as_text = {each.leaf for each in tests(compiled.condition) if isinstance(each, TextTest)}
    found: dict[int, Changes] = {}
    for path, changes in group.units.items():
        if not carries(template, path):
            continue
        gap = gap_of(template, path)
        if gap is None or changes is None or len(changes) > MOST_BOXES or gap in as_text:
            return None
        times = sum(isinstance(each, Taken) and each.first <= gap <= each.last for each in compiled.fragments)
        if times and not group.is_home(path, changes, times):
            return None
        found[gap] = changes
    return found


def brought_back(
    values: Numbers,
    changes: Changes,
    judged: Mapping[Box, tuple[Flags, Flags]],
    bring: Callable[[Numbers, Affine], Numbers],
) -> Numbers:
    """Numbers in the unit before some changes; NaN where it is not clear which of them concern an entry."""
    kinds = np.zeros(len(values), np.int64)
    """By entry: which changes concern it, a bit for each."""
    unclear = np.zeros(len(values), np.bool_)
    for bit, (box, _) in enumerate(changes):
        may, must = judged[box] if box else (~unclear | True, ~unclear | True)
        unclear |= may & ~must
        kinds |= must.astype(np.int64) << bit
    found = np.where(unclear, np.nan, values)
    for kind in np.unique(kinds).tolist():
        net = reduce(Affine.then, (by for bit, (_, by) in enumerate(changes) if kind >> bit & 1), IDENTITY)
        if net != IDENTITY:
            found[kinds == kind] = bring(found[kinds == kind], net.inverse())
    return found


def mapped(values: Numbers, by: Affine, constants: Numbers) -> Numbers:
    """Numbers under a map, each on the same side of every constant as the exact result; NaN stays NaN.

    Numbers and constants have few enough digits that a double stands for exactly one of them.
    """
    a, b = float(by.a), float(by.b)
    with np.errstate(over="ignore"):
        found: Numbers = values * a + b
        error = _ERROR * (np.abs(values * a) + abs(b))
    if not len(constants):
        return found
    behind = np.searchsorted(constants, found)
    above = constants[np.minimum(behind, len(constants) - 1)]
    below = constants[np.maximum(behind - 1, 0)]
    near = np.flatnonzero((np.abs(found - above) <= error) | (np.abs(found - below) <= error))
    exact: dict[float, float] = {}
    for entry in near.tolist():
        value = float(values[entry])
        if value not in exact:
            exact[value] = _settled(float(found[entry]), by(_decimal(value)), (below[entry], above[entry]))
        found[entry] = exact[value]
    return found


def _settled(about: float, exact: Fraction, constants: Sequence[float]) -> float:
    """A double near a number that stands as the number does to the constants next to it."""
    for constant in constants:
        known = _decimal(float(constant))
        if exact == known:
            return float(constant)
        if exact < known and about >= constant:
            about = float(np.nextafter(constant, -np.inf))
        elif exact > known and about <= constant:
            about = float(np.nextafter(constant, np.inf))
    return about


def _decimal(value: float) -> Fraction:
    return Fraction(Decimal(repr(value)))
