"""How much a question may cost: what is asked of predicates can take exponential time, and must not."""

from __future__ import annotations

MOST = 500
"""Steps of about 100 microseconds, most questions take less than ten."""


class TooLong(Exception):
    """The question is left open."""


class Effort:
    """The steps that one search has left; it is handed down through all that work for the search."""

    def __init__(self, steps: int = MOST) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take so many steps; TooLong if there are none left."""
        self.left -= steps
        if self.left < 0:
            raise TooLong
