"""The step join over columns (LAWS 3.5): the same movements and tuples as `law/rounds/joins.py`, in blocks.

A window only ever moves to a position at which a waiting item enters: the positions between only drop items, which the
next one drops as well.
The position of an item is known when it arrives, because its window cannot pass it before it has entered.
So the cost of a movement does not depend on its distance.

Each movement at which all other sides hold items is a *meeting*: a span of items of each side, all of which meet.
Tuples are formed from meetings a block at a time, judged, and their answers laid out; they never exist all at once, and
most tuples that no query selects are not formed at all (`kernels.Guards`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.joins import kernels
from anabranch.columnar.joins.kernels import HIGH, LOW, NEXT, STEP, WAITING, Guards, LaneState
from anabranch.columnar.scan.kernels import Bytes, Indices

BLOCK = 1 << 15
"""The number of tuples that are judged at a time, such that they stay in a core's cache."""
MEETINGS = 1 << 12
Picks = NDArray[np.int64]
"""Items of some tuples by their numbers, a row for each side."""
NO_GUARDS = Guards(np.empty((0, 3), np.int64), np.empty((0, 0), np.float64))


@dataclass(frozen=True, slots=True)
class Lane:
    """One side of a join: its window, all in one unit, and its items.

    Items are numbered: first those it holds, then those that wait, then those that arrive, each in their order.
    """

    input: int
    """The input that it reads."""
    size: int
    step: int
    next: int
    """The position that the window moves to next."""
    held: int
    waiting: int
    values: Indices
    reached: Indices
    """How far the window may move when each item has arrived."""
    status: Bytes
    """The status of arriving items: `VOID`, `SHOWN` or `SELECTED`."""
    timed: bool = True
    """Whether the window closes at the end of the input; a count window does not, since it is not full."""


class StepJoinLanes:
    """The lanes of a join while items arrive; only `tuples` changes their state."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        sizes = [len(each.values) for each in lanes]
        self._bases = np.cumsum([0, *sizes[:-1]])
        values, reached, status = (
            np.concatenate([getattr(each, name) for each in lanes]) for name in ("values", "reached", "status")
        )
        sides = np.zeros((len(lanes), kernels.FIELDS), np.int64)
        waiting, logs = (np.empty((len(lanes), max(sizes) + more), np.int64) for more in (1, 2))
        self._lanes = LaneState(values, reached, status, np.empty(len(values), np.int64), sides, waiting, logs)
        for side, (lane, base) in enumerate(zip(lanes, self._bases, strict=True)):
            window, arriving = sides[side], base + lane.held + lane.waiting
            window[[kernels.INPUT, kernels.SIZE, STEP]] = lane.input, lane.size, lane.step
            window[[kernels.TIMED, NEXT, kernels.SOONEST]] = lane.timed, lane.next, kernels.NEVER
            window[[HIGH, kernels.ARRIVING]] = lane.held, arriving
            logs[side, : lane.held] = base + np.arange(lane.held)
            for item in range(base + lane.held, arriving):
                kernels.wait(window, item, values[item], self._lanes.positions, waiting[side])

    def tuples(
        self, arrivals: Indices, *, ended: bool, placed: bool = False, guards: Guards = NO_GUARDS
    ) -> Iterator[tuple[Picks, NDArray[np.int64]]]:
        """Let items arrive, each from the input that is given; yields the tuples, by number, in order.

        Tuples that fail a guard are left out.
        If `placed`, each comes with the positions of all windows at that time.
        The arrays are overwritten by the next block.
        """
        sides = len(self._bases)
        picks = np.empty((sides, BLOCK), np.int64)
        places = np.empty((sides, BLOCK if placed else 0), np.int64)
        moved = np.zeros(3, np.int64)
        while not moved[2]:
            room = max(MEETINGS, int(self._lanes.sides[:, WAITING].max()) + 2)
            meetings = np.empty((room, 1 + 3 * sides), np.int64)
            meetings = meetings[: kernels.move(arrivals, moved, ended, self._lanes, meetings)]
            done = np.zeros(1 + sides, np.int64)
            while done[0] < len(meetings):
                count = kernels.tuples(meetings, self._lanes.logs, self._bases, guards, done, picks, places)
                if count:
                    yield picks[:, :count], places[:, :count]
            self._make_room()

    def _make_room(self) -> None:
        """Drop the parts of logs that no meeting needs any more."""
        sides, logs = self._lanes.sides, self._lanes.logs
        for side, (window, log) in enumerate(zip(sides, logs, strict=True)):
            held = self._held(side)
            log[: len(held)] = held
            window[LOW], window[HIGH] = 0, len(held)
        most = 2 * int(sides[:, HIGH].max()) + int(sides[:, WAITING].max()) + 2
        if most > logs.shape[1]:
            more = np.empty((len(sides), most), np.int64)
            self._lanes = self._lanes._replace(logs=np.concatenate([logs, more], axis=1))

    def _held(self, side: int) -> Indices:
        window = self._lanes.sides[side]
        items = self._lanes.logs[side, window[LOW] : window[HIGH]]
        held: Indices = items[self._lanes.values[items] >= (window[NEXT] - 1) * window[STEP]]
        return held

    def next(self, side: int) -> int:
        """The position that a side moves to next."""
        return int(self._lanes.sides[side, NEXT])

    def held(self, side: int) -> Indices:
        """The numbers of the items that a side holds, in order."""
        found: Indices = self._held(side) - self._bases[side]
        return found

    def waiting(self, side: int) -> Indices:
        """The numbers of the items that wait, in order."""
        found: Indices = self._lanes.waiting[side, : self._lanes.sides[side, WAITING]] - self._bases[side]
        return found
