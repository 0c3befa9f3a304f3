"""Items in columns compared with boxes: which of them may be in one.

A box is a conjunction of comparisons with constants (`algebra/accents`), over paths that occur at most once in an item.
Items that fit have the paths of their look and no others, so a comparison is decided by the values there, as far as
doubles can decide it; what they leave open is taken as possible, and so is everything for items of another look.
Columns that no query needs are shredded once for a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from anabranch.algebra.accents.boxes import inside
from anabranch.algebra.accents.index import Box
from anabranch.columnar.match.condition import OPERATORS
from anabranch.columnar.scan.entries import shredded_again
from anabranch.columnar.scan.kernels import ABSENT, MOST_DIGITS, Bytes, Flags, Indices, Numbers
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.predicate import Compare, Not, Operator, Predicate, terms
from anabranch.stream.path import Path

MOST_BOXES = 64
"""More boxes are not compared with columns: then all items may be in one."""
_NEAR = 1e-12
"""Doubles that differ by less than this part of their value may stand for one number."""


def carries(look: Look, path: Path) -> bool:
    """Whether items of a look may have something at a path."""
    return bool(_parts_at(look, path))


def column_of(look: Look, path: Path) -> PartColumn | None:
    """The column that has the only value at a path; None where there is none, or where there are several."""
    found = _parts_at(look, path)
    if len(found) != 1 or not path.steps:
        return None
    (part,) = found
    return part if look.parts[part].has_text and look.frames[part] < 0 else None


@lru_cache(maxsize=1024)
def _parts_at(look: Look, path: Path) -> tuple[int, ...]:
    return tuple(part for part in range(len(look.parts)) if look.path(part)[1:] == path.steps)


def covers(box: Box, other: Box) -> bool:
    """Whether one box holds another."""
    match box, other:
        case (Compare(term, op, Fraction() as most),), (Compare(of, as_, Fraction() as least),) if term == of:
            if op == as_ and op in ("<", "<="):
                return least <= most
    return inside(other, box)


@dataclass(frozen=True)
class BoxColumns:
    """The known entries of a batch, with their values at the paths that some boxes name."""

    known: Flags
    fits: Flags
    look: Look | None
    """None where nothing fits."""
    values: Mapping[PartColumn, _Values]

    @staticmethod
    def of(shredded: Shredded, known: Flags, boxes: Sequence[Box], carried: Iterable[Path] = ()) -> BoxColumns:
        """`carried` are paths for which the presence of a value is needed."""
        if shredded.wanted is None:
            return BoxColumns(known, shredded.fits, None, {})
        look = shredded.wanted.look
        paths = {term.path for box in boxes for literal in box for term in terms(literal)}
        columns = {column for path in paths if (column := column_of(look, path)) is not None}
        columns |= {look.presence(part) for path in carried for part in _parts_at(look, path) if look.frames[part] < 0}
        return BoxColumns(known, shredded.fits, look, _values(shredded, sorted(columns)))

    def may_be_in(self, boxes: Sequence[tuple[Path | None, Box]], first: int, last: int) -> Flags:
        """Which of the known entries from `first` to before `last` may be in a box, and have something at its path."""
        known, fits = self.known[first:last], self.fits[first:last]
        if len(boxes) > MOST_BOXES:
            return known
        found: Flags = known & ~fits
        for path, box in boxes:
            inside = fits if path is None else fits & self._carry(path, slice(first, last))
            for literal in box:
                inside = inside & self._judge(literal, slice(first, last))[0]
            found |= inside
        return found

    def _carry(self, path: Path, part: slice) -> Flags:
        """Which entries may have something at a path."""
        found = np.zeros(part.stop - part.start, np.bool_)
        for each in _parts_at(self.look, path) if self.look is not None else ():
            column = self.look.presence(each) if self.look is not None else each
            if column not in self.values:
                return np.ones(len(found), np.bool_)
            found |= self.values[column].starts[part] != ABSENT
        return found

    def judge(self, box: Box) -> tuple[Flags, Flags]:
        """Which entries may be in a box, and which are for certain; those that do not fit may be."""
        found = [self._judge(literal, slice(0, len(self.fits))) for literal in box]
        may, must = (np.logical_and.reduce([each[side] for each in found]) for side in (0, 1))
        return may | ~self.fits, must & self.fits

    def _judge(self, literal: Predicate, part: slice) -> tuple[Flags, Flags]:
        """For which entries that fit a comparison may hold, and for which it does for certain."""
        count = part.stop - part.start
        match literal:
            case Not(inner):
                may, must = self._judge(inner, part)
                return ~must, ~may
            case Compare(term, op, constant) if self.look is not None:
                column = column_of(self.look, term.path)
                if column is None and not _parts_at(self.look, term.path):
                    return np.zeros(count, np.bool_), np.zeros(count, np.bool_)
                if column is not None and isinstance(constant, Fraction):
                    there = self.values[column].starts[part] != ABSENT
                    may, must = _compared(self.values[column].numbers[part], op, constant)
                    return may & there, must & there
                if column is not None and isinstance(constant, str) and op in ("=", "!="):
                    there = self.values[column].starts[part] != ABSENT
                    same = self.values[column].spell(constant.encode(), part)
                    return (same, same) if op == "=" else (~same & there, ~same & there)
            case _:
                pass
        return np.ones(count, np.bool_), np.zeros(count, np.bool_)


def _compared(found: Numbers, op: Operator, constant: Fraction) -> tuple[Flags, Flags]:
    """Which numbers may be in this relation to a constant, and which are for certain; NaN is a text that is unclear."""
    nothing = np.zeros(len(found), np.bool_)
    try:
        value = float(constant)
    except OverflowError:
        return ~nothing, nothing
    if Fraction(Decimal(repr(value))) == constant and len(Decimal(repr(value)).as_tuple().digits) <= MOST_DIGITS:
        holds: Flags = OPERATORS[op](found, value)  # each double stands for one decimal
        unclear = np.isnan(found)
        return holds | unclear, holds & ~unclear
    near = abs(value) * _NEAR
    less, more = found < value - near, found > value + near
    match op:
        case "<" | "<=":
            return ~more, less
        case ">" | ">=":
            return ~less, more
        case "=":
            return ~(less | more), nothing
        case "!=":
            return ~nothing, less | more


# --- values -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Values:
    """The values of one column, by entry; without meaning for entries that do not fit."""

    data: Bytes
    starts: Indices
    ends: Indices
    numbers: Numbers

    def spell(self, text: bytes, part: slice) -> Flags:
        """Which of some entries have this text there."""
        starts = self.starts[part]
        same: Flags = (self.ends[part] - starts == len(text)) & (starts >= 0)
        at = starts[same]
        equal = np.ones(len(at), np.bool_)
        for place, byte in enumerate(text):
            equal &= self.data[at + place] == byte
        same[same] = equal
        return same


def _values(shredded: Shredded, columns: Sequence[PartColumn]) -> dict[PartColumn, _Values]:
    """The values in some columns; they are shredded again where a column is missing."""
    wanted = shredded.wanted
    assert wanted is not None
    rows = wanted.rows
    if all(column in rows and (column < 0 or wanted.numeric[rows[column]]) for column in columns):
        return {
            column: _Values(
                shredded.data,
                shredded.starts[rows[column]].astype(np.int64),
                shredded.ends[rows[column]].astype(np.int64),
                shredded.values[rows[column]],
            )
            for column in columns
        }
    found, picks = shredded_again(shredded, WantedColumns.of(wanted.look, columns, columns))
    spread = np.full((2, len(columns), len(shredded.fits)), ABSENT, np.int64)
    numbers = np.full((len(columns), len(shredded.fits)), np.nan)
    spread[0][:, picks], spread[1][:, picks], numbers[:, picks] = found.starts, found.ends, found.values
    return {each: _Values(found.data, spread[0][row], spread[1][row], numbers[row]) for row, each in enumerate(columns)}
