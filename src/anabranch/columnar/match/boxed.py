"""Items in columns held against boxes: which of them may be in one.

A box is a conjunction of comparisons with constants (`algebra/accents`), over paths that occur at most once in an item.
Items that fit a template have its paths and no others, so a comparison is decided by the values there, as far as
doubles can decide it; what they leave open is taken as possible, and so is everything for items of another look.
Values that nobody has cut out yet are cut out once for a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from anabranch.algebra.accents.boxes import inside
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.items import leaves, nodes
from anabranch.algebra.accents.sets import below
from anabranch.columnar.match.condition import OPERATORS
from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.entries import shred_entries
from anabranch.columnar.scan.kernels import MOST_DIGITS, Bytes, Flags, Indices, Numbers
from anabranch.columnar.scan.shred import Shredded, WantedLeaves
from anabranch.columnar.scan.template import Template
from anabranch.predicate import Compare, Not, Operator, Predicate, terms
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.tree import Element, string_value

MOST_BOXES = 64
"""More than these are not held against columns: then all items may be in one."""
_NEAR = 1e-12
"""Doubles that differ by less than this part of them may stand for one number."""


def carries(template: Template, path: Path) -> bool:
    """Whether items that fit have something at a path or below."""
    return any(below(each, path) for each in _look(template).leaves)


def gap_of(template: Template, path: Path) -> int | None:
    """The gap that is the only value at a path of items that fit; None where there is none, or more than that."""
    return _look(template).gap(path)


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
    look: _Look | None
    """None where nothing fits."""
    values: dict[int, _Values]
    """By gap of the template."""

    @staticmethod
    def of(shredded: Shredded, known: Flags, boxes: Sequence[Box]) -> BoxColumns:
        if shredded.wanted is None:
            return BoxColumns(known, shredded.fits, None, {})
        look = _look(shredded.wanted.template)
        paths = {term.path for box in boxes for literal in box for term in terms(literal)}
        gaps = sorted({gap for path in paths if (gap := look.gap(path)) is not None})
        return BoxColumns(known, shredded.fits, look, _values(shredded, gaps))

    def may_be_in(self, boxes: Sequence[Box], first: int, last: int) -> Flags:
        """Which of the known entries from `first` to before `last` may be in one of the boxes."""
        known, fits = self.known[first:last], self.fits[first:last]
        if not all(boxes) or len(boxes) > MOST_BOXES:
            return known
        found: Flags = known & ~fits
        for box in boxes:
            found |= fits & np.logical_and.reduce([self._judge(literal, slice(first, last))[0] for literal in box])
        return found

    def judge(self, box: Box) -> tuple[Flags, Flags]:
        """Which entries may be in a box, and which are for certain; of those that do not fit, nobody knows."""
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
                gap = self.look.gap(term.path)
                if gap is None and self.look.lacks(term.path):
                    return np.zeros(count, np.bool_), np.zeros(count, np.bool_)
                if gap is not None and isinstance(constant, Fraction):
                    return _compared(self.values[gap].numbers[part], op, constant)
                if gap is not None and isinstance(constant, str) and op in ("=", "!="):
                    same = self.values[gap].spell(constant.encode(), part)
                    return (same, same) if op == "=" else (~same, ~same)
            case _:
                pass
        return np.ones(count, np.bool_), np.zeros(count, np.bool_)


def _compared(found: Numbers, op: Operator, constant: Fraction) -> tuple[Flags, Flags]:
    """Where numbers may stand in this relation to a constant, and where they do; NaN is a text that is not clear."""
    nothing = np.zeros(len(found), np.bool_)
    try:
        value = float(constant)
    except OverflowError:
        return ~nothing, nothing
    if Fraction(Decimal(repr(value))) == constant and len(Decimal(repr(value)).as_tuple().digits) <= MOST_DIGITS:
        holds: Flags = OPERATORS[op](found, value)  # doubles stand for one decimal each
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
    """What stands in one gap of a template, by entry; of entries that do not fit it means nothing."""

    data: Bytes
    starts: Indices
    ends: Indices
    numbers: Numbers

    def spell(self, text: bytes, part: slice) -> Flags:
        """Which of some entries have this text there."""
        starts = self.starts[part]
        same: Flags = self.ends[part] - starts == len(text)
        at = starts[same]
        equal = np.ones(len(at), np.bool_)
        for place, byte in enumerate(text):
            equal &= self.data[at + place] == byte
        same[same] = equal
        return same


def _values(shredded: Shredded, gaps: Sequence[int]) -> dict[int, _Values]:
    """The values in some gaps, which may have been cut out already."""
    wanted = shredded.wanted
    assert wanted is not None
    cut = dict(zip(wanted.leaves, range(len(wanted.leaves)), strict=True))
    if all(gap in cut and wanted.numeric[cut[gap]] for gap in gaps):
        return {
            gap: _Values(
                shredded.data,
                shredded.starts[cut[gap]].astype(np.int64),
                shredded.ends[cut[gap]].astype(np.int64),
                shredded.values[cut[gap]],
            )
            for gap in gaps
        }
    picks = np.flatnonzero(shredded.fits)
    offsets = np.zeros(len(picks) + 1, np.int32)
    np.cumsum(shredded.finishes[picks] - shredded.begins[picks], out=offsets[1:])
    raw = np.empty(offsets[-1], np.uint8)
    kernels.gather(shredded.data, shredded.begins, shredded.finishes, picks, offsets, raw)
    again = WantedLeaves(wanted.template, tuple(gaps), (True,) * len(gaps))
    found = shred_entries(raw.tobytes(), offsets[1:].astype(np.int64), again, shredded.limits)
    spread = np.zeros((2, len(gaps), len(shredded.fits)), np.int64)
    numbers = np.full((len(gaps), len(shredded.fits)), np.nan)
    spread[0][:, picks], spread[1][:, picks], numbers[:, picks] = found.starts, found.ends, found.values
    return {gap: _Values(found.data, spread[0][row], spread[1][row], numbers[row]) for row, gap in enumerate(gaps)}


# --- templates --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    """A template as a tree; where a gap is, its number is the text."""

    tree: Element
    leaves: frozenset[Path]

    def lacks(self, path: Path) -> bool:
        return next(nodes(self.tree, path), None) is None

    def gap(self, path: Path) -> int | None:
        """The gap that is the only value at a path; None where there is none, or several, or more than a text."""
        found = list(nodes(self.tree, path))
        text = string_value(found[0]) if len(found) == 1 and path in self.leaves else ""
        return int(text) if text else None


@lru_cache(maxsize=64)
def _look(template: Template) -> _Look:
    numbered = zip(template.pieces, (*map(str, range(template.gaps)), ""), strict=True)
    tree = parse_item(b"".join(piece + number.encode() for piece, number in numbered), Limits())
    return _Look(tree, frozenset(leaves(tree)))
