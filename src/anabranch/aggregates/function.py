"""The interface of an aggregate function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.aggregates.folds import EntryOrder, Fold
from anabranch.aggregates.partial import COLUMNS, Partial
from anabranch.stream.affine import Affine
from anabranch.values.sequences import Values

FunctionName: TypeAlias = str
"""A name in the registry."""


@dataclass(frozen=True, slots=True)
class Column:
    """An aggregate by window."""

    values: NDArray[np.float64] | NDArray[np.int64]
    present: NDArray[np.bool_] | None = None
    """Which windows have a value; None for all."""

    def at(self, window: int) -> Values:
        """The aggregate of one window, as the evaluator receives it."""
        return [] if self.present is not None and not self.present[window] else [self.values[window].item()]


class WindowStatistics(Protocol):
    """Statistics of many windows from columns of panes, by aggregated path."""

    def counts(self, path: int) -> NDArray[np.int64]:
        """The number of values of each window."""

    def quotients(self, path: int, divisors: NDArray[np.int64] | None, by: Affine) -> NDArray[np.float64]:
        """The double nearest to each sum divided by a number, in a unit."""

    def extremes(self, path: int, *, greatest: bool) -> NDArray[np.float64]:
        """The least or greatest value of each window."""


class AggregateFunction(ABC):
    """One function; its subclasses have no state."""

    name: ClassVar[FunctionName]
    needs: ClassVar[str]
    """The letters that a partial must have (`partial.py`)."""
    takes_numbers: ClassVar[bool] = True
    """Whether it reads the values, and fails where one is no number."""
    is_total: ClassVar[bool] = False
    """Whether it has a value over no values."""
    kind: ClassVar[Literal["integer", "number", "extreme"]] = "number"
    """The type of the result; an extreme of strings is a string."""

    @abstractmethod
    def law(self, values: Values) -> Values:
        """The aggregate of a sequence (LAWS 2.1, 2.2); raises where the sequence has none."""

    @abstractmethod
    def of_partial(self, known: Partial) -> int | float | None:
        """The aggregate from a partial without failure, `Rounded` where it was rounded; None for the empty sequence."""

    @abstractmethod
    def fold(self, entries: EntryOrder) -> Fold:
        """The aggregate as a state, to which values are added and from which they are removed."""

    def follows(self, by: Affine) -> Affine | None:
        """How the aggregate changes when its values change their unit (LAWS 4.2a); None where that is unknown."""
        return by

    def column(self, windows: WindowStatistics, path: int, by: Affine) -> Column:
        """The aggregates of many windows, in a unit; for functions that `is_by_panes`."""
        raise AssertionError(f"'{self.name}' is not put together from panes")

    def value(self, known: Partial) -> Values:
        """The aggregate from a partial as the evaluator receives it; raises the failure that concerns it."""
        if known.failure and (known.failure.stage == 0 or self.takes_numbers):
            raise known.failure.error
        found = self.of_partial(known)
        return [] if found is None else [found]

    @property
    def is_by_panes(self) -> bool:
        """Whether columns of panes have all it needs."""
        return set(self.needs) <= set(COLUMNS)
