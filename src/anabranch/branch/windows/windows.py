"""Windows that hold their items: LAWS 3.1 to 3.3, item by item.

The operator holds the nodes that are in an open window, and no others.
A window is answered when the stream has reached its end, in the order of the windows, and only if it holds something;
so a jump of the values over a million windows costs nothing.
A count window is one over the numbers of the selected nodes: the window with the nodes `[j*M, j*M + D)` is full when
that many have come, and at the end of the input those that are not full give nothing.

Several queries over the same source are one operator: items are judged once, all windows refer to the same ones, and
queries with equal windows share their contents.

Items come one by one, or many at a time in columns (`columns.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from anabranch.algebra.window import EARLIEST, Extent
from anabranch.branch.futures import NEVER, digest, node_since
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf, placed_tables
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.members import Asker, Everyone
from anabranch.branch.windows.selection import WindowSelection
from anabranch.language import ast
from anabranch.law.bounds import WindowBounds, WindowValues
from anabranch.law.rounds.windows import Reach, extent_of
from anabranch.stream.path import TimeScale
from anabranch.values.placing import Moment


class WindowSequence:
    """The windows of one size and step, one behind the other, and the queries that have exactly these."""

    def __init__(self, extent: Extent, scale: TimeScale, askers: Sequence[Asker]) -> None:
        self.extent = extent
        self._scale = scale
        self.askers = askers
        self.held: list[HeldNode] = []
        self.next = EARLIEST
        """The first window that is not answered yet."""
        self.name = f"{extent.size}:{extent.step}"
        """Identifies its windows."""
        self._due: int | None = None  # the first of them that holds something

    def hold(self, held: HeldNode, first: int) -> None:
        """Take a node into the open windows that contain it; windows before `first` are not answered."""
        self.next = max(self.next, first)
        k = max(self.next, self.extent.first(held.value))
        if self.extent.start(k) <= held.value:
            self.held.append(held)
            self._due = k if self._due is None else min(k, self._due)

    def is_due(self, reached: Reach) -> bool:
        """Whether a window that holds something ends at or before `reached`."""
        return self._due is not None and self.extent.end(self._due) <= reached

    def close(self, reached: Reach) -> None:
        """Answer all windows that end at or before `reached`."""
        while self._due is not None and self.extent.end(self._due) <= reached:
            start, end = self.extent.start(self._due), self.extent.end(self._due)
            inside = (each for each in self.held if start <= each.value < end)
            content = [each for each in inside if self.extent.first(each.value) <= self._due]
            nodes = self.content(self._due, content)
            for asker in self.askers:
                asker.answers.give(content[0].kept, content, partial(asker.window, content, nodes))
            start = self.extent.start(self._due + 1)
            self.restore(self._due + 1, [each for each in self.held if each.value >= start])

    def content(self, k: int, held: Sequence[HeldNode]) -> WindowValues:
        """The value of window `k` for a query: its nodes and bounds."""
        return window_values(held, self.extent.start(k), self.extent.end(k), self._scale)

    def restore(self, following: int, held: list[HeldNode]) -> None:
        """Go on with the window `following`."""
        self.next = following
        self.go_on(held, min((max(following, self.extent.first(each.value)) for each in held), default=None))

    def go_on(self, held: list[HeldNode], due: int | None) -> None:
        """Hold other nodes; `due` is the first window that has one."""
        self.held, self._due = held, due


def window_values(held: Sequence[HeldNode], start: Fraction, end: Fraction, scale: TimeScale) -> WindowValues:
    """The nodes of a window, with its bounds, which are given as values are: from the origin of their scale on."""
    is_time = any(isinstance(each.value, Moment) for each in held)
    return WindowValues((each.node for each in held), WindowBounds(start, end, scale, is_time))


class ClosingColumns(Protocol):
    """Closes many windows at once."""

    def close(self, sequence: WindowSequence, reached: Reach) -> bool:
        """Answer windows that end at or before `reached`; False where it is left to the operator."""


class Windows:
    """The operator for one windowed `for`."""

    def __init__(self, askers: Sequence[Asker], shelf: Shelf) -> None:
        self.everyone = Everyone(askers)
        self.front: ClosingColumns | None = None
        """Closes windows in columns, where it can."""
        self.judge = WindowSelection(0, askers[0].standing, shelf, self.everyone)
        self._shelf = shelf
        found: dict[Extent, list[Asker]] = {}
        for asker in askers:
            window = asker.standing.fors[0].window
            assert isinstance(window, ast.CountWindow | ast.TimeWindow), "sessions have an operator of their own"
            found.setdefault(extent_of(window, self.judge.scale), []).append(asker)
        self.sequences = [WindowSequence(extent, self.judge.scale, those) for extent, those in found.items()]

    def item(self, kept: HeldItem) -> None:
        """Take the next item."""
        for held in self.judge.item(kept):
            if held is not None:
                self.hold(held)
            self.close(self.judge.reached)

    def signal(self, signal: StreamSignal) -> None:
        """Take a punctuation or the end of a partition."""
        self.judge.signal(signal)
        self.close(self.judge.reached)

    def finish(self) -> None:
        """The input has ended; a count window that is not full gives nothing."""
        if self.judge.timed:
            self.close(math.inf)

    def hold(self, held: HeldNode) -> None:
        """Take a node that is selected."""
        for each in self.sequences:
            each.hold(held, self.judge.first_window(each.extent))

    def close(self, reached: Reach | None) -> None:
        """Answer all windows that end at or before `reached`."""
        for each in self.sequences:
            if reached is None or not each.is_due(reached):
                continue
            if self.front is None or not self.front.close(each, reached):
                each.close(reached)

    # --- between epochs -----------------------------------------------------------------------------------

    def future(self, asker: Asker) -> str:
        """The future of one query (`branch/futures.py`)."""
        (sequence,) = (each for each in self.sequences if any(one is asker for one in each.askers))
        extent = sequence.extent
        following = self.judge.following(extent, sequence.next)
        if following is None:
            return NEVER
        start = extent.start(following)
        base, number = (Fraction(0), following) if self.judge.timed else (start, 0)
        left = [node_since(each, self._shelf.taken, base) for each in sequence.held if each.value >= start]
        return digest(number, self.judge.future(int(base)), left)

    def held(self) -> list[HeldNode]:
        """All nodes that the branch holds."""
        return [held for each in self.sequences for held in each.held]

    def loads(self) -> Iterator[tuple[Sequence[Asker], int]]:
        """How many nodes queries hold."""
        return ((each.askers, len(each.held)) for each in self.sequences)

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The rest of the state."""
        meta = {"next": {each.name: each.next for each in self.sequences}, "progress": self.judge.save()}
        return meta, placed_tables((each.name, held, None) for each in self.sequences for held in each.held)

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Restore from `save`; nodes that only removed queries held are dropped."""
        self.judge.restore(meta["progress"])
        held: dict[str, list[HeldNode]] = {each.name: [] for each in self.sequences}
        for name, each, _ in self._shelf.placed(tables):
            if name in held:
                held[name].append(each)
        for sequence in self.sequences:
            sequence.restore(meta["next"].get(sequence.name, EARLIEST), held[sequence.name])
