"""Values as ranks among the constants they are compared with.

A constant has an odd rank, what lies between two of them an even one, and what is not known has -1.
So every comparison is whether a rank lies in an interval, whatever was compared.

Numbers are found by the cell they lie in: the span of the constants is cut into a few more cells than there are
constants, and what a cell is given by, (value - least) * scale, never falls while values rise, however it is rounded.
Texts are found by their first eight bytes as one number, and by the rest where these are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from anabranch.columnar.match import kernels_ranking as kernels
from anabranch.columnar.match.forms import Axis, Constant
from anabranch.columnar.scan.kernels import Places
from anabranch.columnar.scan.shred import Shredded

_CELLS = 4
"""So many cells there are to a constant."""


class Ranking(Protocol):
    """The constants of one axis."""

    size: int
    """How many ranks there are."""

    def places(self, given: Sequence[Constant]) -> Places:
        """The numbers of some of the constants."""

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        """Set the ranks of all entries."""


def ranking_of(axis: Axis, row: int, constants: Iterable[Constant]) -> Ranking:
    """The ranking of an axis, whose leaf is in this row."""
    if axis.is_text:
        return _Texts(row, sorted(each for each in set(constants) if isinstance(each, bytes)))
    return NumberRanking(row, sorted({float(each) for each in constants}))


class NumberRanking:
    """The numbers that the leaf in a row is compared with."""

    def __init__(self, row: int, constants: Sequence[float]) -> None:
        self.size = 2 * len(constants) + 1
        self.row = row
        self.constants = found = np.array(constants)
        count = _CELLS * len(found)
        span = found[-1] - found[0]
        self._least, self._scale = float(found[0]), float(count / span) if span else 0.0
        own = np.minimum(((found - self._least) * self._scale).astype(np.int64), count - 1)
        self._cells = np.searchsorted(own, np.arange(count + 1))

    def places(self, given: Sequence[Constant]) -> Places:
        return np.searchsorted(self.constants, np.array(given, np.float64)).astype(np.int32)

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        cells = self._cells, self._least, self._scale
        kernels.rank_numbers(shredded.values[self.row], self.constants, *cells, ranks)


class _Texts:
    def __init__(self, row: int, constants: Sequence[bytes]) -> None:
        self.size = 2 * len(constants) + 1
        self._row = row
        self._numbers = {each: number for number, each in enumerate(constants)}
        self._joined = np.frombuffer(b"".join(constants) + b"\0", np.uint8)
        self._bounds = np.cumsum([0, *map(len, constants)])
        self._keys = np.empty(len(constants), np.uint64)
        kernels.keys(self._joined, self._bounds, self._keys)

    def places(self, given: Sequence[Constant]) -> Places:
        return np.array([self._numbers[each] for each in given if isinstance(each, bytes)], np.int32)

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        spans = shredded.starts[self._row], shredded.ends[self._row]
        constants = self._joined, self._bounds, self._keys
        given = (shredded.data, *spans, shredded.fits, *constants, ranks)
        kernels.rank_texts(*given)
