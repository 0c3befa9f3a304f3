"""Windows that need their items: LAWS 3.1 to 3.3, as the items come.

Held are the nodes that an open window has, and no other.
A window is answered when the stream has reached its end, in the order of the windows, and only if it holds something;
so a jump of the values over a million windows costs nothing.
A count window is one over the numbers of the selected nodes: the window with the nodes `[j*M, j*M + D)` is full when
that many have come, and at the end of the input those that are not full give nothing.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pyarrow as pa

from anabranch.branch.answers import Answers
from anabranch.branch.judging import Judge
from anabranch.branch.keeping import HELD, Held, Kept, Shelf
from anabranch.branch.merge import Signal
from anabranch.reference.standing import Standing
from anabranch.reference.windows import Reach


class Windows:
    """The operator for one windowed `for`."""

    def __init__(self, standing: Standing, shelf: Shelf, answers: Answers) -> None:
        self.judge = Judge(0, standing, shelf, answers)
        self._extent = self.judge.extent
        self._shelf = shelf
        self._answers = answers
        self._held: list[Held] = []
        self._next = 0  # the first window that is not answered yet
        self._due: int | None = None  # the first of them that holds something

    def item(self, kept: Kept) -> None:
        """Take the next item."""
        for held in self.judge.item(kept):
            if held is not None:
                self.hold(held)
            self.close(self.judge.reached)

    def signal(self, signal: Signal) -> None:
        """Take a punctuation or the end of a partition."""
        self.judge.signal(signal)
        self.close(self.judge.reached)

    def finish(self) -> None:
        """The input has ended; a count window that is not full gives nothing."""
        if self.judge.timed:
            self.close(math.inf)

    def hold(self, held: Held) -> None:
        """Take a node that is selected into the windows that have it and are still to come."""
        self._next = max(self._next, self.judge.first_window)
        k = max(self._next, self._extent.first(held.value))
        if self._extent.start(k) <= held.value:
            self._held.append(held)
            self._due = k if self._due is None else min(k, self._due)

    def close(self, reached: Reach | None) -> None:
        """Answer all windows that end at or before `reached`."""
        while reached is not None and self._due is not None and self._extent.end(self._due) <= reached:
            start, end = self._extent.start(self._due), self._extent.end(self._due)
            content = [each for each in self._held if start <= each.value < end]
            nodes = [each.node for each in content]
            self._answers.give(content[0].kept, partial(self._shelf.units.window, nodes))
            self._next = self._due + 1
            start = self._extent.start(self._next)
            self._held = [each for each in self._held if each.value >= start]
            self._due = self._first_due()

    def _first_due(self) -> int | None:
        least = min((each.value for each in self._held), default=None)
        return None if least is None else max(self._next, self._extent.first(least))

    # --- between epochs -----------------------------------------------------------------------------------

    def held(self) -> list[Held]:
        """All that the branch must be able to show again."""
        return self._held

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """What must be remembered beside that."""
        table = pa.Table.from_pylist([each.row() for each in self._held], schema=HELD)
        return {"next": self._next, "progress": self.judge.save()}, {"held": table}

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Take in what `save` gave."""
        self._next = meta["next"]
        self.judge.restore(meta["progress"])
        self._held = [self._shelf.held(row) for row in tables["held"].to_pylist()]
        self._due = self._first_due()
