"""Items that answer one by one and still have an order to keep: that of several partitions, or of values in a row.

Nothing is held; what the branch remembers is how far its inputs are, and whether each answer so far ends with a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from anabranch.branch.held_items import Held, Kept
from anabranch.branch.intake.merge import Signal
from anabranch.branch.members import Asker


class Passing:
    """The operator for one `for` without a window, of one query or several."""

    def __init__(self, askers: Sequence[Asker]) -> None:
        self.askers = askers

    def item(self, kept: Kept) -> None:
        """Take the next item."""
        for asker in self.askers:
            asker.answers.give(kept, (), partial(asker.item, kept))

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
