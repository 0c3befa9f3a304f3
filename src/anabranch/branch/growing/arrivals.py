"""The order of entries that are numbered as they come."""

from __future__ import annotations

from collections.abc import Collection


class ArrivalNumbers:
    """The order of entries that are numbered as they come."""

    def __init__(self) -> None:
        self.count = 0

    def in_order(self, some: Collection[int]) -> list[int]:
        """Some entries as they have come."""
        return sorted(some)

    def precedes(self, one: int, other: int) -> bool:
        """Whether one has come before the other."""
        return one < other


ARRIVALS = ArrivalNumbers()
"""An order of nothing."""
