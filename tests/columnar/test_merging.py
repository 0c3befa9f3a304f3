"""The merge of inputs over columns of times, against the merge of whole sequences."""

from __future__ import annotations

from heapq import merge
from random import Random

import numpy as np

from anabranch.columnar.joins.kernels import merged

FOREVER, NOWHERE = 1 << 62, -(1 << 62)


def times(*sequences: list[int]) -> list[np.ndarray]:
    return [np.array(each, np.int64) for each in sequences]


def test_ended_inputs_are_merged_like_whole_sequences() -> None:
    """By the heads, ties to the first, times that fall among them."""
    for seed in range(30):
        random = Random(seed)
        sequences = [[random.randrange(8) for _ in range(random.randrange(10))] for _ in range(random.randint(1, 4))]
        marked = [[(time, number) for time in each] for number, each in enumerate(sequences)]
        expected = [number for _, number in merge(*marked, key=lambda each: each[0])]
        assert merged(times(*sequences), [FOREVER] * len(sequences)).tolist() == expected


def test_an_input_without_a_head_lets_others_go_up_to_its_limit() -> None:
    """One that is not known at all lets none go; the limit itself is included; the least of several limits counts."""
    assert merged(times([1, 2, 3], []), [FOREVER, NOWHERE]).tolist() == []
    assert merged(times([1, 2, 3], []), [FOREVER, 2]).tolist() == [0, 0]
    assert merged(times([1, 5], [2], [3]), [FOREVER, 4, FOREVER]).tolist() == [0, 1, 2]
    assert merged(times([1, 5], [2], [3]), [FOREVER, 6, 5]).tolist() == [0, 1, 2, 0]
    assert merged(times([1, 5], [2], [3]), [FOREVER, NOWHERE, 5]).tolist() == [0, 1]


def test_nothing() -> None:
    """Nothing arrives where nothing is there."""
    assert merged(times([], []), [FOREVER, FOREVER]).tolist() == []
