"""How one windowed `for` judges an element: which nodes it selects, their reference values, and which are late.

That does not depend on the size of the window, so queries that differ only in their windows share it.

Nodes that are not selected still advance the stream, and so decide what is late (LAWS 3.2).
Where the predicates fail, or a selected node has no reference value, one dead letter is written (LAWS 2.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from anabranch.algebra.window import EARLIEST, Extent
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.members import Everyone
from anabranch.branch.ports import InputStream
from anabranch.branch.state import fraction, reach, written
from anabranch.columnar.scan.kernels import Indices
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.paths import base_of
from anabranch.law.rounds import windows
from anabranch.law.rounds.windows import Reach, SessionKey
from anabranch.runtime.standing import Standing
from anabranch.stream.cover import passed
from anabranch.stream.elements import Punctuation


class WindowProgress(windows.Progress):
    """The law's own progress of a stream, which can be saved; values count from the stream's origin."""

    def __init__(self, stream: InputStream, slack: Fraction) -> None:
        """`slack` is in units of the values."""
        super().__init__(slack, len(stream.source.partitions))
        self._late = stream.late

    def largest(self, partition: int) -> Reach | None:
        """The largest value that a partition has shown; infinity where it has ended."""
        return self._largest.get(partition)

    @property
    def first_seen(self) -> Fraction | None:
        """The first value that a late subscription has seen, which gets no window that reaches back before it."""
        return self.first if self._late else None

    def first_window(self, extent: Extent) -> int:
        """The first window that the subscription sees whole; any window unless it is a late subscription."""
        return EARLIEST if self.first_seen is None else extent.from_start(self.first_seen)

    @property
    def now(self) -> dict[str, Any] | None:
        """How far the stream has come, for a future (`branch/futures.py`); None where it cannot be compared."""
        if self.reached is None or self.reached == math.inf or (self._late and self.first is None):
            return None
        found: dict[str, Any] = self.save()["largest"]
        return found

    def save(self) -> dict[str, Any]:
        largest = {str(partition): written(value) for partition, value in self._largest.items()}
        return {"largest": largest, "first": written(self.first)}

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave."""
        found = {int(partition): reach(text) for partition, text in meta["largest"].items()}
        self._largest = {partition: value for partition, value in found.items() if value is not None}
        self.first = fraction(meta["first"])


class WindowSelection:
    """Judges elements for the `for` of one number; the only one to write its dead letters and late places."""

    def __init__(self, number: int, standing: Standing, shelf: Shelf, everyone: Everyone) -> None:
        clause = standing.fors[number]
        source = base_of(clause.source)
        assert isinstance(source, ast.Source)
        assert clause.window is not None
        self.stream = source.name
        self.timed = not isinstance(clause.window, ast.CountWindow)
        self._number = number
        stream = shelf.inputs[source.name]
        self._path = shelf.units.reference(number, stream.root)
        self.scale = shelf.scale(number, stream)
        """Origin, slack and time unit of the reference values."""
        self.progress = WindowProgress(stream, self.scale.slack)
        self._everyone = everyone
        self._arrived = 0

    def item(self, kept: HeldItem) -> Iterator[HeldNode | None]:
        """The nodes of an item: a selected node, or None for one that only shows how far the stream is.

        A node that is late, or has no reference value, gives nothing.
        """
        for _, held in self.keyed(kept):
            yield held

    def keyed(self, kept: HeldItem) -> Iterator[tuple[SessionKey, HeldNode | None]]:
        """The nodes as of `item`, with session keys; a node whose key fails is set aside, but shows the progress."""
        found = kept.candidates(self._number)
        if found.error is not None:
            self._everyone.bury(kept, found.error)
        for index, each in enumerate(found.nodes):
            if not self.timed:
                if each.selected:
                    yield None, HeldNode(self.next_number(), kept, self._number, index)
            elif each.value is None:
                if each.selected and each.error is not None:
                    self._everyone.bury(kept, each.error)
            elif self.progress.is_late(kept.entry.origin.partition, each.value):
                self._everyone.late(kept)
            elif isinstance(each.key, DynamicError):
                self._everyone.bury(kept, each.key)
                yield None, None
            else:
                yield each.key, HeldNode(each.value, kept, self._number, index) if each.selected else None

    def next_number(self) -> Fraction:
        """The number of the next selected node for count windows; the node counts as arrived."""
        return Fraction(int(self.next_numbers(1)[0]))

    def next_numbers(self, count: int) -> Indices:
        """The numbers of the next selected nodes."""
        self._arrived += count
        return np.arange(self._arrived - count, self._arrived)

    def count(self, nodes: int) -> None:
        """Count selected nodes that have arrived and were taken elsewhere."""
        self._arrived += nodes

    def signal(self, signal: StreamSignal) -> None:
        """A punctuation, or a partition's end, shows how far the stream is, and nothing else."""
        if self.timed:
            value = math.inf if signal.punctuation is None else self.covered(signal.stream, signal.punctuation)
            if value is not None:
                self.progress.passed(signal.partition, value)

    def covered(self, stream: InputStream, punctuation: Punctuation) -> Reach | None:
        """The value below which a punctuation promises that none follows."""
        value = passed(punctuation, self._path, stream.source.time)
        return None if value is None else value - self.scale.origin

    @property
    def reached(self) -> Reach | None:
        """How far the windows may move: by the values of the reference, or by how many nodes were selected."""
        return self.progress.reached if self.timed else Fraction(self._arrived)

    def first_window(self, extent: Extent) -> int:
        """The first window that the subscription sees whole; a count window begins with the subscription."""
        return self.progress.first_window(extent) if self.timed else 0

    def following(self, extent: Extent, following: int) -> int | None:
        """The first window that may still be answered, of which `following` says that it is not earlier.

        None where futures cannot be compared.
        """
        if not self.timed:
            return max(following, 0, extent.behind(Fraction(self._arrived)))
        if self.progress.now is None:
            return None
        return max(following, self.first_window(extent), extent.behind(Fraction(self.progress.reached or 0)))

    def future(self, base: int) -> Any:
        """How far the stream has come; where items are numbered, from the number `base` on."""
        return self.progress.now if self.timed else self._arrived - base

    def save(self) -> dict[str, Any]:
        return {"arrived": self._arrived, **self.progress.save()}

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave."""
        self._arrived = meta["arrived"]
        self.progress.restore(meta)
