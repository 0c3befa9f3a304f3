"""What one windowed `for` makes of an element: which nodes it selects, where they stand, and which are late.

That does not depend on the size of its window, so queries that differ in no more share it.

Nodes that are not selected still show how far the stream is, and what is late (LAWS 3.2).
Where the predicates fail, or a selected node has no reference value, that is set aside, once (LAWS 2.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from anabranch.algebra.window import Extent
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.members import Everyone
from anabranch.branch.ports import InputStream
from anabranch.branch.state import fraction, reach, written
from anabranch.columnar.scan.kernels import Indices
from anabranch.language import ast
from anabranch.law.paths import base_of
from anabranch.law.rounds import windows
from anabranch.law.rounds.windows import Reach
from anabranch.law.slices import path_in_item
from anabranch.law.spelling import Spelling
from anabranch.runtime.standing import Standing
from anabranch.stream.cover import passed
from anabranch.stream.elements import Punctuation


class WindowProgress(windows.Progress):
    """The law's own judgement, which can be remembered; values are those from the stream's origin on."""

    def __init__(self, stream: InputStream) -> None:
        super().__init__(stream.source.slack, len(stream.source.partitions))
        self._late = stream.late

    def largest(self, partition: int) -> Reach | None:
        """The largest value that a partition has shown; infinity where it has ended."""
        return self._largest.get(partition)

    def first_window(self, extent: Extent) -> int:
        """The first window that the subscription sees whole; 0 unless it came late."""
        return extent.from_start(self.first) if self._late and self.first is not None else 0

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
        self.timed = isinstance(clause.window, ast.TimeWindow)
        self._number = number
        self._path = None
        if isinstance(clause.window, ast.TimeWindow):
            names = Spelling(standing.env.namespaces, shelf.inputs[source.name].root.namespaces)
            self._path = path_in_item(clause.source, clause.window.reference, names)
        self.progress = WindowProgress(shelf.inputs[source.name])
        self._everyone = everyone
        self._arrived = 0

    def item(self, kept: HeldItem) -> Iterator[HeldNode | None]:
        """What an item shows, node by node: one that is selected, or None where it only shows how far the stream is.

        What is late, or has no reference value, shows nothing.
        """
        found = kept.candidates(self._number)
        if found.error is not None:
            self._everyone.bury(kept, found.error)
        for index, each in enumerate(found.nodes):
            if not self.timed:
                if each.selected:
                    yield HeldNode(self.next_number(), kept, self._number, index)
            elif each.value is None:
                if each.selected and each.error is not None:
                    self._everyone.bury(kept, each.error)
            elif self.progress.is_late(kept.entry.origin.partition, each.value):
                self._everyone.late(kept)
            else:
                yield HeldNode(each.value, kept, self._number, index) if each.selected else None

    def next_number(self) -> Fraction:
        """Where the next selected node stands in count windows; it has then arrived."""
        return Fraction(int(self.next_numbers(1)[0]))

    def next_numbers(self, count: int) -> Indices:
        """The same for several nodes."""
        self._arrived += count
        return np.arange(self._arrived - count, self._arrived)

    def count(self, nodes: int) -> None:
        """So many selected nodes have arrived, which were taken elsewhere."""
        self._arrived += nodes

    def signal(self, signal: StreamSignal) -> None:
        """A punctuation, or a partition's end, shows how far the stream is, and nothing else."""
        if self.timed:
            value = math.inf if signal.punctuation is None else self.covered(signal.stream, signal.punctuation)
            if value is not None:
                self.progress.passed(signal.partition, value)

    def covered(self, stream: InputStream, punctuation: Punctuation) -> Reach | None:
        """What a punctuation covers all values below of."""
        value = passed(punctuation, self._path, stream.source.time)
        return None if value is None else value - stream.source.origin

    @property
    def reached(self) -> Reach | None:
        """How far the windows may move: by the values of the reference, or by how many nodes were selected."""
        return self.progress.reached if self.timed else Fraction(self._arrived)

    def first_window(self, extent: Extent) -> int:
        """The first window that the subscription sees whole; a count window begins with the subscription."""
        return self.progress.first_window(extent) if self.timed else 0

    def save(self) -> dict[str, Any]:
        return {"arrived": self._arrived, **self.progress.save()}

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave."""
        self._arrived = meta["arrived"]
        self.progress.restore(meta)
