"""Grids of conditions: what is reckoned of them is what counting gives; and clauses as bits."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.columnar.match.arranging import ClauseBits, RankSpan, _bins, _touched
from anabranch.columnar.match.kernels import Hits, deal, fill_cells


@pytest.mark.parametrize("size", [1, 7, 300])
@pytest.mark.parametrize("more", [0, 5, 40])
def test_cells_that_intervals_touch_are_reckoned_as_they_are_counted(size: int, more: int) -> None:
    """For intervals and boxes, some of them empty, in grids from the finest to one cell."""
    random = np.random.default_rng([size, more])
    spans = [random.integers(0, size, 200).astype(np.int32) for _ in range(2)]
    spans += [random.integers(0, more or 1, 200).astype(np.int32) for _ in range(2)]
    spans[0][:3] = size + 5  # an interval above all values is empty
    for fine in (64, 8, 1):
        bins = _bins(size, fine), _bins(more, fine)
        wide = int(bins[1][-1]) + 1
        heads = np.zeros((int(bins[0][-1]) + 1) * wide + 1, np.int64)
        given = (spans[0], spans[1], bins[0], spans[2], spans[3], bins[1], wide)
        counted = fill_cells(*given, heads, np.empty(0, np.int64))
        assert _touched(spans, bins) == counted == heads.sum()
        assert counted > 0


def test_only_clauses_have_bits() -> None:
    """What is left of a word is never set: a bit that no clause has would be looked at for every entry."""
    clauses = ClauseBits([4, 3])
    lows, highs = np.array([1, 0, 2], np.int32), np.array([2, 3, 1], np.int32)
    clauses.add(np.arange(3, dtype=np.int32), [RankSpan(0, lows, highs, negated=False)])
    clauses.add(np.array([3], np.int32), [RankSpan(1, lows[:1], lows[:1], negated=True)])
    bits = clauses.arrays()
    assert bits.held[:, 0].tolist() == [0b1010, 0b1011, 0b1011, 0b1010, 0b1111, 0b0111, 0b1111]
    assert bits.untested[:, 0].tolist() == [0b1000, 0b0111]


def test_pairs_are_dealt_to_their_conditions() -> None:
    """The entries of a condition keep their order, and those at some places can be left out."""
    conditions, entries = np.array([2, 0, 2, 0, 2], np.int32), np.array([0, 1, 1, 4, 7], np.int32)
    hits = Hits(np.empty(5, np.int32), np.zeros(4, np.int64))
    deal(conditions, entries, hits)
    assert [hits.of(condition).tolist() for condition in range(3)] == [[1, 4], [], [0, 1, 7]]
    left = hits.without([np.array([1]), np.array([2, 4])])
    assert [left.of(condition).tolist() for condition in range(3)] == [[1], [], [1]]
