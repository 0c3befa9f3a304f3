"""A cache of what branches computed from their states, in the process that ran them last.

A state is all that an answer depends on; but restoring takes time, so a branch's objects are cached at the end of an
epoch, under a key of all that they follow from.
A value leaves the cache when it is taken: the branch may change it, and puts it back when its epoch is committed.
The cache is small, so that a process with many branches does not grow with them.
"""

from __future__ import annotations

from typing import Any

_MOST_VALUES = 512
_MOST_WEIGHT = 250_000


class ProcessCache:
    """The cache of one process."""

    def __init__(self) -> None:
        self._values: list[tuple[Any, Any, int]] = []

    def put(self, key: Any, value: Any, weight: int = 0) -> None:
        """Cache a value; where there are too many, the oldest are dropped."""
        if weight > _MOST_WEIGHT:
            return
        self._values.append((key, value, weight))
        while len(self._values) > _MOST_VALUES or sum(each for _, _, each in self._values) > _MOST_WEIGHT:
            del self._values[0]

    def take(self, key: Any) -> Any:
        """Remove and return the value of a key; None if it is missing."""
        for number, (known, value, _) in enumerate(self._values):
            if known == key:
                del self._values[number]
                return value
        return None


here = ProcessCache()
"""The cache of this process; tests replace it."""
