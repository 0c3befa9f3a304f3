"""A cache of what branches made of their states, in the process that had them last.

A state is all that an answer depends on; but to make something of it again takes time, so it is kept when an epoch is
over, under a key that says all that it follows from.
It is given away once: the branch that takes it may change it, and puts it back when its epoch is known to count.
The cache is so small that a process with many branches does not grow with them.
"""

from __future__ import annotations

from typing import Any

_MOST_VALUES = 512
_MOST_WEIGHT = 250_000


class ProcessCache:
    """What is cached in one process."""

    def __init__(self) -> None:
        self._values: list[tuple[Any, Any, int]] = []

    def put(self, key: Any, value: Any, weight: int = 0) -> None:
        """Keep a value; where there are too many, the oldest go first."""
        if weight > _MOST_WEIGHT:
            return
        self._values.append((key, value, weight))
        while len(self._values) > _MOST_VALUES or sum(each for _, _, each in self._values) > _MOST_WEIGHT:
            del self._values[0]

    def take(self, key: Any) -> Any:
        """The value of a key, which is not in the cache any more; None for nothing."""
        for number, (known, value, _) in enumerate(self._values):
            if known == key:
                del self._values[number]
                return value
        return None


here = ProcessCache()
"""That of this process; tests put others in its place."""
