"""Expressions evaluated over tuples of items in columns.

The rows of an evaluation are items, or repeated parts inside of them; here they are tuples.
An expression that reads one item only is evaluated once for the items of its side, and its values taken from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from anabranch.columnar.expressions.evaluating import FrameEvaluation
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Expression, Fragment, Taken, sides_of
from anabranch.columnar.expressions.values import ColumnValue, States
from anabranch.columnar.joins.step_join import Picks
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.shred import Shredded


class SideColumns:
    """The items of one side in columns, and the evaluation over those that fit."""

    def __init__(self, shredded: Shredded) -> None:
        self.shredded = shredded
        fits = shredded.fits
        self.fitting: Indices = np.flatnonzero(fits)
        self.unfit: Flags | None = None if len(self.fitting) == len(fits) else ~fits
        self.rows: Indices | None = None if self.unfit is None else np.maximum(np.cumsum(fits) - 1, 0)
        """By item: its row in the evaluation; some row where the item does not fit."""

    @cached_property
    def evaluation(self) -> FrameEvaluation:
        """Expressions over the items that fit."""
        return FrameEvaluation(self.shredded, None if self.unfit is None else self.fitting)


class TupleEvaluation(FrameEvaluation):
    """Expressions over some tuples; values are without meaning for tuples with an item that does not fit."""

    def __init__(self, sides: Sequence[SideColumns], picks: Picks) -> None:
        self._sides = sides
        self._items = [
            mine if side.rows is None else side.rows.take(mine) for side, mine in zip(sides, picks, strict=True)
        ]
        self.count = picks.shape[1]
        self._known = {}
        self._constants = {}
        self._outer = None
        self._frame = -1

    def _value(self, expression: Expression) -> ColumnValue:
        on = sides_of(expression)
        if len(on) == 1:
            (side,) = on
            return self._sides[side].evaluation.value(expression).take(self._items[side])
        return super()._value(expression)

    def _belongs_around(self, expression: Expression) -> bool:
        return False

    def fragment(self, fragment: Fragment) -> tuple[list[TextColumn], States | None]:
        """The texts of a fragment, and where they are unclear; a missing value is an empty text."""
        if not isinstance(fragment, Taken):
            return super().fragment(fragment)
        found, state = self._sides[fragment.side].evaluation.fragment(fragment)
        mine = self._items[fragment.side]
        return [each.take(mine) for each in found], None if state is None else state.take(mine)
