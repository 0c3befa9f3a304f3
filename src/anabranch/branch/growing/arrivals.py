"""The order of entries that are numbered in the order of their arrival: that of their numbers."""

from __future__ import annotations

from collections.abc import Collection


class ArrivalNumbers:
    """An order of entries, and how many have been numbered."""

    def __init__(self) -> None:
        self.count = 0

    def in_order(self, some: Collection[int]) -> list[int]:
        """Some entries in the order of their arrival."""
        return sorted(some)

    def precedes(self, one: int, other: int) -> bool:
        """Whether one has come before the other."""
        return one < other


ARRIVALS = ArrivalNumbers()
"""An order for folds, which compare numbers only and count nothing."""
