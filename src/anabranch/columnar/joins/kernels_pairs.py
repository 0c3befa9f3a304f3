"""The compiled loops over pairs of items: comparing their texts, laying their answers out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Places, compiled

STRIDE = 16


@compiled
def same_text(
    data: Bytes,
    starts: Places,
    ends: Places,
    picks: Indices,
    other: Bytes,
    other_starts: Places,
    other_ends: Places,
    other_picks: Indices,
    found: Flags,
) -> None:
    """Whether texts of one side are those of another, pair by pair."""
    for number in range(len(found)):
        start, length = starts[picks[number]], ends[picks[number]] - starts[picks[number]]
        other_start = other_starts[other_picks[number]]
        same = other_ends[other_picks[number]] - other_start == length
        place = 0
        while same and place < length:
            same = data[start + place] == other[other_start + place]
            place += 1
        found[number] = same


@compiled
def measure_pairs(
    runs: NDArray[np.int64], edges: Indices, x: Indices, y: Indices, picks: Indices, bounds: Indices, offsets: Indices
) -> None:
    """Where each piece of an answer ends that `lay_out_pairs` is going to write; `offsets[0]` is 0.

    A pick is the number of a pair, or the complement of the number of a piece that is ready, as in `measure`.
    A run is (side, place): the bytes it takes of an item stand between two `edges`, of which item 0's are at `place`.
    """
    for number in range(len(picks)):
        pick = picks[number]
        size = 0
        if pick < 0:
            size = bounds[-pick] - bounds[-pick - 1]
        else:
            for run in range(len(runs)):
                edge = runs[run, 1] + (y[pick] if runs[run, 0] else x[pick])
                size += edges[edge + 1] - edges[edge]
        offsets[number + 1] = offsets[number] + size


@compiled
def lay_out_pairs(
    runs: NDArray[np.int64],
    edges: Indices,
    store: Bytes,
    x: Indices,
    y: Indices,
    picks: Indices,
    ready: Bytes,
    bounds: Indices,
    out: Bytes,
) -> None:
    """Write the pieces of an answer one behind the other; what the arguments are says `measure_pairs`.

    Runs are copied `STRIDE` bytes at a time; what is too much is overwritten by what follows, so `store` and `out`
    have that much room behind their ends.
    """
    at = np.uint64(0)  # unsigned, because then no place has to be looked at twice for being negative
    for number in range(len(picks)):
        pick = picks[number]
        if pick < 0:
            for place in range(bounds[-pick - 1], bounds[-pick]):
                out[at] = ready[place]
                at += np.uint64(1)
            continue
        for run in range(len(runs)):
            edge = runs[run, 1] + (y[pick] if runs[run, 0] else x[pick])
            start = np.uint64(edges[edge])
            size = np.uint64(edges[edge + 1]) - start
            done = np.uint64(0)
            while done < size:
                for place in range(STRIDE):
                    out[at + done + np.uint64(place)] = store[start + done + np.uint64(place)]
                done += np.uint64(STRIDE)
            at += size
