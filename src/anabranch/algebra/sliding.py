"""The fold of a sliding window, without starting anew at each step.

Two stacks make a queue: the newer elements lie in one, folded into a single value; the older in the other, each folded
with all newer ones there.
When the older ones run out, the newer ones are turned over.
So each element is merged about three times, however many windows it is in.
The merge must be associative and commutative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Sliding(Generic[T]):
    """A queue of elements with ascending keys that knows their fold."""

    def __init__(self, merge: Callable[[T, T], T]) -> None:
        self._merge = merge
        self._old: list[tuple[int, T]] = []
        self._new: list[tuple[int, T]] = []
        self._folded: T | None = None

    def push(self, key: int, element: T) -> None:
        """Add an element, whose key is the highest."""
        self._new.append((key, element))
        self._folded = element if self._folded is None else self._merge(self._folded, element)

    def drop(self, key: int) -> None:
        """Drop the elements below a key."""
        while True:
            while self._old and self._old[-1][0] < key:
                self._old.pop()
            if self._old or not self._new or self._new[0][0] >= key:
                return
            for each, element in reversed(self._new):
                self._old.append((each, self._merge(element, self._old[-1][1]) if self._old else element))
            self._new, self._folded = [], None

    def all(self) -> T | None:
        """The fold of all elements; None where there is none."""
        if not self._old:
            return self._folded
        return self._old[-1][1] if self._folded is None else self._merge(self._old[-1][1], self._folded)
