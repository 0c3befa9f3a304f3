"""Grids of conditions: what is reckoned of them is what counting gives."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.columnar.match.arranging import _bins, _touched
from anabranch.columnar.match.kernels import fill_cells


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
