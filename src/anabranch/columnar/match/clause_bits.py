"""Clauses as bits: where conditions are few, one word says of dozens of them at once which a value leaves standing.

Each clause of each condition is a bit, and each rank of each axis has a row of bits: the clauses that a value of this
rank fulfils as far as the axis goes.
What an entry fulfils is then what all its rows have in common, without a look at any single condition that it does not.
Rows get longer with the clauses, so this is for some hundreds; grids (`grids.py`) are for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.match.kernels import Bits
from anabranch.columnar.scan.kernels import Places

MOST = 256
_WORD = 64


@dataclass(frozen=True, slots=True)
class Span:
    """What a clause asks on one axis of some conditions: that a rank lies between these, or that it does not."""

    axis: int
    lows: Places
    highs: Places
    negated: bool


class ClauseBits:
    """The clauses of conditions over some axes, of which the number of ranks is given."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._blocks: list[tuple[Places, Sequence[Span]]] = []
        self.count = 0

    def add(self, conditions: Places, spans: Sequence[Span]) -> None:
        """Add one clause of some conditions."""
        self._blocks.append((conditions, spans))
        self.count += len(conditions)

    def arrays(self) -> Bits:
        """As the kernel takes them (`kernels_matching.match_few`)."""
        width = -(-self.count // _WORD) * _WORD
        whose = np.full(width, -1, np.int32)
        held = [np.ones((size, width), np.bool_) for size in self._sizes]
        untested = np.ones((len(self._sizes), width), np.bool_)
        at = 0
        for conditions, spans in self._blocks:
            mine = slice(at, at + len(conditions))
            whose[mine] = conditions
            for each in spans:
                ranks = np.arange(self._sizes[each.axis])[:, None]
                inside = (each.lows <= ranks) & (ranks <= each.highs)
                held[each.axis][:, mine] &= inside != each.negated
                untested[each.axis, mine] = False
            at = mine.stop
        rows = np.cumsum([0, *self._sizes])[:-1].astype(np.int64)
        rows_held = _packed(np.concatenate([np.empty((0, width), np.bool_), *held]))
        return Bits(whose, rows, rows_held, _packed(untested))


def _packed(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of flags as rows of words, the first flag lowest."""
    packed = np.packbits(flags, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)
