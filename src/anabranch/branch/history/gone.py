"""Regions of which nothing is kept but that their ids are taken (LAWS 5.3).

Several ids may be those of one region, and an update of it that contains another of it is bad; so each such region has
a number, by which those that have put it away and taken it back know it.
"""

from __future__ import annotations

from anabranch.reference.history.chains import Chain


class Gone:
    """The regions that are gone, by their numbers."""

    def __init__(self) -> None:
        self.next_number = 0
        self._numbers: dict[Chain, int] = {}
        self._chains: dict[int, Chain] = {}

    def number(self, chain: Chain) -> int:
        """The number of a region, a new one where it has none yet."""
        found = self._numbers.get(chain)
        if found is None:
            found = self._numbers[chain] = self.next_number
            self._chains[found] = chain
            self.next_number += 1
        return found

    def chain(self, number: int, depth: int, between: bool) -> Chain:
        """The region with a number, a new one where it is not known."""
        found = self._chains.get(number)
        if found is None:
            found = self._chains[number] = Chain(depth, between)
            self._numbers[found] = number
        return found
