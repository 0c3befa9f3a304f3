"""Item queries where a stream evolves: where units or paths change, which items may be bad, and columns in other units.

Accents, and punctuations that describe items, say something of the items behind them (LAWS 4).
An accent ends a stretch: the items between two accents are answered in one state.
A punctuation does not, since there may be many; the items behind it that it may exclude are parsed one by one, and so
are those that may carry a dropped path.
Columns find these items: items that fit a template have its paths and no others, and the boxes of dropped paths and of
punctuations are compared with the values there.
A stream without any of this pays nothing: entries that fit are no control elements, and the others are parsed anyway.

Where values have changed their units, conditions are still matched together (LAWS 4.3): conditions are in the units
that a query knows, values in those of their place.
Each number is mapped into the query's unit once, and then stands on the right side of every constant: as a double where
rounding cannot matter, and where it could, by exact fractions.
Columns also find which items have changed (`columnar/match/boxed.py`); where that is unclear, the number is unknown.
A value that such a query copies may leave as it is written, if the answer has followed all changes.
Left to the law are queries that compare such a value as text, or whose answer is in another unit than the value; where
queries know different units of one path, those that differ from the first are left to it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from typing import Protocol, TypeAlias

import numpy as np

from anabranch.algebra.accents.boxes import boxes
from anabranch.algebra.accents.events import is_change
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.sets import items_of
from anabranch.columnar.expressions.tree import Column, Fragment, Taken, Wrapped, read_columns
from anabranch.columnar.items.programs import Program
from anabranch.columnar.items.query import CompiledQuery, made_in
from anabranch.columnar.match.boxed import MOST_BOXES, BoxColumns, carries, column_of, covers
from anabranch.columnar.match.condition import columns_as_written
from anabranch.columnar.scan.kernels import SIMPLE, UNCLEAR, Flags, Numbers
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.errors import StreamError
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.description import Description
from anabranch.stream.elements import DeadLetter, Item, Punctuation, StreamElement
from anabranch.stream.path import Path
from anabranch.stream.reading.lines import Cut

Changes: TypeAlias = tuple[tuple[Box, Affine], ...]
"""Unit changes of a path, the oldest first, each for the items of a box at the place reached."""
_ERROR = 8 * float(np.finfo(np.float64).eps)
"""The relative error of a mapped double, at most."""


class Followed(Protocol):
    """Queries that evolve alike."""

    @property
    def numbers(self) -> range: ...

    @property
    def units(self) -> Mapping[Path, Changes | None]:
        """The paths that they read and that have changed their unit: the changes since the unit that they know.

        None for a path to which more has happened.
        """

    def is_home(self, path: Path, changes: Changes, times: int) -> bool:
        """Whether values leave as they are written, at all of the `times` places in the answer."""


@dataclass(frozen=True, slots=True)
class StretchUnits:
    """The units in which the queries of a program are answered in a stretch."""

    by_law: frozenset[int]
    """The queries that columns cannot answer here."""
    maps: Mapping[Column, Changes]
    """By column: the changes since the unit that conditions are in."""

    def applied(self, shredded: Shredded, program: Program) -> Shredded:
        """A batch with its numbers in the units of conditions; the same object where nothing has to be mapped."""
        if not self.maps or shredded.wanted is None:
            return shredded
        values, starts = shredded.values.copy(), shredded.starts.copy()
        boxes = list(dict.fromkeys(box for changes in self.maps.values() for box, _ in changes if box))
        columns = BoxColumns.of(shredded, shredded.fits, boxes)
        judged = {box: columns.judge(box) for box in boxes}
        for column, changes in self.maps.items():
            row = shredded.row(column)
            bring = partial(mapped, constants=program.matcher.constants(row))
            values[row] = brought_back(values[row], changes, judged, bring)
            starts[row, np.isnan(values[row]) & (starts[row] >= 0)] = UNCLEAR  # its text is in another unit
        return replace(shredded, values=values, starts=starts)


NO_UNITS = StretchUnits(frozenset(), {})


def units_of(program: Program, look: Look, groups: Sequence[Followed]) -> StretchUnits:
    """The units for a program; the queries of each of `groups` are some or all of one group of the program."""
    by_law: set[int] = set()
    maps: dict[Column, Changes] = {}
    for group in groups:
        compiled = program.compiled[program.sets[group.numbers[0]]]
        if compiled is None:
            continue  # the law answers it anyway
        units = None if _reads_prefixes(compiled, look) else _units(compiled, look, group)
        needed = {column: units.get(column, ()) for column in compiled.numbers} if units is not None else {}
        if units is None or any(maps.get(column, changes) != changes for column, changes in needed.items()):
            by_law.update(group.numbers)
        else:
            maps |= needed
    return StretchUnits(frozenset(by_law), {column: changes for column, changes in maps.items() if changes})


def _reads_prefixes(compiled: CompiledQuery, look: Look) -> bool:
    """Whether a query reads parts in namespaces: accents call them by prefixes, which need not be the query's."""
    read = compiled.columns.union(*map(read_columns, compiled.fragments))
    columns = {part for column in read for part in read_columns(column) if _is_of_items(part, look)}
    parts = {part for each in columns for part in ((each,) if each >= 0 else (~each, *look.descendants(~each)))}
    return any(each.uri for part in parts for each in look.parts_to(part)[1:])


def _units(compiled: CompiledQuery, look: Look, group: Followed) -> dict[Column, Changes] | None:
    """By column that a query reads: the changes of its unit; None where columns cannot answer the query."""
    others = columns_as_written(compiled.condition)
    given = (column for each in (*others, *made_in(compiled.fragments)) for column in read_columns(each))
    read = {part for column in given if _is_of_items(column, look) for part in _parts_in(column, look)}
    found: dict[Column, Changes] = {}
    for path, changes in group.units.items():
        if not carries(look, path):
            continue
        column = column_of(look, path)
        if column is None or changes is None or len(changes) > MOST_BOXES or column in read:
            return None
        times = sum(_copies(each, column, look) for each in compiled.fragments)
        if times and not group.is_home(path, changes, times):
            return None
        found[column] = found[look.typed(column)] = changes
    return found


def _parts_in(column: PartColumn, look: Look) -> Iterator[int]:
    """The parts that steps lead to whose text is in a column; lookups read their typed parts."""
    shown = look.shown(column if column >= 0 else ~column)
    yield shown
    if column < 0:
        yield from look.descendants(shown)


def _is_of_items(column: PartColumn, look: Look) -> bool:
    """Whether a column is one of items, and not of rows that are looked up, which no accent concerns."""
    return (column if column >= 0 else ~column) < len(look.parts)


def _copies(fragment: Fragment, column: PartColumn, look: Look) -> int:
    """How often a fragment copies the text of a part."""
    match fragment:
        case Wrapped(content):
            return sum(_copies(each, column, look) for each in content)
        case Taken(copied) if copied >= 0:
            return int(copied == column)
        case Taken(copied):
            return int(column == ~copied or column in look.descendants(~copied))
        case _:
            return 0


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

    Numbers have few enough digits that a double stands for exactly one of them; near a constant that has more, it is
    not known on which side of it a number is.
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
    """A double that compares with the neighbouring constants as the exact number does; NaN where that is unclear."""
    for constant in constants:
        if abs(constant) >= SIMPLE:
            return float(np.nan)
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


# --- the evolution of a partition ------------------------------------------------------------------------------


WORDS = (b"accent", b"punctuation")
"""The words that elements contain which say something of the items behind them."""
ESCAPE = b"\\u"


class Follows(Protocol):
    """The queries of a stream that evolves, by their numbers."""

    @property
    def silent(self) -> frozenset[int]:
        """The queries that have ended."""

    @property
    def groups(self) -> Sequence[Followed]:
        """The queries, grouped by how they evolve, in the order of their numbers; the same object until it changes."""

    def piece(self, number: int, item: Item) -> str:
        """The piece that an item adds to an answer."""


class Overruns(Protocol):
    """Evaluations that take too many steps, after which queries end (LAWS 2.9)."""

    @property
    def silent(self) -> frozenset[int]:
        """The queries that have ended."""

    def note(self, query: int, offset: int) -> None:
        """Count one more, for the item at an offset."""

    def cost(self, query: int, seconds: float) -> None:
        """Take in for how many processor seconds the law has worked for a query."""


class PartitionCourse(Protocol):
    """The evolution of one partition up to where it is read; reading an element advances it."""

    @property
    def silent(self) -> frozenset[int]:
        """The queries that have ended, by an accent or because they took too much."""

    @property
    def overruns(self) -> Overruns | None:
        """Counts the evaluations that take too many steps."""

    @property
    def follows(self) -> Follows | None:
        """The queries; None as long as no accent or punctuation has come."""

    @property
    def splits_at_punctuations(self) -> bool:
        """Whether a punctuation, too, ends a stretch."""

    @property
    def evolution(self) -> Evolution:
        """The state of paths and units; read-only."""

    def peek(self, cut: Cut) -> StreamElement | DeadLetter:
        """Parse an entry without taking it in."""


def changes(course: PartitionCourse, shredded: Shredded, unknown: Flags) -> dict[int, StreamElement | DeadLetter]:
    """The control elements of a batch, searched among its `unknown` entries."""
    found: dict[int, StreamElement | DeadLetter] = {}
    for entry in map(int, np.flatnonzero(unknown)):
        cut = shredded.cut(entry)
        if any(may_hold(word, cut.raw) for word in WORDS):
            element = course.peek(cut)
            if is_change(element):
                found[entry] = element
    return found


def suspects(
    course: PartitionCourse, shredded: Shredded, known: Flags, controls: Mapping[int, StreamElement | DeadLetter]
) -> Flags | None:
    """The known entries of a stretch without accents that may be bad items after all; None if there are none."""
    forbidden = list(course.evolution.forbidden())
    closings = {entry: _closed(each.where) for entry, each in controls.items() if isinstance(each, Punctuation)}
    if not forbidden and not closings:
        return None
    look = shredded.wanted.look if shredded.wanted else None
    live: list[tuple[Path | None, Box]] = [
        (path, box)
        for path, held in forbidden
        if path is None or (look is not None and carries(look, path))
        for box in held
    ]
    if len(live) > MOST_BOXES:
        live = [(None, ())]
    boxes = [*(box for _, box in live), *(box for each in closings.values() for box in each)]
    columns = BoxColumns.of(shredded, known, boxes, {path for path, _ in live if path is not None})
    found = np.zeros(len(known), np.bool_)
    begin, begun = 0, bool(forbidden)
    for entry, fresh in (*closings.items(), (len(known), ())):
        if begun:
            found[begin:entry] = columns.may_be_in(live, begin, entry)
        kept = (each for each in live if not any(covers(box, each[1]) for box in fresh))
        live = [*kept, *((None, box) for box in fresh)]
        begin, begun = entry, True
    return found if found.any() else None


def may_hold(word: bytes, raw: bytes) -> bool:
    """Whether a control element of this name may stand in some bytes; JSON may spell it with escapes."""
    return word in raw or ESCAPE in raw


def _closed(where: Description | None) -> Sequence[Box]:
    try:
        return [] if where is None else boxes(items_of(where))
    except StreamError:  # as in `Evolution.close`
        return []
