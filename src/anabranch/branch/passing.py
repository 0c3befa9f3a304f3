"""Items that answer one by one and still have an order to keep: that of several partitions, or of values in a row.

Nothing is held; what the branch remembers is how far its inputs are, and whether the answer so far ends with a value.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from anabranch.branch.answers import Answers
from anabranch.branch.keeping import Held, Kept, Shelf
from anabranch.branch.merge import Signal
from anabranch.reference.units import Piece


class Passing:
    """The operator for one `for` without a window."""

    def __init__(self, shelf: Shelf, answers: Answers) -> None:
        self._shelf = shelf
        self._answers = answers

    def item(self, kept: Kept) -> None:
        """Take the next item."""
        self._answers.give(kept, lambda: self.piece(kept))

    def piece(self, kept: Kept) -> Piece:
        """What an item adds to the answer."""
        return self._shelf.units.item(kept.stream.root, kept.item.tree)

    def signal(self, signal: Signal) -> None:
        """A query without state ignores punctuations."""

    def finish(self) -> None:
        """The input has ended, which changes nothing."""

    def held(self) -> list[Held]:
        """Nothing must be shown again."""
        return []

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """Nothing must be remembered."""
        return {}, {}

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Nothing was."""
